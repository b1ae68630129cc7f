//! A client: it lends its terminal to the server, and knows nothing of panes.

use std::io::{self, Read, Write, stdin};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use ringer_platform::{clear_wakes, connect_at_once, peer_uid, wake_pair};
use ringer_pty::descriptor_socket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use signal_hook::consts::{SIGHUP, SIGTERM, SIGWINCH};
use signal_hook::low_level::pipe;

use crate::address::Places;
use crate::outer_modes::LEAVE;
use crate::protocol::{
    Answer, Bye, Frame, FrameKind, FrameReader, Hello, Request, TerminalFacts, VERSION, Welcome,
};
use crate::raw_terminal::RawTerminal;

/// How long the server may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How long a server that takes over may need.
const COMES_BACK_WITHIN: Duration = Duration::from_secs(10);
/// How long the next one may take to be started by the program that takes over.
const NEXT_WITHIN: Duration = Duration::from_secs(1);
/// How long it may take until a server is there that was started.
const STARTS_WITHIN: Duration = Duration::from_secs(10);
/// A server that ends sooner has crashed at once. After some of those in a row, no other is started.
const CRASHES_WITHIN: Duration = Duration::from_secs(5);
const MAX_LOSSES: u32 = 3;
/// How long the server may take to let go of a terminal.
const GIVES_BACK_WITHIN: Duration = Duration::from_millis(500);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Why a command of panes fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// None runs, and none was to be started.
    #[error("no panes are open")]
    NoServer,
    /// It could not be started.
    #[error("the server of panes cannot start: {0}")]
    CannotStart(String),
    /// It does not answer, or what it says makes no sense.
    #[error("the server of panes does not answer: {0}")]
    Silent(io::Error),
    /// It speaks another version of the protocol.
    #[error("the server of panes is version {server}, this program is version {own}")]
    OtherVersion {
        /// The server's program.
        server: String,
        /// This program.
        own: &'static str,
    },
    /// It refuses to do it.
    #[error("{0}")]
    Refused(String),
    /// The terminal cannot be used.
    #[error("the terminal cannot be used: {0}")]
    Terminal(#[source] io::Error),
}

/// What a client tells of its terminal and its surroundings.
#[derive(Debug, Clone, Default)]
pub struct ClientSettings {
    /// How many colours the terminal has: 0, 16, 256 or more.
    pub colours: u32,
    /// Only signs of ASCII.
    pub is_ascii: bool,
    /// Whether clicks and the wheel are for the server.
    pub has_mouse: bool,
    /// The surface of the terminal.
    pub surface: Option<String>,
    /// What new panes get.
    pub environment: Vec<(String, String)>,
    /// Where new panes begin.
    pub directory: PathBuf,
}

/// What a client needs of the program around it.
pub trait Surroundings {
    /// Starts a server that outlives the client, and returns when it takes connections.
    fn start_server(&self) -> Result<(), String>;

    /// Shows the inbox, which has the terminal for itself meanwhile.
    fn show_inbox(&self) -> io::Result<()>;
}

/// Shows panes in this process's terminal until the person leaves. Gives what they are told then.
pub fn attach(
    places: &Places,
    settings: &ClientSettings,
    surroundings: &dyn Surroundings,
) -> Result<Option<String>, ClientError> {
    let mut terminal = RawTerminal::take().map_err(ClientError::Terminal)?;
    let watch = Watch::new().map_err(ClientError::Terminal)?;
    take_over(places, settings)?;
    let mut losses = 0;
    loop {
        let link = connect_or_start(places, settings, Some(&terminal), surroundings)?;
        let begun = Instant::now();
        match show(link, &watch, &mut terminal, surroundings)? {
            Left::For { bye } if bye.comes_back => wait_for_next(places),
            Left::For { bye } => return Ok(bye.why),
            // It crashed, or was killed. The programs run on, and the next one shows them.
            Left::Server => losses = if begun.elapsed() < CRASHES_WITHIN { losses + 1 } else { 1 },
            Left::Terminal => return Ok(None),
        }
        if losses > MAX_LOSSES {
            return Ok(Some(
                "the server of panes ends again and again; what runs in panes goes on. To see why: ringer doctor"
                    .to_owned(),
            ));
        }
        // The next server takes the terminal over as a program finds it.
        terminal.write(LEAVE.as_bytes()).map_err(ClientError::Terminal)?;
    }
}

/// Asks the server for something. Without a server there is one started, if that is wanted.
pub fn request(
    places: &Places,
    settings: &ClientSettings,
    request: &Request,
    surroundings: Option<&dyn Surroundings>,
) -> Result<Answer, ClientError> {
    let mut link = match surroundings {
        Some(surroundings) => connect_or_start(places, settings, None, surroundings)?,
        None => own_version(connect(places, settings, None)?)?,
    };
    link.send(&Frame::json(FrameKind::Request, request)).map_err(ClientError::Silent)?;
    let frame = link.wait_for(FrameKind::Answer).map_err(ClientError::Silent)?;
    match frame.read().map_err(ClientError::Silent)? {
        Answer::Failed { why } => Err(ClientError::Refused(why)),
        answer => Ok(answer),
    }
}

