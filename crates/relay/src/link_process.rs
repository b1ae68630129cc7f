//! The program of a link: `ssh`, `docker exec`, anything that connects two pipes with `ringer relay serve`.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};

/// How long a program may take to end by itself.
const ENDS_WITHIN: Duration = Duration::from_millis(300);
/// How often it is looked whether a program whose output is closed has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// How much of what it says about itself is read: the last line of it is shown.
const MAX_SAID: usize = 16 * 1024;

/// A program, and all that it started in its process group. They end when this is dropped.
#[derive(Debug)]
pub struct LinkProcess {
    child: Child,
    group: Option<Pid>,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    stderr: ChildStderr,
}

impl LinkProcess {
    /// Starts a program with its arguments. No shell is used.
    pub fn start(argv: &[String]) -> io::Result<Self> {
        let Some((program, arguments)) = argv.split_first() else {
            return Err(io::Error::other("no program is named"));
        };
        let mut command = Command::new(program);
        command.args(arguments).process_group(0);
        // An agent may have started the hub: what it set for its own programs is not for this one.
        command.env_remove("RINGER_AGENT");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let taken = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = taken else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(io::Error::other("it has no input and output"));
        };
        let process = Self { child, group, stdin: Some(stdin), stdout, stderr };
        fcntl_setfl(&process.stderr, fcntl_getfl(&process.stderr)? | OFlags::NONBLOCK)?;
        Ok(process)
    }

    /// What it writes.
    pub fn output(&self) -> BorrowedFd<'_> {
        self.stdout.as_fd()
    }

    /// What it reads.
    pub fn input(&self) -> BorrowedFd<'_> {
        // It is there until the process is dropped.
        self.stdin.as_ref().map_or_else(|| self.stdout.as_fd(), AsFd::as_fd)
    }

    /// How it ended, in words: the last line that it said about itself, and its exit code. It is given a moment to end.
    pub fn end_in_words(&mut self) -> String {
        self.stdin = None;
        let status = self.wait_for_end();
        let said = self.last_words();
        let ended = match status {
            Some(status) => {
                status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}"))
            }
            None => "it closed its output".to_owned(),
        };
        match said {
            Some(said) => format!("{said} ({ended})"),
            None => format!("the program of the link ended ({ended})"),
        }
    }

    /// The last line that it wrote to its standard error.
    fn last_words(&mut self) -> Option<String> {
        let mut said = Vec::new();
        let mut chunk = [0; 4096];
        while said.len() < MAX_SAID {
            match self.stderr.read(&mut chunk) {
                Ok(0) | Err(_) => break,
                Ok(read) => said.extend_from_slice(&chunk[..read]),
            }
        }
        let said = String::from_utf8_lossy(&said);
        let line =
            said.lines().rev().map(str::trim).find(|line| !line.is_empty() && !line.starts_with("hint:"))?;
        Some(line.chars().filter(|character| !character.is_control()).take(300).collect())
    }

    /// Waits a moment for the end of the program. Gives how it ended.
    fn wait_for_end(&mut self) -> Option<ExitStatus> {
        let deadline = Instant::now() + ENDS_WITHIN;
        // Its output is closed a moment before it has ended, so most of the wait is for the output.
        let timeout = Timespec::try_from(ENDS_WITHIN).ok();
        let _ = poll(&mut [PollFd::new(&self.stdout, PollFlags::empty())], timeout.as_ref());
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < deadline => thread::sleep(LOOK_AGAIN),
                Ok(None) | Err(_) => return None,
            }
        }
    }
}

impl Drop for LinkProcess {
    fn drop(&mut self) {
        // The end of its input tells it to end; the signals are for all that it started.
        self.stdin = None;
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(Signal::TERM);
            let _ = self.wait_for_end();
        }
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

impl LinkProcess {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, signal);
        }
    }
}
