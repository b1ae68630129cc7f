//! The server's side of the connection to the keeper.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringer_platform::{Ending, owned};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::kept_panes::RING_LIMIT;
use super::wire::{
    ByteString, Hello, KeeperMessage, KeeperRequest, LINE_LIMIT, MessageBuffer, PaneHeader, StartRequest,
    VERSION, Welcome,
};
use crate::descriptor_socket::{self, SocketRead};

/// How long the keeper may be silent while it answers the first line and hands over its panes.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Timeout for writing a request. The keeper reads requests at once, unless it is stopped.
const WRITE_WITHIN: Duration = Duration::from_secs(1);

/// A program for the keeper to start on a PTY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartPane {
    /// The id of the pane in all messages. It must be unique.
    pub id: String,
    /// The program, which is looked up in the `PATH` of `environment`, and its arguments.
    pub argv: Vec<OsString>,
    /// The complete environment of the program.
    pub environment: Vec<(OsString, OsString)>,
    /// The directory in which it starts.
    pub directory: PathBuf,
    /// The width of its terminal.
    pub columns: u16,
    /// The height of its terminal.
    pub lines: u16,
    /// A text that the keeper returns to the next server, at most 64 KiB.
    pub note: String,
}

/// A pane that the keeper had when this server connected.
#[derive(Debug)]
pub struct KeptPane {
    /// The id with which it was started.
    pub id: String,
    /// The session leader of its terminal.
    pub pid: u32,
    /// The name of its terminal, such as `/dev/pts/3`.
    pub tty: String,
    /// The note of the last server.
    pub note: String,
    /// How the program ended, if it has.
    pub ending: Option<Ending>,
    /// The number of bytes that were dropped before `output`.
    pub dropped: u64,
    /// Output from the time without a server, at most 1 MiB.
    pub output: Vec<u8>,
    /// The master of its PTY, in non-blocking mode.
    pub master: OwnedFd,
}

/// An event that the keeper reports.
#[derive(Debug)]
pub enum KeeperEvent {
    /// A program was started.
    Started {
        /// The id of the pane.
        id: String,
        /// The session leader of its terminal.
        pid: u32,
        /// The name of its terminal.
        tty: String,
        /// The master of its PTY, in non-blocking mode.
        master: OwnedFd,
    },
    /// A request was refused.
    Failed {
        /// The id of the pane, or empty if the keeper could not read it.
        id: String,
        /// The reason, as a sentence for a person.
        why: String,
    },
    /// A program has ended. Its output may not have been read completely, and other programs may still use its terminal.
    Ended {
        /// The id of the pane, which stays until it is forgotten.
        id: String,
        /// How it ended.
        ending: Ending,
    },
}

/// A connection to the keeper. While it is open, the keeper leaves the output of all panes to this process.
///
/// When the keeper has ended or another server has taken over, all methods return [`io::ErrorKind::UnexpectedEof`].
#[derive(Debug)]
pub struct KeeperClient {
    stream: UnixStream,
    input: MessageBuffer,
    /// Received descriptors, in the order of the messages that they belong to.
    descriptors: VecDeque<OwnedFd>,
    is_over: bool,
}

impl KeeperClient {
    /// Connects to the keeper, and takes over its panes. A server that was connected is disconnected.
    ///
    /// The error is [`io::ErrorKind::Unsupported`] for a keeper of another version, which is not affected.
    pub fn connect(socket: &Path) -> io::Result<(Self, Vec<KeptPane>)> {
        Self::over(owned::connect(socket)?)
    }

