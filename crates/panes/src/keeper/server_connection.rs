//! The connection to the server: hands over panes and answers requests.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::event::PollFlags;

use super::connection::KeeperConnection;
use super::kept_panes::KeptPanes;
use super::message_buffer::MessageBuffer;
use super::wire::{KeeperMessage, KeeperRequest, VERSION, Welcome};

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
            self.tell_endings(panes)?;
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

    fn tell_endings(&mut self, panes: &mut KeptPanes) -> io::Result<()> {
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
