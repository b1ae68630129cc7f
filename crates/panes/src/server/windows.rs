//! Handles the frames and the input of clients.

use std::time::Instant;

use ringer_ui::Input;

use super::Server;
use super::client_link::ClientLink;
use super::program::Program;
use crate::effect::Effect;
use crate::emulator::MAX_SIZE;
use crate::layout::PaneId;
use crate::outer_modes::{ASK_KEYBOARD, LEAVE, OuterModes, enter};
use crate::protocol::{
    Answer, Bye, Frame, FrameKind, Hello, Request, TerminalFacts, VERSION, Welcome, WindowShown,
};
use crate::screen::Abilities;
use crate::style::ColourDepth;
use crate::view::{ClientFacts, ClientId, View};

/// The message when input is lost because the program does not read.
const NOT_TYPED: &str = "the program does not read: what you type is not kept";

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
        if let Some(notice) = self.notice.as_mut().and_then(|notice| notice.tell(now)) {
            self.state.note(client, notice, now);
        }
        self.frames.input(now);
        self.changed();
        true
    }

    /// Tells clients about changes of their views. They return to these if this server is killed.
    pub(super) fn tell_shown(&mut self) {
        let is_news = |client: &ClientId, link: &ClientLink| {
            let view = self.state.view(*client).filter(|_| link.is_window);
            view.filter(|view| !link.told.as_ref().is_some_and(|told| view.is_as_told(told))).map(View::shown)
        };
        let news: Vec<(ClientId, WindowShown)> = self
            .clients
            .iter()
            .filter_map(|(client, link)| Some((*client, is_news(client, link)?)))
            .collect();
        for (client, shown) in news {
            let frame = Frame::json(FrameKind::Shown, &shown);
            self.clients.get_mut(&client).into_iter().for_each(|link| link.told = Some(shown.clone()));
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
