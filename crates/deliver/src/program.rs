//! Runs a program with limits on its time, its output and the processes that it leaves behind.
//!
//! Hooks, the user's command and sound players all run here, never through a shell.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep_until, timeout};

use crate::disk::{self, Call, Permit};

/// How much of standard error is kept. The rest is read and dropped.
pub const MAX_STDERR: usize = 64 * 1024;
/// Time between SIGTERM and SIGKILL.
pub const KILL_AFTER: Duration = Duration::from_millis(750);
/// How long the output is read after the program has exited: a grandchild may hold the pipe open for ever.
pub const DRAIN_AFTER_EXIT: Duration = Duration::from_millis(500);
/// How long to wait for a killed program. One that is stuck in the kernel is left to the runtime to reap.
const REAP_WITHIN: Duration = Duration::from_secs(1);
const READ_CHUNK: usize = 16 * 1024;
/// How many reads may follow the deadline: more than any pipe holds.
const MAX_DRAIN_READS: usize = 256;

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The working directory.
    pub directory: PathBuf,
    /// Added to the environment of this process.
    pub environment: Vec<(String, String)>,
    /// The standard input. A program that does not read it is no error.
    pub input: Vec<u8>,
    /// What happens to the standard output.
    pub output: Output,
    /// When the program is killed.
    pub timeout: Duration,
}

/// What happens to a program's standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// It goes to `/dev/null`.
    Ignored,
    /// It is returned. A program that writes more than the limit is killed.
    Captured {
        /// In bytes.
        limit: usize,
    },
}

/// How a program ended.
#[derive(Debug)]
pub enum ProgramOutcome {
    /// It exited by itself, or another process killed it.
    Exited {
        /// The exit status or signal.
        status: ExitStatus,
        /// The standard output, if it was captured.
        stdout: Vec<u8>,
        /// The standard error, up to [`MAX_STDERR`].
        stderr: Vec<u8>,
    },
    /// It exceeded its timeout and was killed.
    TimedOut {
        /// The standard error.
        stderr: Vec<u8>,
    },
    /// It wrote more than the limit and was killed.
    OutputTooLong {
        /// The standard error.
        stderr: Vec<u8>,
    },
    /// It could not be started.
    NotStarted(io::Error),
}

impl Program {
    /// Runs the program. Takes at most its timeout and a few seconds more, whatever the program does.
    ///
    /// When this future is dropped, the program and its whole process group are killed.
    pub async fn run(self) -> ProgramOutcome {
        self.run_with_permit(&mut None).await
    }

    /// Like [`run`](Self::run), releasing the permit early if the disk delays the start.
    pub(crate) async fn run_with_permit(self, permit: &mut Permit) -> ProgramOutcome {
        let mut until = Instant::now() + self.timeout;
        let output = self.output;
        let program = self.argv.first().map_or("", String::as_str);
        let place = format!("{program} in {}", self.directory.display());
        // Starting waits for the directory and the program's file, and either may lie on a disk that hangs. A program that is
        // started after the deadline is dropped with the result, which kills it.
        let start = move |call: &Call| self.start(call).map(|(group, child)| (group, child, self.input));
        let (mut group, mut child, input) = match disk::call(place, until, permit, start).await.flatten() {
            Ok(started) => started,
            Err(error) => return ProgramOutcome::NotStarted(error),
        };
        let mut pipes = Pipes::of(&mut child, input, output);
        let mut exited = None;
        loop {
            if let Some(status) = exited
                && pipes.are_closed()
            {
                return pipes.exited(status);
            }
            tokio::select! {
                // A program that has exited is not reported as too slow, even if this task is scheduled late.
                biased;
                status = child.wait(), if exited.is_none() => match status {
                    Ok(status) => {
                        group.mark_reaped();
                        exited = Some(status);
                        until = until.min(Instant::now() + DRAIN_AFTER_EXIT);
                    }
                    Err(error) => return ProgramOutcome::NotStarted(error),
                },
                () = sleep_until(until) => match exited {
                    Some(status) => {
                        pipes.drain().await;
                        return pipes.exited(status);
                    }
                    None => break,
                },
                () = pipes.step(), if pipes.are_open() => {
                    if pipes.stdout.is_over_limit {
                        break;
                    }
                }
            }
        }
        group.end(&mut child, &mut pipes).await;
        let stderr = pipes.stderr.kept;
        if pipes.stdout.is_over_limit {
            ProgramOutcome::OutputTooLong { stderr }
        } else {
            ProgramOutcome::TimedOut { stderr }
        }
    }

