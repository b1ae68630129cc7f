//! Accepts clients, handles their frames and their input, and draws their windows.

use std::io;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use ringer_platform::peer_uid;
use ringer_ui::Input;

use super::Server;
use super::client_link::ClientLink;
use super::frame_clock::Redraw;
use super::program::Program;
use crate::draw::{draw, draw_lines};
use crate::effect::Effect;
use crate::emulator::MAX_SIZE;
use crate::layout::PaneId;
use crate::outer_terminal::{ASK_KEYBOARD, LEAVE, OuterModes, enter};
use crate::protocol::{
    Answer, Bye, Frame, FrameKind, Hello, Request, TerminalFacts, VERSION, Welcome, WindowView,
};
use crate::screen::Abilities;
use crate::style::ColourDepth;
use crate::view::{ClientFacts, ClientId, View};

/// The most connections. One more replaces the oldest connection that has not sent its hello; if all have, it is closed.
const MAX_CLIENTS: usize = 64;
/// The most connections that are accepted before the existing ones are read. It is less than [`MAX_CLIENTS`], so that a client
/// that has sent its hello is read before new connections could replace it.
const ACCEPTED_AT_ONCE: usize = 16;
/// How long to wait if `accept` fails, for example because too many files are open.
const ACCEPT_WAIT: Duration = Duration::from_secs(1);
/// The message when input is lost because the program does not read.
const NOT_TYPED: &str = "the program does not read: what you type is not kept";

impl Server {
    /// Closes the connections whose first frame is late.
    pub(super) fn close_silent(&mut self, now: Instant) {
        let is_late = |link: &ClientLink| link.hello_due().is_some_and(|due| now >= due);
        let late: Vec<ClientId> =
            self.clients.iter().filter(|(_, link)| is_late(link)).map(|(client, _)| *client).collect();
        for client in late {
            self.lose(client);
        }
    }

    /// Makes room for one more client, if necessary by closing the oldest one that has not sent its hello. Returns false if all
    /// have.
    fn has_room(&mut self) -> bool {
        if self.clients.len() < MAX_CLIENTS {
            return true;
        }
        // Ids increase, so the first one is the oldest.
        let silent = self.clients.iter().find(|(_, link)| link.hello_due().is_some());
        let Some(silent) = silent.map(|(client, _)| *client) else { return false };
        self.lose(silent);
        true
    }

    pub(super) fn accept(&mut self, listener: &UnixListener, now: Instant) {
        for _ in 0..ACCEPTED_AT_ONCE {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return,
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => continue,
                    _ => {
                        self.accepts_from = Some(now + ACCEPT_WAIT);
                        return;
                    }
                },
            };
            let is_own = peer_uid(&stream).is_ok_and(|uid| uid == rustix::process::geteuid().as_raw());
            if !is_own || !self.has_room() {
                continue;
            }
            if let Ok(link) = ClientLink::new(stream, now) {
                self.next_client += 1;
                self.clients.insert(ClientId(self.next_client), link);
            }
        }
    }
}

impl Server {
    /// Reads the terminal of a client.
    pub(super) fn serve_terminal(&mut self, client: ClientId, now: Instant) {
        // The client may have been told to leave since the poll: input is for the shell then.
        let is_read = self.state.view(client).is_some_and(|view| !view.is_in_inbox);
        let link = self.clients.get_mut(&client).filter(|link| is_read && !link.is_leaving);
        match link.map(|link| link.read_terminal(now)) {
            Some(Ok(inputs)) => self.take_inputs(client, &inputs, now),
            Some(Err(_)) => self.lose(client),
            None => {}
        }
    }

    pub(super) fn serve_client(
        &mut self,
        client: ClientId,
        is_readable: bool,
        is_writable: bool,
        now: Instant,
    ) {
        let Some(link) = self.clients.get_mut(&client) else { return };
        if is_writable && link.flush().is_err() {
            return self.lose(client);
        }
        if link.is_behind && !link.is_busy() {
            link.is_behind = false;
            self.frames.change();
            // The echo that was skipped is late already.
            if self.frames.typed_pane().is_some() {
                self.frames.input(now);
            }
        }
        let late = link.late_input(now);
        self.take_inputs(client, &late, now);
        self.send_copy(client);
        if !is_readable {
            return;
        }
        let frames = match self.clients.get_mut(&client).map(ClientLink::frames) {
            Some(Ok(frames)) => frames,
            Some(Err(_)) => return self.lose(client),
            None => return,
        };
        for frame in frames {
            if !self.frame(client, &frame, now) {
                return self.lose(client);
            }
        }
    }

    /// Returns true if input for a pane is delivered or queued.
    pub(super) fn takes_input(&self, pane: &PaneId) -> bool {
        self.programs.get(pane).is_none_or(Program::has_room)
    }

