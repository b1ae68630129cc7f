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

/// The most that is kept of what a program complains about. The rest is read and dropped.
pub const MAX_STDERR: usize = 64 * 1024;
/// How long a program may run after SIGTERM before SIGKILL.
pub const KILL_AFTER: Duration = Duration::from_millis(750);
/// How long the output of a program that has ended is still read: a grandchild may hold it open for ever.
pub const DRAIN_AFTER_EXIT: Duration = Duration::from_millis(500);
/// How long a killed program may take to be gone. One stuck in the kernel is left to the runtime to reap.
const REAP_WITHIN: Duration = Duration::from_secs(1);
/// The size of one read.
const READ_CHUNK: usize = 16 * 1024;
/// How many reads may follow the last moment: more than any pipe holds.
const MAX_DRAIN_READS: usize = 256;

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Where it runs.
    pub directory: PathBuf,
    /// Added to the environment of this process.
    pub environment: Vec<(String, String)>,
    /// What it reads on its standard input. It need not read it.
    pub input: Vec<u8>,
    /// What becomes of its standard output.
    pub output: Output,
    /// How long it may run.
    pub timeout: Duration,
}

/// What becomes of a program's standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// It is not read.
    Ignored,
    /// It is kept. A program that writes more than this is ended.
    Kept {
        /// In bytes.
        most: usize,
    },
}

/// What became of a program.
#[derive(Debug)]
pub enum Ended {
    /// It ended by itself, or another process killed it.
    Exited {
        /// How.
        status: ExitStatus,
        /// What it said.
        stdout: Vec<u8>,
        /// What it complained about, up to [`MAX_STDERR`].
        stderr: Vec<u8>,
    },
    /// It took too long and was ended.
    TimedOut {
        /// What it complained about.
        stderr: Vec<u8>,
    },
    /// It wrote more than its limit and was ended.
    OutputTooLong {
        /// What it complained about.
        stderr: Vec<u8>,
    },
    /// It could not be started.
    NotStarted(io::Error),
}

impl Program {
    /// Runs it. Takes at most its timeout and a few seconds more, whatever it does.
    ///
    /// When this future is dropped, the program and its whole process group are killed.
    pub async fn run(self) -> Ended {
        self.run_with_permit(&mut None).await
    }

    /// The same, with a permit that is released early where the disk makes the start slow.
    pub(crate) async fn run_with_permit(self, permit: &mut Permit) -> Ended {
        let mut until = Instant::now() + self.timeout;
        let output = self.output;
        let program = self.argv.first().map_or("", String::as_str);
        let place = format!("{program} in {}", self.directory.display());
        // Starting waits for the directory and the program's file, and either may lie on a disk that hangs. What is
        // started too late is dropped with the result, and killed by that.
        let start = move |call: &Call| self.start(call).map(|(group, child)| (group, child, self.input));
        let (mut group, mut child, input) = match disk::call(place, until, permit, start).await.flatten() {
            Ok(started) => started,
            Err(error) => return Ended::NotStarted(error),
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
                        group.is_reaped();
                        exited = Some(status);
                        until = until.min(Instant::now() + DRAIN_AFTER_EXIT);
                    }
                    Err(error) => return Ended::NotStarted(error),
                },
                () = sleep_until(until) => match exited {
                    Some(status) => {
                        pipes.drain().await;
                        return pipes.exited(status);
                    }
                    None => break,
                },
                () = pipes.step(), if pipes.are_open() => {
                    if pipes.stdout.is_over() {
                        break;
                    }
                }
            }
        }
        group.end(&mut child, &mut pipes).await;
        let stderr = pipes.stderr.kept;
        if pipes.stdout.over { Ended::OutputTooLong { stderr } } else { Ended::TimedOut { stderr } }
    }

    /// The group comes first, so that it is also dropped first: it is killed while the program's number is its own.
    fn start(&self, call: &Call) -> io::Result<(Group, Child)> {
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
                Output::Kept { .. } => Stdio::piped(),
            })
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        Ok((Group::of(&child), child))
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

/// Where programs without a slash are looked for, as `exec` does it.
fn search_path() -> Vec<PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

