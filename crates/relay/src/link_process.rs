//! The program of a link: `ssh`, `docker exec`, anything that connects two pipes with `ringer relay serve`.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::error::Error;

/// How long a program may take to end by itself.
const ENDS_WITHIN: Duration = Duration::from_millis(300);
/// How often it is looked whether a program whose output is closed has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// How much of what it says about itself is kept, at least: the last line of it is shown.
const MAX_SAID: usize = 16 * 1024;

/// The most that a pipe holds, as Linux allows it to a user.
const MAX_PIPE: usize = 1024 * 1024;

/// A program, and all that it started in its process group. They end when this is dropped.
#[derive(Debug)]
pub struct LinkProcess {
    /// `None` once it is dropped.
    child: Option<Child>,
    group: Option<Pid>,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    errors: ProcessErrors,
}

/// What a program says about itself, on its standard error. It has to be read, or the program waits once the pipe is full.
#[derive(Debug)]
pub struct ProcessErrors {
    stderr: ChildStderr,
    has_ended: Cell<bool>,
    said: RefCell<Vec<u8>>,
}

/// What a program printed, and how it ended.
#[derive(Debug)]
pub struct FinishedProcess {
    /// What it printed.
    pub text: String,
    /// Its exit code.
    pub code: Option<i32>,
    /// The last line that it said about itself.
    pub last_words: Option<String>,
}

impl ProcessErrors {
    fn new(stderr: ChildStderr) -> io::Result<Self> {
        unblocked(stderr.as_fd())?;
        Ok(Self { stderr, has_ended: Cell::new(false), said: RefCell::default() })
    }

