//! The process of a server that pushes messages.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use ringer_config::ChannelEntry;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::proxy::{pid_of, watch_end};

/// The default capacity of a pipe on Linux.
const CHUNK: usize = 64 * 1024;
/// Grace period between SIGTERM and SIGKILL.
const EXIT_GRACE: Duration = Duration::from_millis(300);

/// Why a wait ended.
pub(super) enum WaitResult {
    /// Another thread woke this one.
    Woken,
    /// The deadline passed.
    TimedOut,
    /// There may be something to read.
    Ready,
}

/// A server and its process group. Dropping this ends the whole group.
pub(super) struct ServerProcess {
    child: Child,
    group: Pid,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    /// Readable when the server has exited. End of file on `stdout` is not enough: a child of the server may hold it open.
    ended: UnixStream,
    chunk: Vec<u8>,
}

impl ServerProcess {
    pub(super) fn start(server: &ChannelEntry) -> io::Result<Self> {
        let Some((program, arguments)) = server.command.split_first() else {
            return Err(io::Error::other("no program is named"));
        };
        let mut command = Command::new(program);
        command.args(arguments).current_dir(server.source.directory()).process_group(0);
        // If an agent started the hub, this variable names that agent.
        command.env_remove("RINGER_AGENT");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let group = pid_of(&child)?;
        match (child.stdin.take(), child.stdout.take(), watch_end(&child)) {
            (Some(stdin), Some(stdout), Ok(ended)) => {
                let process = Self { child, group, stdin: Some(stdin), stdout, ended, chunk: vec![0; CHUNK] };
                process.set_nonblocking()?;
                Ok(process)
            }
            (_, _, ended) => {
                let _ = kill_process_group(group, Signal::KILL);
                let _ = child.wait();
                Err(ended.err().unwrap_or_else(|| io::Error::other("it has no input and output")))
            }
        }
    }

    /// Makes both pipes non-blocking: a server that neither reads nor writes must not block the thread.
    fn set_nonblocking(&self) -> io::Result<()> {
        fcntl_setfl(&self.stdout, fcntl_getfl(&self.stdout)? | OFlags::NONBLOCK)?;
        if let Some(stdin) = &self.stdin {
            fcntl_setfl(stdin, fcntl_getfl(stdin)? | OFlags::NONBLOCK)?;
        }
        Ok(())
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line. Fails if it does not fit into the pipe: the server is not reading.
    pub(super) fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let stdin = self.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        stdin.write_all(line)
    }

    /// Reads output of the server. Empty at the end; `WouldBlock` if there is nothing yet.
    pub(super) fn read(&mut self) -> io::Result<&[u8]> {
        let read = loop {
            match self.stdout.read(&mut self.chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The server has exited and the pipe is drained.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && self.has_ended() => break 0,
                read => break read?,
            }
        };
        Ok(&self.chunk[..read])
    }

    fn has_ended(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&self.ended, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// Waits until there is something to read, the server has exited, or another thread wakes this one.
    pub(super) fn wait(&self, woken: &UnixStream, until: Option<Instant>) -> io::Result<WaitResult> {
        let own = [&self.ended].map(|stream| PollFd::new(stream, PollFlags::IN));
        let output = PollFd::new(&self.stdout, PollFlags::IN);
        wait_for(woken, own.into_iter().chain([output]).collect(), until)
    }

    /// Describes how the server ended. Does not reap the process, so that its pid cannot be reused before the group is killed.
    pub(super) fn describe_exit(&self) -> String {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(self.group), options).ok().flatten();
        let ended = status.map(|status| (status.exit_status(), status.terminating_signal()));
        match ended {
            Some((Some(code), _)) => format!("the server ended with exit code {code}"),
            Some((_, Some(signal))) => format!("the server was ended by signal {signal}"),
            _ => "the server closed its output".to_owned(),
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // MCP servers exit at the end of their input. The signal is for processes that the server started.
        self.stdin = None;
        let _ = kill_process_group(self.group, Signal::TERM);
        let until = Instant::now() + EXIT_GRACE;
        let _ = wait_for(&self.ended, Vec::new(), Some(until));
        // The pid cannot be reused before the process is reaped.
        let _ = kill_process_group(self.group, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Waits until `woken` or another descriptor is readable. `woken` takes precedence.
pub(super) fn wait_for(
    woken: &UnixStream,
    others: Vec<PollFd<'_>>,
    until: Option<Instant>,
) -> io::Result<WaitResult> {
    let mut waits = vec![PollFd::new(woken, PollFlags::IN)];
    waits.extend(others);
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut waits, timeout.as_ref()) {
            Ok(0) => return Ok(WaitResult::TimedOut),
            Ok(_) if !waits[0].revents().is_empty() => return Ok(WaitResult::Woken),
            Ok(_) => return Ok(WaitResult::Ready),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
