//! A client, as the server talks to it.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use ringer_pty::ByteQueue;
use ringer_ui::{Input, InputParser};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::outer_modes::OuterModes;
use crate::protocol::{Frame, FrameReader};
use crate::screen::{Abilities, Screen};

/// How long the rest of a key's sequence may take. Without it, the key Escape was pressed.
const SEQUENCE_WITHIN: Duration = Duration::from_millis(25);
/// What may wait for a client that does not read. One that is further behind has gone.
const MAX_WAITING: usize = 16 * 1024 * 1024;

/// A connection to a client.
#[expect(clippy::struct_excessive_bools, reason = "facts about it, each by itself")]
#[derive(Debug)]
pub(super) struct ClientLink {
    stream: UnixStream,
    reader: FrameReader,
    out: ByteQueue,
    parser: InputParser,
    input_came: Option<Instant>,
    /// What its terminal shows; nothing if that is not known.
    pub(super) shown: Option<Screen>,
    pub(super) modes: OuterModes,
    pub(super) abilities: Abilities,
    /// Whether it shows panes, and not just asks something.
    pub(super) is_window: bool,
    pub(super) has_mouse: bool,
    pub(super) has_said_hello: bool,
    pub(super) environment: Vec<(String, String)>,
    pub(super) directory: std::path::PathBuf,
    /// It has not been drawn for, because its last frame was on its way.
    pub(super) is_behind: bool,
    /// What its terminal is to copy, as a sequence.
    pub(super) copy: Option<String>,
    /// It is told to leave, and waits only until that is written.
    pub(super) is_leaving: bool,
}

impl ClientLink {
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            reader: FrameReader::default(),
            out: ByteQueue::default(),
            parser: InputParser::default(),
            input_came: None,
            shown: None,
            modes: OuterModes::default(),
            abilities: Abilities::default(),
            is_window: false,
            has_mouse: false,
            has_said_hello: false,
            environment: Vec::new(),
            directory: std::path::PathBuf::from("/"),
            is_behind: false,
            copy: None,
            is_leaving: false,
        })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Whether the last frame is on its way: another one would only add to what is late.
    pub(super) fn is_busy(&self) -> bool {
        !self.out.is_empty()
    }

    pub(super) fn send(&mut self, frame: &Frame) -> io::Result<()> {
        let mut bytes = Vec::new();
        frame.write(&mut bytes);
        self.out.push(&bytes);
        if self.out.len() > MAX_WAITING {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.flush()
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        Ok(self.out.write_to(&self.stream)?)
    }

    /// Waits until everything was sent, or until then.
    pub(super) fn flush_until(&mut self, until: Instant) -> io::Result<()> {
        while self.is_busy() {
            let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
            match poll(&mut [PollFd::new(&self.stream, PollFlags::OUT)], left.as_ref()) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) => self.flush()?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The frames that have come. An error if the client is gone.
    pub(super) fn frames(&mut self) -> io::Result<Vec<Frame>> {
        let mut room = [0; 16 * 1024];
        let is_over = match self.stream.read(&mut room) {
            Ok(0) => true,
            Ok(read) => {
                self.reader.push(&room[..read]);
                false
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                false
            }
            Err(error) => return Err(error),
        };
        let mut frames = Vec::new();
        while let Some(frame) = self.reader.next()? {
            frames.push(frame);
        }
        if is_over && frames.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(frames) }
    }

    /// What the person did, out of bytes of the terminal.
    pub(super) fn input(&mut self, bytes: &[u8], now: Instant) -> Vec<Input> {
        let inputs = self.parser.feed(bytes);
        self.input_came = self.parser.is_waiting().then_some(now);
        inputs
    }

    /// What the person did if the rest of a sequence does not come in time.
    pub(super) fn late_input(&mut self, now: Instant) -> Vec<Input> {
        if self.input_due().is_none_or(|due| now < due) {
            return Vec::new();
        }
        self.input_came = None;
        self.parser.flush()
    }

    /// When the rest of a sequence is late.
    pub(super) fn input_due(&self) -> Option<Instant> {
        self.input_came.map(|came| came + SEQUENCE_WITHIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::FrameKind;

    #[test]
    fn what_a_slow_client_is_told_last_is_waited_for_but_not_for_ever() {
        let (own, mut other) = UnixStream::pair().unwrap();
        let mut link = ClientLink::new(own).unwrap();
        let picture = vec![b'x'; 1024 * 1024];
        link.send(&Frame::new(FrameKind::Output, picture.clone())).unwrap();
        link.send(&Frame::new(FrameKind::Bye, [])).unwrap();
        assert!(link.is_busy());
        let late = link.flush_until(Instant::now()).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        let reading = std::thread::spawn(move || {
            let (mut reader, mut room) = (FrameReader::default(), [0; 4096]);
            loop {
                while let Some(frame) = reader.next().unwrap() {
                    if frame.kind == FrameKind::Bye {
                        return;
                    }
                }
                let read = other.read(&mut room).unwrap();
                assert!(read > 0, "the connection ended before the last word");
                reader.push(&room[..read]);
            }
        });
        link.flush_until(Instant::now() + Duration::from_secs(20)).unwrap();
        reading.join().unwrap();
    }
}
