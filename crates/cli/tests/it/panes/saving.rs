//! Directories in which nothing can be saved: panes go on, and what the next server needs is not lost.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use test_support::{HangingDirectory, until};

use super::session::{Session, until_saved_in};
use super::window::Window;
use crate::hub::environment::{kill, runs};

/// A home that began to hang while panes were open, as one on a network share does whose server goes.
struct HangingHome {
    home: PathBuf,
    answering: PathBuf,
    hanging: HangingDirectory,
    /// Where the screens are saved, which answers.
    screens: PathBuf,
}

impl HangingHome {
    fn new(session: &Session) -> Option<Self> {
        let hanging = HangingDirectory::new()?;
        let (home, screens) = (session.hub.base.home(), session.screens());
        let answering = home.with_extension("answering");
        fs::rename(&home, &answering).expect("a home");
        symlink(hanging.path(), &home).expect("a link");
        Some(Self { home, answering, hanging, screens })
    }

    fn answers_again(&self) {
        fs::remove_file(&self.home).expect("a link");
        fs::rename(&self.answering, &self.home).expect("a home");
        self.hanging.release();
    }
}

/// Whether a thread of a process waits in a file system that hangs.
fn hangs(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let waits = |thread: &Path| fs::read_to_string(thread.join("stack")).unwrap_or_default();
    threads.map(|thread| thread.path()).any(|thread| waits(&thread).contains("fuse_"))
}

/// A window whose session cannot be saved: a pane was renamed, and the file with its name hangs.
fn with_hanging_save(session: &Session) -> Option<(Window, u32, HangingHome)> {
    let mut window = session.attach();
    window.command("echo pid=$$ kept-$((40+2))");
    let shell = window.number_after("pid=");
    session.until_saved("kept-42");
    let hub = Pid::from_raw(session.hub.hub().cast_signed()).expect("a process");
    let home = HangingHome::new(session)?;
    // It is told the name and writes there, too. If it hangs first, it has the directory locked, and what waits for that cannot be killed.
    kill_process(hub, Signal::STOP).expect("it runs");
    window.press(",");
    window.command("renamed");
    window.until("renamed");
    until("saving hangs", || hangs(session.server()));
    Some((window, shell, home))
}

#[test]
fn panes_go_on_when_the_home_hangs_and_are_saved_when_it_answers() {
    let session = Session::new();
    let Some((mut window, _, home)) = with_hanging_save(&session) else { return };
    window.command("echo on-$((40+3))");
    window.until("on-43");
    window.press("|");
    until("two panes", || window.text().matches('┌').count() == 2);
    window.command("echo beside-$((40+4))");
    // Screens are in another directory.
    until_saved_in(&home.screens, "beside-44");
    home.answers_again();
    // What hung has failed, and the next change is saved with what came before it.
    window.press(",");
    window.command("newest");
    let saved = || fs::read_to_string(session.hub.base.home().join("panes.json")).unwrap_or_default();
    until("it is saved", || saved().contains("renamed") && saved().contains("newest"));
}

#[test]
fn a_server_whose_home_hangs_can_be_stopped_or_killed() {
    for signal in [Signal::TERM, Signal::KILL] {
        let session = Session::new();
        let Some((window, shell, home)) = with_hanging_save(&session) else { return };
        let server = session.server();
        kill(window.pid());
        kill_process(Pid::from_raw(server.cast_signed()).expect("a process"), signal).expect("it runs");
        until("it has ended", || !runs(server));
        home.answers_again();
        let mut window = session.window(&["attach"], 24, 80);
        window.until("kept-42");
        window.command("echo same=$$");
        assert_eq!(window.number_after("same="), shell, "{signal:?}");
    }
}

/// Makes the screen of a pane one that cannot be saved, as on a full disk.
fn block_screen(session: &Session, surface: &str) -> PathBuf {
    let file = session.screens().join(surface.strip_prefix("pane:").expect("a pane"));
    until("its screen is saved", || file.exists());
    fs::remove_file(&file).expect("a file");
    // A file does not replace a directory.
    fs::create_dir(&file).expect("a directory");
    file
}

/// The window leaves, and the server is killed.
fn leave_and_kill(session: &Session, mut window: Window) {
    window.press("d");
    until("the window has left", || !runs(window.pid()));
    kill(session.server());
    until("the server has gone", || session.with_words(&["pane-server", "serve"]).is_empty());
}

/// A command that notifies, and writes the number behind the name.
fn say(name: &str, is: &str, number: u32) -> String {
    format!("printf '\\033]9;{name} is {is}\\007'; echo {name}-$(({number}))")
}

