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
    let home = HangingHome::new(session)?;
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
        // The keeper has noted the name.
        window.command("echo same=$$");
        assert_eq!(window.number_after("same="), shell, "{signal:?}");
    }
}
