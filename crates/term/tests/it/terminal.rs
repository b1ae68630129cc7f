//! The terminal around a multiplexer: a real PTY, watched by the scanner.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use ringer_term::{Notification, Scanner, TerminalEventKind};

/// Far longer than any test takes, so that a broken test ends.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// The queries of an attaching multiplexer, and this terminal's answers. tmux redraws everything when the answers arrive, and
/// again if it has waited in vain, so answering makes its output predictable.
const QUESTIONS: [(&[u8], &[u8]); 3] =
    [(b"\x1b[c", b"\x1b[?62;c"), (b"\x1b[>c", b"\x1b[>1;4000;48c"), (b"\x1b[>q", NAME)];

/// The answer to the query for its name.
pub(crate) const NAME: &[u8] = b"\x1bP>|kitty(0.48.2)\x1b\\";

pub(crate) struct Terminal {
    input: Box<dyn Write + Send>,
    output: Receiver<Vec<u8>>,
    child: Box<dyn Child + Send + Sync>,
    scanner: Scanner,
    events: Vec<TerminalEventKind>,
    bytes: Vec<u8>,
    /// The number of answers to each query.
    answered: [usize; QUESTIONS.len()],
    /// Closing it hangs up on the program.
    _master: Box<dyn MasterPty + Send>,
}

impl Terminal {
    /// Starts a program in a terminal, with only the variables of a login and these.
    pub(crate) fn run(argv: &[&str], directory: &Path, variables: &[(&str, &Path)]) -> Self {
        let size = PtySize { rows: 24, cols: 80, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(argv[0]);
        command.args(&argv[1..]);
        command.cwd(directory);
        command.env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", directory);
        command.env("SHELL", "/bin/sh");
        command.env("LC_ALL", "C.UTF-8");
        command.env("TERM", "xterm-256color");
        for (name, value) in variables {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap_or_else(|error| missing(argv[0], &error));
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (sender, output) = channel();
        // Reads until the program's side is closed; then `output` is closed too.
        thread::spawn(move || {
            let mut block = [0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut block) {
                if sender.send(block[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self {
            input: pair.master.take_writer().unwrap(),
            output,
            child,
            scanner: Scanner::new(),
            events: Vec::new(),
            bytes: Vec::new(),
            answered: [0; QUESTIONS.len()],
            _master: pair.master,
        }
    }

    /// Types a line. It arrives after all earlier answers.
    pub(crate) fn type_line(&mut self, line: &str) {
        self.type_bytes(format!("{line}\r").as_bytes());
    }

    pub(crate) fn type_bytes(&mut self, bytes: &[u8]) {
        self.input.write_all(bytes).unwrap();
    }

    /// Reads until the condition holds.
    pub(crate) fn wait_for(&mut self, what: &str, is_there: impl Fn(&Self) -> bool) {
        let end = Instant::now() + DEADLINE;
        while !is_there(self) {
            match self.output.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.take(&bytes),
                Err(why) => panic!("no {what} ({why}): {}", self.bytes.escape_ascii()),
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let Self { scanner, events, .. } = self;
        scanner.feed(bytes, |event| events.push(event.kind));
        self.bytes.extend_from_slice(bytes);
        for ((question, answer), answered) in QUESTIONS.iter().zip(&mut self.answered) {
            let asked = self.bytes.windows(question.len()).filter(|window| window == question).count();
            for _ in *answered..asked {
                self.input.write_all(answer).unwrap();
            }
            *answered = asked;
        }
    }

    /// Returns true once it has answered the query for its name. This is tmux's last query; the earlier ones depend on its
    /// version.
    pub(crate) fn sent_its_name(&self) -> bool {
        self.answered.last() != Some(&0)
    }

    /// Returns true if the output contains these bytes.
    pub(crate) fn shows(&self, text: &str) -> bool {
        self.bytes.windows(text.len()).any(|window| window == text.as_bytes())
    }

    pub(crate) fn has(&self, event: &TerminalEventKind) -> bool {
        self.events.contains(event)
    }

    pub(crate) fn bells(&self) -> usize {
        self.events.iter().filter(|event| **event == TerminalEventKind::Bell).count()
    }

    /// Returns the notifications in the output so far.
    pub(crate) fn notifications(&self) -> Vec<&Notification> {
        let notifications = self.events.iter().filter_map(|event| match event {
            TerminalEventKind::Notification(notification) => Some(notification),
            _ => None,
        });
        notifications.collect()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Both fail only if it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reports that a program which the tests need is not installed.
pub(crate) fn missing(program: &str, error: &dyn std::fmt::Display) -> ! {
    panic!("cannot run {program}: {error}. `cargo xtask test` installs what the tests need")
}