    /// Handles the input of a client.
    fn take_inputs(&mut self, client: ClientId, inputs: &[Input], now: Instant) {
        for input in inputs {
            self.follow_directory(client);
            // Input for a program changes nothing until the program echoes it.
            let is_seen = !self.state.is_only_for_program(client, input);
            let effects = self.state.input(client, input, now);
            for effect in &effects {
                if let Effect::Write { pane, .. } = effect {
                    self.frames.type_into(pane.clone(), now);
                    if !self.takes_input(pane) {
                        self.state.note(client, NOT_TYPED, now);
                        self.changed();
                    }
                }
            }
            self.perform(effects);
            if is_seen {
                self.frames.input(now);
                self.changed();
            }
        }
    }

    /// Handles a frame. Returns false if the client violates the protocol.
    fn frame(&mut self, client: ClientId, frame: &Frame, now: Instant) -> bool {
        let Some(link) = self.clients.get_mut(&client) else { return false };
        // A client of any version may replace the server, without a valid hello.
        let replaces =
            || frame.kind == FrameKind::Request && frame.read().is_ok_and(|own| Request::Replace == own);
        if !link.has_said_hello && frame.kind != FrameKind::Hello && !replaces() {
            return false;
        }
        let effects = match frame.kind {
            FrameKind::Hello if link.has_said_hello => return false,
            FrameKind::Hello => return self.hello(client, frame, now),
            FrameKind::Input => {
                let inputs = link.input(&frame.body, now);
                self.take_inputs(client, &inputs, now);
                return true;
            }
            FrameKind::Resize => match frame.read::<(u16, u16)>() {
                Ok((columns, lines)) => {
                    let (columns, lines) = (columns.min(MAX_SIZE.0), lines.min(MAX_SIZE.1));
                    link.shown = None;
                    self.frames.input(now);
                    self.state.resize(client, columns, lines, now)
                }
                Err(_) => return false,
            },
            // The client leaves, and uses the terminal itself.
            FrameKind::TerminalBack if link.is_leaving => return true,
            FrameKind::TerminalBack => {
                // Another program had the terminal: the inbox, or the shell while the client was stopped.
                (link.shown, link.modes) = (None, OuterModes::default());
                let has_mouse = link.has_mouse;
                let was_in_inbox = self.state.view(client).is_some_and(|view| view.is_in_inbox);
                // Before the inbox, the client reset the terminal. Otherwise it is reset here, so that `enter` does not push
                // the keyboard flags again.
                let leave = if was_in_inbox { "" } else { LEAVE };
                let again = format!("{leave}{}", enter(has_mouse));
                self.send(client, &Frame::new(FrameKind::Output, again));
                self.state.terminal_back(client, now)
            }
            FrameKind::Request => {
                let (answer, effects) = match frame.read::<Request>() {
                    Ok(request) => self.request(client, request, now),
                    Err(error) => (
                        Answer::Failed { why: format!("the server does not know this: {error}") },
                        Vec::new(),
                    ),
                };
                // Before the answer, so that the answer holds even if this server is killed now.
                self.perform(effects);
                self.send(client, &Frame::json(FrameKind::Answer, &answer));
                Vec::new()
            }
            FrameKind::Leaving => {
                link.is_leaving = true;
                return true;
            }
            // Frames that only servers send.
            _ => return false,
        };
        self.perform(effects);
        self.changed();
        true
    }

    fn hello(&mut self, client: ClientId, frame: &Frame, now: Instant) -> bool {
        let Ok(hello) = frame.read::<Hello>() else { return false };
        let is_same = hello.version == VERSION;
        let refusal = if is_same && hello.terminal.is_some() {
            self.check_typist(client, "attach to panes").err()
        } else {
            None
        };
        let Some(link) = self.clients.get_mut(&client) else { return false };
        let is_window = is_same && hello.terminal.is_some() && refusal.is_none();
        let takes_terminal = is_window && link.take_terminal();
        let program = env!("CARGO_PKG_VERSION").to_owned();
        self.send(
            client,
            &Frame::json(FrameKind::Welcome, &Welcome { version: VERSION, program, takes_terminal }),
        );
        if !is_same {
            let why = format!("this server speaks version {VERSION}, the client version {}", hello.version);
            self.send(client, &Frame::json(FrameKind::Bye, &Bye { why: Some(why), comes_back: false }));
            return true;
        }
        if let Some(why) = refusal {
            self.send(client, &Frame::json(FrameKind::Bye, &Bye { why: Some(why), comes_back: false }));
            return true;
        }
        let Some(link) = self.clients.get_mut(&client) else { return false };
        link.has_said_hello = true;
        link.environment.clone_from(&hello.environment);
        link.directory.clone_from(&hello.directory);
        let Some(terminal) = hello.terminal else { return true };
        link.abilities = abilities(&terminal);
        (link.is_window, link.has_mouse) = (true, terminal.has_mouse);
        link.line_settings = terminal.line_settings;
        let facts = ClientFacts {
            columns: terminal.columns.min(MAX_SIZE.0),
            lines: terminal.lines.min(MAX_SIZE.1),
            surface: terminal.surface,
            environment: hello.environment.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            directory: hello.directory,
            // The form of another version is ignored.
            shown: terminal.shown.and_then(|shown| serde_json::from_value(shown).ok()),
        };
        let entered = enter(terminal.has_mouse) + ASK_KEYBOARD;
        self.send(client, &Frame::new(FrameKind::Output, entered));
        self.restore(&facts, now);
        self.state.set_keys((self.load_keys)());
        let effects = self.state.attach(client, facts, now);
        self.perform(effects);
        if let Some(text) = self.attach_message.as_mut().and_then(|message| message.take(now)) {
            self.state.note(client, text, now);
        }
        self.frames.input(now);
        self.changed();
        true
    }

