//! Who needs the person: the border, the number, and what makes them go.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use test_support::until;

use super::session::{RINGER, Session};
use super::window::Window;
use crate::hub::tmux::Tmux;
use crate::hub::tmux_client::TmuxClient;

/// A corner of the border of a pane that rings.
const RINGS: char = '┏';

/// Two panes. The first one does something once there is a file `go`; the second one has the keys.
fn waits_beside(session: &Session, then: &str) -> Window {
    let mut window = session.attach();
    window.set_focus(true);
    window.command(&format!("until [ -e go ]; do sleep 0.02; done; {then}"));
    window.press("|");
    until("two panes", || window.text().matches('┌').count() == 2);
    until("the hub knows both", || {
        let listed = session.hub.try_connect().map(|mut hub| hub.call("surface.list", &json!({})));
        listed.is_some_and(|listed| listed["result"].as_array().is_some_and(|all| all.len() == 2))
    });
    window
}

fn go(session: &Session) {
    fs::write(session.file("go"), "").expect("a file");
}

/// Rings, and goes when the person goes there.
#[track_caller]
fn check_rings_until_seen(then: &str, body: &str) {
    let session = Session::new();
    let mut window = waits_beside(&session, then);
    assert!(!window.text().contains(RINGS));
    go(&session);
    until("it rings", || window.text().contains(RINGS));
    // Its workspace has a number.
    until("a badge", || window.lines()[0].chars().take(16).any(|char| char == '1'));
    assert_eq!(session.hub.list(&["--unread"]).len(), 1);
    assert!(session.hub.bodies(&[])[0].contains(body), "{:?}", session.hub.bodies(&[]));
    let unread: Vec<u64> =
        session.surfaces().iter().filter_map(|surface| surface["unread"].as_u64()).collect();
    assert_eq!(unread.iter().sum::<u64>(), 1);
    window.press("n");
    until("it is seen", || !window.text().contains(RINGS));
    until("it is read", || session.hub.list(&["--unread"]).is_empty());
}

#[test]
fn a_notification_of_the_terminal_rings_until_the_person_goes_there() {
    check_rings_until_seen("printf '\\033]777;notify;Build;it is green\\007'", "it is green");
}

#[test]
fn a_notification_of_the_command_rings_until_the_person_goes_there() {
    check_rings_until_seen("\"$RINGER\" notify 'it is done'", "it is done");
}

#[test]
fn a_recorded_client_rings_until_the_person_goes_there() {
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/../term/tests/fixtures/captures/claude_ghostty.bin");
    // Up to its notification: later it was answered, and the session ended.
    let bytes = fs::read(capture).expect("a file");
    let notification = b"\x1b]777;notify;";
    let begins = bytes.windows(notification.len()).position(|bytes| bytes == notification);
    let length = begins.expect("it notifies") + 200;
    check_rings_until_seen(&format!("head -c {length} '{capture}'"), "Claude needs your permission");
}

#[test]
fn what_the_person_looks_at_does_not_ring() {
    let session = Session::new();
    let mut window = waits_beside(&session, "true");
    window.command("printf '\\033]777;notify;Build;seen at once\\007'; echo told-$((40+2))");
    window.until("told-42");
    until("it is listed", || session.hub.bodies(&["--all"]).iter().any(|body| body == "seen at once"));
    until("it is read", || session.hub.list(&["--unread"]).is_empty());
    until("it does not ring", || !window.text().contains(RINGS));
    // While the terminal is not looked at, it rings.
    window.command("until [ -e later ]; do sleep 0.02; done; printf '\\033]777;notify;Build;away\\007'");
    window.set_focus(false);
    fs::write(session.file("later"), "").expect("a file");
    until("it rings", || window.text().contains(RINGS));
    window.set_focus(true);
    until("it is seen", || !window.text().contains(RINGS));
}

#[test]
fn a_program_that_asks_for_it_is_told_of_a_click_and_of_its_end() {
    let session = Session::new();
    let mut window = session.window(&["attach"], 30, 160);
    window.until("$ ");
    window.set_focus(true);
    session.open(
        "asks",
        "stty raw -echo; until [ -e go ]; do sleep 0.02; done; \
         printf '\\033]99;i=n1:a=report:c=1;Build\\033\\\\\\033]99;i=q1:p=alive;\\033\\\\'; cat -v",
    );
    window.press("o");
    until("the hub knows both", || session.surfaces().iter().all(|surface| surface["tty"].is_string()));
    go(&session);
    window.until("^[]99;i=q1:p=alive;n1^[\\");
    until("it rings", || window.text().contains(RINGS));
    assert!(!window.text().contains("i=n1"), "{}", window.text());
    session.run(&["jump"]);
    window.until("^[]99;i=n1;^[\\");
    window.until("^[]99;i=n1:p=close;^[\\");
}

