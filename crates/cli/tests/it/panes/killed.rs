//! Everything that can die, dies: no shell goes with it, the screen comes back, and the rings are right.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use serde_json::json;
use test_support::until;

use super::session::Session;
use super::window::Window;
use crate::hub::environment::{kill, runs};

const RINGS: char = '┏';

/// A window with a shell, a flood, and a pane that rings. Gives the process of the shell too.
fn busy(session: &Session) -> (Window, u32) {
    let mut window = session.window(&["attach"], 30, 120);
    window.until("$ ");
    window.set_focus(true);
    window.command("echo pid=$$ kept-$((40+2))");
    let shell = window.number_after("pid=");
    window.until("kept-42");
    session.open("flood", "while :; do echo flood; done");
    session.open("bell", "printf '\\033]777;notify;Build;it is green\\007'; read line; printf '\\033]9;red again\\007'; read line");
    // The last one has the keys.
    window.press("o");
    until("it rings", || window.text().contains(RINGS));
    session.until_saved("kept-42");
    (window, shell)
}

#[track_caller]
fn check_all_is_back(window: &mut Window, shell: u32) {
    window.until("kept-42");
    until("it rings again", || window.text().contains(RINGS));
    assert!(runs(shell));
    window.command("echo same=$$");
    assert_eq!(window.number_after("same="), shell);
    window.until("flood");
}

#[test]
fn a_server_that_is_killed_takes_nothing_with_it() {
    let session = Session::new();
    let (mut window, shell) = busy(&session);
    let before = session.server();
    kill(before);
    until("another server", || session.with_words(&["panes", "serve"]).len() == 1);
    check_all_is_back(&mut window, shell);
    assert_ne!(session.server(), before);
}

#[test]
fn a_window_that_is_killed_takes_nothing_with_it() {
    let session = Session::new();
    let (window, shell) = busy(&session);
    kill(window.pid());
    let mut window = session.window(&["attach"], 30, 120);
    window.until("kept-42");
    window.set_focus(true);
    check_all_is_back(&mut window, shell);
}

#[test]
fn a_hub_that_is_killed_comes_back_and_so_do_the_rings() {
    let session = Session::new();
    let (mut window, shell) = busy(&session);
    kill(session.hub.hub());
    check_all_is_back(&mut window, shell);
    assert_eq!(session.hub.bodies(&["--unread"]), ["it is green"]);
    // What is said while there is no hub is not lost.
    kill(session.hub.hub());
    session.run(&["send", "bell", "go on"]);
    until("the newer one is unread", || session.hub.bodies(&["--unread"]) == ["red again"]);
    check_all_is_back(&mut window, shell);
}

#[test]
fn all_of_them_are_killed_in_turn() {
    let session = Session::new();
    let (mut window, shell) = busy(&session);
    for round in 0..3 {
        kill(session.hub.hub());
        kill(session.server());
        kill(window.pid());
        window = session.window(&["attach"], 30, 120);
        window.until("kept-42");
        window.set_focus(true);
        check_all_is_back(&mut window, shell);
        assert_eq!(session.hub.list(&["--unread"]).len(), 1, "round {round}");
    }
}

#[test]
fn panes_go_on_without_their_keeper_and_new_ones_get_another() {
    let session = Session::new();
    let mut window = session.attach();
    window.command("echo pid=$$");
    let shell = window.number_after("pid=");
    let before = session.keeper();
    kill(before);
    window.command("echo on=$$");
    assert_eq!(window.number_after("on="), shell);
    window.press("|");
    until("two panes", || window.text().matches('┌').count() == 2);
    window.command("echo new=$$");
    assert_ne!(window.number_after("new="), shell);
    assert_ne!(session.keeper(), before);
    // The end of the old one is seen although its keeper cannot say so.
    window.press("h");
    window.command("exit");
    until("one pane", || window.text().matches('┌').count() == 1);
}

/// Takes the keeper over for a moment, as another server would.
fn take_keeper(session: &Session) {
    let mut stream = UnixStream::connect(session.sockets().join("pty.sock")).expect("a keeper");
    stream.write_all(b"{\"version\":1}\n").expect("it reads");
    assert!(stream.read(&mut [0; 1000]).expect("it answers") > 0);
}

