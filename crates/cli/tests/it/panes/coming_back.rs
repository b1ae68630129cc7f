//! After a server was killed, everything is where the person left it.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use test_support::until;

use super::session::Session;
use super::window::Window;
use crate::hub::environment::{kill, runs};

/// Kills the server, and waits for the one that a window starts.
fn kill_server(session: &Session) {
    let before = session.server();
    kill(before);
    until("another server", || session.server() != before);
}

#[test]
fn each_window_shows_its_own_workspace() {
    let session = Session::new();
    let mut windows: Vec<Window> = (0..3).map(|_| session.window(&["attach"], 24, 100)).collect();
    for (number, window) in windows.iter_mut().enumerate() {
        window.until("$ ");
        if number > 0 {
            window.press("c");
            until("a new workspace is shown", || !window.text().contains("own-"));
            window.until("$ ");
        }
        window.command(&format!("echo own-$((40+{number}))"));
        window.until(&format!("own-{}", 40 + number));
    }
    windows[0].press("b");
    until("it has no sidebar", || windows[0].lines()[0].starts_with('┌'));
    for number in 0..3 {
        session.until_saved(&format!("own-{}", 40 + number));
    }
    for round in 0..3 {
        kill_server(&session);
        for (number, window) in windows.iter_mut().enumerate() {
            window.command(&format!("echo again-$(({round}+{number}0))"));
            window.until(&format!("again-{}", round + number * 10));
            window.until(&format!("own-{}", 40 + number));
        }
        assert!(windows[0].lines()[0].starts_with('┌'), "{}", windows[0].text());
        assert!(!windows[1].lines()[0].starts_with('┌'), "{}", windows[1].text());
    }
}

#[test]
fn what_was_opened_since_the_session_was_saved_is_in_its_workspace() {
    let session = Session::new();
    let window = session.attach();
    let file = session.hub.base.home().join("panes.json");
    until("a session is saved", || file.exists());
    fs::remove_file(&file).expect("a file");
    // A file does not replace a directory.
    fs::create_dir(&file).expect("a directory");
    for name in ["one", "other"] {
        session.run(&[
            "open",
            "-d",
            "--workspace",
            "elsewhere",
            "--name",
            name,
            "--",
            "sh",
            "-c",
            "read line",
        ]);
    }
    kill_server(&session);
    let workspaces = || -> Vec<String> {
        let all = session.surfaces().into_iter().filter(|surface| surface["host"] == "panes");
        all.map(|surface| format!("{} {}", surface["workspace"], surface["name"])).collect()
    };
    let own = session.directory().file_name().expect("a name").to_string_lossy().into_owned();
    let expected =
        [format!("{own:?} {own:?}"), r#""elsewhere" "one""#.to_owned(), r#""elsewhere" "other""#.to_owned()];
    until("all are back", || workspaces().len() == 3);
    let mut found = workspaces();
    found.sort();
    let mut expected = expected.to_vec();
    expected.sort();
    assert_eq!(found, expected);
    window.until("elsewhere");
}

#[test]
fn titles_progress_and_links_come_back() {
    let session = Session::new();
    let window = session.window(&["attach"], 24, 100);
    window.until("$ ");
    let link = "\\033]8;;http://example.org/x\\033\\\\linked-42\\033]8;;\\033\\\\";
    session.open("job", &format!("printf '\\033]2;what it does\\007\\033]9;4;1;42\\007{link}'; read line"));
    window.until("what it does");
    window.until("42 %");
    session.until_saved("linked-42");
    let shown = |window: &Window| window.raw().matches("http://example.org/x").count();
    let before = shown(&window);
    kill_server(&session);
    until("the link is drawn again", || shown(&window) > before);
    window.until("what it does");
    window.until("42 %");
}

#[test]
fn each_session_that_cannot_be_used_is_kept_and_all_windows_are_told() {
    let session = Session::new();
    let mut windows = vec![session.attach()];
    let home = session.hub.base.home();
    let file = home.join("panes.json");
    session.run(&["open", "-d", "--workspace", "elsewhere", "--name", "job", "--", "sh", "-c", "read line"]);
    for (saved, told) in [
        (
            r#"{"version": 1, "workspaces": ["#,
            "the layout could not be read; it is kept as panes.json.damaged",
        ),
        (r#"{"version": 1, "workspaces": 1}"#, "it is kept as panes.json.damaged-1"),
        (
            r#"{"version": 99, "layouts": []}"#,
            "the layout is of a newer Ringer; it is kept as panes.json.newer",
        ),
    ] {
        until("a session is saved", || {
            fs::read_to_string(&file).is_ok_and(|saved| saved.contains("elsewhere"))
        });
        for mut window in windows.drain(..) {
            window.press("d");
            until("the window has left", || !runs(window.pid()));
        }
        kill(session.server());
        until("the server has gone", || session.with_words(&["pane-server", "serve"]).is_empty());
        fs::write(&file, saved).expect("a file");
        windows = (0..2).map(|_| session.window(&["attach"], 24, 100)).collect();
        for window in &windows {
            // It is shown for some seconds.
            until("it is told", || window.raw().contains(told));
            window.until("elsewhere");
        }
        let name = told.rsplit(' ').next().expect("a name");
        assert_eq!(fs::read_to_string(home.join(name)).expect("a copy"), saved);
    }
}

#[test]
fn a_window_keeps_nothing_of_servers_that_were_killed() {
    let session = Session::new();
    let window = session.attach();
    for _ in 0..2 {
        let before = session.server();
        kill_server(&session);
        until("nothing is left of it", || fs::metadata(format!("/proc/{before}")).is_err());
    }
    assert!(runs(window.pid()));
}

#[test]
fn what_no_hub_answered_is_told_by_the_next_server_once() {
    let session = Session::new();
    let window = session.window(&["attach"], 24, 100);
    window.until("$ ");
    let wait = |name: &str| format!("until [ -e {} ]; do sleep 0.1; done", session.file(name).display());
    // The command is in the session, too.
    let say = |word: &str| format!("printf '\\033]9;it is %s\\007' {word}");
    session.open("job", &format!("{}; {}; read line", wait("go"), say("green")));
    until("a hub runs", || session.hub.presence().is_some());
    let hub = session.hub.hub();
    // It takes what it is told, and reads nothing.
    kill_process(Pid::from_raw(hub.cast_signed()).expect("a process"), Signal::STOP).expect("it runs");
    fs::write(session.file("go"), "").expect("a file");
    let file = session.hub.base.home().join("panes.json");
    let is_kept = || fs::read_to_string(&file).is_ok_and(|saved| saved.contains("it is green"));
    until("it is kept", is_kept);
    let before = session.server();
    kill(hub);
    kill(before);
    until("it is told", || session.hub.bodies(&[]) == ["it is green"]);
    until("it is kept no longer", || !is_kept());
    kill_server(&session);
    window.until("job");
    // The hub hears everything in its order.
    session.open("other", &format!("{}; read line", say("red")));
    until("the next one is told", || session.hub.bodies(&[]).contains(&"it is red".to_owned()));
    assert_eq!(session.hub.bodies(&[]).len(), 2, "{:?}", session.hub.bodies(&[]));
}
