//! Commands and webhooks.

use std::fs;

use ringer_core::message::Tag;
use ringer_core::{Draft, Kind};
use serde_json::Value;
use test_support::{DEADLINE, WebResponse, serve, until};

use crate::hub::{Sink, TestHub, draft};

#[test]
fn the_command_gets_the_text_by_its_environment_and_input_only() {
    let directory = tempfile::tempdir().expect("a directory");
    let (seen, input) = (directory.path().join("seen"), directory.path().join("input"));
    let script = "env > \"$0.new\"; cat > \"$1\"; mv \"$0.new\" \"$0\"";
    let command = serde_json::json!(["sh", "-c", script, seen, input, "--blue"]);
    let hub = TestHub::start(&format!("[notify]\npopup = \"off\"\ncommand = {command}\n"));
    let message = Draft { title: Some("Build".to_owned()), ..draft("$(reboot)\n--help") };
    let id = hub.append(&message);
    hub.wait_for_step(&id, "command: ran");
    let seen = fs::read_to_string(seen).expect("it ran");
    assert!(seen.contains("RINGER_NOTIFICATION_TITLE=Build\n"), "{seen}");
    assert!(seen.contains("RINGER_NOTIFICATION_BODY=$(reboot)\n--help\n"), "{seen}");
    assert!(seen.contains(&format!("RINGER_NOTIFICATION_ID={id}\n")), "{seen}");
    let input: Value = serde_json::from_slice(&fs::read(input).expect("its input")).expect("JSON");
    assert_eq!(
        (&input["body"], &input["kind"]),
        (&"$(reboot)\n--help".into(), &"complete".into()),
        "{input}"
    );
}

#[test]
fn a_command_that_fails_is_told_and_the_next_one_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    let sink = Sink::new(directory.path());
    let hub =
        TestHub::start("[notify]\npopup = \"off\"\ncommand = [\"sh\", \"-c\", \"echo no >&2; exit 3\"]\n");
    let id = hub.send("one");
    let trail = hub.wait_for_step(&id, "command failed: ");
    assert!(trail.iter().any(|step| step.contains("no")), "{trail:?}");
    hub.set(&format!("[notify]\npopup = \"off\"\n{}", sink.command()));
    hub.send("two");
    sink.wait_for(&["two"]);
}

#[test]
fn a_webhook_is_called_and_called_again() {
    let (address, sent) = serve(["503 Busy", "200 OK", "200 OK"].map(WebResponse::Status).to_vec());
    let webhook = format!(
        "[[webhook]]\nid = \"phone\"\nkind = \"json\"\nurl = \"{address}/x\"\nkinds = [\"complete\"]\n"
    );
    let hub = TestHub::start(&format!("[notify]\npopup = \"off\"\n{webhook}"));
    let id = hub.send("hello");
    for _ in 0..2 {
        let told = sent.recv_timeout(DEADLINE).expect("a call");
        assert_eq!(told.line, "POST /x HTTP/1.1");
        let body: Value = serde_json::from_str(&told.body).expect("JSON");
        assert!(body.to_string().contains("hello"), "{body}");
    }
    hub.wait_for_step(&id, "webhook: sent to phone");
    let status = hub.append(&Draft { tag: Tag::Notice(Kind::Status), ..draft("not asked for") });
    hub.wait_for_step(&status, "webhook: no webhook wants this kind");
    assert!(sent.try_recv().is_err());
}

#[test]
fn a_webhook_that_is_given_up_is_a_dead_letter() {
    let (address, sent) = serve(vec![WebResponse::Status("400 No")]);
    let webhook = format!("[[webhook]]\nid = \"phone\"\nkind = \"json\"\nurl = \"{address}/x\"\n");
    let hub = TestHub::start(&format!("[notify]\npopup = \"off\"\n{webhook}"));
    let id = hub.send("hello");
    sent.recv_timeout(DEADLINE).expect("a call");
    hub.wait_for_step(&id, "webhook failed: ");
    let mut dead = Vec::new();
    until("it is a dead letter", || {
        dead = hub.memory().dead_letters().expect("letters");
        !dead.is_empty()
    });
    assert!(dead[0].id == id && dead[0].why.contains("phone") && dead[0].why.contains("400"), "{dead:?}");
}

#[test]
fn what_was_under_way_when_a_hub_ended_is_done_by_the_next() {
    let directory = tempfile::tempdir().expect("a directory");
    let sink = Sink::new(directory.path());
    let mut hub = TestHub::start("[notify]\npopup = \"off\"\ncommand = [\"sleep\", \"1000\"]\n");
    let id = hub.send("hello");
    until("it runs", || hub.call("hub.status", &Value::Null)["under_way"] == 1);
    hub.end();
    fs::write(hub.path("config.toml"), format!("[notify]\npopup = \"off\"\n{}", sink.command()))
        .expect("a file");
    hub.begin();
    sink.wait_for(&["hello"]);
    hub.wait_for_step(&id, "command: ran");
    assert!(hub.memory().outbox().expect("an outbox").is_empty());
}