    /// The group comes first, so that it is also dropped first: it is killed before the child is reaped and its pid reused.
    fn start(&self, call: &Call) -> io::Result<(ProcessGroup, Child)> {
        let Some((program, arguments)) = self.argv.split_first() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program is named"));
        };
        if !self.directory.is_dir() {
            // Otherwise the system reports "no such file", as if the program were missing.
            let why = format!("its directory {} is not there", self.directory.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, why));
        }
        self.read_beginning(program);
        if call.is_given_up() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let child = Command::new(program)
            .args(arguments)
            .current_dir(&self.directory)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(match self.output {
                Output::Ignored => Stdio::null(),
                Output::Captured { .. } => Stdio::piped(),
            })
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        Ok((ProcessGroup::of(&child), child))
    }

    /// Reads the beginning of the program's file. If its disk hangs, this thread hangs; otherwise the forked child
    /// would, before `exec`: it would hold every open file of this process, with its locks, even after this process has
    /// ended.
    fn read_beginning(&self, program: &str) {
        let files = if program.contains('/') {
            vec![self.directory.join(program)]
        } else {
            search_path().into_iter().map(|directory| directory.join(program)).collect()
        };
        // What is no file is never opened: a FIFO would hang by itself. Errors are left to `exec`, which reports them
        // more exactly.
        if let Some(file) = files.into_iter().find(|file| file.is_file())
            && let Ok(mut file) = File::open(file)
        {
            let _ = file.read(&mut [0; 256]);
        }
    }
}

/// The directories that `exec` searches for a program without a slash.
fn search_path() -> Vec<PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