/// A connection to the server.
struct Link {
    stream: UnixStream,
    reader: FrameReader,
    /// The server reads and writes the terminal itself.
    has_lent_terminal: bool,
}

impl Link {
    fn send(&mut self, frame: &Frame) -> io::Result<()> {
        self.send_with(frame, None)
    }

    /// Sends a frame, with a descriptor at its first byte.
    fn send_with(&mut self, frame: &Frame, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut bytes = Vec::new();
        frame.write(&mut bytes);
        let sent = retry_on_intr(|| descriptor_socket::send(&self.stream, &bytes, descriptor))?;
        self.stream.write_all(&bytes[sent..])
    }

    /// Waits until the server no longer uses the terminal: it closes the connection then.
    fn take_back_terminal(&mut self) {
        let end = Instant::now() + GIVES_BACK_WITHIN;
        // A server that is gone uses nothing.
        let _ = self.stream.shutdown(Shutdown::Write);
        loop {
            let left = Timespec::try_from(end.saturating_duration_since(Instant::now())).ok();
            match poll(&mut [PollFd::new(&self.stream, PollFlags::IN)], left.as_ref()) {
                Ok(0) | Err(_) => return,
                Ok(_) if !self.read().unwrap_or(false) => return,
                Ok(_) => {}
            }
        }
    }

