use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// The most output that is read. A listener prints less (one message of 64 KiB with each byte escaped).
const MAX_OUTPUT: u64 = 4 << 20;

/// How long to wait for the output of a killed process. Only its children could still hold the pipe open.
const OUTPUT_AFTER_KILL: Duration = Duration::from_secs(1);

/// The exit status and output of a process.
pub(crate) struct ProcessResult {
    pub(crate) output: Vec<u8>,
    pub(crate) took: Duration,
    /// It was killed because its time was up.
    pub(crate) overran: bool,
    status: ExitStatus,
}

impl ProcessResult {
    /// Runs a program and kills it after `time`, which is a deadline or a deliberate moment for the kill.
    pub(crate) fn of(command: &mut Command, time: Duration) -> Result<Self, Failure> {
        let name = command.get_program().to_string_lossy().into_owned();
        let failed = |error: std::io::Error| Failure::io(&name, &error);
        let start = Instant::now();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let (ended, end) = mpsc::channel();
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || {
                let mut output = Vec::new();
                // After a read error, the bytes read so far count as the output.
                let _ = stdout.take(MAX_OUTPUT).read_to_end(&mut output);
                // The receiver may have given up.
                let _ = ended.send(output);
            });
        }
        let printed = end.recv_timeout(time);
        let overran = printed.is_err();
        if overran {
            child.kill().map_err(failed)?;
        }
        let output = printed.or_else(|_| end.recv_timeout(OUTPUT_AFTER_KILL)).unwrap_or_default();
        let status = child.wait().map_err(failed)?;
        Ok(Self { output, took: start.elapsed(), overran, status })
    }

    pub(crate) fn is_success(&self) -> bool {
        self.status.success()
    }

    /// Returns true if SIGKILL ended it, sent from here or by strace.
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
    use super::ProcessResult;
    use std::process::Command;
    use std::time::Duration;

    #[test]
    fn a_program_in_time_says_what_it_has_to_say() {
        let ending = ProcessResult::of(Command::new("echo").arg("hi"), Duration::from_mins(1)).expect("echo");
        assert!(ending.is_success() && !ending.is_kill() && !ending.overran);
        assert_eq!(ending.output, b"hi\n");
    }

    #[test]
    fn one_that_takes_too_long_is_killed() {
        let ending =
            ProcessResult::of(Command::new("sleep").arg("60"), Duration::from_millis(1)).expect("sleep");
        assert!(ending.is_kill() && !ending.is_success() && ending.overran);
        assert!(ending.took < Duration::from_secs(30), "{:?}", ending.took);
    }
}
