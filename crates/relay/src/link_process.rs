//! The program of a link: `ssh`, `docker exec`, anything that connects two pipes with `ringer relay serve`.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ringer_platform::find_own_program;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::error::Error;

/// Time limit for a program to exit after a request.
const EXIT_TIMEOUT: Duration = Duration::from_millis(300);
/// Time limit for the exit code of a program that closed its output. It explains why the link failed.
const EXIT_CODE_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval at which a program with a closed output is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// The least of its standard error that is kept. The last line is shown.
const MAX_ERRORS: usize = 16 * 1024;

/// The largest pipe that Linux allows to a user.
const MAX_PIPE: usize = 1024 * 1024;

/// A program, and everything that it started in its process group. Dropping this ends them.
#[derive(Debug)]
pub struct LinkProcess {
    /// `None` after the drop.
    child: Option<Child>,
    group: Option<Pid>,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    errors: ProcessErrors,
}

/// The standard error of a program. It must be read, because the program blocks when the pipe is full.
#[derive(Debug)]
pub struct ProcessErrors {
    stderr: ChildStderr,
    has_ended: Cell<bool>,
    written: RefCell<Vec<u8>>,
}

/// The result of a program.
#[derive(Debug)]
pub struct FinishedProcess {
    /// Its standard output.
    pub text: String,
    /// The output was longer, and is truncated.
    pub is_cut: bool,
    /// Its exit code.
    pub code: Option<i32>,
    /// The end of its standard error.
    pub errors: String,
}

impl FinishedProcess {
    /// Returns the last line of its standard error.
    pub fn last_error_line(&self) -> Option<String> {
        last_line(&self.errors)
    }
}

/// Returns the last line of a standard error that is not a hint.
fn last_line(errors: &str) -> Option<String> {
    let mut lines = errors.lines().rev().map(str::trim);
    let line = lines.find(|line| !line.is_empty() && !line.starts_with("hint:"))?;
    Some(line.chars().filter(|character| !character.is_control()).take(300).collect())
}

impl ProcessErrors {
    fn new(stderr: ChildStderr) -> io::Result<Self> {
        make_nonblocking(stderr.as_fd())?;
        Ok(Self { stderr, has_ended: Cell::new(false), written: RefCell::default() })
    }

    /// Returns the descriptor to poll. `None` after the end of the stream.
    pub(crate) fn to_wait_for(&self) -> Option<PollFd<'_>> {
        (!self.has_ended.get()).then(|| PollFd::new(&self.stderr, PollFlags::IN))
    }

    /// Reads what is available, and keeps its end. Returns true if there may be more.
    pub(crate) fn read(&self) -> bool {
        let mut written = self.written.borrow_mut();
        let mut chunk = [0; 4096];
        loop {
            match rustix::io::read(&self.stderr, &mut chunk) {
                Ok(0) => break self.has_ended.set(true),
                Ok(read) => written.extend_from_slice(&chunk[..read]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => break self.has_ended.set(true),
            }
            if written.len() > 2 * MAX_ERRORS {
                let old = written.len() - MAX_ERRORS;
                written.drain(..old);
                // The program may write faster than this reads, and the link must continue.
                return true;
            }
        }
        false
    }

    /// Returns the end of the standard error.
    fn text(&self) -> String {
        // Reads at most the capacity of a pipe, because a program that keeps running may write for ever.
        let mut left = MAX_PIPE / MAX_ERRORS;
        while left > 0 && self.read() {
            left -= 1;
        }
        String::from_utf8_lossy(&self.written.borrow()).into_owned()
    }
}

impl LinkProcess {
    /// Starts a program with its arguments. No shell is used.
    pub fn start(argv: &[String]) -> io::Result<Self> {
        let Some((program, arguments)) = argv.split_first() else {
            return Err(io::Error::other("no program is named"));
        };
        let program = if program.contains('/') {
            program.into()
        } else {
            find_own_program(&std::env::var_os("PATH").unwrap_or_default(), program)?
        };
        let mut command = Command::new(program);
        // An agent may have started the hub, and its variable for its own programs must not reach this one.
        command.args(arguments).env_remove("RINGER_AGENT");
        Self::start_command(command)
    }

    fn start_command(mut command: Command) -> io::Result<Self> {
        command.process_group(0);
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

    /// Runs a program to its end, without input. Keeps at most `most` bytes of its output.
    pub fn run_to_end(command: Command, most: usize, within: Duration) -> Result<FinishedProcess, Error> {
        let deadline = Instant::now() + within;
        let program = command.get_program().to_string_lossy().into_owned();
        let mut process = Self::start_command(command)
            .map_err(|error| Error::Program(format!("{program} cannot be started: {error}")))?;
        process.stdin = None;
        set_nonblocking(process.output())?;
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
                Ok(read) if text.len() <= most => text.extend_from_slice(&chunk[..read]),
                Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => break,
            }
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let code = process.wait_for_end(left).and_then(|status| status.code());
        let is_cut = text.len() > most;
        text.truncate(most);
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(FinishedProcess { text, is_cut, code, errors: process.errors.text() })
    }

