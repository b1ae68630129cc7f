//! Snapshots of reports that a hub has a part in.

use serde_json::json;
use test_support::until;

use super::agent_shell::AgentShell;
use super::environment::HubEnvironment;
use crate::snapshot::Transcript;

fn run(transcript: &mut Transcript, environment: &HubEnvironment, line: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    transcript.run(&format!("ringer {line}"), &mut environment.ringer(&words));
}

fn why(transcript: &mut Transcript, environment: &HubEnvironment, id: &str) {
    transcript.run("ringer why <id>", &mut environment.ringer(&["why", id]));
    transcript.run("ringer why <id> --json", &mut environment.ringer(&["why", id, "--json"]));
}

/// Waits until nothing is queued or on its way.
pub(super) fn wait_until_delivered(environment: &HubEnvironment) {
    until("everything is delivered", || {
        let status = environment.json(&["hub", "status", "--json"]);
        ["behind", "undecided", "under_way"].iter().all(|name| status[name] == 0)
    });
}

#[test]
fn why_a_notification_was_shown() {
    // One channel only: two would report in any order.
    let settings = "[notify]\nrate_limit = \"off\"\npopup = \"terminal\"\nmute = [{ agent = \"noisy\" }]\n";
    let environment = HubEnvironment::with_settings(settings);
    let mut transcript = Transcript::new(environment.base.path());
    let shown = environment.notify(&["--from", "worker-1", "--title", "Build", "it is green"]);
    wait_until_delivered(&environment);
    why(&mut transcript, &environment, &shown);
    let muted = environment.notify(&["--from", "noisy", "again"]);
    wait_until_delivered(&environment);
    why(&mut transcript, &environment, &muted);
    environment.run(&["read", &shown]);
    wait_until_delivered(&environment);
    why(&mut transcript, &environment, &shown);
    transcript.check("why");

    let mut transcript = Transcript::new(environment.base.path());
    for line in ["list", "list --unread", "hub status", "hub stop", "hub status"] {
        run(&mut transcript, &environment, line);
    }
    transcript.check("hub");
}

#[test]
fn why_an_agent_has_a_message_or_not() {
    let environment = HubEnvironment::new();
    let mut transcript = Transcript::new(environment.base.path());
    let unknown = environment.notify(&["--from", "worker-1", "--to", "worker-9", "only for you"]);
    wait_until_delivered(&environment);
    why(&mut transcript, &environment, &unknown);

    let mut shell = AgentShell::start(&environment);
    shell.hook("SessionStart", &json!({}));
    shell.hook("UserPromptSubmit", &json!({}));
    let status = environment.json(&["status", "--json"]);
    let agent = status["agents"][0]["id"].as_str().expect("an agent").to_owned();
    transcript.run("ringer why --agent claude-…", &mut environment.ringer(&["why", "--agent", &agent]));
    let known = environment.notify(&["--from", "worker-1", "--to", &agent, "for you"]);
    wait_until_delivered(&environment);
    why(&mut transcript, &environment, &known);
    transcript.check("why-agent");
}
