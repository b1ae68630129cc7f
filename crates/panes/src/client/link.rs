//! The client's connection to the server.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::descriptor_socket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};

use crate::protocol::{Answer, Frame, FrameKind, FrameReader};

/// Timeout for an answer of the server.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Timeout for the server to stop using a terminal.
const GIVES_BACK_WITHIN: Duration = Duration::from_millis(500);

pub(super) struct Link {
    pub(super) stream: UnixStream,
    pub(super) reader: FrameReader,
    /// The server reads and writes the terminal itself.
    pub(super) has_lent_terminal: bool,
}

impl Link {
    pub(super) fn send(&mut self, frame: &Frame) -> io::Result<()> {
        self.send_with(frame, None)
    }

    /// Sends a frame. The descriptor goes with its first byte.
    pub(super) fn send_with(&mut self, frame: &Frame, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut bytes = Vec::new();
        frame.write(&mut bytes);
        let sent = retry_on_intr(|| descriptor_socket::send(&self.stream, &bytes, descriptor))?;
        self.stream.write_all(&bytes[sent..])
    }

    /// Sends a request and waits for the answer.
    pub(super) fn ask(&mut self, request: &Frame) -> io::Result<Answer> {
        self.send(request)?;
        self.wait_for(FrameKind::Answer)?.read()
    }

    /// Waits until the server no longer uses the terminal, which it signals by closing the connection.
    pub(super) fn take_back_terminal(&mut self) {
        let end = Instant::now() + GIVES_BACK_WITHIN;
        // Errors are ignored, because a server that is gone does not use the terminal.
        let _ = self.send(&Frame::new(FrameKind::Leaving, []));
        let _ = self.stream.shutdown(Shutdown::Write);
        loop {
            let left = Timespec::try_from(end.saturating_duration_since(Instant::now())).ok();
            match poll(&mut [PollFd::new(&self.stream, PollFlags::IN)], left.as_ref()) {
                Ok(_) | Err(Errno::INTR) if Instant::now() >= end => return,
                Err(Errno::INTR) => {}
                Ok(0) | Err(_) => return,
                Ok(_) if !self.read().unwrap_or(false) => return,
                Ok(_) => {}
            }
        }
    }

    /// Waits for a frame of a kind, and drops the others.
    pub(super) fn wait_for(&mut self, kind: FrameKind) -> io::Result<Frame> {
        let end = Instant::now() + ANSWER_WITHIN;
        loop {
            while let Some(frame) = self.reader.next()? {
                if frame.kind == kind {
                    return Ok(frame);
                }
            }
            let left = end.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).ok();
            match poll(&mut [PollFd::new(&self.stream, PollFlags::IN)], timeout.as_ref()) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) => {}
                // For example SIGWINCH.
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            if !self.read()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads available bytes. Returns false at the end of the stream.
    pub(super) fn read(&mut self) -> io::Result<bool> {
        let mut room = [0; 16 * 1024];
        match self.stream.read(&mut room) {
            Ok(0) => Ok(false),
            Ok(read) => {
                self.reader.push(&room[..read]);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        }
    }
}
