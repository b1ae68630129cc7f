//! The server: one loop over the keeper, the programs, the clients and the hub.

mod client_link;
mod clients;
mod commands;
mod effects;
mod frame_clock;
mod keeper_events;
mod program;
mod program_questions;
mod saver;
mod session;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use ringer_ipc::{Connect, LinkEvent};
use ringer_journal::IdSource;
use ringer_platform::{clear_wakes, wake_pair};
use ringer_ui::Backend;
use signal_hook::consts::{SIGHUP, SIGTERM};

use self::client_link::ClientLink;
use self::frame_clock::FrameClock;
use self::program::{Program, ReadyProgram};
use self::program_questions::ProgramQuestions;
use self::saver::Saver;
use crate::actions::PaneKeys;
use crate::hub_host::{HubEvent, HubHost};
use crate::keeper::{KeeperClient, KeptPane};
use crate::layout::PaneId;
use crate::paths::PanePaths;
use crate::protocol::{Bye, Frame, FrameKind};
use crate::saved_session::{Note, SavedSession};
use crate::screen::Screen;
use crate::state::State;
use crate::unread_output::KeeperBuffers;
use crate::view::ClientId;

/// A server without panes and clients exits after this time.
const IDLE_END: Duration = Duration::from_secs(5);
/// Timeout for a keeper to accept connections, and the interval of the attempts.
const KEEPER_WITHIN: Duration = Duration::from_secs(5);
const KEEPER_AGAIN: Duration = Duration::from_millis(20);
/// The most bytes that are read from a program before the others and the clients have their turn: a program that floods must not
/// delay keys. One read from a PTY returns 4 KiB at most.
const READ_AT_ONCE: usize = 16 * 1024;
/// How long a program that writes even more is not read while the person types elsewhere. Otherwise the program and the kernel's
/// work for its terminal would occupy all processors, and keys would wait.
const FLOOD_PAUSE: Duration = Duration::from_millis(1);
/// The most bytes of terminal output in one frame of the protocol.
const MAX_OUTPUT: usize = 1024 * 1024;
/// Timeout for sending the last frames to all clients.
const BYE_WITHIN: Duration = Duration::from_millis(500);
/// Timeout for removing the socket, whose file system may hang.
const REMOVES_WITHIN: Duration = Duration::from_secs(1);
/// The message to windows that are closed because the server was stopped.
const STOPPED: &str =
    "the server of panes was stopped; what runs in panes goes on. To see it again: ringer attach";

/// Serves until there is neither a pane nor a client, another server takes over, or the process is told to terminate. The
/// programs go on running.
///
/// Returns false if another server already serves this home.
pub fn serve(options: ServerOptions) -> io::Result<bool> {
    let socket = options.paths.server();
    let Some(_lock) = options.paths.lock(&socket)? else { return Ok(false) };
    let (ends, write) = wake_pair()?;
    signal_hook::low_level::pipe::register(SIGTERM, write.try_clone()?)?;
    signal_hook::low_level::pipe::register(SIGHUP, write)?;
    let ServerOptions {
        mut paths,
        load_keys,
        backend,
        connect,
        start_keeper,
        hub_socket,
        tell_ready,
        may_type,
    } = options;
    // Only the directory of the screens is used here. `adopt` restores the session, or sets an unusable file aside.
    let saved = SavedSession::read(&paths.session()).ok().flatten();
    paths.keep_screens_in(saved.and_then(|saved| saved.screens));
    let (keeper, kept) = connect_keeper(&paths, &*start_keeper)?;
    let now = Instant::now();
    let mut server = Server {
        state: State::new(load_keys(), Box::new(new_id), now),
        load_keys,
        may_type,
        keeper,
        hub: HubHost::start(connect, hub_socket.clone(), Arc::clone(&backend))?,
        questions: ProgramQuestions::start(backend)?,
        hub_socket,
        programs: BTreeMap::new(),
        typed_early: BTreeMap::new(),
        clients: BTreeMap::new(),
        next_client: 0,
        unrestored: None,
        restored_unread: BTreeSet::new(),
        attach_message: None,
        kept: KeeperBuffers::default(),
        noted: BTreeMap::new(),
        saver: Saver::start(&paths)?,
        frames: FrameClock::new(now),
        idle_since: None,
        accepts_from: None,
        is_replaced: false,
        is_keeper_gone: false,
        buffer: Vec::new(),
        screen: Screen::new(0, 0),
        paths,
        start_keeper,
    };
    server.adopt(kept, now);
    server.hub.link.begin();
    let _ = std::fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket)?;
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    tell_ready();
    let result = server.run(&listener, &ends);
    server.questions.close_all();
    server.save_at_end();
    server.send_bye();
    server.questions.wait_until_closed();
    remove_socket(socket);
    result.map(|()| true)
}

