//! What comes into the journal, as it comes.

use std::cell::RefCell;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use serde_json::Value;

use crate::environment::DEADLINE;

/// A `ringer log --follow --json`. It ends with the test.
pub(crate) struct Follower {
    child: Child,
    lines: Receiver<String>,
    passed: RefCell<Vec<String>>,
}

impl Follower {
    #[track_caller]
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                // The test may have ended already.
                let _ = sender.send(line);
            }
        });
        Self { child, lines, passed: RefCell::default() }
    }

    /// The next message that is wanted. Those before it are passed over.
    #[track_caller]
    pub(crate) fn until(&self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + DEADLINE;
        loop {
            let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) else {
                panic!("nothing of that kind came in time, only {:#?}", self.passed.borrow());
            };
            let message: Value = serde_json::from_str(&line).expect("JSON");
            self.passed.borrow_mut().push(line);
            if is_wanted(&message) {
                return message;
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