#[test]
fn a_program_takes_its_notification_back() {
    let session = Session::new();
    let then = "printf '\\033]99;i=a;ninety\\033\\\\'; until [ -e close ]; do sleep 0.02; done; \
        printf '\\033]99;i=a:p=close;\\033\\\\\\033]99;i=c;both\\033\\\\\\033]99;i=c:p=close;\\033\\\\'; \
        printf '\\033]99;i=b:w=3000;short\\033\\\\'";
    let window = waits_beside(&session, then);
    go(&session);
    until("it rings", || window.text().contains(RINGS));
    assert_eq!(session.hub.bodies(&["--unread"]), ["ninety"]);
    fs::write(session.file("close"), "").expect("a file");
    let read_by = || -> Vec<String> {
        let rows = session.hub.list(&["--all"]);
        let mut words: Vec<String> =
            rows.iter().map(|row| format!("{} {}", row["body"], row["read_by"])).collect();
        words.sort();
        words
    };
    let expected = [r#""both" "program""#, r#""ninety" "program""#, r#""short" "expiry""#];
    until("all are over", || read_by() == expected);
    until("it rings no more", || !window.text().contains(RINGS));
    let rows = session.hub.list(&["--all"]);
    let ninety = rows.iter().find(|row| row["body"] == "ninety").expect("it is listed");
    let why = session.run(&["why", ninety["id"].as_str().expect("an id")]);
    assert!(why.contains("the program that sent it took it back"), "{why}");
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).expect("a process"), signal).expect("it runs");
}

/// More than waits for a hub: it is told what lasts anew when it goes on, and what was said once is told once.
#[test]
fn a_hub_that_was_stopped_knows_what_is_looked_at_when_it_goes_on() {
    let session = Session::new();
    let mut window = session.window(&["attach"], 30, 200);
    window.until("$ ");
    window.set_focus(true);
    let says = |file: &str, body: &str| {
        format!("until [ -e {file} ]; do sleep 0.02; done; printf '\\033]777;notify;Build;{body}\\007'")
    };
    session.open("left", &format!("{}; echo said-$((40+2)); read line", says("go", "said once")));
    session.open("right", &format!("read line; echo got-$line; {}; read line", says("later", "seen")));
    until("three panes", || window.text().matches('┌').count() == 3);
    until("the hub knows them", || session.surfaces().iter().all(|surface| surface["tty"].is_string()));
    let hub = session.hub.hub();
    signal(hub, Signal::STOP);
    go(&session);
    window.until("said-42");
    // The keys are now here and now there, but not in the last pane, where they go at the end.
    window.press("h");
    window.press("h");
    for _ in 0..30 {
        window.keys(&"\x07l\x07h".repeat(100));
    }
    window.press("l");
    window.press("l");
    window.command("typed");
    window.until("got-typed");
    signal(hub, Signal::CONT);
    fs::write(session.file("later"), "").expect("a file");
    let bodies = |arguments: &[&str]| session.hub.bodies(arguments);
    until("it is told", || bodies(&["--all"]).contains(&"seen".to_owned()));
    until("it is looked at", || !bodies(&["--unread"]).contains(&"seen".to_owned()));
    let told = bodies(&["--all"]);
    assert_eq!(told.iter().filter(|body| *body == "said once").count(), 1, "{told:?}");
    assert_eq!(session.hub.hub(), hub);
}

/// A ring in panes that are shown in tmux, until the person goes there.
#[track_caller]
fn check_in_tmux(configuration: &str, has_focus: bool) {
    let session = Session::new();
    let tmux = Tmux::start(&session.hub, configuration);
    let program = format!("exec env LANG=C.UTF-8 SHELL=/bin/sh PS1='$ ' {RINGER} attach");
    let pane = tmux.tell(&["new-window", "-P", "-F", "#{pane_id}", &program]);
    let mut client = TmuxClient::attach(&tmux);
    let text = || tmux.tell(&["capture-pane", "-p", "-t", &pane]);
    let press = |keys: &[&str]| {
        for key in keys {
            tmux.tell(&["send-keys", "-t", &pane, key]);
        }
    };
    until("a shell", || text().contains("$ "));
    until("a client shows it", || !tmux.tell(&["list-clients"]).is_empty());
    if has_focus {
        client.set_focus(true);
    }
    press(&["until [ -e go ]; do sleep 0.02; done; printf '\\033]777;notify;Build;green\\007'", "Enter"]);
    press(&["C-g", "|"]);
    until("two panes", || text().matches('┌').count() == 2);
    go(&session);
    until("it rings", || text().contains(RINGS));
    press(&["C-g", "h"]);
    until("it is seen", || !text().contains(RINGS));
}

#[test]
fn a_ring_in_tmux_is_seen_by_a_client_that_has_the_focus() {
    check_in_tmux("set -g focus-events on\n", true);
}

/// As tmux is without settings: no focus is reported, and what the person types into is looked at.
#[test]
fn a_ring_in_tmux_without_focus_events_is_seen_by_typing_there() {
    check_in_tmux("", false);
}