/// Removes the socket, unless its directory hangs.
fn remove_socket(socket: PathBuf) {
    let (done, removed) = sync_channel(1);
    let remove = move || {
        let _ = std::fs::remove_file(socket);
        let _ = done.send(());
    };
    // A thread that hangs ends with the process.
    if std::thread::Builder::new().spawn(remove).is_ok() {
        let _ = removed.recv_timeout(REMOVES_WITHIN);
    }
}

fn connect_keeper(
    paths: &PanePaths,
    start: &dyn Fn() -> io::Result<()>,
) -> io::Result<(KeeperClient, Vec<KeptPane>)> {
    let socket = paths.keeper();
    match KeeperClient::connect(&socket) {
        Err(error) if error.kind() != io::ErrorKind::Unsupported => {}
        connected => return connected,
    }
    let end = Instant::now() + KEEPER_WITHIN;
    loop {
        start()?;
        match KeeperClient::connect(&socket) {
            // The previous keeper is about to exit, and no other one starts until then.
            Err(error) if error.kind() != io::ErrorKind::Unsupported && Instant::now() < end => {
                std::thread::sleep(KEEPER_AGAIN);
            }
            connected => return connected,
        }
    }
}

/// An id that no pane had before: notifications refer to it long after the pane is closed.
fn new_id() -> String {
    const DIGITS: &[u8] = b"0123456789abcdefghijklmnopqrstuv";
    let random = IdSource::now().random;
    random[..8].iter().map(|byte| char::from(DIGITS[usize::from(byte % 32)])).collect()
}

struct Server {
    paths: PanePaths,
    start_keeper: Box<dyn Fn() -> io::Result<()>>,
    load_keys: Box<dyn Fn() -> PaneKeys>,
    may_type: MayType,
    hub_socket: Option<PathBuf>,
    state: State,
    keeper: KeeperClient,
    hub: HubHost,
    questions: ProgramQuestions,
    programs: BTreeMap<PaneId, Program>,
    /// Input for panes whose programs have not started yet.
    typed_early: BTreeMap<PaneId, Vec<u8>>,
    clients: BTreeMap<ClientId, ClientLink>,
    next_client: u64,
    /// The previous session, until the first client connects: programs are started with the environment of that client.
    unrestored: Option<SavedSession>,
    /// Panes that were unread in the previous session. Each is reported to the hub once its program has started.
    restored_unread: BTreeSet<PaneId>,
    attach_message: Option<AttachMessage>,
    kept: KeeperBuffers,
    /// The notes that the keeper has.
    noted: BTreeMap<PaneId, Note>,
    saver: Saver,
    frames: FrameClock,
    idle_since: Option<Instant>,
    /// No connection is accepted before this time.
    accepts_from: Option<Instant>,
    /// Another server takes over.
    is_replaced: bool,
    /// The keeper ended. Running programs go on; none can be started.
    is_keeper_gone: bool,
    buffer: Vec<u8>,
    screen: Screen,
}