    /// Returns the program's standard output.
    pub fn output(&self) -> BorrowedFd<'_> {
        self.stdout.as_fd()
    }

    /// Returns the program's standard input.
    pub fn input(&self) -> BorrowedFd<'_> {
        // The pipe exists until the process is dropped.
        self.stdin.as_ref().map_or_else(|| self.stdout.as_fd(), AsFd::as_fd)
    }

    /// Returns the program's standard error.
    pub fn errors(&self) -> &ProcessErrors {
        &self.errors
    }

    /// Describes how the program ended: the last line of its standard error, and its exit code. Waits a moment for the exit.
    pub fn describe_end(&mut self) -> String {
        self.stdin = None;
        let status = self.wait_for_end(EXIT_CODE_TIMEOUT);
        let last_error = last_line(&self.errors.text());
        let ended = match status {
            Some(status) => {
                status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}"))
            }
            None => "it closed its output".to_owned(),
        };
        match last_error {
            Some(last_error) => format!("{last_error} ({ended})"),
            None => format!("the program of the link ended ({ended})"),
        }
    }

    /// Waits for the program to exit. Returns `None` if it does not exit in time.
    fn wait_for_end(&mut self, within: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + within;
        // The output closes a moment before the exit, so most of the wait is for the output.
        let timeout = Timespec::try_from(within).ok();
        let _ = poll(&mut [PollFd::new(&self.stdout, PollFlags::empty())], timeout.as_ref());
        wait_until(self.child.as_mut()?, deadline)
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for LinkProcess {
    fn drop(&mut self) {
        // The end of its input asks it to exit; the signals are for everything that it started.
        self.stdin = None;
        if matches!(self.child.as_mut().map(Child::try_wait), Some(Ok(None))) {
            self.signal(Signal::TERM);
            let _ = self.wait_for_end(EXIT_TIMEOUT);
        }
        self.signal(Signal::KILL);
        let Some(mut child) = self.child.take() else { return };
        // The program may have left its group, or run as another user, as `sudo` does: it cannot be killed then, and must not
        // keep the hub from exiting.
        let _ = child.kill();
        if wait_until(&mut child, Instant::now() + EXIT_TIMEOUT).is_none() {
            let _ = thread::Builder::new().name("link ends".to_owned()).spawn(move || child.wait());
        }
    }
}

fn make_nonblocking(pipe: BorrowedFd<'_>) -> io::Result<()> {
    Ok(fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?)
}

/// Makes a pipe non-blocking: neither pipe may block the other.
pub(crate) fn set_nonblocking(pipe: BorrowedFd<'_>) -> Result<(), Error> {
    make_nonblocking(pipe).map_err(|source| Error::Io { what: "cannot use the pipe".to_owned(), source })
}

/// Waits for a program to exit, until the deadline.
fn wait_until(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => thread::sleep(POLL_INTERVAL),
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
    fn a_full_stderr_pipe_does_not_block_the_program() {
        // More than any pipe holds, and then something on standard output.
        let script = "i=0; while [ $i -lt 3000 ]; do echo 'debug1: 0123456789012345678901234567890123456789' >&2; \
                      i=$((i+1)); done; echo the last line >&2; echo done";
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
        let child = process.child.as_mut().unwrap();
        test_support::until("it has ended", || child.try_wait().unwrap().is_some());
        assert_eq!(process.describe_end(), "the last line (exit code 0)");
    }

    #[test]
    fn running_to_the_end_returns_the_output_and_reaps_the_program() {
        let run = |script: &str, most, within| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            LinkProcess::run_to_end(command, most, within)
        };
        let script = "cat; echo out; echo err >&2; echo 'hint: try' >&2; exit 3";
        let finished = run(script, 4, Duration::from_secs(30)).unwrap();
        assert_eq!((finished.text.as_str(), finished.is_cut, finished.code), ("out\n", false, Some(3)));
        assert_eq!(finished.errors, "err\nhint: try\n");
        assert_eq!(finished.last_error_line().as_deref(), Some("err"));
        let finished = run("echo out", 3, Duration::from_secs(30)).unwrap();
        assert_eq!((finished.text.as_str(), finished.is_cut), ("out", true));
        let late = run("exec sleep 1000", 4, Duration::from_millis(50));
        assert!(matches!(late, Err(Error::Silent(_))), "{late:?}");
    }

    #[test]
    fn a_program_that_does_not_exit_is_killed() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        assert_eq!(wait_until(&mut child, Instant::now() + POLL_INTERVAL), None);
        child.kill().unwrap();
        assert!(wait_until(&mut child, Instant::now() + Duration::from_secs(30)).is_some());
    }
}
