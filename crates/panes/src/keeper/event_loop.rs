//! The event loop of the keeper.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use ringer_platform::{FIRST_FRAME_WITHIN, clear_wakes, peer_uid, wake_pair};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2,
};
use signal_hook::{flag, low_level};

use super::connection::{KeeperConnection, ServerConnection};
use super::kept_panes::KeptPanes;
use super::wire::{Hello, VERSION, Welcome};

/// The most connections that have not sent their first line. One more closes the oldest.
const WAITING_LIMIT: usize = 8;
/// The most connections that are accepted before the existing ones are read. It is less than [`WAITING_LIMIT`], so that a
/// connection that has sent its line is read before new ones could replace it.
const ACCEPTED_AT_ONCE: usize = 4;
/// The most bytes that are queued for one of them: a few answers to other versions.
const ANSWER_LIMIT: usize = 4096;
/// How long the keeper runs without a pane and a connection: long enough for the server that started it to connect.
const IDLE_END: Duration = Duration::from_secs(5);
/// How long to wait if `accept` fails, for example because too many files are open.
const ACCEPT_WAIT: Duration = Duration::from_secs(1);

/// Keeps panes for the servers that connect, one at a time, until there has been neither a pane nor a connection for 5 s.
///
/// It installs signal handlers for the process, and does not remove the file of the socket.
pub fn serve(listener: UnixListener) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let mut keeper = Keeper {
        listener,
        accepts_from: Instant::now(),
        signals: KeeperSignals::new()?,
        panes: KeptPanes::default(),
        server: None,
        waiting: Vec::new(),
        used: Instant::now(),
    };
    while !keeper.is_over(Instant::now()) {
        keeper.advance()?;
    }
    Ok(())
}

struct Keeper {
    listener: UnixListener,
    /// No connection is accepted before this time.
    accepts_from: Instant,
    signals: KeeperSignals,
    panes: KeptPanes,
    server: Option<ServerConnection>,
    /// Connections that have not sent their first line, oldest first.
    waiting: Vec<WaitingConnection>,
    /// When there was last a pane or a connection.
    used: Instant,
}

struct WaitingConnection {
    connection: KeeperConnection,
    until: Instant,
}

/// The result of a poll.
#[derive(Debug, Default)]
struct KeeperReady {
    children: bool,
    listener: bool,
    panes: Vec<usize>,
}

impl Keeper {
    fn is_over(&mut self, now: Instant) -> bool {
        if self.panes.len() > 0 || self.server.is_some() || !self.waiting.is_empty() {
            self.used = now;
        }
        now.duration_since(self.used) >= IDLE_END
    }

    fn advance(&mut self) -> io::Result<()> {
        let ready = self.wait()?;
        let now = Instant::now();
        if ready.children {
            self.signals.clear_wakes();
            self.panes.note_endings();
        }
        // Before the connections: an index stays valid until a server starts or forgets a pane.
        for index in ready.panes {
            self.panes.drain(index, now);
        }
        self.serve_server();
        self.serve_waiting(now);
        if ready.listener {
            self.accept(now);
        }
        Ok(())
    }

