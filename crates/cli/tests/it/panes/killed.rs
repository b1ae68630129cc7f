//! Everything that can die, dies: no shell goes with it, the screen comes back, and the rings are right.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use test_support::until;

use super::raw_client::{REQUEST, RawClient};
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
    until("another server", || session.with_words(&["pane-server", "serve"]).len() == 1);
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
    session.run(&["pane", "send", "bell", "go on"]);
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

#[test]
fn a_keeper_that_was_lost_for_a_moment_still_tells_how_programs_end() {
    let session = Session::new();
    let window = session.window(&["attach"], 30, 200);
    window.until("$ ");
    session.open("job", "read line; echo said-$line; read line; exit 3");
    until("two panes", || window.text().matches('┌').count() == 2);
    session.take_keeper();
    // The next program is started with the same keeper, which hands over the others once more.
    session.open("next", "read line");
    until("three panes", || window.text().matches('┌').count() == 3);
    session.run(&["pane", "send", "job", "a"]);
    window.until("said-a");
    session.run(&["pane", "send", "job", "b"]);
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

/// What a server gets that is killed before it has saved anything.
fn hand_over(session: &Session) -> String {
    let mut stream = UnixStream::connect(session.sockets().join("pty.sock")).expect("a keeper");
    stream.set_read_timeout(Some(Duration::from_millis(200))).expect("a socket");
    stream.write_all(b"{\"version\":1}\n").expect("it reads");
    let mut all = Vec::new();
    // Everything that comes; then the keeper waits for requests.
    let _ = stream.read_to_end(&mut all);
    String::from_utf8_lossy(&all).into_owned()
}

#[test]
fn what_was_handed_over_to_a_server_that_was_killed_at_once_is_not_lost() {
    let session = Session::new();
    let go = session.file("go");
    let mut window = session.attach();
    session.open(
        "late",
        &format!("until [ -e {} ]; do sleep 0.1; done; echo late-$((40+2)); read line", go.display()),
    );
    until("two panes", || window.text().matches('┌').count() == 2);
    window.press("d");
    until("the window has left", || !runs(window.pid()));
    kill(session.server());
    fs::write(&go, "").expect("a file");
    until("it is handed over", || hand_over(&session).contains("late-42"));
    let window = session.window(&["attach"], 30, 120);
    window.until("late-42");
}

#[test]
fn what_ended_without_a_server_is_told_once_and_stays_or_closes_as_usual() {
    let session = Session::new();
    let wait = format!("until [ -e {} ]; do sleep 0.1; done", session.file("go").display());
    let mut window = session.attach();
    window.command(&format!("echo $$ > shell; {wait}; exit"));
    let shell: u32 = session.line_of("shell").parse().expect("a process");
    session.open("job", &format!("echo $$ > job; {wait}; echo last-$((40+2)); exit 3"));
    let job: u32 = session.line_of("job").parse().expect("a process");
    until("both are saved", || {
        let saved = fs::read_to_string(session.hub.base.home().join("panes.json")).unwrap_or_default();
        saved.matches("\"has_ended\": false").count() == 2
    });
    window.press("d");
    until("the window has left", || !runs(window.pid()));
    kill(session.server());
    fs::write(session.file("go"), "").expect("a file");
    until("both have ended", || !runs(shell) && !runs(job));
    for round in 0..2 {
        let mut window = session.window(&["attach"], 30, 120);
        window.until("exit status 3");
        window.until("last-42");
        until("the shell's pane is closed", || window.text().matches(['┌', RINGS]).count() == 1);
        until("it is told", || session.hub.bodies(&[]) == ["exit status 3"]);
        until("that is saved", || {
            let saved = fs::read_to_string(session.hub.base.home().join("panes.json")).unwrap_or_default();
            saved.contains("\"has_ended\": true") && !saved.contains("\"has_ended\": false")
        });
        kill(session.server());
        until("it comes back", || !session.with_words(&["pane-server", "serve"]).is_empty());
        window.until("exit status 3");
        assert_eq!(session.hub.bodies(&[]), ["exit status 3"], "round {round}");
        window.press("d");
        until("the window has left", || !runs(window.pid()));
    }
    let mut window = session.window(&["attach"], 30, 120);
    window.until("exit status 3");
    // It can be started again.
    fs::remove_file(session.file("job")).expect("it was there");
    window.press("r");
    assert_ne!(session.line_of("job"), job.to_string());
    window.until("exit status 3");
}

#[test]
fn an_ending_that_was_told_is_noted_at_once() {
    let session = Session::new();
    session.open("job", "read line; exit 3");
    session.until_saved("");
    session.run(&["pane", "send", "job", "go on"]);
    until("it has ended", || session.surface("job")["state"] == "exit status 3");
    kill(session.server());
    // The next server tells of an ending unless this says that it was told.
    let noted = hand_over(&session);
    assert!(noted.contains(r#"\"has_ended\":true"#), "{noted}");
}

#[test]
fn an_ending_that_was_told_while_the_keeper_was_lost_is_noted_later() {
    let session = Session::new();
    let wait = format!("until [ -e {} ]; do sleep 0.1; done", session.file("go").display());
    session.open("job", &format!("echo $$ > job; {wait}; exit 3"));
    let job: u32 = session.line_of("job").parse().expect("a process");
    session.until_saved("");
    let server = Pid::from_raw(session.server().cast_signed()).expect("a process");
    // The server hears of the ending and of the end of its connection at once.
    kill_process(server, Signal::STOP).expect("it runs");
    fs::write(session.file("go"), "").expect("a file");
    until("it has ended", || !runs(job));
    session.take_keeper();
    kill_process(server, Signal::CONT).expect("it is there");
    let saved = || fs::read_to_string(session.hub.base.home().join("panes.json")).unwrap_or_default();
    until("it is told, and rings", || {
        saved().contains("\"has_ended\": true") && saved().contains("\"is_unread\": true")
    });
    session.open("next", "read line");
    until("the next one is saved", || saved().contains("\"next\""));
    kill(session.server());
    let noted = hand_over(&session);
    assert!(noted.contains(r#"\"has_ended\":true"#), "{noted}");
}

#[test]
fn what_was_shown_before_a_window_got_smaller_comes_back() {
    let session = Session::new();
    let window = session.window(&["attach"], 40, 120);
    window.until("$ ");
    session.open("job", "echo first-$((40+2)); exit 3");
    window.until("exit status 3");
    session.until_saved("first-42");
    window.resize(12, 100);
    until("it is smaller", || {
        window.text().contains("first-42") && window.lines()[9].contains("exit status 3")
    });
    let before = session.server();
    kill(before);
    until("another server", || session.server() != before);
    until("all is back", || {
        let lines = window.lines();
        lines[1].contains("first-42") && lines[9].contains("exit status 3")
    });
}

#[test]
fn a_program_that_a_killed_keeper_was_to_start_can_be_started_again() {
    let session = Session::new();
    let mut window = session.window(&["attach"], 30, 200);
    window.until("$ ");
    let keeper = session.keeper();
    let process = Pid::from_raw(keeper.cast_signed()).expect("a process");
    kill_process(process, Signal::STOP).expect("it runs");
    session.open("late", "echo begun-$((40+2)); read line");
    until("two panes", || window.text().matches('┌').count() == 2);
    kill(keeper);
    window.until("the keeper ended");
    window.press("r");
    window.until("begun-42");
}

#[test]
fn a_new_keeper_does_not_know_the_panes_of_the_old_one_and_they_go_on() {
    let session = Session::new();
    let mut window = session.window(&["attach"], 30, 200);
    window.until("$ ");
    kill(session.keeper());
    session.open("new", "read line");
    until("two panes", || window.text().matches('┌').count() == 2);
    window.press("h");
    // The new keeper is told the name, and refuses it.
    window.press(",");
    window.command("renamed");
    let saved = || fs::read_to_string(session.hub.base.home().join("panes.json")).unwrap_or_default();
    until("it is saved", || saved().contains("renamed"));
    // What the keeper does after that has come as well.
    session.run(&["open", "-d", "--name", "newer", "--", "sh", "-c", "echo newer-$((40+2)); read line"]);
    window.until("newer-42");
    window.until("renamed");
    window.command("echo still-$((40+3))");
    window.until("still-43");
    assert!(!window.text().contains("there is no pane"), "{}", window.text());
}

#[test]
fn after_a_reboot_the_session_is_restored() {
    let session = Session::new();
    let mut window = session.window(&["attach"], 30, 120);
    window.until("$ ");
    window.set_focus(true);
    window.command("mkdir deeper; cd deeper; printf '\\033]7;file://%s\\007' \"$PWD\"; echo pid=$$");
    let shell = window.number_after("pid=");
    let notify = "printf '\\033]777;notify;Build;it is green\\007'";
    session.open("bell", &format!("until [ -e deeper/away ]; do sleep 0.1; done; {notify}; read line"));
    window.press("o");
    // In the other pane: otherwise the person looks at what is told, and it is read.
    window.command("touch away");
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

/// What the program of another version does before it starts a server of its own.
fn replace(session: &Session, version: u32) {
    let mut client = RawClient::connect(session, version, &Value::Null);
    client.send(REQUEST, &json!("replace"));
    client.wait_for_end();
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
        until("another server", || session.with_words(&["pane-server", "serve"]).len() == 1);
        check_all_is_back(&mut window, shell);
        other.until("kept-42");
    }
}
