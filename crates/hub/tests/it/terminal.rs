//! A terminal of the test's own, with a process in it.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use ringer_core::Draft;
use ringer_core::message::MessageOrigin;
use rustix::termios::{Action, tcflow};
use test_support::{DEADLINE, until};

use crate::hub::draft;

/// What a terminal was told, and a way to wait for more.
type Screen = Arc<(Mutex<Vec<u8>>, Condvar)>;

/// A terminal. It and who sits in it end with the test.
pub(crate) struct Terminal {
    leader: Box<dyn Child + Send + Sync>,
    /// Held: without it the terminal is gone.
    _master: Box<dyn MasterPty + Send>,
    screen: Screen,
    pub(crate) tty: String,
    pub(crate) surface: String,
}

impl Terminal {
    /// One in which kitty is said to run.
    pub(crate) fn kitty() -> Self {
        Self::with(&[("TERM", "xterm-kitty"), ("TERM_PROGRAM", "kitty"), ("TERM_PROGRAM_VERSION", "0.48.2")])
    }

    pub(crate) fn with(variables: &[(&str, &str)]) -> Self {
        let pty = native_pty_system().openpty(PtySize::default()).expect("a PTY");
        let tty = pty.master.tty_name().expect("a name").to_str().expect("a path").to_owned();
        let mut command = CommandBuilder::new("sleep");
        command.arg("1000");
        command.env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        for (name, value) in variables {
            command.env(name, value);
        }
        let leader = pty.slave.spawn_command(command).expect("sleep runs");
        let pid = leader.process_id().expect("it runs");
        // Forked is not yet executed: the environment is the test's own until then.
        until("a process runs in the terminal", || {
            std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"sleep\0"))
        });
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
        let started = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(19)).expect("a number");
        let surface = format!("tty:{tty}@{started}");
        let screen = Screen::default();
        let mut reader = pty.master.try_clone_reader().expect("a reader");
        let shown = Arc::clone(&screen);
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut piece) {
                let (bytes, more) = &*shown;
                bytes.lock().unwrap_or_else(PoisonError::into_inner).extend(&piece[..read]);
                more.notify_all();
            }
        });
        Self { leader, _master: pty.master, screen, tty, surface }
    }

    /// A message from that process.
    pub(crate) fn says(&self, body: &str) -> Draft {
        let origin = MessageOrigin {
            surface: Some(self.surface.clone()),
            tty: Some(self.tty.clone()),
            ..MessageOrigin::default()
        };
        Draft { origin, ..draft(body) }
    }

    /// Waits until the terminal was told this. Gives all it was told.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) -> String {
        let (bytes, more) = &*self.screen;
        let bytes = bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_missing = |bytes: &mut Vec<u8>| !String::from_utf8_lossy(bytes).contains(text);
        let waited = more.wait_timeout_while(bytes, DEADLINE, is_missing);
        let (bytes, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        let told = String::from_utf8_lossy(&bytes).into_owned();
        assert!(!waited.timed_out(), "it was never told {text:?}, only {told:?}");
        told
    }

    pub(crate) fn told(&self) -> Vec<u8> {
        self.screen.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// As with Ctrl-S: whatever is written waits.
    pub(crate) fn stop(&self) {
        let device = File::options().write(true).open(&self.tty).expect("a terminal");
        tcflow(&device, Action::OOff).expect("it stops");
    }

    /// As with Ctrl-Q.
    pub(crate) fn go_on(&self) {
        // A terminal that is stopped can be opened, but not if that waits for it.
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let device = File::options().write(true).custom_flags(flags).open(&self.tty).expect("a terminal");
        tcflow(&device, Action::OOn).expect("it goes on");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.leader.kill();
        let _ = self.leader.wait();
    }
}
