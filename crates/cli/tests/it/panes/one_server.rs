//! A home has one server and one hub, whatever a process knows of the runtime directory and however it spells the home.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use test_support::until;

use super::session::Session;
use crate::ringer::check;

/// The runtime directory of a session.
fn runtime(session: &Session) -> PathBuf {
    let variables = session.variables();
    let found = variables.iter().rev().find(|(name, _)| name == "XDG_RUNTIME_DIR");
    PathBuf::from(&found.expect("it is set").1)
}

/// Asserts that the server, the keeper and the pane `work` are the only ones of their kind, and that the pane reads what is sent.
#[track_caller]
fn check_one(session: &Session, before: (u32, u32), word: &str) {
    session.run(&["pane", "send", "work", word]);
    session.line_count("heard", word.len());
    assert_eq!((session.server(), session.keeper()), before);
    let named =
        session.surfaces().iter().filter(|surface| surface["id"] == session.surface("work")["id"]).count();
    assert_eq!(named, 1);
}

/// A pane that writes each line that is typed to a file. Gives the server and the keeper.
fn with_pane(session: &Session) -> (u32, u32) {
    session.open("work", "while read line; do echo \"$line\" >> heard; done");
    until("the hub knows it", || session.surface("work")["tty"].is_string());
    (session.server(), session.keeper())
}

#[test]
fn other_runtime_directories_and_other_spellings_of_the_home_lead_to_it() {
    let session = Session::new();
    let before = with_pane(&session);
    let home = session.hub.base.home();
    let link = session.file("link");
    symlink(home.parent().expect("a directory"), &link).expect("a link");
    let linked = link.join(home.file_name().expect("a name"));
    let other = session.file("run");
    fs::DirBuilder::new().mode(0o700).create(&other).expect("a directory");
    let as_in = |arguments: &[&str], home: &Path, runtime: Option<&Path>| {
        let mut command = session.hub.ringer(arguments);
        command.envs(session.variables()).env("RINGER_HOME", home).env_remove("XDG_RUNTIME_DIR");
        command.envs(runtime.map(|runtime| ("XDG_RUNTIME_DIR", runtime)));
        check(&mut command, 0)
    };
    let cases =
        [(&*home, None), (&*home, Some(&*other)), (&*linked, Some(&*runtime(&session))), (&*linked, None)];
    for (number, (home, runtime)) in cases.into_iter().enumerate() {
        as_in(&["pane", "send", "work", "x"], home, runtime);
        session.line_count("heard", number + 1);
        as_in(&["open", "-d", "--name", &format!("more{number}"), "--", "sleep", "1000"], home, runtime);
        let listed = as_in(&["list"], home, runtime).0;
        // What this test types without a terminal is announced.
        assert!(listed.lines().all(|line| line.contains("A script of yours")), "{listed}");
    }
    assert_eq!((session.server(), session.keeper()), before);
    until("all are listed once", || session.surfaces().len() == 1 + cases.len());
}

/// As the last logout and the next login do: programs may run on.
#[test]
fn panes_and_the_hub_are_reached_after_the_runtime_directory_was_removed() {
    let session = Session::new();
    session.open("idle", "echo idle-$((40+2)); read line");
    let before = with_pane(&session);
    session.until_saved("idle-42");
    let runtime = runtime(&session);
    fs::remove_dir_all(&runtime).expect("a directory");
    check_one(&session, before, "x");
    // The hub may have made it again.
    fs::DirBuilder::new().mode(0o700).recursive(true).create(&runtime).expect("a directory");
    fs::remove_file(session.file("heard")).expect("a file");
    check_one(&session, before, "y");
    session.run(&["notify", "after it"]);
    until("it is listed", || session.run(&["list"]).contains("after it"));
    // Also of a pane that has written nothing since.
    session.until_saved("idle-42");
    let window = session.window(&["attach"], 24, 80);
    window.until("work");
    window.until("idle-42");
}
