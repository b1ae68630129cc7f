//! A client: it lends its terminal to the server, and knows nothing of panes.

mod link;

use std::io::{self, stdin};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use ringer_platform::{clear_wakes, owned, stop_this_process, wake_pair};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde_json::Value;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::low_level::pipe;

use self::link::{ANSWER_WITHIN, Link};
use crate::address::Places;
use crate::inspection::{RunningServer, is_newer};
use crate::outer_modes::LEAVE;
use crate::protocol::{
    Answer, Bye, Frame, FrameKind, FrameReader, Hello, MAX_FRAME, Request, TerminalFacts, VERSION, Welcome,
};
use crate::raw_terminal::{RawTerminal, usual_size};

/// How long a server that takes over may need.
const COMES_BACK_WITHIN: Duration = Duration::from_secs(10);
/// How long the next one may take to be started by the program that takes over.
const NEXT_WITHIN: Duration = Duration::from_secs(1);
/// How long it may take until a server is there that was started.
const STARTS_WITHIN: Duration = Duration::from_secs(10);
/// A server that ends sooner has crashed at once. After some of those in a row, no other is started.
const CRASHES_WITHIN: Duration = Duration::from_secs(5);
const MAX_LOSSES: u32 = 3;
const POLL_INTERVAL: Duration = Duration::from_millis(20);

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

/// The window of a client.
struct Window {
    terminal: RawTerminal,
    /// What it shows, as the server said it: for the next one, if this one is killed.
    shown: Option<Value>,
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
    let terminal = RawTerminal::take(usual_size(&settings.environment)).map_err(ClientError::Terminal)?;
    let mut window = Window { terminal, shown: None };
    let watch = Watch::new().map_err(ClientError::Terminal)?;
    take_over(places, settings)?;
    let mut losses = 0;
    loop {
        // In the background, this stops the process until it has its terminal again.
        window.terminal.make_raw().map_err(ClientError::Terminal)?;
        let link = connect_or_start(places, settings, Some(&window), surroundings)?;
        let begun = Instant::now();
        match show(link, &watch, &mut window, surroundings)? {
            Left::For { bye } if bye.comes_back => wait_for_next(places),
            Left::For { bye } => return Ok(bye.why),
            // It crashed, or was killed. The programs run on, and the next one shows them.
            Left::Server => losses = if begun.elapsed() < CRASHES_WITHIN { losses + 1 } else { 1 },
            Left::AfterStop => {}
            Left::Terminal => return Ok(None),
            Left::Stopped => {
                window.terminal.lend(stop_this_process).map_err(ClientError::Terminal)?;
                clear_wakes(&watch.continued);
                continue;
            }
        }
        if losses > MAX_LOSSES {
            return Ok(Some(
                "the server of panes ends again and again; what runs in panes goes on. To see why: ringer doctor"
                    .to_owned(),
            ));
        }
        // The next server takes the terminal over as a program finds it.
        window.terminal.write(LEAVE.as_bytes()).map_err(ClientError::Terminal)?;
    }
}

/// Asks the server for something. Without a server there is one started, if that is wanted.
pub fn request(
    places: &Places,
    settings: &ClientSettings,
    request: &Request,
    surroundings: Option<&dyn Surroundings>,
) -> Result<Answer, ClientError> {
    let frame = Frame::json(FrameKind::Request, request);
    if frame.body.len() > MAX_FRAME {
        return Err(ClientError::TooLong(frame.body.len()));
    }
    let mut link = match surroundings {
        Some(surroundings) => connect_or_start(places, settings, None, surroundings)?,
        None => own_version(connect(places, settings, None)?)?,
    };
    match link.ask(&frame).map_err(ClientError::Silent)? {
        Answer::Failed { why } => Err(ClientError::Refused(why)),
        Answer::Busy { why } => Err(ClientError::Busy(why)),
        answer => Ok(answer),
    }
}