/// The process group of a running program, killed when this is dropped before the program was reaped.
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    /// Disarms the group: from now on the pid may belong to another process.
    fn mark_reaped(&mut self) {
        self.0 = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // A group that has already exited is fine, too.
            let _ = kill_process_group(group, signal);
        }
    }

    /// Sends SIGTERM to the group, and SIGKILL to what is left of it after [`KILL_AFTER`].
    ///
    /// The program itself is not reaped in between: while it is a zombie, its pid cannot become the id of another group.
    async fn end(&mut self, child: &mut Child, pipes: &mut Pipes) {
        self.signal(Signal::TERM);
        let until = Instant::now() + KILL_AFTER;
        // A program that has closed all its pipes has most likely exited, so there is no need to wait.
        while !pipes.are_closed() {
            tokio::select! {
                () = sleep_until(until) => break,
                () = pipes.step() => {}
            }
        }
        self.signal(Signal::KILL);
        if timeout(REAP_WITHIN, child.wait()).await.is_ok() {
            self.mark_reaped();
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Our ends of a program's standard streams.
struct Pipes {
    stdin: Option<ChildStdin>,
    input: Vec<u8>,
    written: usize,
    stdout: Capture<ChildStdout>,
    stderr: Capture<ChildStderr>,
}

impl Pipes {
    fn of(child: &mut Child, input: Vec<u8>, output: Output) -> Self {
        let limit = match output {
            Output::Ignored => 0,
            Output::Captured { limit } => limit,
        };
        Self {
            stdin: child.stdin.take().filter(|_| !input.is_empty()),
            input,
            written: 0,
            stdout: Capture::new(child.stdout.take(), limit),
            stderr: Capture::new(child.stderr.take(), MAX_STDERR),
        }
    }

    fn are_open(&self) -> bool {
        self.stdin.is_some() || !self.are_closed()
    }

    fn are_closed(&self) -> bool {
        self.stdout.from.is_none() && self.stderr.from.is_none()
    }

    /// Moves some bytes one way or the other. Cancel-safe: no byte is lost if the future is dropped.
    async fn step(&mut self) {
        let rest = self.input.get(self.written..).unwrap_or_default();
        tokio::select! {
            written = write(&mut self.stdin, rest) => match written {
                Ok(count) if count > 0 && count < rest.len() => self.written += count,
                // All of it is written, or the program does not read it, which is no error.
                _ => self.stdin = None,
            },
            () = self.stdout.read() => {}
            () = self.stderr.read() => {}
        }
    }

    /// Reads what is already in the pipes, without waiting: on a busy machine this task may be late, not the program.
    /// Bounded, because a grandchild may go on writing.
    async fn drain(&mut self) {
        for _ in 0..MAX_DRAIN_READS {
            if self.are_closed() || timeout(Duration::ZERO, self.step()).await.is_err() {
                return;
            }
        }
    }

    fn exited(self, status: ExitStatus) -> ProgramOutcome {
        ProgramOutcome::Exited { status, stdout: self.stdout.kept, stderr: self.stderr.kept }
    }
}

async fn write(stdin: &mut Option<ChildStdin>, bytes: &[u8]) -> io::Result<usize> {
    match stdin {
        Some(stdin) => stdin.write(bytes).await,
        None => std::future::pending().await,
    }
}

/// One stream of output: the first bytes are kept, and it is read to its end.
struct Capture<R> {
    from: Option<R>,
    kept: Vec<u8>,
    limit: usize,
    is_over_limit: bool,
    chunk: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Capture<R> {
    fn new(from: Option<R>, limit: usize) -> Self {
        Self { from, kept: Vec::new(), limit, is_over_limit: false, chunk: vec![0; READ_CHUNK] }
    }

    async fn read(&mut self) {
        let Some(from) = &mut self.from else {
            return std::future::pending().await;
        };
        match from.read(&mut self.chunk).await {
            Ok(count) if count > 0 => {
                let room = self.limit - self.kept.len();
                self.kept.extend(self.chunk.iter().take(count.min(room)));
                self.is_over_limit |= count > room;
            }
            _ => self.from = None,
        }
    }
}

/// The first line of standard error, sanitised and shortened for display.
pub(crate) fn first_line(bytes: &[u8]) -> String {
    const MAX_CHARS: usize = 200;
    let text = String::from_utf8_lossy(bytes.get(..4096).unwrap_or(bytes));
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let line = ringer_term::sanitise_line(line);
    let line = line.trim();
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// Appends the first line of standard error, if there is one.
pub(crate) fn with_stderr(what: String, stderr: &[u8]) -> String {
    match first_line(stderr) {
        line if line.is_empty() => what,
        line => format!("{what}: {line}"),
    }
}

impl ProgramOutcome {
    /// Returns the standard output of a program that succeeded, otherwise an error message.
    pub fn into_result(self, timeout: Duration) -> Result<Vec<u8>, String> {
        match self {
            Self::Exited { status, stdout, .. } if status.success() => Ok(stdout),
            Self::Exited { status, stderr, .. } => Err(with_stderr(status.to_string(), &stderr)),
            Self::TimedOut { stderr } => Err(with_stderr(format!("no end after {timeout:?}"), &stderr)),
            Self::OutputTooLong { stderr } => Err(with_stderr("too much output".to_owned(), &stderr)),
            Self::NotStarted(error) => Err(format!("cannot be started: {error}")),
        }
    }
}

/// The longest value put into the environment, in bytes. Linux refuses to start a program with one above 128 KiB. The standard
/// input always has the whole text.
const MAX_VALUE: usize = 100 * 1024;

/// Hooks that were written for cmux read the second one.
const PREFIXES: [&str; 2] = ["RINGER_NOTIFICATION_", "CMUX_NOTIFICATION_"];

/// Environment variables for a program, under both prefixes.
#[derive(Debug, Default)]
pub(crate) struct Variables(Vec<(String, String)>);

impl Variables {
    /// Adds a text, without NUL and cut at [`MAX_VALUE`].
    pub(crate) fn text(mut self, name: &str, value: &str) -> Self {
        let mut value: String = value.chars().filter(|character| *character != '\0').collect();
        value.truncate(value.floor_char_boundary(MAX_VALUE));
        self.push(name, &value);
        self
    }

    /// Adds a document, or nothing if it is longer than [`MAX_VALUE`]: half of it could not be parsed.
    pub(crate) fn document(mut self, name: &str, value: &str) -> Self {
        if value.len() <= MAX_VALUE {
            self.push(name, value);
        }
        self
    }

    fn push(&mut self, name: &str, value: &str) {
        self.0.extend(PREFIXES.iter().map(|prefix| (format!("{prefix}{name}"), value.to_owned())));
    }

    pub(crate) fn into_pairs(self) -> Vec<(String, String)> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_is_one_short_safe_line() {
        assert_eq!(first_line(b"\n  bad \x1b[31mthing\x07\nmore"), "bad [31mthing");
        assert_eq!(first_line(&[b'x'; 9000]).chars().count(), 201);
        assert_eq!(first_line(b"\xff\xfe"), "\u{fffd}\u{fffd}");
        assert_eq!(with_stderr("exit status: 1".to_owned(), b" \n"), "exit status: 1");
    }

    #[test]
    fn both_prefixes_without_nul_and_bounded() {
        let pairs = Variables::default()
            .text("TITLE", "a\0b")
            .text("BODY", &"é".repeat(MAX_VALUE))
            .document("POLICY_JSON", &"x".repeat(MAX_VALUE + 1))
            .into_pairs();
        let names: Vec<&str> = pairs.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "RINGER_NOTIFICATION_TITLE",
                "CMUX_NOTIFICATION_TITLE",
                "RINGER_NOTIFICATION_BODY",
                "CMUX_NOTIFICATION_BODY"
            ]
        );
        assert_eq!(pairs[0].1, "ab");
        assert_eq!(pairs[2].1.len(), MAX_VALUE);
    }
}
