//! Snapshots of reports that a hub has a part in.

use test_support::until;

use super::environment::HubEnvironment;
use crate::ringer::check_with_input;
use crate::snapshot::Transcript;

fn run(transcript: &mut Transcript, world: &HubEnvironment, line: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    transcript.run(&format!("ringer {line}"), &mut world.ringer(&words));
}

fn why(transcript: &mut Transcript, world: &HubEnvironment, id: &str) {
    transcript.run("ringer why <id>", &mut world.ringer(&["why", id]));
    transcript.run("ringer why <id> --json", &mut world.ringer(&["why", id, "--json"]));
}

/// Waits until nothing is queued or on its way.
fn wait_until_delivered(world: &HubEnvironment) {
    until("everything is delivered", || {
        let status = world.json(&["hub", "status", "--json"]);
        ["behind", "undecided", "under_way"].iter().all(|name| status[name] == 0)
    });
}

#[test]
fn why_a_notification_was_shown() {
    // One channel only: two would report in any order.
    let settings = "[notify]\nrate_limit = \"off\"\npopup = \"terminal\"\nmute = [{ agent = \"noisy\" }]\n";
    let world = HubEnvironment::with_settings(settings);
    let mut transcript = Transcript::new(world.environment.path());
    let shown = world.notify(&["--from", "worker-1", "--title", "Build", "it is green"]);
    wait_until_delivered(&world);
    why(&mut transcript, &world, &shown);
    let muted = world.notify(&["--from", "noisy", "again"]);
    wait_until_delivered(&world);
    why(&mut transcript, &world, &muted);
    world.run(&["read", &shown]);
    wait_until_delivered(&world);
    why(&mut transcript, &world, &shown);
    transcript.check("why");

    let mut transcript = Transcript::new(world.environment.path());
    for line in ["list", "list --unread", "hub status", "hub stop", "hub status"] {
        run(&mut transcript, &world, line);
    }
    transcript.check("hub");
}

#[test]
fn why_an_agent_has_a_message_or_not() {
    let world = HubEnvironment::new();
    let mut transcript = Transcript::new(world.environment.path());
    let unknown = world.notify(&["--from", "worker-1", "--to", "worker-9", "only for you"]);
    wait_until_delivered(&world);
    why(&mut transcript, &world, &unknown);

    let event = |name: &str| {
        let mut hook = world.ringer(&["hook", "claude", name]);
        let repository = world.environment.repository();
        let input = serde_json::json!({ "hook_event_name": name, "session_id": "0123456789", "cwd": repository, "prompt": "go on", "source": "startup" });
        check_with_input(&mut hook, input.to_string().as_bytes());
    };
    event("SessionStart");
    event("UserPromptSubmit");
    let status = world.json(&["status", "--json"]);
    let agent = status["agents"][0]["id"].as_str().expect("an agent").to_owned();
    transcript.run("ringer why --agent claude-…", &mut world.ringer(&["why", "--agent", &agent]));
    let known = world.notify(&["--from", "worker-1", "--to", &agent, "for you"]);
    wait_until_delivered(&world);
    why(&mut transcript, &world, &known);
    transcript.check("why-agent");
}