/// Two panes: `late` writes `late-42` once there is no server, and `late-43` when the file `more` is there. So does `other`, whose screen
/// cannot be saved. Gives that screen's path.
fn with_late_output(session: &Session) -> PathBuf {
    let wait = |name: &str| format!("until [ -e {} ]; do sleep 0.1; done", session.file(name).display());
    let (go, more) = (wait("go"), wait("more"));
    let window = session.window(&["attach"], 30, 120);
    window.until("$ ");
    for name in ["late", "other"] {
        let (first, second) = (say(name, "here", 42), say(name, "back", 43));
        let script = format!("{go}; {first}; : > {name}; {more}; {second}; : > {name}.more; read line");
        session.open(name, &script);
    }
    until("three panes", || window.text().matches('┌').count() == 3);
    let blocked = block_screen(session, session.surface("other")["id"].as_str().expect("an id"));
    leave_and_kill(session, window);
    fs::write(session.file("go"), "").expect("a file");
    until("both have written", || session.file("late").exists() && session.file("other").exists());
    blocked
}

#[test]
fn output_that_could_not_be_saved_is_kept_for_the_next_server() {
    let session = Session::new();
    let blocked = with_late_output(&session);
    for _ in 0..2 {
        let window = session.window(&["attach"], 30, 120);
        window.until("late-42");
        window.until("other-42");
        leave_and_kill(&session, window);
    }
    fs::remove_dir(&blocked).expect("a directory");
    let window = session.window(&["attach"], 30, 120);
    window.until("other-42");
    session.until_saved("other-42");
    leave_and_kill(&session, window);
    let window = session.window(&["attach"], 30, 120);
    window.until("other-42");
}

#[test]
fn what_was_saved_before_the_server_was_killed_is_not_shown_twice() {
    let session = Session::new();
    let _blocked = with_late_output(&session);
    for _ in 0..2 {
        let window = session.window(&["attach"], 30, 120);
        window.until("other-42");
        window.until("late-42");
        assert_eq!(window.text().matches("late-42").count(), 1, "{}", window.text());
        // Its screen is saved, but the keeper still has the output of both.
        session.until_saved("late-42");
        leave_and_kill(&session, window);
    }
}

#[test]
fn what_is_new_is_shown_although_a_screen_was_saved_with_as_much_that_the_keeper_dropped() {
    let session = Session::new();
    let _blocked = with_late_output(&session);
    // The keeper drops what three servers got, and none of them notes anything, because a screen cannot be saved.
    for _ in 0..3 {
        let window = session.window(&["attach"], 30, 120);
        window.until("late-42");
        session.until_saved("late-42");
        leave_and_kill(&session, window);
    }
    fs::write(session.file("more"), "").expect("a file");
    until("it has written as much again", || session.file("late.more").exists());
    let window = session.window(&["attach"], 30, 120);
    window.until("late-43");
    window.until("late-42");
}

#[test]
fn what_is_saved_while_the_keeper_is_lost_is_not_shown_twice() {
    let session = Session::new();
    let blocked = with_late_output(&session);
    let window = session.window(&["attach"], 30, 120);
    window.until("other-42");
    session.take_keeper();
    // The keeper cannot be told that everything is saved, so it has everything still.
    fs::remove_dir(&blocked).expect("a directory");
    session.until_saved("other-42");
    session.open("next", &format!("{}; read line", say("next", "here", 42)));
    window.until("next-42");
    // The hub hears everything in its order.
    until("the newest is told", || session.hub.bodies(&[]).contains(&"next is here".to_owned()));
    assert_eq!(session.hub.bodies(&[]).len(), 3, "{:?}", session.hub.bodies(&[]));
    for words in ["late-42", "other-42"] {
        assert_eq!(window.text().matches(words).count(), 1, "{}", window.text());
    }
}

#[test]
fn a_pane_whose_note_is_too_long_shows_nothing_twice() {
    let session = Session::new();
    let go = session.file("go");
    let script = format!(
        "until [ -e {} ]; do sleep 0.1; done; echo late-$((40+2)); : > late; read line; echo typed-$line; read line",
        go.display()
    );
    // The note has the command.
    session.open("long", &format!("{script} #{}", "x".repeat(70_000)));
    session.until_saved("");
    kill(session.server());
    until("the server has gone", || session.with_words(&["pane-server", "serve"]).is_empty());
    fs::write(&go, "").expect("a file");
    until("it has written", || session.file("late").exists());
    let window = session.window(&["attach"], 30, 120);
    window.until("late-42");
    session.run(&["pane", "send", "long", "a"]);
    session.until_saved("typed-a");
    leave_and_kill(&session, window);
    let window = session.window(&["attach"], 30, 120);
    window.until("typed-a");
    assert_eq!(window.text().matches("late-42").count(), 1, "{}", window.text());
}

#[test]
fn a_pane_can_be_opened_and_closed_while_screens_cannot_be_saved() {
    let session = Session::new();
    let _blocked = with_late_output(&session);
    let mut window = session.window(&["attach"], 30, 120);
    window.until("other-42");
    session.open("new", "echo new-$((40+2)); read line");
    window.until("new-42");
    window.press("x");
    window.until("y yes");
    window.keys("y");
    window.until_not("new-42");
    // What comes after that is new, although the first screen was saved with what the keeper had before.
    session.until_saved("late-42");
    leave_and_kill(&session, window);
    fs::write(session.file("more"), "").expect("a file");
    until("it has written more", || session.file("late.more").exists());
    let window = session.window(&["attach"], 30, 120);
    window.until("late-43");
}
