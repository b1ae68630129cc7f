//! How long it takes from an answer until the tool runs, and what the hook costs that waits for the answer.
//!
//! `cargo xtask bench answer` runs it with more rounds than the tests do, and shows the tables that it prints.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use test_support::{Answer, Messages, Model, until_within};

use crate::claude_answers::until_asked;
use crate::environment::{ClientEnvironment, DEADLINE};

/// A number from the environment, which the benchmark sets.
pub(crate) fn setting(name: &str, default: u32) -> u32 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock")
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn from_the_answer_to_the_tool() {
    let rounds = setting("RINGER_ROUNDS", 2);
    let watched = Duration::from_secs(setting("RINGER_BENCH_IDLE", 1).into());
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let mut terminal =
        environment.start_in_terminal("claude", &["--permission-mode", "default", "go on, please"]);
    model.request();
    let (mut by_command, mut by_key) = (Vec::new(), Vec::new());
    for round in 0..2 * rounds {
        let file = environment.project().join(format!("at-{round}"));
        let command = format!("date +%s%N > '{}'", file.display());
        model.answer(Answer::tool("Bash", json!({ "command": command, "description": "what time is it" })));
        until_asked(&environment);
        if round == 0 {
            print_cost(&environment, watched);
        }
        let start = now();
        let times = if round % 2 == 0 {
            let (code, said) = environment.try_ringer(&["answer", "last", "allow"]);
            assert_eq!(code, 0, "{said}");
            &mut by_command
        } else {
            terminal.press("\r");
            &mut by_key
        };
        model.request();
        let ran: u64 = fs::read_to_string(&file).expect("the tool ran").trim().parse().expect("a time");
        times.push(Duration::from_nanos(ran).saturating_sub(start));
        environment.until_open(0);
    }
    let base = percentile(&mut by_key, 50);
    eprintln!("| answer → tool ({rounds} each, in turn) | p50 | p99 | p50 ratio |\n|---|---:|---:|---:|");
    for (name, times) in [("`ringer answer ID allow`", &mut by_command), ("Enter in the dialog", &mut by_key)]
    {
        let [p50, p99] = [50, 99].map(|percent| percentile(times, percent));
        eprintln!("| {name} | {p50:.1} ms | {p99:.1} ms | {:.2} × |", p50 / base);
    }
}

/// The nearest rank, in milliseconds.
pub(crate) fn percentile(times: &mut [Duration], percent: usize) -> f64 {
    times.sort_unstable();
    let rank = (times.len() * percent).div_ceil(100);
    times[rank - 1].as_secs_f64() * 1e3
}

/// What the hook beside the open dialog takes, and how often it is woken while nothing happens.
fn print_cost(environment: &ClientEnvironment, watched: Duration) {
    let hooks = environment.waiting_hooks();
    let [hook] = hooks[..] else { panic!("one hook waits: {hooks:?}") };
    // It gives its pages back just before it sleeps.
    until_within(DEADLINE, "the hook sleeps", || of_process(hook, "status", "State:").starts_with('S'));
    let switches = || {
        ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"].map(|name| number(hook, "status", name))
    };
    let before = switches();
    sleep(watched); // tidy: sleep is the thing under test
    let woken = switches();
    let memory = |name: &str| number(hook, "smaps_rollup", name);
    let own = memory("Private_Clean:") + memory("Private_Dirty:");
    let [voluntary, involuntary] = [0, 1].map(|kind| woken[kind] - before[kind]);
    eprintln!(
        "| a hook that waits, {} s | RSS | PSS | USS | voluntary context switches | involuntary |",
        watched.as_secs()
    );
    eprintln!("|---|---:|---:|---:|---:|---:|");
    let (resident, shared) = (memory("Rss:"), memory("Pss:"));
    eprintln!(
        "| beside a dialog of Claude Code | {resident} kB | {shared} kB | {own} kB | {voluntary} | {involuntary} |\n"
    );
}

fn number(pid: u32, file: &str, name: &str) -> u64 {
    let text = of_process(pid, file, name);
    text.trim_end_matches(" kB").parse().expect("a number")
}

/// What the kernel says of a process.
fn of_process(pid: u32, file: &str, name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).expect("it runs");
    text.lines().find_map(|line| line.strip_prefix(name)).expect("Linux tells it").trim().to_owned()
}
