//! A client in a terminal of 120 columns and 40 rows, which answers no question about itself.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use test_support::until_within;

use crate::environment::DEADLINE;

/// What is kept of what the client drew. Tests wait for what is drawn once more, so it must not be much.
const KEPT: usize = 4096;

/// How often a key is pressed again. Codex takes keys that come within a few milliseconds of each other for pasted text.
const PRESS_EVERY: Duration = Duration::from_millis(200);

pub(crate) struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keyboard: Box<dyn Write + Send>,
    drawn: Arc<Mutex<Vec<u8>>>,
    _master: Box<dyn MasterPty + Send>,
}

impl Terminal {
    #[track_caller]
    pub(crate) fn start(command: CommandBuilder) -> Self {
        let size = PtySize { rows: 40, cols: 120, pixel_width: 0, pixel_height: 0 };
        let pty = native_pty_system().openpty(size).expect("a PTY");
        let child = pty.slave.spawn_command(command).expect("the client starts");
        drop(pty.slave);
        let mut reader = pty.master.try_clone_reader().expect("a reader");
        let keyboard = pty.master.take_writer().expect("a writer");
        let drawn = Arc::new(Mutex::new(Vec::new()));
        thread::spawn({
            let drawn = Arc::clone(&drawn);
            move || {
                let mut buffer = [0; KEPT];
                // It ends with an error when the other end is closed.
                while let Ok(count @ 1..) = reader.read(&mut buffer) {
                    let Ok(mut drawn) = drawn.lock() else { return };
                    drawn.extend_from_slice(&buffer[..count]);
                    let surplus = drawn.len().saturating_sub(KEPT);
                    drawn.drain(..surplus);
                }
            }
        });
        Self { child, keyboard, drawn, _master: pty.master }
    }

    /// Waits until this text is in what the client drew last, in one go.
    #[track_caller]
    pub(crate) fn until_drawn(&self, text: &str) {
        until_within(DEADLINE, "the client draws it", || self.has_drawn(text));
    }

    /// Only what the client draws from now on counts.
    pub(crate) fn forget_drawn(&self) {
        if let Ok(mut drawn) = self.drawn.lock() {
            drawn.clear();
        }
    }

    /// Presses keys that may be pressed more than once, until the client draws this text.
    #[track_caller]
    pub(crate) fn press_until_drawn(&mut self, keys: &str, text: &str) {
        self.press_until(keys, "the client draws it", |terminal| terminal.has_drawn(text));
    }

    /// Presses keys that may be pressed more than once, until something has happened.
    #[track_caller]
    pub(crate) fn press_until(&mut self, keys: &str, what: &str, has_happened: impl Fn(&mut Self) -> bool) {
        let mut pressed: Option<Instant> = None;
        until_within(DEADLINE, what, || {
            if pressed.is_none_or(|at| at.elapsed() >= PRESS_EVERY) {
                self.press(keys);
                pressed = Some(Instant::now());
            }
            has_happened(self)
        });
    }

    /// Whether the program in it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Kills the client, as a crash would.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn has_drawn(&self, text: &str) -> bool {
        self.drawn.lock().is_ok_and(|drawn| String::from_utf8_lossy(&drawn).contains(text))
    }

    #[track_caller]
    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the terminal takes it");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking()
            && let Ok(drawn) = self.drawn.lock()
        {
            eprintln!("the client drew last:\n{}", drawn.escape_ascii());
        }
    }
}