    fn wait(&self) -> io::Result<KeeperReady> {
        let now = Instant::now();
        let mut descriptors = vec![PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)];
        let listener_events = if now >= self.accepts_from { PollFlags::IN } else { PollFlags::empty() };
        descriptors.push(PollFd::new(&self.listener, listener_events));
        let panes: Vec<_> = match self.server {
            Some(_) => Vec::new(),
            None => self.panes.readable(now).collect(),
        };
        for (_, master) in &panes {
            descriptors.push(PollFd::from_borrowed_fd(*master, PollFlags::IN));
        }
        if let Some(server) = &self.server {
            descriptors.push(PollFd::from_borrowed_fd(server.as_fd(), server.events()));
        }
        for WaitingConnection { connection, .. } in &self.waiting {
            let events = PollFlags::IN | connection.output_events();
            descriptors.push(PollFd::from_borrowed_fd(connection.as_fd(), events));
        }
        let timeout = self.next_time(now).map(|then| then.saturating_duration_since(now));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(KeeperReady::default()),
            Err(error) => return Err(error.into()),
        }
        let mut found = descriptors.iter().map(|descriptor| !descriptor.revents().is_empty());
        let (children, listener) = (found.next().unwrap_or(false), found.next().unwrap_or(false));
        // A PTY that a process has opened again, but not written to yet, is not readable.
        let panes =
            panes.iter().zip(found).filter(|((index, _), is_ready)| *is_ready || self.panes.is_due(*index));
        Ok(KeeperReady { children, listener, panes: panes.map(|((index, _), _)| *index).collect() })
    }

    /// The time of the next timer.
    fn next_time(&self, now: Instant) -> Option<Instant> {
        let is_unused = self.panes.len() == 0 && self.server.is_none() && self.waiting.is_empty();
        let times = [
            is_unused.then(|| self.used + IDLE_END),
            self.waiting.iter().map(|waiting| waiting.until).min(),
            (self.accepts_from > now).then_some(self.accepts_from),
            self.server.is_none().then(|| self.panes.next_look()).flatten(),
        ];
        times.into_iter().flatten().min()
    }

    fn serve_server(&mut self) {
        let Some(server) = &mut self.server else { return };
        if server.advance(&mut self.panes).is_err() {
            self.server = None;
            self.panes.begin_draining();
        }
    }

    /// Reads the first lines of new connections. One with this version becomes the server.
    fn serve_waiting(&mut self, now: Instant) {
        for mut waiting in std::mem::take(&mut self.waiting) {
            match greet(&mut waiting.connection, self.panes.len()) {
                Ok(true) => {
                    // This drops, and so disconnects, the previous server.
                    self.server = ServerConnection::welcome(waiting.connection, &self.panes).ok();
                    self.serve_server();
                }
                Ok(false) if waiting.until > now => self.waiting.push(waiting),
                Ok(false) | Err(_) => {}
            }
        }
    }

    fn accept(&mut self, now: Instant) {
        for _ in 0..ACCEPTED_AT_ONCE {
            match self.listener.accept() {
                Ok((stream, _)) => self.take(stream, now),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted
                    ) => {}
                Err(_) => {
                    self.accepts_from = now + ACCEPT_WAIT;
                    return;
                }
            }
        }
    }

    /// Adds a connection. One of another user is closed at once.
    fn take(&mut self, stream: UnixStream, now: Instant) {
        let own = rustix::process::geteuid().as_raw();
        if !peer_uid(&stream).is_ok_and(|uid| uid == own) {
            return;
        }
        let Ok(connection) = KeeperConnection::new(stream) else { return };
        if self.waiting.len() >= WAITING_LIMIT {
            self.waiting.remove(0);
        }
        self.waiting.push(WaitingConnection { connection, until: now + FIRST_FRAME_WITHIN });
    }
}

/// Returns true if a connection has sent a first line with this version. For another version, it answers with this one, and the
/// server may then continue with it.
fn greet(connection: &mut KeeperConnection, panes: usize) -> io::Result<bool> {
    connection.receive()?;
    while let Some(line) = connection.next_line()? {
        let Hello { version } = serde_json::from_slice(&line)?;
        if version == VERSION {
            return Ok(true);
        }
        connection.push_line(&Welcome { version: VERSION, panes }, None)?;
        if connection.waiting() > ANSWER_LIMIT {
            return Err(io::Error::other("the connection asks for version after version"));
        }
    }
    connection.send()?;
    Ok(false)
}

/// Signals that have no effect. They are caught and not ignored: an ignored signal is also ignored in programs that are started,
/// even if the keeper inherited that (from `nohup`, or as a background job of a shell), and a caught one has its default there.
const WITHOUT_EFFECT: [i32; 10] =
    [SIGALRM, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2];

/// Reports changes of children.
#[derive(Debug)]
pub(super) struct KeeperSignals {
    wakes: UnixStream,
}

impl KeeperSignals {
    pub(super) fn new() -> io::Result<Self> {
        let (wakes, write) = wake_pair()?;
        low_level::pipe::register(SIGCHLD, write)?;
        for signal in WITHOUT_EFFECT {
            flag::register(signal, Arc::new(AtomicBool::new(false)))?;
        }
        // SIGTERM ends the keeper even if it was ignored when the keeper was started.
        flag::register_conditional_default(SIGTERM, Arc::new(AtomicBool::new(true)))?;
        Ok(Self { wakes })
    }

    /// Becomes readable when a child has changed.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakes.as_fd()
    }

    /// Must be called before the children are checked.
    pub(super) fn clear_wakes(&self) {
        clear_wakes(&self.wakes);
    }
}
