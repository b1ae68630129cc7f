//! A home with panes.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use test_support::{DEADLINE, until};

use super::window::Window;
use crate::hub::environment::{HubEnvironment, runs};
use crate::pty::{Pane, size};

pub(super) const RINGER: &str = env!("CARGO_BIN_EXE_ringer");

/// A home in which panes may be opened. Everything that runs in it ends with it: hub, server, keeper, windows and programs.
pub(crate) struct Session {
    pub(crate) hub: HubEnvironment,
}

impl Session {
    pub(crate) fn new() -> Self {
        Self { hub: HubEnvironment::new() }
    }

    /// The environment of a person's terminal.
    pub(super) fn variables(&self) -> Vec<(String, String)> {
        let own = [
            ("TERM", "xterm-256color"),
            ("COLORTERM", "truecolor"),
            ("LANG", "C.UTF-8"),
            ("SHELL", "/bin/sh"),
            ("PS1", "$ "),
            ("HOME", self.hub.base.path().to_str().expect("a path")),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        self.hub.variables().into_iter().chain(own).collect()
    }

    /// `ringer attach` in a window of the usual size, once it shows a shell that waits.
    #[track_caller]
    pub(super) fn attach(&self) -> Window {
        let window = self.window(&["attach"], 24, 80);
        window.until("$ ");
        window
    }

    /// A command in a window.
    pub(super) fn window(&self, arguments: &[&str], lines: u16, columns: u16) -> Window {
        self.terminal(&[&[RINGER], arguments].concat(), lines, columns)
    }

    /// Any program in a terminal.
    pub(super) fn terminal(&self, argv: &[&str], lines: u16, columns: u16) -> Window {
        let mut window = self.unread_terminal(argv, lines, columns);
        window.begin_reading();
        window
    }

    /// The same, and the terminal is not read until [`Window::begin_reading`].
    pub(super) fn unread_terminal(&self, argv: &[&str], lines: u16, columns: u16) -> Window {
        let (variables, directory) = (self.variables(), self.directory());
        let pane = Pane::start_unread(argv, &variables, Some(&directory), size(lines, columns));
        Window::new(pane, (lines, columns))
    }

    /// Where windows are opened.
    pub(super) fn directory(&self) -> PathBuf {
        self.hub.base.repository()
    }

    /// A file that a program in a pane may wait for or write to.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.directory().join(name)
    }

    /// Runs a command as a person would in another terminal. It has to succeed.
    #[track_caller]
    pub(super) fn run(&self, arguments: &[&str]) -> String {
        let mut command = self.hub.ringer(arguments);
        let output = command.envs(self.variables()).output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Opens a pane that runs a command of the shell. Gives its surface.
    #[track_caller]
    pub(super) fn open(&self, name: &str, script: &str) -> String {
        self.run(&["open", "--go", "--name", name, "--", "sh", "-c", script]).trim().to_owned()
    }

    /// All surfaces.
    #[track_caller]
    pub(super) fn surfaces(&self) -> Vec<Value> {
        let listed = crate::ringer::json(&self.run(&["panes", "--json"]));
        listed.as_array().expect("a list").clone()
    }

    /// The surface of the pane of this name.
    #[track_caller]
    pub(super) fn surface(&self, name: &str) -> Value {
        let found = self.surfaces().into_iter().find(|surface| surface["name"] == name);
        found.unwrap_or_else(|| panic!("no pane is called {name}: {:?}", self.surfaces()))
    }

    /// The process of the server.
    #[track_caller]
    pub(super) fn server(&self) -> u32 {
        self.only("serve")
    }

    /// The process of the keeper.
    #[track_caller]
    pub(super) fn keeper(&self) -> u32 {
        self.only("keep")
    }

    /// The only process with that word. Two windows may start one each; then one of them ends at once.
    #[track_caller]
    fn only(&self, word: &str) -> u32 {
        let mut found = Vec::new();
        until(&format!("one process with {word}"), || {
            found = self.with_words(&["pane-server", word]);
            found.len() == 1
        });
        found[0]
    }

    /// The processes of this home whose arguments have these words.
    pub(super) fn with_words(&self, words: &[&str]) -> Vec<u32> {
        let holds = |pid: &u32| {
            let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let arguments: Vec<&[u8]> = arguments.split(|byte| *byte == 0).collect();
            words.iter().all(|word| arguments.contains(&word.as_bytes()))
        };
        self.processes().into_iter().filter(holds).collect()
    }

    /// All processes of this home, according to the kernel.
    fn processes(&self) -> Vec<u32> {
        let home = format!("RINGER_HOME={}", self.hub.base.home().display());
        let all = fs::read_dir("/proc").expect("processes").flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|own| own == home.as_bytes()) && runs(*pid)
        })
        .collect()
    }

    /// Waits until a file has so many lines.
    #[track_caller]
    pub(super) fn line_count(&self, name: &str, count: usize) {
        let read = || fs::read_to_string(self.file(name)).unwrap_or_default();
        until(&format!("{name} has {count} lines"), || read().lines().count() == count);
    }

    /// The directory of the sockets.
    #[track_caller]
    pub(super) fn sockets(&self) -> PathBuf {
        until("a hub runs", || self.hub.presence().is_some());
        let hub = self.hub.presence().expect("a hub");
        let socket = PathBuf::from(hub["socket"].as_str().expect("a path"));
        socket.parent().expect("a directory").to_owned()
    }

    /// Takes the keeper over for a moment, as another server would.
    #[track_caller]
    pub(super) fn take_keeper(&self) {
        let mut stream = UnixStream::connect(self.sockets().join("pty.sock")).expect("a keeper");
        stream.write_all(b"{\"version\":1}\n").expect("it reads");
        assert!(stream.read(&mut [0; 1000]).expect("it answers") > 0);
    }

    /// Where the screens are saved.
    #[track_caller]
    pub(super) fn screens(&self) -> PathBuf {
        let file = self.hub.base.home().join("panes.json");
        let saved = || serde_json::from_slice::<Value>(&fs::read(&file).ok()?).ok();
        until("a session is saved", || saved().is_some());
        saved().and_then(|saved| Some(PathBuf::from(saved["screens"].as_str()?))).expect("a path")
    }

    /// Waits until these words are among what the next server would show.
    #[track_caller]
    pub(super) fn until_saved(&self, words: &str) {
        until_saved_in(&self.screens(), words);
    }

    /// Waits until a file is there, and has a whole line. Gives it.
    #[track_caller]
    pub(super) fn line_of(&self, name: &str) -> String {
        let read = || fs::read_to_string(self.file(name)).unwrap_or_default();
        until(&format!("{name} is written"), || read().ends_with('\n'));
        read().trim().to_owned()
    }
}

/// The same, for a home that cannot be asked where its screens are.
#[track_caller]
pub(super) fn until_saved_in(screens: &Path, words: &str) {
    until(&format!("{words} is saved"), || {
        let files = fs::read_dir(screens).into_iter().flatten().flatten();
        let mut texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
        texts.any(|text| text.contains(words))
    });
}

impl Drop for Session {
    fn drop(&mut self) {
        let end = Instant::now() + DEADLINE;
        // One that is started meanwhile is found in the next round.
        while Instant::now() < end {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            for pid in left.iter().filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
                // It may have ended by itself.
                let _ = kill_process(pid, Signal::KILL);
            }
            thread::park_timeout(Duration::from_millis(5));
        }
    }
}