    /// Reads until a frame of this kind comes.
    fn wait_for(&mut self, kind: FrameKind) -> io::Result<Frame> {
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
                // The terminal changed its size meanwhile.
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            if !self.read()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads what there is. `false` at the end.
    fn read(&mut self) -> io::Result<bool> {
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

fn connect_or_start(
    places: &Places,
    settings: &ClientSettings,
    terminal: Option<&RawTerminal>,
    surroundings: &dyn Surroundings,
) -> Result<Link, ClientError> {
    let end = Instant::now() + STARTS_WITHIN;
    loop {
        match connect(places, settings, terminal) {
            Err(ClientError::NoServer) if Instant::now() < end => {}
            // It was there, and ended before it answered.
            Err(ClientError::Silent(error)) if is_gone(&error) && Instant::now() < end => {}
            connected => return own_version(connected?),
        }
        // It does nothing while another one starts or ends, so this may have to be done again.
        surroundings.start_server().map_err(ClientError::CannotStart)?;
        if connect_at_once(&places.server()).is_err() {
            thread::sleep(POLL_INTERVAL);
        }
    }
}

/// A server of another program hands what it has over to the next one. Only the program that comes anew asks for that: windows
/// of two programs would take over from each other for ever.
fn take_over(places: &Places, settings: &ClientSettings) -> Result<(), ClientError> {
    match connect(places, settings, None) {
        Ok((mut link, welcome)) if welcome.program != env!("CARGO_PKG_VERSION") => {
            link.send(&Frame::json(FrameKind::Request, &Request::Replace)).map_err(ClientError::Silent)?;
            drop(link);
            wait_until_gone(places);
            Ok(())
        }
        Ok(_) | Err(ClientError::NoServer) => Ok(()),
        Err(ClientError::Silent(error)) if is_gone(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether the other end of a connection has ended.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

/// A connection, if the server speaks the same version of the protocol.
fn own_version((link, welcome): (Link, Welcome)) -> Result<Link, ClientError> {
    if welcome.version == VERSION {
        return Ok(link);
    }
    Err(ClientError::OtherVersion { server: welcome.program, own: env!("CARGO_PKG_VERSION") })
}

fn connect(
    places: &Places,
    settings: &ClientSettings,
    terminal: Option<&RawTerminal>,
) -> Result<(Link, Welcome), ClientError> {
    let stream = connect_at_once(&places.server()).map_err(|_| ClientError::NoServer)?;
    let descriptor = terminal.and_then(RawTerminal::for_server);
    let is_own = peer_uid(&stream).is_ok_and(|uid| uid == rustix::process::geteuid().as_raw());
    if !is_own {
        return Err(ClientError::Silent(io::ErrorKind::PermissionDenied.into()));
    }
    stream.set_nonblocking(false).map_err(ClientError::Silent)?;
    stream.set_write_timeout(Some(ANSWER_WITHIN)).map_err(ClientError::Silent)?;
    let mut link = Link { stream, reader: FrameReader::default(), has_lent_terminal: false };
    let terminal = terminal.map(|terminal| {
        let (columns, lines) = terminal.size();
        TerminalFacts {
            columns,
            lines,
            colours: settings.colours,
            is_ascii: settings.is_ascii,
            has_mouse: settings.has_mouse,
            surface: settings.surface.clone(),
        }
    });
    let hello = Hello {
        version: VERSION,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        terminal,
        environment: settings.environment.clone(),
        directory: settings.directory.clone(),
    };
    link.send_with(&Frame::json(FrameKind::Hello, &hello), descriptor.as_ref().map(AsFd::as_fd))
        .map_err(ClientError::Silent)?;
    let welcome: Welcome =
        link.wait_for(FrameKind::Welcome).and_then(|frame| frame.read()).map_err(ClientError::Silent)?;
    link.has_lent_terminal = welcome.takes_terminal;
    Ok((link, welcome))
}

/// Waits until a server that ends has let go of its socket.
fn wait_until_gone(places: &Places) {
    let (end, socket) = (Instant::now() + COMES_BACK_WITHIN, places.server());
    while Instant::now() < end && connect_at_once(&socket).is_ok() {
        thread::sleep(POLL_INTERVAL);
    }
}

/// Waits until another server has taken over. The program that asked for that starts it; if none comes, this one does.
fn wait_for_next(places: &Places) {
    wait_until_gone(places);
    let (end, socket) = (Instant::now() + NEXT_WITHIN, places.server());
    while Instant::now() < end && connect_at_once(&socket).is_err() {
        thread::sleep(POLL_INTERVAL);
    }
}

/// Why panes are no longer shown.
enum Left {
    For {
        bye: Bye,
    },
    /// The server ended without a word.
    Server,
    /// The terminal is gone, or the process is to end.
    Terminal,
}

fn is_readable_now(stream: &UnixStream) -> bool {
    poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Signals, as something to poll.
struct Watch {
    size_changes: UnixStream,
    ends: UnixStream,
}

impl Watch {
    fn new() -> io::Result<Self> {
        let (size_changes, write) = wake_pair()?;
        pipe::register(SIGWINCH, write)?;
        let (ends, write) = wake_pair()?;
        pipe::register(SIGHUP, write.try_clone()?)?;
        pipe::register(SIGTERM, write)?;
        Ok(Self { size_changes, ends })
    }
}

/// Shows panes until something ends that. The terminal is with this program alone then.
fn show(
    mut link: Link,
    watch: &Watch,
    terminal: &mut RawTerminal,
    surroundings: &dyn Surroundings,
) -> Result<Left, ClientError> {
    let left = show_frames(&mut link, watch, terminal, surroundings);
    if link.has_lent_terminal && matches!(left, Ok(Left::Terminal) | Err(_)) {
        link.take_back_terminal();
    }
    left
}

fn show_frames(
    link: &mut Link,
    watch: &Watch,
    terminal: &mut RawTerminal,
    surroundings: &dyn Surroundings,
) -> Result<Left, ClientError> {
    if link.has_lent_terminal {
        terminal.enter();
    }
    let typed_flags = if link.has_lent_terminal { PollFlags::empty() } else { PollFlags::IN };
    loop {
        while let Some(frame) = link.reader.next().map_err(ClientError::Silent)? {
            match frame.kind {
                FrameKind::Output if terminal.write(&frame.body).is_err() => return Ok(Left::Terminal),
                FrameKind::Inbox => {
                    terminal.lend(|| surroundings.show_inbox()).map_err(ClientError::Terminal)?;
                    if is_readable_now(&watch.ends) {
                        return Ok(Left::Terminal);
                    }
                    let size = Frame::json(FrameKind::Resize, &terminal.size());
                    let sent =
                        link.send(&size).and_then(|()| link.send(&Frame::new(FrameKind::InboxLeft, [])));
                    if sent.is_err() {
                        return Ok(Left::Server);
                    }
                }
                FrameKind::Bye => return Ok(Left::For { bye: frame.read().unwrap_or_default() }),
                _ => {}
            }
        }
        let input = stdin();
        let mut fds = [
            PollFd::new(&input, typed_flags),
            PollFd::new(&link.stream, PollFlags::IN),
            PollFd::new(&watch.size_changes, PollFlags::IN),
            PollFd::new(&watch.ends, PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(ClientError::Terminal(error.into())),
        }
        let [typed, said, resized, ends] =
            fds.map(|fd| fd.revents().intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR));
        if ends {
            return Ok(Left::Terminal);
        }
        if resized {
            clear_wakes(&watch.size_changes);
            if link.send(&Frame::json(FrameKind::Resize, &terminal.size())).is_err() {
                return Ok(Left::Server);
            }
        }
        if typed && link.has_lent_terminal {
            return Ok(Left::Terminal);
        }
        if typed {
            let mut room = [0; 16 * 1024];
            match rustix::io::read(&input, &mut room) {
                Ok(0) | Err(Errno::IO) => return Ok(Left::Terminal),
                Ok(read) => {
                    if link.send(&Frame::new(FrameKind::Input, &room[..read])).is_err() {
                        return Ok(Left::Server);
                    }
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(ClientError::Terminal(error.into())),
            }
        }
        if said && !link.read().unwrap_or(false) {
            return Ok(Left::Server);
        }
    }
}