/// The server that runs. None is started.
pub fn running_server(places: &Places, settings: &ClientSettings) -> Result<RunningServer, ClientError> {
    let (mut link, welcome) = connect(places, settings, None)?;
    let panes = if welcome.version == VERSION {
        let answer =
            link.ask(&Frame::json(FrameKind::Request, &Request::List)).map_err(ClientError::Silent)?;
        if let Answer::Panes(panes) = answer { Some(panes.len()) } else { None }
    } else {
        None
    };
    Ok(RunningServer::new(welcome.program, panes))
}

fn connect_or_start(
    places: &Places,
    settings: &ClientSettings,
    window: Option<&Window>,
    surroundings: &dyn Surroundings,
) -> Result<Link, ClientError> {
    connect_until(Instant::now() + STARTS_WITHIN, places, settings, window, surroundings)
}

fn connect_until(
    end: Instant,
    places: &Places,
    settings: &ClientSettings,
    window: Option<&Window>,
    surroundings: &dyn Surroundings,
) -> Result<Link, ClientError> {
    loop {
        match connect(places, settings, window) {
            Err(ClientError::NoServer) if Instant::now() < end => {}
            // Another process is the server, or becomes it, and hangs.
            Err(ClientError::NoServer) => {
                return Err(ClientError::CannotStart("another one starts, and is not ready yet".to_owned()));
            }
            // It was there, and ended before it answered.
            Err(ClientError::Silent(error)) if is_gone(&error) && Instant::now() < end => {}
            connected => return own_version(connected?),
        }
        // It does nothing while another one starts or ends, so this may have to be done again.
        surroundings.start_server().map_err(ClientError::CannotStart)?;
        if owned::connect(&places.server()).is_err() {
            thread::sleep(POLL_INTERVAL);
        }
    }
}

