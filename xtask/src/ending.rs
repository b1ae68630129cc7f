use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// More than a listener prints at once (one message of 64 KiB, each byte escaped); what is beyond is not read.
const MOST_OUTPUT: u64 = 4 << 20;

/// For the output of a process that was killed: only what it started could still hold it.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How a process ended, and what it printed until then.
pub(crate) struct Ending {
    pub(crate) output: Vec<u8>,
    pub(crate) took: Duration,
    /// Whether its time was over first.
    pub(crate) overran: bool,
    status: ExitStatus,
}

impl Ending {
    /// Starts a program and kills it when the time is over, be that a deadline or its fate.
    pub(crate) fn of(command: &mut Command, time: Duration) -> Result<Self, Failure> {
        let name = command.get_program().to_string_lossy().into_owned();
        let failed = |error: std::io::Error| Failure::io(&name, &error);
        let start = Instant::now();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let (ended, end) = mpsc::channel();
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || {
                let mut output = Vec::new();
                // What could be read before an error is what was printed.
                let _ = stdout.take(MOST_OUTPUT).read_to_end(&mut output);
                // Nobody waits any longer: then nobody wants it.
                let _ = ended.send(output);
            });
        }
        let printed = end.recv_timeout(time);
        let overran = printed.is_err();
        if overran {
            child.kill().map_err(failed)?;
        }
        let output = printed.or_else(|_| end.recv_timeout(LAST_WORDS)).unwrap_or_default();
        let status = child.wait().map_err(failed)?;
        Ok(Self { output, took: start.elapsed(), overran, status })
    }

    pub(crate) fn is_success(&self) -> bool {
        self.status.success()
    }

    /// Whether SIGKILL ended it: ours, or one that somebody was asked to send.
    pub(crate) fn is_kill(&self) -> bool {
        const SIGKILL: i32 = 9;
        self.status.signal() == Some(SIGKILL)
    }

    pub(crate) fn status(&self) -> ExitStatus {
        self.status
    }
}

#[cfg(test)]
mod tests {
    use super::Ending;
    use std::process::Command;
    use std::time::Duration;

    #[test]
    fn a_program_in_time_says_what_it_has_to_say() {
        let ending = Ending::of(Command::new("echo").arg("hi"), Duration::from_mins(1)).expect("echo");
        assert!(ending.is_success() && !ending.is_kill() && !ending.overran);
        assert_eq!(ending.output, b"hi\n");
    }

    #[test]
    fn one_that_takes_too_long_is_killed() {
        let ending = Ending::of(Command::new("sleep").arg("60"), Duration::from_millis(1)).expect("sleep");
        assert!(ending.is_kill() && !ending.is_success() && ending.overran);
        assert!(ending.took < Duration::from_secs(30), "{:?}", ending.took);
    }
}
