//! A client, which lends its terminal to the server and knows nothing of panes.

#[cfg(test)]
mod tests;

use std::io::{self, Read, Write, stdin};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use ringer_platform::{clear_wakes, owned, stop_this_process, wake_pair};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use serde_json::Value;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::low_level::pipe;

use crate::descriptor_socket;
use crate::outer_terminal::{LEAVE, RawTerminal, usual_size};
use crate::paths::PanePaths;
use crate::protocol::{
    Answer, Bye, Frame, FrameKind, FrameReader, Hello, MAX_FRAME, Request, TerminalFacts, VERSION, Welcome,
};
use crate::server_version::{RunningServer, is_newer};

/// Time for an old server to exit after it was told to hand over.
const COMES_BACK_WITHIN: Duration = Duration::from_secs(10);
/// Time for the program that takes over to start the next server.
const NEXT_WITHIN: Duration = Duration::from_secs(1);
/// Time for a server that was started to accept connections.
const STARTS_WITHIN: Duration = Duration::from_secs(10);
/// A server that ends sooner counts as a crash. After `MAX_LOSSES` crashes in a row, no other one is started.
const CRASHES_WITHIN: Duration = Duration::from_secs(5);
const MAX_LOSSES: u32 = 3;
/// Timeout for an answer of the server.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Timeout for the server to stop using a terminal.
const GIVES_BACK_WITHIN: Duration = Duration::from_millis(500);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The properties of a client's terminal and environment.
#[derive(Debug, Clone, Default)]
pub struct ClientSettings {
    /// The number of colours of the terminal: 0, 16, 256 or more.
    pub colours: u32,
    /// Draw with ASCII characters only.
    pub is_ascii: bool,
    /// The server handles clicks and the wheel.
    pub has_mouse: bool,
    /// The surface of the terminal.
    pub surface: Option<String>,
    /// The environment for new panes.
    pub environment: Vec<(String, String)>,
    /// The working directory for new panes.
    pub directory: PathBuf,
}

/// The window of a client.
struct Window {
    terminal: RawTerminal,
    /// The view that the server last reported, for the next server if this one is killed.
    shown: Option<Value>,
}

/// Functions that the program around a client provides.
pub trait Surroundings {
    /// Starts a server that outlives the client, and returns once it accepts connections. Does nothing while another one starts
    /// or ends.
    fn start_server(&self) -> Result<(), String>;

    /// Shows the inbox, which has exclusive use of the terminal meanwhile.
    fn show_inbox(&self) -> io::Result<()>;
}

