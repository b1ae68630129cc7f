//! A non-blocking connection of the keeper.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use rustix::event::PollFlags;
use rustix::io::Errno;
use serde::Serialize;

use super::message_buffer::MessageBuffer;
use crate::descriptor_socket;

/// The most bytes of one read, so that a busy server does not keep the loop from its other work.
const READ: usize = 16 * 1024;

/// A connection with its input and output buffers.
#[derive(Debug)]
pub(super) struct KeeperConnection {
    stream: UnixStream,
    input: MessageBuffer,
    /// The peer has closed its side.
    input_ended: bool,
    output: VecDeque<OutputSegment>,
    /// The number of queued bytes.
    waiting: usize,
}

/// Queued bytes.
#[derive(Debug)]
struct OutputSegment {
    bytes: Vec<u8>,
    sent: usize,
    /// Sent with the first byte.
    descriptor: Option<Rc<OwnedFd>>,
}

impl KeeperConnection {
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let (input, output) = (MessageBuffer::default(), VecDeque::new());
        Ok(Self { stream, input, input_ended: false, output, waiting: 0 })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// The events to poll for, besides input.
    pub(super) fn output_events(&self) -> PollFlags {
        if self.output.is_empty() { PollFlags::empty() } else { PollFlags::OUT }
    }

    /// Reads available bytes.
    pub(super) fn receive(&mut self) -> io::Result<()> {
        if self.input_ended {
            return Ok(());
        }
        let mut buffer = [0; READ];
        // The kernel closes received descriptors, because `read` does not take them: the keeper expects none.
        match rustix::io::read(&self.stream, &mut buffer) {
            Ok(0) => self.input_ended = true,
            Ok(count) => self.input.push(buffer.get(..count).unwrap_or_default()),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Returns the next received line. At the end of the input, after the last line, this is an error.
    pub(super) fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        match self.input.next_line()? {
            None if self.input_ended => Err(io::ErrorKind::UnexpectedEof.into()),
            line => Ok(line),
        }
    }

    /// Queues a line.
    pub(super) fn push_line(
        &mut self,
        message: &impl Serialize,
        descriptor: Option<Rc<OwnedFd>>,
    ) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(message)?;
        bytes.push(b'\n');
        self.push(bytes, descriptor);
        Ok(())
    }

    /// Queues raw bytes.
    pub(super) fn push_bytes(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.push(bytes, None);
        }
    }

    fn push(&mut self, bytes: Vec<u8>, descriptor: Option<Rc<OwnedFd>>) {
        self.waiting += bytes.len();
        self.output.push_back(OutputSegment { bytes, sent: 0, descriptor });
    }

    /// The number of queued bytes.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Sends as many bytes as the peer accepts. Returns true if the queue is empty.
    pub(super) fn send(&mut self) -> io::Result<bool> {
        while let Some(segment) = self.output.front_mut() {
            let rest = segment.bytes.get(segment.sent..).unwrap_or_default();
            match descriptor_socket::send(&self.stream, rest, segment.descriptor.as_ref().map(|d| d.as_fd()))
            {
                Ok(sent) => {
                    segment.sent += sent;
                    self.waiting -= sent;
                    segment.descriptor = None;
                    if segment.sent == segment.bytes.len() {
                        self.output.pop_front();
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }
}
