//! A client that runs without a terminal, until it has done what it was asked for.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;

use test_support::until_within;

use crate::environment::DEADLINE;

pub(crate) struct Session {
    child: Child,
    out: PathBuf,
}

impl Session {
    #[track_caller]
    pub(crate) fn start(mut command: Command, out: PathBuf) -> Self {
        let file = File::create(&out).expect("a file");
        let both = file.try_clone().expect("a descriptor");
        let child =
            command.stdin(Stdio::null()).stdout(both).stderr(file).spawn().expect("the client starts");
        Self { child, out }
    }

    /// Waits until it has ended. Gives what it printed, and whether it was content.
    #[track_caller]
    pub(crate) fn end(mut self) -> (String, bool) {
        let mut ended = None;
        until_within(DEADLINE, "the client ends", || {
            ended = self.child.try_wait().expect("a child");
            ended.is_some()
        });
        (self.printed(), ended.is_some_and(|status| status.success()))
    }

    /// Waits for a whole line with this text in what it prints. Gives it.
    #[track_caller]
    pub(crate) fn line_with(&self, text: &str) -> String {
        let mut found = None;
        until_within(DEADLINE, "the client prints it", || {
            let printed = self.printed();
            let mut whole = printed.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            found = whole.find(|line| line.contains(text)).map(str::to_owned);
            found.is_some()
        });
        found.unwrap_or_default()
    }

    fn printed(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.out).unwrap_or_default()).into_owned()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("the client printed:\n{}", self.printed());
        }
    }
}