/// Shows panes in this process's terminal until the person leaves. Returns a message to print afterwards.
pub fn attach(
    paths: &PanePaths,
    settings: &ClientSettings,
    surroundings: &dyn Surroundings,
) -> Result<Option<String>, ClientError> {
    let terminal = RawTerminal::take(usual_size(&settings.environment)).map_err(ClientError::Terminal)?;
    let mut window = Window { terminal, shown: None };
    let watch = Watch::new().map_err(ClientError::Terminal)?;
    take_over(paths, settings)?;
    let mut losses = 0;
    loop {
        // In the background, this stops the process (SIGTTOU) until it is in the foreground again.
        window.terminal.make_raw().map_err(ClientError::Terminal)?;
        let link = connect_or_start(paths, settings, Some(&window), surroundings)?;
        let begun = Instant::now();
        match show(link, &watch, &mut window, surroundings)? {
            Exit::Bye(bye) if bye.comes_back => wait_for_next(paths),
            Exit::Bye(bye) => return Ok(bye.why),
            // The server crashed or was killed. The programs go on running, and the next server shows them.
            Exit::ServerEnd => losses = if begun.elapsed() < CRASHES_WITHIN { losses + 1 } else { 1 },
            Exit::AfterStop => {}
            Exit::Terminal => return Ok(None),
            Exit::Stopped => {
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
        // The next server expects a terminal in the state in which a program finds it.
        window.terminal.write(LEAVE.as_bytes()).map_err(ClientError::Terminal)?;
    }
}

/// Sends a request to the server. If none is running, one is started if `surroundings` is given.
pub fn request(
    paths: &PanePaths,
    settings: &ClientSettings,
    request: &Request,
    surroundings: Option<&dyn Surroundings>,
) -> Result<Answer, ClientError> {
    let frame = Frame::json(FrameKind::Request, request);
    if frame.body.len() > MAX_FRAME {
        return Err(ClientError::TooLong(frame.body.len()));
    }
    let mut link = match surroundings {
        Some(surroundings) => connect_or_start(paths, settings, None, surroundings)?,
        None => own_version(connect(paths, settings, None)?)?,
    };
    match link.ask(&frame).map_err(ClientError::Silent)? {
        Answer::Failed { why } => Err(ClientError::Refused(why)),
        Answer::Busy { why } => Err(ClientError::Busy(why)),
        answer => Ok(answer),
    }
}

/// Queries the running server, and never starts one.
pub fn running_server(paths: &PanePaths, settings: &ClientSettings) -> Result<RunningServer, ClientError> {
    let (mut link, welcome) = connect(paths, settings, None)?;
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
    paths: &PanePaths,
    settings: &ClientSettings,
    window: Option<&Window>,
    surroundings: &dyn Surroundings,
) -> Result<Link, ClientError> {
    connect_until(Instant::now() + STARTS_WITHIN, paths, settings, window, surroundings)
}

fn connect_until(
    end: Instant,
    paths: &PanePaths,
    settings: &ClientSettings,
    window: Option<&Window>,
    surroundings: &dyn Surroundings,
) -> Result<Link, ClientError> {
    loop {
        match connect(paths, settings, window) {
            Err(ClientError::NoServer) if Instant::now() < end => {}
            // Another process holds the lock of the server, and hangs.
            Err(ClientError::NoServer) => {
                return Err(ClientError::CannotStart("another one starts, and is not ready yet".to_owned()));
            }
            // The server exited before it answered.
            Err(ClientError::Silent(error)) if is_gone(&error) && Instant::now() < end => {}
            connected => return own_version(connected?),
        }
        // `start_server` does nothing while another server starts or ends, so it may have to be called again.
        surroundings.start_server().map_err(ClientError::CannotStart)?;
        if owned::connect(&paths.server()).is_err() {
            thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Replaces a server of an older program. Only a client that was just started does this: running windows of two programs would
/// replace each other's servers for ever.
fn take_over(paths: &PanePaths, settings: &ClientSettings) -> Result<(), ClientError> {
    match connect(paths, settings, None) {
        Ok((mut link, welcome)) if is_newer(env!("CARGO_PKG_VERSION"), &welcome.program) => {
            link.send(&Frame::json(FrameKind::Request, &Request::Replace)).map_err(ClientError::Silent)?;
            drop(link);
            wait_until_gone(paths);
            Ok(())
        }
        Ok(_) | Err(ClientError::NoServer) => Ok(()),
        Err(ClientError::Silent(error)) if is_gone(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns true if the error means that the peer closed the connection.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

/// Returns the connection if the server speaks the same version of the protocol.
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
    paths: &PanePaths,
    settings: &ClientSettings,
    window: Option<&Window>,
) -> Result<(Link, Welcome), ClientError> {
    let stream = owned::connect(&paths.server()).map_err(|error| match error.kind() {
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

/// Waits until an exiting server has closed its socket.
fn wait_until_gone(paths: &PanePaths) {
    let (end, socket) = (Instant::now() + COMES_BACK_WITHIN, paths.server());
    while Instant::now() < end && owned::connect(&socket).is_ok() {
        thread::sleep(POLL_INTERVAL);
    }
}

/// Waits for the next server. The program that asked for the replacement starts it; if none appears, this client does.
fn wait_for_next(paths: &PanePaths) {
    wait_until_gone(paths);
    let (end, socket) = (Instant::now() + NEXT_WITHIN, paths.server());
    while Instant::now() < end && owned::connect(&socket).is_err() {
        thread::sleep(POLL_INTERVAL);
    }
}

/// The reason panes are no longer shown.
enum Exit {
    Bye(Bye),
    /// The server ended without a [`Bye`].
    ServerEnd,
    /// The connection ended after this process was stopped: the server closes it when another program has the terminal.
    AfterStop,
    /// The terminal is gone, or the process was told to terminate (SIGHUP, SIGTERM).
    Terminal,
    /// The process was told to stop (SIGTSTP).
    Stopped,
}

/// Shows panes until something ends that. Afterwards only this process uses the terminal.
fn show(
    mut link: Link,
    watch: &Watch,
    window: &mut Window,
    surroundings: &dyn Surroundings,
) -> Result<Exit, ClientError> {
    let mut was_stopped = false;
    let mut exit = show_frames(&mut link, watch, window, surroundings, &mut was_stopped);
    if was_stopped && matches!(exit, Ok(Exit::ServerEnd)) {
        exit = Ok(Exit::AfterStop);
    }
    if link.has_lent_terminal && matches!(exit, Ok(Exit::Terminal | Exit::Stopped) | Err(_)) {
        link.take_back_terminal();
    }
    exit
}

/// Tells the server that another program had the terminal, and its current size. The server draws everything again.
fn send_terminal_again(link: &mut Link, terminal: &RawTerminal) -> io::Result<()> {
    link.send(&Frame::json(FrameKind::Resize, &terminal.size()))?;
    link.send(&Frame::new(FrameKind::TerminalBack, []))
}

/// Sends a frame. Returns false if the server does not read. If the server has closed the connection, this returns true: its last
/// frames are read first.
fn is_sent(link: &mut Link, frame: &Frame) -> bool {
    link.send(frame).err().is_none_or(|error| is_gone(&error))
}

fn show_frames(
    link: &mut Link,
    watch: &Watch,
    Window { terminal, shown }: &mut Window,
    surroundings: &dyn Surroundings,
    was_stopped: &mut bool,
) -> Result<Exit, ClientError> {
    if link.has_lent_terminal {
        terminal.enter();
    }
    let typed_flags = if link.has_lent_terminal { PollFlags::empty() } else { PollFlags::IN };
    loop {
        while let Some(frame) = link.reader.next().map_err(ClientError::Silent)? {
            match frame.kind {
                FrameKind::Output if terminal.write(&frame.body).is_err() => return Ok(Exit::Terminal),
                FrameKind::Inbox => {
                    terminal.lend(|| surroundings.show_inbox()).map_err(ClientError::Terminal)?;
                    // A SIGTSTP during the inbox was meant for the inbox.
                    clear_wakes(&watch.stops);
                    if watch.is_over() {
                        return Ok(Exit::Terminal);
                    }
                    if send_terminal_again(link, terminal).is_err() {
                        return Ok(Exit::ServerEnd);
                    }
                }
                FrameKind::View => *shown = frame.read().ok(),
                FrameKind::Bye => return Ok(Exit::Bye(frame.read().unwrap_or_default())),
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
        let [typed, answered, resized, ends, stops, continued] =
            fds.map(|fd| fd.revents().intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR));
        if ends {
            return Ok(Exit::Terminal);
        }
        if stops {
            clear_wakes(&watch.stops);
            return Ok(Exit::Stopped);
        }
        if continued {
            clear_wakes(&watch.continued);
            *was_stopped = true;
            terminal.make_raw().map_err(ClientError::Terminal)?;
            // If the server has closed the connection, its last frames may say why, and are read first.
            let _ = send_terminal_again(link, terminal);
        }
        if resized {
            clear_wakes(&watch.size_changes);
            if !is_sent(link, &Frame::json(FrameKind::Resize, &terminal.size())) {
                return Ok(Exit::ServerEnd);
            }
        }
        if typed && link.has_lent_terminal {
            return Ok(Exit::Terminal);
        }
        if typed {
            let mut room = [0; 16 * 1024];
            match rustix::io::read(&input, &mut room) {
                Ok(0) | Err(Errno::IO) => return Ok(Exit::Terminal),
                Ok(read) => {
                    if !is_sent(link, &Frame::new(FrameKind::Input, &room[..read])) {
                        return Ok(Exit::ServerEnd);
                    }
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(ClientError::Terminal(error.into())),
            }
        }
        if answered && !link.read().unwrap_or(false) {
            return Ok(Exit::ServerEnd);
        }
    }
}

/// Streams that become readable when a signal has arrived.
struct Watch {
    size_changes: UnixStream,
    ends: UnixStream,
    /// SIGTSTP. The process stops itself after it has reset the terminal.
    stops: UnixStream,
    /// SIGCONT.
    continued: UnixStream,
}

impl Watch {
    fn new() -> io::Result<Self> {
        let (ends, write) = wake_pair()?;
        pipe::register(SIGHUP, write.try_clone()?)?;
        pipe::register(SIGTERM, write)?;
        Ok(Self { size_changes: on(SIGWINCH)?, ends, stops: on(SIGTSTP)?, continued: on(SIGCONT)? })
    }

    /// Returns true if SIGHUP or SIGTERM has arrived.
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

/// The reason a command for panes failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No server is running, and none was to be started.
    #[error("no panes are open")]
    NoServer,
    /// The server could not be started.
    #[error("the server of panes cannot start: {0}")]
    CannotStart(String),
    /// The server does not answer, or its answer is not valid.
    #[error("the server of panes does not answer: {0}")]
    Silent(io::Error),
    /// The server speaks a newer version of the protocol.
    #[error("the server of panes is version {server}, which is newer than this program, version {own}")]
    NewerServer {
        /// The version of the server's program.
        server: String,
        /// The version of this program.
        own: &'static str,
    },
    /// The server speaks another version of the protocol.
    #[error("the server of panes is version {server}, this program is version {own}")]
    OtherVersion {
        /// The version of the server's program.
        server: String,
        /// The version of this program.
        own: &'static str,
    },
    /// The server refuses the request.
    #[error("{0}")]
    Refused(String),
    /// The server cannot do it now.
    #[error("{0}")]
    Busy(String),
    /// The request is longer than a frame may be.
    #[error("that is too long: {0} bytes, and at most {MAX_FRAME} can be sent at once")]
    TooLong(usize),
    /// The terminal cannot be used.
    #[error("the terminal cannot be used: {0}")]
    Terminal(#[source] io::Error),
}

/// The connection to the server.
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

    /// Sends a frame. The descriptor goes with its first byte.
    fn send_with(&mut self, frame: &Frame, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut bytes = Vec::new();
        frame.write(&mut bytes);
        let sent = retry_on_intr(|| descriptor_socket::send(&self.stream, &bytes, descriptor))?;
        self.stream.write_all(&bytes[sent..])
    }

    /// Sends a request and waits for the answer.
    fn ask(&mut self, request: &Frame) -> io::Result<Answer> {
        self.send(request)?;
        self.wait_for(FrameKind::Answer)?.read()
    }

    /// Waits until the server no longer uses the terminal, which it signals by closing the connection.
    fn take_back_terminal(&mut self) {
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