    /// Like [`Self::connect`], with a non-blocking stream, for fuzzing.
    #[doc(hidden)]
    pub fn over(stream: UnixStream) -> io::Result<(Self, Vec<KeptPane>)> {
        let (input, descriptors) = (MessageBuffer::default(), VecDeque::new());
        let mut client = Self { stream, input, descriptors, is_over: false };
        client.write(&Hello { version: VERSION })?;
        let welcome: Welcome = client.wait_for_message()?;
        if welcome.version != VERSION {
            let why =
                format!("the keeper speaks version {}, this program version {VERSION}", welcome.version);
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        let panes = (0..welcome.panes).map(|_| client.wait_for_pane()).collect::<io::Result<_>>()?;
        Ok((client, panes))
    }

    /// Becomes readable when there are events.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Requests the start of a program. The answer is [`KeeperEvent::Started`] or [`KeeperEvent::Failed`].
    pub fn start(&mut self, pane: &StartPane) -> io::Result<()> {
        let byte_string = |text: &OsString| ByteString::from(text.as_os_str());
        self.write(&KeeperRequest::Start(StartRequest {
            id: pane.id.clone(),
            argv: pane.argv.iter().map(byte_string).collect(),
            environment: pane
                .environment
                .iter()
                .map(|(name, value)| (byte_string(name), byte_string(value)))
                .collect(),
            directory: ByteString::from(AsRef::<OsStr>::as_ref(&pane.directory)),
            columns: pane.columns,
            lines: pane.lines,
            note: pane.note.clone(),
        }))
    }

    /// Replaces the note of a pane, which the next server receives.
    pub fn note(&mut self, id: &str, text: &str) -> io::Result<()> {
        self.write(&KeeperRequest::Note { id: id.to_owned(), text: text.to_owned() })
    }

    /// Hangs up the program of a pane, and drops the pane. The caller closes its own master.
    pub fn forget(&mut self, id: &str) -> io::Result<()> {
        self.write(&KeeperRequest::Forget { id: id.to_owned() })
    }

    /// Returns the events since the last call, without blocking.
    pub fn events(&mut self) -> io::Result<Vec<KeeperEvent>> {
        while !self.is_over && self.receive()? {}
        let mut events = Vec::new();
        while let Some(line) = self.input.next_line()? {
            events.push(self.event(&line)?);
        }
        if events.is_empty() && self.is_over {
            return Err(connection_ended());
        }
        Ok(events)
    }

    fn event(&mut self, line: &[u8]) -> io::Result<KeeperEvent> {
        match serde_json::from_slice(line)? {
            KeeperMessage::Started { id, pid, tty } => {
                Ok(KeeperEvent::Started { id, pid, tty, master: self.next_descriptor()? })
            }
            KeeperMessage::Failed { id, why } => Ok(KeeperEvent::Failed { id, why }),
            KeeperMessage::Ended { id, ending } => Ok(KeeperEvent::Ended { id, ending }),
            KeeperMessage::Pane(_) => Err(invalid("the keeper hands a pane over that it did not announce")),
        }
    }

    fn next_descriptor(&mut self) -> io::Result<OwnedFd> {
        self.descriptors.pop_front().ok_or_else(|| invalid("the keeper sent a pane without its terminal"))
    }

    /// Reads available bytes. Returns true if there may be more.
    fn receive(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 16 * 1024];
        match descriptor_socket::receive(&self.stream, &mut buffer) {
            Ok(SocketRead { bytes: 0, .. }) | Err(Errno::CONNRESET) => {
                self.is_over = true;
                Ok(false)
            }
            Ok(SocketRead { has_lost_some: true, .. }) => {
                // Descriptors could no longer be matched with their messages.
                self.is_over = true;
                Err(Errno::MFILE.into())
            }
            Ok(SocketRead { bytes, descriptors, .. }) => {
                self.input.push(buffer.get(..bytes).unwrap_or_default());
                self.descriptors.extend(descriptors);
                Ok(true)
            }
            Err(Errno::AGAIN) => Ok(false),
            Err(Errno::INTR) => Ok(true),
            Err(error) => {
                self.is_over = true;
                Err(error.into())
            }
        }
    }

    fn wait_for_pane(&mut self) -> io::Result<KeptPane> {
        let KeeperMessage::Pane(header) = self.wait_for_message()? else {
            return Err(invalid("the keeper announced a pane and sent something else"));
        };
        let PaneHeader { id, pid, tty, note, ending, dropped, bytes } = header;
        if bytes > RING_LIMIT {
            return Err(invalid("the keeper announced more output than it may keep"));
        }
        let output = self.wait_for(|input| Ok(input.next_bytes(bytes)))?;
        Ok(KeptPane { id, pid, tty, note, ending, dropped, output, master: self.next_descriptor()? })
    }

    fn wait_for_message<M: DeserializeOwned>(&mut self) -> io::Result<M> {
        let line = self.wait_for(MessageBuffer::next_line)?;
        Ok(serde_json::from_slice(&line)?)
    }

    /// Receives until a part is complete.
    fn wait_for<T>(
        &mut self,
        mut part: impl FnMut(&mut MessageBuffer) -> io::Result<Option<T>>,
    ) -> io::Result<T> {
        loop {
            if let Some(part) = part(&mut self.input)? {
                return Ok(part);
            }
            if self.is_over {
                return Err(connection_ended());
            }
            if !self.receive()? && !self.is_over {
                wait(&self.stream, PollFlags::IN, Instant::now() + ANSWER_WITHIN)?;
            }
        }
    }

    fn write(&mut self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        if line.len() > LINE_LIMIT {
            let why = format!("a request of {} bytes is too long for the keeper", line.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        if self.is_over {
            return Err(connection_ended());
        }
        let written = self.write_line(&line);
        // After a partial line, no other one can be written.
        self.is_over |= written.is_err();
        written
    }

    fn write_line(&self, line: &[u8]) -> io::Result<()> {
        let until = Instant::now() + WRITE_WITHIN;
        let mut rest = line;
        while !rest.is_empty() {
            match descriptor_socket::send(&self.stream, rest, None) {
                Ok(sent) => rest = rest.get(sent..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => wait(&self.stream, PollFlags::OUT, until)?,
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(connection_ended()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Waits until a stream is ready. Returns an error at the deadline.
fn wait(stream: &UnixStream, events: PollFlags, until: Instant) -> io::Result<()> {
    loop {
        let rest = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(rest).ok();
        match poll(&mut [PollFd::new(stream, events)], timeout.as_ref()) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::TimedOut, "the keeper does not answer")),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn connection_ended() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the keeper has closed the connection")
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