impl Server {
    fn run(&mut self, listener: &UnixListener, ends: &UnixStream) -> io::Result<()> {
        loop {
            let ready = self.wait(listener, ends)?;
            if ready.ends {
                clear_wakes(ends);
                return Ok(());
            }
            let now = Instant::now();
            self.accepts_from = self.accepts_from.filter(|from| now < *from);
            if ready.listener {
                self.accept(listener, now);
            }
            if ready.keeper {
                self.handle_keeper(now)?;
            }
            // Before the hub, which may report that the person has seen a question that was just asked.
            if ready.questions {
                self.handle_question_reports();
            }
            if ready.hub {
                self.handle_hub(now);
            }
            if ready.saver {
                self.handle_saver(now);
            }
            for (client, is_readable, is_writable) in ready.clients {
                self.serve_client(client, is_readable, is_writable, now);
            }
            // After the frames were read: a server that was stopped for a while finds many at once.
            self.close_silent(now);
            for client in ready.typed {
                self.serve_terminal(client, now);
            }
            self.serve_programs(ready.programs, now)?;
            let (ended, effects) = self.state.end_updates(now);
            self.perform(effects);
            self.set_unsaved(&ended);
            for pane in &ended {
                self.written(pane);
            }
            let facts = self.state.tick(now);
            self.perform(facts.into_iter().collect());
            // Before drawing: everything that the person has seen must survive a crash.
            self.send_views();
            self.save_changed_session();
            self.draw(now);
            self.frames.change_at(self.state.next_change(now));
            self.save_some(now);
            if self.is_replaced || self.is_idle(now) {
                return Ok(());
            }
        }
    }

    /// Returns true if there have been no panes and no clients for [`IDLE_END`].
    fn is_idle(&mut self, now: Instant) -> bool {
        let has_work = !self.programs.is_empty() || !self.clients.is_empty();
        if has_work {
            self.idle_since = None;
            return false;
        }
        let since = *self.idle_since.get_or_insert(now);
        now.saturating_duration_since(since) >= IDLE_END
    }

    fn handle_hub(&mut self, now: Instant) {
        for event in self.hub.events() {
            match event {
                HubEvent::Link(LinkEvent::Connected) => self.state.hub_connected(),
                HubEvent::Link(LinkEvent::Lost) => self.state.hub_lost(),
                HubEvent::Link(LinkEvent::Order(order)) => {
                    let effects = self.state.order(order, now);
                    self.perform(effects);
                }
                HubEvent::Link(LinkEvent::Answered) => {
                    // The report need not be saved any more.
                    if self.saver.has_unanswered() {
                        self.saver.save_session_at(now);
                    }
                    continue;
                }
                HubEvent::Agents(agents) => self.state.agents(&agents),
            }
            self.changed();
        }
    }

    /// Serves the pane that the person types into first, and draws it before the others are read.
    fn serve_programs(&mut self, mut programs: Vec<ReadyProgram>, now: Instant) -> io::Result<()> {
        let typed = self.frames.typed_pane();
        if let Some(at) = programs.iter().position(|(pane, ..)| Some(pane) == typed) {
            let (pane, is_readable, is_writable) = programs.swap_remove(at);
            self.serve_program(&pane, is_readable, is_writable, now)?;
            self.draw(now);
        }
        for (pane, is_readable, is_writable) in programs {
            self.serve_program(&pane, is_readable, is_writable, now)?;
        }
        Ok(())
    }