    /// What to wait for. `None` if nothing will come any more.
    pub(crate) fn to_wait_for(&self) -> Option<PollFd<'_>> {
        (!self.has_ended.get()).then(|| PollFd::new(&self.stderr, PollFlags::IN))
    }

    /// Reads what is there, and keeps the end of it. Gives whether there may be more.
    pub(crate) fn read(&self) -> bool {
        let mut said = self.said.borrow_mut();
        let mut chunk = [0; 4096];
        loop {
            match rustix::io::read(&self.stderr, &mut chunk) {
                Ok(0) => break self.has_ended.set(true),
                Ok(read) => said.extend_from_slice(&chunk[..read]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => break self.has_ended.set(true),
            }
            if said.len() > 2 * MAX_SAID {
                let old = said.len() - MAX_SAID;
                said.drain(..old);
                // The program may write faster than this reads: the link has to go on.
                return true;
            }
        }
        false
    }

    /// The last line that it wrote.
    fn last_words(&self) -> Option<String> {
        // More than a pipe holds is not read: a program that did not end may write for ever.
        let mut left = MAX_PIPE / MAX_SAID;
        while left > 0 && self.read() {
            left -= 1;
        }
        let said = self.said.borrow();
        let said = String::from_utf8_lossy(&said);
        let line =
            said.lines().rev().map(str::trim).find(|line| !line.is_empty() && !line.starts_with("hint:"))?;
        Some(line.chars().filter(|character| !character.is_control()).take(300).collect())
    }
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
        let errors = ProcessErrors::new(stderr)?;
        Ok(Self { child: Some(child), group, stdin: Some(stdin), stdout, errors })
    }

    /// Runs a program to its end, without input. What it prints beyond [`MAX_SAID`] is not kept.
    pub fn run_to_end(argv: &[String], within: Duration) -> Result<FinishedProcess, Error> {
        let deadline = Instant::now() + within;
        let mut process = Self::start(argv).map_err(|error| {
            let program = argv.first().map(String::as_str).unwrap_or_default();
            Error::Program(format!("{program} cannot be started: {error}"))
        })?;
        process.stdin = None;
        unblock(process.output())?;
        let (mut text, mut chunk) = (Vec::new(), [0; 4096]);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::Silent(within.as_secs()));
            }
            let mut waits = vec![PollFd::new(&process.stdout, PollFlags::IN)];
            waits.extend(process.errors.to_wait_for());
            let _ = poll(&mut waits, Timespec::try_from(left).ok().as_ref());
            process.errors.read();
            match rustix::io::read(&process.stdout, &mut chunk) {
                Ok(0) => break,
                Ok(read) if text.len() < MAX_SAID => text.extend_from_slice(&chunk[..read]),
                Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => break,
            }
        }
        let code = process.wait_for_end().and_then(|status| status.code());
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(FinishedProcess { text, code, last_words: process.errors.last_words() })
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

    /// What it says about itself.
    pub fn errors(&self) -> &ProcessErrors {
        &self.errors
    }

    /// How it ended, in words: the last line that it said about itself, and its exit code. It is given a moment to end.
    pub fn end_in_words(&mut self) -> String {
        self.stdin = None;
        let status = self.wait_for_end();
        let said = self.errors.last_words();
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

    /// Waits a moment for the end of the program. Gives how it ended.
    fn wait_for_end(&mut self) -> Option<ExitStatus> {
        let deadline = Instant::now() + ENDS_WITHIN;
        // Its output is closed a moment before it has ended, so most of the wait is for the output.
        let timeout = Timespec::try_from(ENDS_WITHIN).ok();
        let _ = poll(&mut [PollFd::new(&self.stdout, PollFlags::empty())], timeout.as_ref());
        ends_until(self.child.as_mut()?, deadline)
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for LinkProcess {
    fn drop(&mut self) {
        // The end of its input tells it to end; the signals are for all that it started.
        self.stdin = None;
        if matches!(self.child.as_mut().map(Child::try_wait), Some(Ok(None))) {
            self.signal(Signal::TERM);
            let _ = self.wait_for_end();
        }
        self.signal(Signal::KILL);
        let Some(mut child) = self.child.take() else { return };
        // It may have left its group, or run as another user, as `sudo` does: such a program cannot be killed, and must not
        // keep the hub from ending.
        let _ = child.kill();
        if ends_until(&mut child, Instant::now() + ENDS_WITHIN).is_none() {
            let _ = thread::Builder::new().name("link ends".to_owned()).spawn(move || child.wait());
        }
    }
}

fn unblocked(pipe: BorrowedFd<'_>) -> io::Result<()> {
    Ok(fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?)
}

/// Neither end of a pipe may hold up the other one.
pub(crate) fn unblock(pipe: BorrowedFd<'_>) -> Result<(), Error> {
    unblocked(pipe).map_err(|source| Error::Io { what: "cannot use the pipe".to_owned(), source })
}

/// How a program ended, if it did in time.
fn ends_until(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => thread::sleep(LOOK_AGAIN),
            Ok(None) | Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> LinkProcess {
        LinkProcess::start(&["sh", "-c", script].map(str::to_owned)).unwrap()
    }

    #[test]
    fn a_program_that_says_much_about_itself_does_not_wait() {
        // More than any pipe holds, and then something on standard output.
        let script = "i=0; while [ $i -lt 3000 ]; do echo 'debug1: 0123456789012345678901234567890123456789' >&2; \
                      i=$((i+1)); done; echo last words >&2; echo done";
        let mut process = shell(script);
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut byte = [0];
        loop {
            let mut waits = vec![PollFd::from_borrowed_fd(process.output(), PollFlags::IN)];
            waits.extend(process.errors().to_wait_for());
            let left = deadline.saturating_duration_since(Instant::now());
            poll(&mut waits, Timespec::try_from(left).ok().as_ref()).unwrap();
            let is_done = !waits[0].revents().is_empty();
            assert!(!left.is_zero(), "it waits");
            process.errors().read();
            if is_done {
                assert_eq!(rustix::io::read(process.output(), &mut byte), Ok(1));
                break;
            }
        }
        assert_eq!(process.end_in_words(), "last words (exit code 0)");
    }

    #[test]
    fn a_program_is_run_to_its_end_and_not_longer() {
        let run =
            |script: &str, within| LinkProcess::run_to_end(&["sh", "-c", script].map(str::to_owned), within);
        let finished = run("cat; echo out; echo err >&2; exit 3", Duration::from_secs(30)).unwrap();
        assert_eq!((finished.text.as_str(), finished.code), ("out\n", Some(3)));
        assert_eq!(finished.last_words.as_deref(), Some("err"));
        let late = run("exec sleep 1000", Duration::from_millis(50));
        assert!(matches!(late, Err(Error::Silent(_))), "{late:?}");
    }

    #[test]
    fn a_program_that_does_not_end_is_not_waited_for() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        assert_eq!(ends_until(&mut child, Instant::now() + LOOK_AGAIN), None);
        child.kill().unwrap();
        assert!(ends_until(&mut child, Instant::now() + Duration::from_secs(30)).is_some());
    }
}
