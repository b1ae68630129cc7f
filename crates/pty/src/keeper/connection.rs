//! A connection of the keeper: neither reading nor writing waits.

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

/// Read at once, so that a server that sends much does not keep the loop from its other work.
const READ: usize = 16 * 1024;

/// A connection with what was received on it and what waits to be sent.
#[derive(Debug)]
pub(super) struct KeeperConnection {
    stream: UnixStream,
    input: MessageBuffer,
    /// The other side sends nothing more.
    input_ended: bool,
    output: VecDeque<OutputSegment>,
    /// How many bytes wait to be sent.
    waiting: usize,
}

/// Bytes that wait to be sent.
#[derive(Debug)]
struct OutputSegment {
    bytes: Vec<u8>,
    sent: usize,
    /// Goes with the first byte.
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

    /// What to poll for, besides input.
    pub(super) fn output_events(&self) -> PollFlags {
        if self.output.is_empty() { PollFlags::empty() } else { PollFlags::OUT }
    }

    /// Reads some of what is there.
    pub(super) fn receive(&mut self) -> io::Result<()> {
        if self.input_ended {
            return Ok(());
        }
        let mut buffer = [0; READ];
        // Descriptors that come with it are closed by the kernel: the keeper takes none.
        match rustix::io::read(&self.stream, &mut buffer) {
            Ok(0) => self.input_ended = true,
            Ok(count) => self.input.push(buffer.get(..count).unwrap_or_default()),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// The next line that was received. At the end of the input: an error, after the last line.
    pub(super) fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        match self.input.next_line()? {
            None if self.input_ended => Err(io::ErrorKind::UnexpectedEof.into()),
            line => Ok(line),
        }
    }

    /// Puts a line behind what waits to be sent.
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

    /// Puts raw bytes behind what waits to be sent.
    pub(super) fn push_bytes(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.push(bytes, None);
        }
    }

    fn push(&mut self, bytes: Vec<u8>, descriptor: Option<Rc<OwnedFd>>) {
        self.waiting += bytes.len();
        self.output.push_back(OutputSegment { bytes, sent: 0, descriptor });
    }

    /// How many bytes wait to be sent.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Sends what the other side takes now. Gives whether that was all.
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