    fn serve_program(
        &mut self,
        pane: &PaneId,
        is_readable: bool,
        is_writable: bool,
        now: Instant,
    ) -> io::Result<()> {
        let Some(program) = self.programs.get_mut(pane) else { return Ok(()) };
        if is_writable {
            program.flush();
        }
        if !is_readable || !program.is_open(now) {
            return Ok(());
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(READ_AT_ONCE, 0);
        let read = program.read(&mut buffer, now)?;
        if read == READ_AT_ONCE && self.frames.is_typed_elsewhere(pane, now) {
            program.pause(FLOOD_PAUSE, Instant::now());
        }
        if read > 0 {
            program.is_unsaved = true;
            let effects = self.state.output(pane, &buffer[..read], now);
            self.perform(effects);
            self.written(pane);
        }
        self.buffer = buffer;
        self.close_if_lost(pane);
        Ok(())
    }

    /// Schedules a frame and a save.
    fn changed(&mut self) {
        self.frames.change();
        let now = Instant::now();
        self.saver.save_soon(now);
        self.saver.save_session_at(now);
    }

    /// Schedules a frame for a pane whose program wrote something, and for everything if its description changed.
    fn written(&mut self, pane: &PaneId) {
        if self.state.take_description_change() {
            self.frames.change();
        }
        self.frames.write(pane);
        self.saver.save_soon(Instant::now());
    }

    fn send(&mut self, client: ClientId, frame: &Frame) {
        if self.clients.get_mut(&client).is_some_and(|link| link.send(frame).is_err()) {
            self.lose(client);
        }
    }

    /// Sends output to the terminal of a client, split into frames of at most [`MAX_OUTPUT`] bytes.
    fn send_output(&mut self, client: ClientId, bytes: &[u8]) {
        for piece in bytes.chunks(MAX_OUTPUT) {
            self.send(client, &Frame::new(FrameKind::Output, piece));
        }
    }

    /// Removes a client.
    fn lose(&mut self, client: ClientId) {
        if let Some(link) = self.clients.remove(&client) {
            link.give_back_terminal();
        }
        let effects = self.state.detach(client);
        self.perform(effects);
        self.changed();
    }

    /// Tells all clients to leave. If another server takes over, they connect to it.
    fn send_bye(&mut self) {
        let clients: Vec<ClientId> = self.clients.keys().copied().collect();
        let why = (!self.is_replaced).then(|| STOPPED.to_owned());
        let bye = Bye { why, comes_back: self.is_replaced };
        for client in clients {
            self.send(client, &Frame::json(FrameKind::Bye, &bye));
        }
        // A client that does not read in time notices that the connection is closed.
        let until = Instant::now() + BYE_WITHIN;
        for link in self.clients.values_mut() {
            let _ = link.flush_until(until);
        }
    }
}

/// For this time, each new window shows the message: after a crash all of them reconnect at once, and the person looks at one.
const SHOWN_FOR: Duration = Duration::from_secs(10);

/// A message for the windows that connect first. The first one shows it even if that is later.
#[derive(Debug)]
struct AttachMessage {
    text: String,
    until: Instant,
    is_shown: bool,
}

impl AttachMessage {
    fn new(text: String, now: Instant) -> Self {
        Self { text, until: now + SHOWN_FOR, is_shown: false }
    }

    /// The message for a window that connects now.
    fn take(&mut self, now: Instant) -> Option<String> {
        let is_over = self.is_shown && now >= self.until;
        self.is_shown = true;
        (!is_over).then(|| self.text.clone())
    }
}

/// Options of [`serve`].
pub struct ServerOptions {
    /// Paths of the sockets and files.
    pub paths: PanePaths,
    /// Reads the key bindings.
    pub load_keys: Box<dyn Fn() -> PaneKeys>,
    /// Reads the agents' states, and asks the person the questions of programs.
    pub backend: Arc<dyn Backend>,
    /// Connects to the hub.
    pub connect: Connect,
    /// Starts a keeper that outlives the server, and returns once it accepts connections.
    pub start_keeper: Box<dyn Fn() -> io::Result<()>>,
    /// The socket of the hub, for the environment of programs.
    pub hub_socket: Option<PathBuf>,
    /// Called when clients can connect.
    pub tell_ready: Box<dyn Fn()>,
    /// Decides whether a process may type into panes.
    pub may_type: MayType,
}

/// Decides whether a process may type into panes. The error is the reason it may not.
pub type MayType = Box<dyn Fn(&Typist<'_>) -> Result<(), String>>;

/// A process that wants to type into panes.
#[derive(Debug)]
pub struct Typist<'a> {
    /// The id of the process.
    pub pid: u32,
    /// The processes whose windows show panes.
    pub windows: Vec<u32>,
    /// The attempted action, for the error message: "type into a pane".
    pub what: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_window_of_the_first_seconds_is_shown_and_the_first_one_in_any_case() {
        let now = Instant::now();
        let mut message = AttachMessage::new("text".to_owned(), now);
        for at in [now, now, now + SHOWN_FOR / 2] {
            assert_eq!(message.take(at).as_deref(), Some("text"));
        }
        assert_eq!(message.take(now + SHOWN_FOR), None);
        let mut message = AttachMessage::new("text".to_owned(), now);
        assert_eq!(message.take(now + 2 * SHOWN_FOR).as_deref(), Some("text"));
        assert_eq!(message.take(now + 2 * SHOWN_FOR), None);
    }
}
