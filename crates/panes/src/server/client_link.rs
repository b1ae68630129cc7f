//! The server's side of a connection to a client.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use ringer_platform::{ByteQueue, FIRST_FRAME_WITHIN, ForegroundCheck, try_lock_terminal, unlock_terminal};
use ringer_ui::{Input, InputParser};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;
use rustix::termios::isatty;

use crate::descriptor_socket::{self, SocketRead};
use crate::outer_terminal::{LEAVE, LineSettings, OuterModes};
use crate::protocol::{Frame, FrameKind, FrameReader, WindowView};
use crate::screen::{Abilities, Screen};

/// Timeout for the rest of an escape sequence. After it, a lone ESC is the key Escape.
const SEQUENCE_WITHIN: Duration = Duration::from_millis(25);
/// Timeout for the rest of a paste. After it, the received part is the paste.
const PASTE_WITHIN: Duration = Duration::from_secs(2);
/// The most bytes that are queued for a client. A client that is further behind is disconnected.
const MAX_WAITING: usize = 16 * 1024 * 1024;
/// Timeout for restoring the terminal of a client that was killed.
const GIVEN_BACK_WITHIN: Duration = Duration::from_secs(2);

/// A connection to a client.
#[expect(clippy::struct_excessive_bools, reason = "facts about it, each by itself")]
#[derive(Debug)]
pub(super) struct ClientLink {
    stream: UnixStream,
    pub(super) accepted: Instant,
    reader: FrameReader,
    /// Frames for the client. They are sent after all terminal output that was queued before.
    out: ByteQueue,
    /// The client's terminal, if the server reads and writes it directly.
    terminal: Option<OwnedFd>,
    /// Checks that the client is still in the foreground of that terminal.
    foreground: Option<ForegroundCheck>,
    terminal_out: ByteQueue,
    /// The settings of the terminal before the client made it raw.
    pub(super) line_settings: Option<LineSettings>,
    /// The descriptor that came with the first bytes.
    received: Option<OwnedFd>,
    parser: InputParser,
    input_came: Option<Instant>,
    /// The contents of the terminal; `None` if unknown.
    pub(super) shown: Option<Screen>,
    pub(super) modes: OuterModes,
    /// The view that the client was last told.
    pub(super) sent_view: Option<WindowView>,
    pub(super) abilities: Abilities,
    /// The client shows panes. Other clients only send requests.
    pub(super) is_window: bool,
    pub(super) has_mouse: bool,
    pub(super) has_said_hello: bool,
    pub(super) environment: Vec<(String, String)>,
    pub(super) directory: std::path::PathBuf,
    /// A frame was skipped because the previous one was still being sent.
    pub(super) is_behind: bool,
    /// The escape sequence with clipboard text that has to be sent.
    pub(super) copy: Option<String>,
    /// The client was told to leave, or leaves by itself. It gets what is queued, and nothing is read from its terminal.
    pub(super) is_leaving: bool,
}

impl ClientLink {
    pub(super) fn new(stream: UnixStream, now: Instant) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            accepted: now,
            reader: FrameReader::default(),
            out: ByteQueue::default(),
            terminal: None,
            foreground: None,
            terminal_out: ByteQueue::default(),
            line_settings: None,
            received: None,
            parser: InputParser::default(),
            input_came: None,
            shown: None,
            modes: OuterModes::default(),
            sent_view: None,
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

    /// The events to poll the connection for.
    pub(super) fn events(&self) -> PollFlags {
        let is_next = self.terminal_out.is_empty() && !self.out.is_empty();
        if is_next { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN }
    }