#[test]
fn a_keeper_that_was_lost_for_a_moment_still_tells_how_programs_end() {
    let session = Session::new();
    let window = session.window(&["attach"], 30, 200);
    window.until("$ ");
    session.open("job", "read line; echo said-$line; read line; exit 3");
    until("two panes", || window.text().matches('┌').count() == 2);
    take_keeper(&session);
    // The next program is started with the same keeper, which hands over the others once more.
    session.open("next", "read line");
    until("three panes", || window.text().matches('┌').count() == 3);
    session.run(&["send", "job", "a"]);
    window.until("said-a");
    session.run(&["send", "job", "b"]);
    window.until("exit status 3");
}

#[test]
fn output_that_was_not_kept_is_told_of_until_something_is_typed() {
    let session = Session::new();
    let (go, finished) = (session.file("go"), session.file("finished"));
    let script = format!(
        "until [ -e {} ]; do sleep 0.1; done; yes | head -c 3000000; touch {}; read line; echo read-it; read line",
        go.display(),
        finished.display()
    );
    let mut window = session.attach();
    session.open("flood", &script);
    until("two panes", || window.text().matches('┌').count() == 2);
    window.press("d");
    until("the window has left", || !runs(window.pid()));
    kill(session.server());
    fs::write(&go, "").expect("a file");
    until("it has written everything", || finished.exists());
    window = session.window(&["attach"], 30, 120);
    window.until("bytes not kept");
    window.keys("\r");
    window.until("read-it");
    window.until_not("bytes not kept");
}

#[test]
fn after_a_reboot_the_session_is_restored() {
    let session = Session::new();
    let mut window = session.window(&["attach"], 30, 120);
    window.until("$ ");
    window.set_focus(true);
    window.command("mkdir deeper; cd deeper; printf '\\033]7;file://%s\\007' \"$PWD\"; echo pid=$$");
    let shell = window.number_after("pid=");
    session.open("bell", "printf '\\033]777;notify;Build;it is green\\007'; read line");
    window.press("o");
    until("it rings", || window.text().contains(RINGS));
    let saved = || fs::read_to_string(session.hub.base.home().join("panes.json")).unwrap_or_default();
    until("it is saved", || saved().contains("\"is_unread\": true") && saved().contains("deeper"));
    kill(session.keeper());
    kill(session.server());
    kill(session.hub.hub());
    kill(window.pid());
    until("the shell has gone", || !runs(shell));

    let mut window = session.window(&["attach"], 30, 120);
    until("two panes", || window.text().matches(['┌', RINGS]).count() == 2);
    until("what was unread rings", || window.text().contains(RINGS));
    window.until("bell");
    window.set_focus(true);
    until("a shell waits", || window.text().contains("$ "));
    window.command("basename \"$(pwd)\" | tr a-z A-Z; echo new=$$");
    window.until("DEEPER");
    assert_ne!(window.number_after("new="), shell);
}

fn frame(kind: u8, body: &serde_json::Value) -> Vec<u8> {
    let body = body.to_string().into_bytes();
    let length = u32::try_from(body.len()).expect("a length").to_le_bytes();
    [&[kind][..], &length, &body].concat()
}

/// What the program of another version does before it starts a server of its own.
fn replace(session: &Session, version: u32) {
    let mut stream = UnixStream::connect(session.sockets().join("ui.sock")).expect("a server");
    let hello = json!({ "version": version, "program": "9.9.9", "terminal": null, "environment": [], "directory": "/" });
    stream.write_all(&frame(1, &hello)).expect("it reads");
    stream.write_all(&frame(5, &json!("replace"))).expect("it reads");
    // Until the server has gone.
    let _ = stream.read_to_end(&mut Vec::new());
}

#[test]
fn a_newer_program_takes_over_and_the_windows_come_back() {
    let session = Session::new();
    let (mut window, shell) = busy(&session);
    let other = session.window(&["attach"], 40, 140);
    other.until("kept-42");
    for version in [1, 2] {
        let before = session.server();
        replace(&session, version);
        until("the server has gone", || !runs(before));
        until("another server", || session.with_words(&["panes", "serve"]).len() == 1);
        check_all_is_back(&mut window, shell);
        other.until("kept-42");
    }
}
