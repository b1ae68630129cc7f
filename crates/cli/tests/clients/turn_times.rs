//! What the hooks add to a turn.
//!
//! `cargo xtask bench turn` runs it with more rounds than the tests do, and shows the table that it prints.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;
use test_support::{Answer, Messages, Model};

use crate::answer_times::{percentile, setting};
use crate::environment::ClientEnvironment;

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_turn_of_tools_with_and_without_hooks() {
    let rounds = setting("RINGER_ROUNDS", 1);
    let tools = setting("RINGER_TOOLS", 3);
    let thinking = Duration::from_millis(setting("RINGER_THINKING_MS", 0).into());
    let model = Model::new(&Messages);
    let with_hooks = ClientEnvironment::for_claude(&model);
    let without = ClientEnvironment::for_claude(&model).without_hooks();
    let (mut ringer, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        ringer.push(turn(&with_hooks, &model, tools, thinking));
        plain.push(turn(&without, &model, tools, thinking));
    }
    assert_eq!(with_hooks.kinds().len(), ringer.len(), "each turn was told");
    assert!(without.kinds().is_empty(), "{:?}", without.kinds());
    let base = percentile(&mut plain, 50);
    eprintln!(
        "| a turn of {tools} tools, a model that thinks {} ms ({rounds} each, in turn) | p50 | ratio |\n|---|---:|---:|",
        thinking.as_millis()
    );
    for (name, times) in [("with Ringer's hooks", &mut ringer), ("without", &mut plain)] {
        let p50 = percentile(times, 50);
        eprintln!("| {name} | {p50:.0} ms | {:.3} × |", p50 / base);
    }
}

/// The time from the first request of a turn to its last.
fn turn(environment: &ClientEnvironment, model: &Model, tools: u32, thinking: Duration) -> Duration {
    let session = environment.start("claude", &["-p", "do it", "--allowedTools", "Bash"]);
    let mut request = model.request();
    assert_eq!(request.count_new("do it"), 1);
    let start = Instant::now();
    for number in 0..tools {
        sleep(thinking); // tidy: sleep is the thing under test
        let command = format!("echo tool {number}");
        model.answer(Answer::tool("Bash", json!({ "command": command, "description": "say it" })));
        request = model.request();
        assert_eq!(request.count_new(&format!("tool {number}")), 1, "{}", request.news());
    }
    let took = start.elapsed();
    model.answer(Answer::Text("all done"));
    session.end();
    took
}
