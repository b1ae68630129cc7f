//! A process that runs while the test does other things. It ends with the test.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde_json::Value;
use test_support::{DEADLINE, until};

use crate::ringer::json;

pub(crate) struct Background {
    child: Child,
    lines: Receiver<String>,
}

impl Background {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                // The test may have ended already.
                let _ = sender.send(line);
            }
        });
        Self { child, lines }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it sleeps with little memory: a hook that waits for a person may do so for hours.
    #[track_caller]
    pub(crate) fn until_small(&self) {
        // A release build takes 2 MB. This one has more code and more addresses for the dynamic linker: 5 MB, and 29 before it
        // gives its pages back.
        const MOST_KILOBYTES: u64 = 8192;
        if !cfg!(target_os = "linux") {
            return;
        }
        until("it takes little memory", || {
            let memory = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.pid())).expect("it runs");
            let resident = memory.lines().find_map(|line| line.strip_prefix("Rss:")).expect("Linux tells it");
            let kilobytes: u64 = resident.trim().trim_end_matches(" kB").parse().expect("a number");
            kilobytes <= MOST_KILOBYTES
        });
    }

    /// The next line, or `None` when its output has ended.
    #[track_caller]
    pub(crate) fn line(&self) -> Option<String> {
        match self.lines.recv_timeout(DEADLINE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("process {} printed nothing in time", self.pid()),
        }
    }

    /// The next line, which is JSON.
    #[track_caller]
    pub(crate) fn message(&self) -> Value {
        json(&self.line().expect("a line"))
    }

    /// Everything else it prints until it ends, and its exit code (`None`: killed by a signal).
    #[track_caller]
    pub(crate) fn end(mut self) -> (Vec<String>, Option<i32>) {
        let mut rest = Vec::new();
        while let Some(line) = self.line() {
            rest.push(line);
        }
        (rest, self.child.wait().expect("it ended").code())
    }

    /// Waits until it has ended well. Gives the messages it printed.
    #[track_caller]
    pub(crate) fn messages(self) -> Vec<Value> {
        let (lines, exit) = self.end();
        assert_eq!(exit, Some(0), "{lines:?}");
        lines.iter().map(|line| json(line)).collect()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Stops it, and waits until it stands still.
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
        let stopped = waitpid(Some(Pid::from_child(&self.child)), WaitOptions::UNTRACED);
        assert!(stopped.expect("it runs").is_some_and(|(_, status)| status.stopped()));
    }

    /// Kills it, and waits until it is dead.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it is dead");
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Mostly it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
