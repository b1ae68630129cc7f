//! With a hub: notifications are its own, and what the person looks at is read.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ringer_term::{NotificationStripper, TerminalEventKind};
use serde_json::json;
use test_support::until;

use super::bytes::recordings;
use super::pane::{RINGER, output_of};
use crate::hub::environment::{HubEnvironment, kill};
use crate::pty::Pane;

/// `ringer run` of a shell script in an environment, in a terminal that can report focus; the hub knows it.
fn attached(environment: &HubEnvironment, options: &[&str], script: &str) -> Pane {
    environment.run(&["hub", "start"]);
    let mut variables = environment.variables();
    variables.push(("TERM".to_owned(), "xterm".to_owned()));
    let argv = [&[RINGER, "run"], options, &["--", "sh", "-c", script]].concat();
    let pane = Pane::start(&argv, &variables, Some(&environment.base.repository()));
    wait_until_attached(environment);
    pane
}

fn wait_until_attached(environment: &HubEnvironment) {
    until("run is a host", || {
        let surfaces = environment.connect().call("surface.list", &json!({}));
        surfaces["result"].as_array().is_some_and(|list| list.iter().any(|one| one["host"] == "run"))
    });
}

#[test]
fn the_notifications_of_real_clients_are_the_hubs_and_the_rest_is_the_terminals() {
    // A mark in front of the title would come between what the client writes.
    let settings = "[notify]\nrate_limit = \"off\"\npopup = \"off\"\ntitle_mark = \"off\"\n";
    let mut compared = 0;
    for recording in recordings() {
        let file = recording.to_str().expect("a path");
        let straight = output_of(&["cat", file]);
        let (mut filter, mut expected, mut said) = (NotificationStripper::new(), Vec::new(), Vec::new());
        filter.feed(
            &straight,
            true,
            |bytes| expected.extend_from_slice(bytes),
            |event| {
                if let TerminalEventKind::Notification(notification) = event.kind
                    && !notification.body.is_empty()
                {
                    said.push(notification.body);
                }
            },
        );
        if said.is_empty() {
            continue;
        }
        compared += 1;
        let environment = HubEnvironment::with_settings(settings);
        let script = format!("stty -echo; read go; printf '<<'; cat {file}; printf '>>'; read line");
        let mut pane = attached(&environment, &[], &script);
        pane.type_bytes(b"\n");
        pane.wait_for(">>");
        let written = pane.written();
        // Focus is reported to `run`, whether the client asks for it or not.
        let text = |bytes: &[u8]| {
            let text = bytes.escape_ascii().to_string();
            text.replace("\\x1b[?1004h", "").replace("\\x1b[?1004l", "")
        };
        let (written, expected) = (text(&written), text(&expected));
        let after = written.split_once("<<").expect("it began").1;
        assert_eq!(after.rsplit_once(">>").expect("it ended").0, expected, "{file}");
        // The hub's list may have more words, and one in place of several.
        until("one is listed", || {
            environment.bodies(&["--all"]).iter().any(|body| said.iter().any(|said| body.contains(said)))
        });
        pane.type_bytes(b"\n");
    }
    assert!(compared > 0, "some of the recorded clients notify");
}

#[test]
fn a_notification_is_listed_with_its_place_and_only_once() {
    let environment = HubEnvironment::new();
    let mut pane = attached(
        &environment,
        &[],
        "read go; printf '\\033]777;notify;Build;it is green\\007after'; read line",
    );
    pane.type_bytes(b"\n");
    pane.wait_for("after");
    until("it is listed", || environment.bodies(&[]) == ["it is green"]);
    let row = &environment.list(&[])[0];
    assert_eq!(row["title"], "Build");
    assert!(!pane.text().contains("777;notify"));
    pane.type_bytes(b"\n");
    assert!(pane.end().1.success());
    assert_eq!(environment.bodies(&[]).len(), 1);
}

#[test]
fn the_last_words_of_a_program_are_heard() {
    let environment = HubEnvironment::new();
    let mut pane = attached(&environment, &[], "read go; printf '\\033]9;goodbye\\007'");
    pane.type_bytes(b"\n");
    assert!(pane.end().1.success());
    until("it is listed", || environment.bodies(&[]) == ["goodbye"]);
}

#[test]
fn what_the_person_looks_at_is_read() {
    let environment = HubEnvironment::new();
    let mut pane = attached(&environment, &[], "read go; \"$RINGER\" notify one; read line");
    pane.wait_for("\x1b[?1004h");
    pane.type_bytes(b"\x1b[O\n");
    until("it is listed", || environment.bodies(&[]) == ["one"]);
    assert_eq!(environment.list(&[])[0]["is_read"], false);
    pane.type_bytes(b"\x1b[I");
    until("it is read", || environment.list(&[])[0]["is_read"] == true);
    pane.type_bytes(b"\n");
}

