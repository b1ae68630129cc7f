//! Connections of the keeper: buffered input and output, and the one server, which gets the panes and sends requests.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use rustix::event::PollFlags;
use rustix::io::Errno;
use serde::Serialize;

use super::kept_panes::KeptPanes;
use super::wire::{KeeperMessage, KeeperRequest, MessageBuffer, VERSION, Welcome};
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

/// The most bytes that are queued for a server that does not read. Answers and endings are short, so that is thousands of them.
const OUTPUT_LIMIT: usize = 1024 * 1024;

/// Decodes the requests in a stream and encodes each again, or the refusal of an invalid one, for fuzzing.
#[doc(hidden)]
pub fn rewrite_requests<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> io::Result<Vec<Result<Vec<u8>, Vec<u8>>>> {
    let (mut input, mut requests) = (MessageBuffer::default(), Vec::new());
    for piece in pieces {
        input.push(piece);
        while let Some(line) = input.next_line()? {
            requests.push(match KeeperRequest::read(&line) {
                Ok(request) => Ok(serde_json::to_vec(&request)?),
                Err(refusal) => Err(serde_json::to_vec(&refusal)?),
            });
        }
    }
    Ok(requests)
}

/// The connection to the one server.
#[derive(Debug)]
pub(super) struct ServerConnection {
    connection: KeeperConnection,
    /// The next pane to hand over. Requests are read after the server has all panes.
    handing_over: Option<usize>,
}

impl ServerConnection {
    /// Answers the server's first line.
    pub(super) fn welcome(mut connection: KeeperConnection, panes: &KeptPanes) -> io::Result<Self> {
        connection.push_line(&Welcome { version: VERSION, panes: panes.len() }, None)?;
        Ok(Self { connection, handing_over: Some(0) })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }

    pub(super) fn events(&self) -> PollFlags {
        let input = if self.handing_over.is_none() { PollFlags::IN } else { PollFlags::empty() };
        input | self.connection.output_events()
    }

    /// Sends and receives as much as possible without blocking. An error means the end of the connection.
    pub(super) fn advance(&mut self, panes: &mut KeptPanes) -> io::Result<()> {
        if self.handing_over.is_some() {
            self.hand_over(panes)?;
        }
        if self.handing_over.is_some() {
            return Ok(());
        }
        self.connection.receive()?;
        loop {
            let line = self.connection.next_line();
            if let Ok(Some(line)) = &line {
                self.answer(line, panes)?;
                continue;
            }
            self.send_endings(panes)?;
            // Sending fails if the server was killed. Its last requests are still read, and then the end of the input.
            let _ = self.connection.send();
            return line.map(|_| ());
        }
    }

    /// Sends one pane after the other, so that the output of at most one is in memory twice. The output is dropped with the first
    /// request: if the server disconnects before that, the next one receives it again.
    fn hand_over(&mut self, panes: &mut KeptPanes) -> io::Result<()> {
        while let Some(index) = self.handing_over {
            if !self.connection.send()? {
                return Ok(());
            }
            if let Some((header, master, output)) = panes.hand_over(index) {
                self.connection.push_line(&header, Some(master))?;
                self.connection.push_bytes(output);
                self.handing_over = Some(index + 1);
            } else {
                panes.note_hand_over();
                self.handing_over = None;
            }
        }
        Ok(())
    }

    fn answer(&mut self, line: &[u8], panes: &mut KeptPanes) -> io::Result<()> {
        panes.clear_output();
        let (id, done) = match KeeperRequest::read(line) {
            Ok(KeeperRequest::Start(request)) => (request.id.clone(), panes.start(request).map(Some)),
            Ok(KeeperRequest::Note { id, text }) => {
                let done = panes.set_note(&id, text);
                (id, done.map(|()| None))
            }
            Ok(KeeperRequest::Forget { id }) => {
                let done = panes.forget(&id);
                (id, done.map(|()| None))
            }
            Err(refused) => return self.push(&refused, None),
        };
        match done {
            Ok(None) => Ok(()),
            Ok(Some((answer, master))) => self.push(&answer, Some(master)),
            Err(why) => self.push(&KeeperMessage::failed(id, why), None),
        }
    }

    fn send_endings(&mut self, panes: &mut KeptPanes) -> io::Result<()> {
        panes.take_endings().iter().try_for_each(|ending| self.push(ending, None))
    }

    fn push(&mut self, message: &KeeperMessage, master: Option<Rc<OwnedFd>>) -> io::Result<()> {
        self.connection.push_line(message, master)?;
        if self.connection.waiting() > OUTPUT_LIMIT {
            return Err(io::Error::other("the server does not read what it is sent"));
        }
        Ok(())
    }
}