    /// Tells clients about changes of their views. They return to these if this server is killed.
    pub(super) fn send_views(&mut self) {
        let is_news = |client: &ClientId, link: &ClientLink| {
            let view = self.state.view(*client).filter(|_| link.is_window);
            view.filter(|view| !link.sent_view.as_ref().is_some_and(|sent| view.matches(sent)))
                .map(View::shown)
        };
        let news: Vec<(ClientId, WindowView)> = self
            .clients
            .iter()
            .filter_map(|(client, link)| Some((*client, is_news(client, link)?)))
            .collect();
        for (client, shown) in news {
            let frame = Frame::json(FrameKind::View, &shown);
            self.clients.get_mut(&client).into_iter().for_each(|link| link.sent_view = Some(shown.clone()));
            self.send(client, &frame);
        }
    }
}

fn abilities(terminal: &TerminalFacts) -> Abilities {
    let colours = match terminal.colours {
        0 => ColourDepth::None,
        1..=16 => ColourDepth::Sixteen,
        17..=256 => ColourDepth::Indexed,
        _ => ColourDepth::Rgb,
    };
    Abilities { colours, is_ascii: terminal.is_ascii }
}

impl Server {
    /// Draws if a frame is due. A client whose last frame is still being sent is skipped, and gets a full frame later.
    pub(super) fn draw(&mut self, now: Instant) {
        let Some(redraw) = self.frames.take(now) else { return };
        let windows: Vec<ClientId> = self
            .clients
            .iter()
            .filter(|(_, link)| link.is_window && !link.is_leaving)
            .map(|(id, _)| *id)
            .collect();
        let changed: Option<Vec<(PaneId, Vec<u16>)>> = match redraw {
            Redraw::Everything => None,
            Redraw::Panes(panes) => Some(
                panes.into_iter().map(|pane| (pane.clone(), self.state.take_changed_lines(&pane))).collect(),
            ),
        };
        for client in windows {
            if let Some(link) = self.clients.get_mut(&client).filter(|link| link.is_busy()) {
                link.is_behind = true;
            } else if changed.as_ref().is_none_or(|changed| !self.draw_lines_for(client, changed)) {
                self.draw_for(client, now);
            }
        }
    }

    /// Draws a whole window.
    fn draw_for(&mut self, client: ClientId, now: Instant) {
        if self.state.view(client).is_none_or(|view| view.is_in_inbox) {
            return;
        }
        draw(&self.state, client, now, &mut self.screen);
        let mut out = self.mode_changes(client);
        let Some(link) = self.clients.get_mut(&client) else { return };
        self.screen.changes(link.shown.as_ref(), link.abilities, &mut out);
        match &mut link.shown {
            Some(shown) => std::mem::swap(shown, &mut self.screen),
            None => link.shown = Some(self.screen.clone()),
        }
        self.send_output(client, out.as_bytes());
    }

    /// Draws the changed lines of panes. Returns false if the whole window has to be drawn.
    fn draw_lines_for(&mut self, client: ClientId, changed: &[(PaneId, Vec<u16>)]) -> bool {
        if self.state.view(client).is_none_or(|view| view.is_in_inbox) {
            return true;
        }
        // The changes that a client has missed are not recorded.
        let link = self.clients.get(&client).filter(|link| !link.is_behind);
        let Some(shown) = link.and_then(|link| link.shown.as_ref()) else { return false };
        let Some(rows) = draw_lines(&self.state, client, changed, shown, &mut self.screen) else {
            return false;
        };
        let mut out = self.mode_changes(client);
        let Some(link) = self.clients.get_mut(&client) else { return true };
        let Some(shown) = &mut link.shown else { return false };
        self.screen.changes_of_rows(rows.iter().copied(), Some(shown), link.abilities, &mut out);
        shown.cursor = self.screen.cursor;
        for row in rows {
            shown.swap_row(row, &mut self.screen);
        }
        self.send_output(client, out.as_bytes());
        true
    }

    /// Returns the sequences that set a client's terminal to the modes of the focused program.
    fn mode_changes(&mut self, client: ClientId) -> String {
        let (modes, mouse) = self.state.wanted_modes(client);
        let mut out = String::new();
        if let Some(link) = self.clients.get_mut(&client) {
            let modes = OuterModes::of(modes, link.has_mouse.then_some(mouse));
            modes.write_changes(link.modes, &mut out);
            link.modes = modes;
        }
        out
    }
}