#[test]
fn a_ring_is_a_mark_in_front_of_the_title_and_goes_when_it_is_read() {
    let environment = HubEnvironment::new();
    let mut pane = attached(
        &environment,
        &[],
        "printf '\\033]0;my title\\007'; read go; \"$RINGER\" notify one; read line",
    );
    pane.type_bytes(b"\n");
    pane.wait_for("\x1b]2;● my title\x07");
    environment.run(&["read", "--all"]);
    pane.wait_for("\x1b]2;my title\x07");
    pane.type_bytes(b"\n");
}

#[test]
fn the_program_notices_nothing_when_the_hub_is_killed_and_the_next_one_hears_it() {
    let environment = HubEnvironment::new();
    let script = "while read word; do printf '\\033]9;%s\\007<%s>' $word $word; done";
    let mut pane = attached(&environment, &[], script);
    pane.type_bytes(b"one\n");
    pane.wait_for("<one>");
    until("one is listed", || environment.bodies(&[]) == ["one"]);
    kill(environment.hub());
    pane.type_bytes(b"two\n");
    pane.wait_for("<two>");
    until("two is listed", || environment.bodies(&[]) == ["two", "one"]);
    wait_until_attached(&environment);
    pane.type_bytes(b"three\n");
    pane.wait_for("<three>");
    until("three is listed", || environment.bodies(&[]) == ["three", "two", "one"]);
    assert!(!pane.text().contains("]9;three"), "it was the hub's");
}

#[test]
fn the_end_is_told_unless_the_person_looks() {
    let environment =
        HubEnvironment::with_settings("[notify]\nrate_limit = \"off\"\npopup = \"off\"\nmin_turn = \"0s\"\n");
    // A key would count as looking.
    let fifo = make_fifo(&environment);
    let pane = attached(&environment, &["--name", "build"], &format!("read go < '{}'", fifo.display()));
    go_on(&fifo);
    pane.end();
    let run = |script: &str, typed: &[u8], code: u32| {
        let mut pane = attached(&environment, &["--name", "build"], script);
        pane.wait_for("\x1b[?1004h");
        pane.type_bytes(typed);
        assert_eq!(pane.end().1.exit_code(), code, "{script}");
    };
    run("stty -echo raw; dd bs=1 count=1 2>/dev/null >&2; exit 2", b"\x1b[Ix", 2);
    run("stty -echo raw; dd bs=1 count=1 2>/dev/null >&2; exit 2", b"\x1b[Ox", 2);
    until("the second end is listed", || environment.list(&[]).len() == 2);
    let rows = environment.list(&[]);
    assert_eq!((&rows[0]["kind"], &rows[1]["kind"]), (&json!("error"), &json!("complete")), "{rows:?}");
    assert_eq!(rows[0]["title"], "build");
    let body = rows[0]["body"].as_str().expect("a text");
    assert!(body.starts_with("exit status 2 after "), "{body}");
    assert!(rows[1]["body"].as_str().expect("a text").starts_with("finished after "));
}

/// A program that reads from this FIFO goes on.
fn go_on(fifo: &Path) {
    // Without a reader it cannot be opened like this.
    let open = || {
        OpenOptions::new()
            .write(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
            .open(fifo)
    };
    until("it reads", || open().is_ok_and(|mut file| file.write_all(b"go\n").is_ok()));
}

fn make_fifo(environment: &HubEnvironment) -> PathBuf {
    let fifo = environment.base.path().join("go");
    test_support::make_fifo(&fifo);
    fifo
}

/// Its own report says more than that its process ended.
#[test]
fn an_agent_whose_hooks_report_is_not_told_twice() {
    let environment =
        HubEnvironment::with_settings("[notify]\nrate_limit = \"off\"\npopup = \"off\"\nmin_turn = \"0s\"\n");
    let hook = |event: &str| {
        format!(
            "echo '{{\"hook_event_name\":\"{event}\",\"session_id\":\"s1\",\"cwd\":\"'$PWD'\",\"prompt\":\"go\",\"last_assistant_message\":\"all is well\"}}' | \"$RINGER\" hook claude {event} > /dev/null"
        )
    };
    let script = format!("{}; {}; {}", hook("SessionStart"), hook("UserPromptSubmit"), hook("Stop"));
    let mut pane = attached(&environment, &[], &format!("{script}; read line"));
    until("the agent's own report is listed", || !environment.list(&[]).is_empty());
    pane.type_bytes(b"\n");
    assert!(pane.end().1.success());
    let rows = environment.list(&[]);
    assert_eq!(rows.len(), 1, "{rows:?}");
}

#[test]
fn the_title_of_an_agent_tells_its_state() {
    let environment = HubEnvironment::new();
    let titles = "while printf '\\033]0;✳ Claude Code\\007'; read go && printf '\\033]0;⠂ fix it\\007' && read go; do :; done";
    let mut pane = attached(&environment, &[], titles);
    let state = || environment.connect().call("agent.list", &json!({}))["result"][0]["state"].clone();
    until("the agent is known", || state() == "ready");
    // A spinner in the first three seconds may be the client's start: it goes on and off until it counts.
    until("the agent works", || {
        pane.type_bytes(b"\n");
        state() == "working"
    });
    pane.type_bytes(b"\x04");
    assert!(pane.end().1.success());
    until("the agent has ended", || state() != "working");
}