    /// The terminal and the events to poll it for. It is not read while another program has it.
    pub(super) fn terminal_events(&self, is_read: bool) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let input = if is_read && !self.is_leaving { PollFlags::IN } else { PollFlags::empty() };
        let output = if self.terminal_out.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        let events = input | output;
        // `poll` reports POLLHUP even if no event is requested, so a terminal that is gone would spin. The client notices it,
        // too.
        self.terminal.as_ref().filter(|_| !events.is_empty()).map(|terminal| (terminal.as_fd(), events))
    }

    /// Starts to read and write the terminal directly, if the client is in its foreground and the loss of that can be detected. A
    /// client that was started in a session without a terminal, as by `su -c`, never is, and transfers the bytes itself.
    pub(super) fn take_terminal(&mut self) -> bool {
        self.foreground = ForegroundCheck::of_peer(&self.stream);
        self.foreground.as_ref().is_some_and(ForegroundCheck::has_terminal) && self.use_received()
    }

    /// Uses the received descriptor if it is a terminal in non-blocking mode.
    fn use_received(&mut self) -> bool {
        let does_not_block =
            |terminal: &OwnedFd| fcntl_getfl(terminal).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK));
        let is_usable = |terminal: &OwnedFd| isatty(terminal) && does_not_block(terminal);
        self.terminal = self.received.take().filter(is_usable);
        self.terminal.is_some()
    }

    /// Returns true while the last frame is being sent. Another one would only be later.
    pub(super) fn is_busy(&self) -> bool {
        !self.out.is_empty() || !self.terminal_out.is_empty()
    }

    pub(super) fn send(&mut self, frame: &Frame) -> io::Result<()> {
        if self.terminal.is_some() && frame.kind == FrameKind::Output {
            self.check_foreground()?;
            self.terminal_out.push(&frame.body);
        } else {
            let mut bytes = Vec::new();
            frame.write(&mut bytes);
            self.out.push(&bytes);
        }
        if self.out.len() + self.terminal_out.len() > MAX_WAITING {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.flush()
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        if let Some(terminal) = self.terminal.as_ref().filter(|_| !self.terminal_out.is_empty()) {
            // The output is written even without the lock: a hub that holds it writes everything at once, or the terminal is full
            // now and takes nothing.
            let _ = try_lock_terminal(terminal);
            let written = self.terminal_out.write_to(terminal);
            if self.terminal_out.is_empty() {
                unlock_terminal(terminal);
            }
            written?;
        }
        if self.terminal_out.is_empty() {
            self.out.write_to(&self.stream)?;
        }
        Ok(())
    }

    /// Reads the terminal. Returns an error if it is gone, or if another program is in the foreground, which the input is for.
    pub(super) fn read_terminal(&mut self, now: Instant) -> io::Result<Vec<Input>> {
        let Some(terminal) = &self.terminal else { return Ok(Vec::new()) };
        self.check_foreground()?;
        let mut room = [0; 16 * 1024];
        match rustix::io::read(terminal, &mut room) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => Ok(self.input(&room[..read], now)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns an error if another program is in the foreground: the client was stopped, or its shell took the terminal back.
    fn check_foreground(&self) -> io::Result<()> {
        let is_elsewhere = self.foreground.as_ref().is_some_and(|client| !client.has_terminal());
        if is_elsewhere { Err(io::ErrorKind::PermissionDenied.into()) } else { Ok(()) }
    }

    /// Sends everything that is queued, until a deadline.
    pub(super) fn flush_until(&mut self, until: Instant) -> io::Result<()> {
        while self.is_busy() {
            let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
            let waits_for = match &self.terminal {
                Some(terminal) if !self.terminal_out.is_empty() => terminal.as_fd(),
                _ => self.stream.as_fd(),
            };
            match poll(&mut [PollFd::from_borrowed_fd(waits_for, PollFlags::OUT)], left.as_ref()) {
                Ok(0) => {
                    // The frames are still sent, without the rest of the terminal output.
                    self.terminal_out.clear();
                    self.terminal.iter().for_each(unlock_terminal);
                    self.out.write_to(&self.stream)?;
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Ok(_) => self.flush()?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Restores the terminal of a client that was killed. A client that leaves does that itself, and has announced it.
    pub(super) fn give_back_terminal(mut self) {
        if self.is_leaving || self.terminal.is_none() || !self.has_ended() {
            return;
        }
        if let (Some(settings), Some(terminal)) = (self.line_settings, &self.terminal) {
            settings.restore(terminal);
        }
        // The rest of the output is of no use. The first byte (ESC) ends a sequence that was cut off.
        self.terminal_out.clear();
        self.terminal_out.push(LEAVE.as_bytes());
        self.out.clear();
        if self.flush().is_ok() && self.is_busy() {
            // A slow terminal takes the rest later. The server does not wait for it.
            let rest = move || self.flush_until(Instant::now() + GIVEN_BACK_WITHIN);
            let _ = thread::Builder::new().name("give-back".to_owned()).spawn(rest);
        }
    }

    /// Returns true if the client's process has closed the connection. One that leaves by itself keeps it open until the server
    /// closes it, too.
    fn has_ended(&self) -> bool {
        let mut stream = [PollFd::new(&self.stream, PollFlags::empty())];
        poll(&mut stream, Some(&Timespec::default())).is_ok() && stream[0].revents().contains(PollFlags::HUP)
    }

    /// Reads frames. Returns an error if the client is gone.
    pub(super) fn frames(&mut self) -> io::Result<Vec<Frame>> {
        let mut room = [0; 16 * 1024];
        let is_over = match descriptor_socket::receive(&self.stream, &mut room) {
            Ok(SocketRead { bytes: 0, .. }) => true,
            Ok(SocketRead { bytes, descriptors, has_lost_some }) => {
                self.reader.push(&room[..bytes]);
                // Only the hello carries a descriptor; others are closed. Without one, the client transfers the bytes itself.
                if !self.has_said_hello && !has_lost_some {
                    self.received = descriptors.into_iter().next().or(self.received.take());
                }
                false
            }
            Err(Errno::AGAIN | Errno::INTR) => false,
            Err(error) => return Err(error.into()),
        };
        let mut frames = Vec::new();
        while let Some(frame) = self.reader.next()? {
            frames.push(frame);
        }
        if is_over && frames.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(frames) }
    }

    /// Parses bytes of the terminal.
    pub(super) fn input(&mut self, bytes: &[u8], now: Instant) -> Vec<Input> {
        let inputs = self.parser.feed(bytes);
        self.input_came = (self.parser.is_waiting() || self.parser.is_pasting()).then_some(now);
        inputs
    }

    /// Returns the input that an unfinished sequence or paste stands for, if its rest is late.
    pub(super) fn late_input(&mut self, now: Instant) -> Vec<Input> {
        if self.input_due().is_none_or(|due| now < due) {
            return Vec::new();
        }
        self.input_came = None;
        let paste = self.parser.take_unfinished_paste();
        if paste.is_some() { paste.into_iter().collect() } else { self.parser.flush() }
    }

    /// The deadline for the first frame. `None` once that has arrived.
    pub(super) fn hello_due(&self) -> Option<Instant> {
        (!self.has_said_hello).then(|| self.accepted + FIRST_FRAME_WITHIN)
    }

    /// The deadline for the rest of a sequence or a paste.
    pub(super) fn input_due(&self) -> Option<Instant> {
        let within = if self.parser.is_pasting() { PASTE_WITHIN } else { SEQUENCE_WITHIN };
        self.input_came.map(|came| came + within)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{IoSlice, Read};
    use std::mem::MaybeUninit;

    use rustix::cmsg_space;
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    use rustix::termios::OptionalActions;

    use super::*;

    #[test]
    fn what_a_slow_client_is_told_last_is_waited_for_but_not_for_ever() {
        let (own, mut other) = UnixStream::pair().unwrap();
        let mut link = ClientLink::new(own, Instant::now()).unwrap();
        let picture = vec![b'x'; 1024 * 1024];
        link.send(&Frame::new(FrameKind::Output, picture.clone())).unwrap();
        link.send(&Frame::new(FrameKind::Bye, [])).unwrap();
        assert!(link.is_busy());
        let late = link.flush_until(Instant::now()).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        let reading = thread::spawn(move || {
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

    #[test]
    fn a_character_is_typed_however_long_its_rest_takes_and_escape_is_not_waited_for() {
        let mut link = ClientLink::new(UnixStream::pair().unwrap().0, Instant::now()).unwrap();
        let (begun, late) = (Instant::now(), Instant::now() + Duration::from_mins(1));
        assert!(link.input(b"\xc3", begun).is_empty());
        assert_eq!(link.input_due(), None, "the server does not wake for it");
        assert!(link.late_input(late).is_empty());
        let typed = link.input(b"\xa9\x1b", late);
        assert_eq!(typed.iter().map(|input| &input.bytes[..]).collect::<Vec<_>>(), ["é".as_bytes()]);
        let typed = link.late_input(late + SEQUENCE_WITHIN);
        assert_eq!(typed.iter().map(|input| &input.bytes[..]).collect::<Vec<_>>(), [b"\x1b"]);
    }

    #[test]
    fn a_connection_has_two_seconds_for_its_hello() {
        let now = Instant::now();
        let mut link = ClientLink::new(UnixStream::pair().unwrap().0, now).unwrap();
        assert_eq!(link.hello_due(), Some(now + Duration::from_secs(2)));
        link.has_said_hello = true;
        assert_eq!(link.hello_due(), None);
    }

    /// A client that sends its terminal, and the master of that PTY.
    fn with_terminal(flags: OFlags) -> (ClientLink, UnixStream, OwnedFd) {
        let (master, terminal) = pty_process::blocking::open().unwrap();
        let mut settings = rustix::termios::tcgetattr(&terminal).unwrap();
        settings.make_raw();
        rustix::termios::tcsetattr(&terminal, OptionalActions::Now, &settings).unwrap();
        let name = rustix::termios::ttyname(&terminal, Vec::new()).unwrap();
        let opened =
            rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | flags, rustix::fs::Mode::empty()).unwrap();
        let (own, other) = UnixStream::pair().unwrap();
        let mut link = ClientLink::new(own, Instant::now()).unwrap();
        descriptor_socket::send(&other, b"\x01", Some(opened.as_fd())).unwrap();
        assert!(link.frames().unwrap().is_empty());
        (link, other, master.into())
    }

    #[test]
    fn a_terminal_that_is_lent_is_read_and_written_and_has_everything_before_the_client_leaves() {
        let (mut link, mut other, master) = with_terminal(OFlags::NONBLOCK);
        // The client is this process, which may have no terminal, so that check is skipped.
        assert!(link.use_received());
        rustix::io::write(&master, b"a").unwrap();
        let (terminal, flags) = link.terminal_events(true).unwrap();
        poll(&mut [PollFd::from_borrowed_fd(terminal, flags)], None).unwrap();
        let typed = link.read_terminal(Instant::now()).unwrap();
        assert_eq!(typed.iter().map(|input| input.bytes.clone()).collect::<Vec<_>>(), [b"a"]);
        // More than a terminal accepts at once.
        let picture = vec![b'x'; 256 * 1024];
        link.send(&Frame::new(FrameKind::Output, picture.clone())).unwrap();
        link.send(&Frame::new(FrameKind::Bye, [])).unwrap();
        assert!(link.is_busy() && link.terminal_events(false).is_some());
        let name = rustix::termios::ttyname(link.terminal.as_ref().unwrap(), Vec::new()).unwrap();
        let other_writer = std::fs::File::options().write(true).open(name.to_str().unwrap()).unwrap();
        assert!(!try_lock_terminal(&other_writer), "nothing is written into the picture");
        other.set_nonblocking(true).unwrap();
        let early = other.read(&mut [0; 64]).unwrap_err();
        assert_eq!(early.kind(), io::ErrorKind::WouldBlock, "the picture is on its way");
        let reading = thread::spawn(move || {
            let (mut shown, mut room) = (Vec::new(), [0; 4096]);
            while shown.len() < picture.len() {
                let read = rustix::io::read(&master, &mut room).unwrap();
                shown.extend_from_slice(&room[..read]);
            }
            (shown == picture, master)
        });
        link.flush_until(Instant::now() + Duration::from_secs(20)).unwrap();
        let (is_whole, master) = reading.join().unwrap();
        assert!(is_whole && try_lock_terminal(&other_writer));
        assert!(other.read(&mut [0; 64]).unwrap() > 0, "it is told to leave after that");
        drop((master, other_writer));
        assert!(link.read_terminal(Instant::now()).is_err(), "the terminal is gone");
    }

    #[test]
    fn the_terminal_of_a_client_that_was_killed_is_given_back_also_if_it_is_full() {
        let (mut link, other, master) = with_terminal(OFlags::NONBLOCK);
        assert!(link.use_received());
        link.send(&Frame::new(FrameKind::Output, vec![b'x'; 256 * 1024])).unwrap();
        assert!(link.is_busy());
        drop(other);
        link.give_back_terminal();
        let (mut shown, mut room) = (Vec::new(), [0; 4096]);
        while !shown.ends_with(LEAVE.as_bytes()) {
            // An error once no process has the terminal open.
            let read = rustix::io::read(&master, &mut room).unwrap();
            shown.extend_from_slice(&room[..read]);
        }
        assert!(shown.len() < 256 * 1024, "the rest of the picture is left out");
        let (mut link, other, master) = with_terminal(OFlags::NONBLOCK);
        assert!(link.use_received());
        drop((other, master));
        link.give_back_terminal();
    }

    #[test]
    fn a_client_that_leaves_gives_its_terminal_back_itself() {
        let (mut link, other, master) = with_terminal(OFlags::NONBLOCK);
        assert!(link.use_received());
        other.shutdown(std::net::Shutdown::Write).unwrap();
        link.give_back_terminal();
        // No process has the terminal open, and nothing was written before.
        assert_eq!(rustix::io::read(&master, &mut [0; 64]), Err(Errno::IO));
    }

    #[test]
    fn what_could_make_the_server_wait_or_is_no_terminal_is_not_taken() {
        assert!(!with_terminal(OFlags::empty()).0.use_received());
        let (own, other) = UnixStream::pair().unwrap();
        other.set_nonblocking(true).unwrap();
        let mut link = ClientLink::new(own, Instant::now()).unwrap();
        descriptor_socket::send(&other, b"\x01", Some(other.as_fd())).unwrap();
        assert!(link.frames().unwrap().is_empty() && !link.use_received());
    }

    #[test]
    fn a_client_whose_terminal_did_not_come_is_served_without_it() {
        let (own, other) = UnixStream::pair().unwrap();
        let mut link = ClientLink::new(own, Instant::now()).unwrap();
        // More than are expected, as if the server had no free descriptor.
        let descriptors = [other.as_fd(); 16];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(16))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
        let mut hello = Vec::new();
        Frame::new(FrameKind::Hello, []).write(&mut hello);
        sendmsg(&other, &[IoSlice::new(&hello)], &mut control, SendFlags::empty()).unwrap();
        let kinds: Vec<FrameKind> = link.frames().unwrap().iter().map(|frame| frame.kind).collect();
        assert_eq!(kinds, [FrameKind::Hello]);
        assert!(!link.use_received());
    }
}
