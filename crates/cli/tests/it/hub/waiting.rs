//! `ringer wait`: until an agent is in a state.

use std::process::{Child, Stdio};

use serde_json::json;

use super::environment::HubEnvironment;
use crate::ringer::check_with_input;

fn hook(environment: &HubEnvironment, event: &str) {
    let input =
        json!({ "hook_event_name": event, "session_id": "8d0c4e3a-1", "prompt": "go", "reason": "other" });
    check_with_input(&mut environment.ringer(&["hook", "claude", event]), input.to_string().as_bytes());
}

fn begin(environment: &HubEnvironment, arguments: &[&str]) -> Child {
    let mut command = environment.ringer(&[&["wait", "claude-8d0c4e3a"], arguments].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

#[track_caller]
fn check_end(waiting: Child, exit: i32, said: &str) {
    let output = waiting.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert_eq!(output.status.code(), Some(exit), "{text}");
    assert!(text.contains(said), "{text}");
}

#[test]
fn waiting_for_an_agent_ends_when_it_is_so() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    hook(&environment, "SessionStart");
    hook(&environment, "UserPromptSubmit");
    check_end(begin(&environment, &["--timeout", "100ms"]), 75, "is not there yet");
    let waiting = [begin(&environment, &[]), begin(&environment, &["--until", "idle"])];
    hook(&environment, "Stop");
    for one in waiting {
        check_end(one, 0, ": done\n");
    }
    check_end(begin(&environment, &[]), 0, ": done\n");
    check_end(begin(&environment, &["--next", "--timeout", "100ms"]), 75, "is not there yet");
    let waiting = begin(&environment, &["--until", "needs-me"]);
    hook(&environment, "SessionEnd");
    check_end(waiting, 69, "has ended");
    check_end(begin(&environment, &["--until", "ended", "--json"]), 0, "\"state\":\"exited\"");
    assert!(environment.fails(&["wait", "nobody"], 65).contains("nobody"));
}