/// A server of an older program hands what it has over to the next one. Only the program that comes anew asks for that: windows
/// of two programs would take over from each other for ever.
fn take_over(places: &Places, settings: &ClientSettings) -> Result<(), ClientError> {
    match connect(places, settings, None) {
        Ok((mut link, welcome)) if is_newer(env!("CARGO_PKG_VERSION"), &welcome.program) => {
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
    let (server, own) = (welcome.program, env!("CARGO_PKG_VERSION"));
    Err(if is_newer(&server, own) {
        ClientError::NewerServer { server, own }
    } else {
        ClientError::OtherVersion { server, own }
    })
}

fn connect(
    places: &Places,
    settings: &ClientSettings,
    window: Option<&Window>,
) -> Result<(Link, Welcome), ClientError> {
    let stream = owned::connect(&places.server()).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => ClientError::Silent(error),
        _ => ClientError::NoServer,
    })?;
    let descriptor = window.and_then(|window| window.terminal.for_server());
    stream.set_nonblocking(false).map_err(ClientError::Silent)?;
    stream.set_write_timeout(Some(ANSWER_WITHIN)).map_err(ClientError::Silent)?;
    let mut link = Link { stream, reader: FrameReader::default(), has_lent_terminal: false };
    let terminal = window.map(|Window { terminal, shown }| {
        let (columns, lines) = terminal.size();
        TerminalFacts {
            columns,
            lines,
            colours: settings.colours,
            is_ascii: settings.is_ascii,
            has_mouse: settings.has_mouse,
            surface: settings.surface.clone(),
            line_settings: Some(terminal.line_settings()),
            shown: shown.clone(),
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
    while Instant::now() < end && owned::connect(&socket).is_ok() {
        thread::sleep(POLL_INTERVAL);
    }
}

/// Waits until another server has taken over. The program that asked for that starts it; if none comes, this one does.
fn wait_for_next(places: &Places) {
    wait_until_gone(places);
    let (end, socket) = (Instant::now() + NEXT_WITHIN, places.server());
    while Instant::now() < end && owned::connect(&socket).is_err() {
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
    /// The connection ended after this process was stopped: the server does not use a terminal that another program has meanwhile.
    AfterStop,
    /// The terminal is gone, or the process is to end.
    Terminal,
    /// The process is to stop, until it is told to go on.
    Stopped,
}

/// Shows panes until something ends that. The terminal is with this program alone then.
fn show(
    mut link: Link,
    watch: &Watch,
    window: &mut Window,
    surroundings: &dyn Surroundings,
) -> Result<Left, ClientError> {
    let mut was_stopped = false;
    let mut left = show_frames(&mut link, watch, window, surroundings, &mut was_stopped);
    if was_stopped && matches!(left, Ok(Left::Server)) {
        left = Ok(Left::AfterStop);
    }
    if link.has_lent_terminal && matches!(left, Ok(Left::Terminal | Left::Stopped) | Err(_)) {
        link.take_back_terminal();
    }
    left
}

/// Tells the server that another program had the terminal, and what its size is now. Everything is drawn again.
fn send_terminal_again(link: &mut Link, terminal: &RawTerminal) -> io::Result<()> {
    link.send(&Frame::json(FrameKind::Resize, &terminal.size()))?;
    link.send(&Frame::new(FrameKind::TerminalBack, []))
}

/// Sends a frame. `false` if the server does not read. One that has gone may have said something, which is read first.
fn is_sent(link: &mut Link, frame: &Frame) -> bool {
    link.send(frame).err().is_none_or(|error| is_gone(&error))
}

fn show_frames(
    link: &mut Link,
    watch: &Watch,
    Window { terminal, shown }: &mut Window,
    surroundings: &dyn Surroundings,
    was_stopped: &mut bool,
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
                    // What was to stop is over.
                    clear_wakes(&watch.stops);
                    if watch.is_over() {
                        return Ok(Left::Terminal);
                    }
                    if send_terminal_again(link, terminal).is_err() {
                        return Ok(Left::Server);
                    }
                }
                FrameKind::Shown => *shown = frame.read().ok(),
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
            PollFd::new(&watch.stops, PollFlags::IN),
            PollFd::new(&watch.continued, PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(ClientError::Terminal(error.into())),
        }
        let [typed, said, resized, ends, stops, continued] =
            fds.map(|fd| fd.revents().intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR));
        if ends {
            return Ok(Left::Terminal);
        }
        if stops {
            clear_wakes(&watch.stops);
            return Ok(Left::Stopped);
        }
        if continued {
            clear_wakes(&watch.continued);
            *was_stopped = true;
            terminal.make_raw().map_err(ClientError::Terminal)?;
            // A server that has gone may have said why; that is read first.
            let _ = send_terminal_again(link, terminal);
        }
        if resized {
            clear_wakes(&watch.size_changes);
            if !is_sent(link, &Frame::json(FrameKind::Resize, &terminal.size())) {
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
                    if !is_sent(link, &Frame::new(FrameKind::Input, &room[..read])) {
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

/// Each becomes readable when its signal has come.
struct Watch {
    size_changes: UnixStream,
    ends: UnixStream,
    /// The process is to stop, and stops itself once it has given its terminal back.
    stops: UnixStream,
    /// It was stopped, and goes on.
    continued: UnixStream,
}

impl Watch {
    fn new() -> io::Result<Self> {
        let (ends, write) = wake_pair()?;
        pipe::register(SIGHUP, write.try_clone()?)?;
        pipe::register(SIGTERM, write)?;
        Ok(Self { size_changes: on(SIGWINCH)?, ends, stops: on(SIGTSTP)?, continued: on(SIGCONT)? })
    }

    /// Whether the process is to end.
    fn is_over(&self) -> bool {
        let mut fds = [PollFd::new(&self.ends, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }
}

fn on(signal: i32) -> io::Result<UnixStream> {
    let (read, write) = wake_pair()?;
    pipe::register(signal, write)?;
    Ok(read)
}

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
    /// It speaks a version of the protocol that this program does not know yet.
    #[error("the server of panes is version {server}, which is newer than this program, version {own}")]
    NewerServer {
        /// The server's program.
        server: String,
        /// This program.
        own: &'static str,
    },
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
    /// It cannot do it now.
    #[error("{0}")]
    Busy(String),
    /// The request is longer than the server takes.
    #[error("that is too long: {0} bytes, and at most {MAX_FRAME} can be sent at once")]
    TooLong(usize),
    /// The terminal cannot be used.
    #[error("the terminal cannot be used: {0}")]
    Terminal(#[source] io::Error),
}

#[cfg(test)]
mod tests;