/// The process group of a running program, killed when this is dropped before the program was reaped.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    /// From now on the number may be another process's.
    fn is_reaped(&mut self) {
        self.0 = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // Gone already is as good.
            let _ = kill_process_group(group, signal);
        }
    }

    /// Asks the whole group to end, and kills what is left of it after [`KILL_AFTER`].
    ///
    /// The program itself is not reaped in between: as long as it is a zombie, its number cannot become that of
    /// another group.
    async fn end(&mut self, child: &mut Child, pipes: &mut Pipes) {
        self.signal(Signal::TERM);
        let until = Instant::now() + KILL_AFTER;
        // A program that has closed all its pipes has most likely ended; then there is no need to wait.
        while !pipes.are_closed() {
            tokio::select! {
                () = sleep_until(until) => break,
                () = pipes.step() => {}
            }
        }
        self.signal(Signal::KILL);
        if timeout(REAP_WITHIN, child.wait()).await.is_ok() {
            self.is_reaped();
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// The ends of a program's standard streams.
struct Pipes {
    stdin: Option<ChildStdin>,
    input: Vec<u8>,
    written: usize,
    stdout: Capture<ChildStdout>,
    stderr: Capture<ChildStderr>,
}

impl Pipes {
    fn of(child: &mut Child, input: Vec<u8>, output: Output) -> Self {
        let most = match output {
            Output::Ignored => 0,
            Output::Kept { most } => most,
        };
        Self {
            stdin: child.stdin.take().filter(|_| !input.is_empty()),
            input,
            written: 0,
            stdout: Capture::new(child.stdout.take(), most),
            stderr: Capture::new(child.stderr.take(), MAX_STDERR),
        }
    }

    fn are_open(&self) -> bool {
        self.stdin.is_some() || !self.are_closed()
    }

    /// Whether both output pipes are closed.
    fn are_closed(&self) -> bool {
        self.stdout.from.is_none() && self.stderr.from.is_none()
    }

    /// Moves some bytes one way or the other. May be dropped at any time without losing any.
    async fn step(&mut self) {
        let rest = self.input.get(self.written..).unwrap_or_default();
        tokio::select! {
            written = write(&mut self.stdin, rest) => match written {
                Ok(count) if count > 0 && count < rest.len() => self.written += count,
                // All of it is written, or the program does not want it: that is its own affair.
                _ => self.stdin = None,
            },
            () = self.stdout.read() => {}
            () = self.stderr.read() => {}
        }
    }

    /// Takes what is there already, without waiting: on a busy machine this task may be late, and not the program.
    /// Bounded, because a grandchild may go on writing.
    async fn drain(&mut self) {
        for _ in 0..MAX_DRAIN_READS {
            if self.are_closed() || timeout(Duration::ZERO, self.step()).await.is_err() {
                return;
            }
        }
    }

    fn exited(self, status: ExitStatus) -> Ended {
        Ended::Exited { status, stdout: self.stdout.kept, stderr: self.stderr.kept }
    }
}

async fn write(stdin: &mut Option<ChildStdin>, bytes: &[u8]) -> io::Result<usize> {
    match stdin {
        Some(stdin) => stdin.write(bytes).await,
        None => std::future::pending().await,
    }
}

/// One stream of output, kept up to a bound and read to its end.
struct Capture<R> {
    from: Option<R>,
    kept: Vec<u8>,
    most: usize,
    over: bool,
    chunk: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Capture<R> {
    fn new(from: Option<R>, most: usize) -> Self {
        Self { from, kept: Vec::new(), most, over: false, chunk: vec![0; READ_CHUNK] }
    }

    fn is_over(&self) -> bool {
        self.over
    }

    async fn read(&mut self) {
        let Some(from) = &mut self.from else {
            return std::future::pending().await;
        };
        match from.read(&mut self.chunk).await {
            Ok(count) if count > 0 => {
                let room = self.most - self.kept.len();
                self.kept.extend(self.chunk.iter().take(count.min(room)));
                self.over |= count > room;
            }
            _ => self.from = None,
        }
    }
}

/// The first line of what a program complained about, fit to be shown.
pub(crate) fn first_line(bytes: &[u8]) -> String {
    /// Enough to recognise the trouble.
    const MOST: usize = 200;
    let text = String::from_utf8_lossy(bytes.get(..4096).unwrap_or(bytes));
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let line = ringer_term::sanitise_line(line);
    let line = line.trim();
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// What happened, with the first line of the complaint where there is one.
pub(crate) fn with_stderr(what: String, stderr: &[u8]) -> String {
    match first_line(stderr) {
        line if line.is_empty() => what,
        line => format!("{what}: {line}"),
    }
}

impl Ended {
    /// What it said if all went well; otherwise what went wrong, in words.
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
    /// A text: without NUL, and cut at [`MAX_VALUE`].
    pub(crate) fn text(mut self, name: &str, value: &str) -> Self {
        let mut value: String = value.chars().filter(|character| *character != '\0').collect();
        value.truncate(value.floor_char_boundary(MAX_VALUE));
        self.push(name, &value);
        self
    }

    /// A document, which half of would be worse than none of: left out above [`MAX_VALUE`].
    pub(crate) fn document(mut self, name: &str, value: &str) -> Self {
        if value.len() <= MAX_VALUE {
            self.push(name, value);
        }
        self
    }

    fn push(&mut self, name: &str, value: &str) {
        self.0.extend(PREFIXES.iter().map(|prefix| (format!("{prefix}{name}"), value.to_owned())));
    }

    /// The pairs.
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
