//! Handles keys, pastes and focus events of clients, including the scrollback and the prompts for a search text and a name.

use std::time::Instant;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ringer_ui::{Input, KeyPress, MAX_PASTE};

use super::{OpenRequest, State, TakesKeys};
use crate::actions::PaneAction;
use crate::effect::Effect;
use crate::layout::{PaneId, Side, SplitDirection};
use crate::pane::Pane;
use crate::protocol::{MAX_NAME, check_name, cut_name};
use crate::view::{ClientId, Mode, View};
use crate::workspace::Workspace;

/// The number of cells by which a key moves a border.
const RESIZE_STEP: u16 = 2;
/// The longest search text, in bytes.
const MAX_TYPED: usize = 200;

/// Returns true if bytes of the terminal are a key that the parser has no name for: a key of the keypad, or of kitty's protocol.
/// Answers to queries have other forms.
fn is_unnamed_key(bytes: &[u8]) -> bool {
    match bytes {
        [0x1b, b'O', _] | [0x1b, b'[', b'E'] | [0x1b, b'[', b'1', b';', .., b'E'] => true,
        [0x1b, b'[', numbers @ .., b'u' | b'~'] => {
            numbers.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b';' | b':'))
        }
        _ => false,
    }
}

/// Parses an answer to [`ASK_KEYBOARD`](crate::outer_terminal::ASK_KEYBOARD): the keyboard flags, which only a terminal with
/// kitty's protocol sends, or the device attributes, which every terminal sends after that.
fn has_kitty_keyboard(bytes: &[u8]) -> Option<bool> {
    let answer = bytes.strip_prefix(b"\x1b[?")?;
    let (last, numbers) = answer.split_last()?;
    let is_number = numbers.iter().all(|byte| byte.is_ascii_digit() || *byte == b';');
    match last {
        b'u' if is_number => Some(true),
        b'c' if is_number => Some(false),
        _ => None,
    }
}

impl State {
    /// Returns true if a window supports kitty's keyboard protocol. A window that has not answered yet counts as supporting it.
    pub(super) fn has_kitty_keyboard(&self) -> bool {
        let mut answers = self.views.values().map(|view| view.has_kitty_keyboard).peekable();
        answers.peek().is_none() || answers.any(|answer| answer != Some(false))
    }

    /// Handles input of a client's terminal.
    pub(crate) fn input(&mut self, client: ClientId, input: &Input, now: Instant) -> Vec<Effect> {
        self.now = now;
        let is_only_for_program = self.is_only_for_program(client, input);
        let is_latest = self.latest_client() == Some(client);
        let Some(view) = self.views.get_mut(&client) else { return Vec::new() };
        let was_looked_at = view.is_looked_at(now);
        if let Some(answer) = has_kitty_keyboard(&input.bytes) {
            // The second answer comes from every terminal, and must not replace the first one.
            view.has_kitty_keyboard.get_or_insert(answer);
            return self.finish(Vec::new());
        }
        match &input.event {
            Some(Event::FocusGained) => return self.outer_focus(client, true, now),
            Some(Event::FocusLost) => return self.outer_focus(client, false, now),
            // An answer of the terminal is not input of the person, and no program asked for it.
            None if !is_unnamed_key(&input.bytes) => return Vec::new(),
            _ => (view.active, view.typed) = (now, Some(now)),
        }
        let is_release = matches!(&input.event, Some(Event::Key(key)) if key.kind == KeyEventKind::Release);
        let is_for_program = view.mode == Mode::Program;
        let mut effects = match &input.event {
            Some(Event::Mouse(mouse)) => self.mouse(client, *mouse, now),
            Some(Event::Paste(_)) => {
                if input.is_cut {
                    let most = MAX_PASTE / (1024 * 1024);
                    view.note(format!("that was more than {most} MiB: the rest was not pasted"), now);
                }
                self.paste(client, &input.bytes)
            }
            Some(Event::Key(key)) if !is_release => self.key(client, key, &input.bytes, now),
            // Key releases and keys without a name are for programs only.
            Some(Event::Key(_)) | None if is_for_program => {
                let pane = self.focused(client).map(|pane| pane.id.clone());
                pane.and_then(|pane| self.send(&pane, input.bytes.clone())).into_iter().collect()
            }
            _ => Vec::new(),
        };
        effects.extend(self.typed(now));
        // Continued typing changes nothing that has to be reported.
        if is_only_for_program && is_latest && was_looked_at { effects } else { self.finish(effects) }
    }

    /// Returns true if the input goes to a program and changes nothing else that is visible.
    pub(crate) fn is_only_for_program(&self, client: ClientId, input: &Input) -> bool {
        let is_key = match &input.event {
            Some(Event::Key(key)) => {
                key.kind == KeyEventKind::Release || KeyPress::of(key) != self.keys.prefix
            }
            Some(_) => false,
            None => is_unnamed_key(&input.bytes),
        };
        let is_in_program = self.views.get(&client).is_some_and(|view| view.mode == Mode::Program);
        is_key && is_in_program && self.focused(client).is_some_and(Pane::is_at_rest)
    }

    fn outer_focus(&mut self, client: ClientId, has_focus: bool, now: Instant) -> Vec<Effect> {
        let Some(view) = self.views.get_mut(&client) else { return Vec::new() };
        view.has_focus = Some(has_focus);
        if has_focus {
            view.active = now;
        }
        // The event is sent again even if the pane had the focus before, because its program may have started since.
        if has_focus && let Some(pane) = self.focused(client).map(|pane| pane.id.clone()) {
            self.in_focus.remove(&pane);
        }
        self.finish(Vec::new())
    }

    fn paste(&mut self, client: ClientId, bytes: &[u8]) -> Vec<Effect> {
        let Some(view) = self.views.get_mut(&client) else { return Vec::new() };
        match &mut view.mode {
            Mode::Search(text) | Mode::Rename(text) => {
                let line = String::from_utf8_lossy(bytes)
                    .chars()
                    .filter(|char| !char.is_control())
                    .collect::<String>();
                text.push_str(&line);
                limit_typed(&mut view.mode);
                return Vec::new();
            }
            Mode::Program => {}
            _ => return Vec::new(),
        }
        let Some(pane) = self.focused(client) else { return Vec::new() };
        let mut sent = bytes.to_vec();
        if pane.emulator.input_modes().bracketed_paste {
            // Without ESC, the text cannot contain the end marker, after which the rest would count as typed.
            sent.retain(|byte| *byte != 0x1b);
            sent.splice(0..0, b"\x1b[200~".iter().copied());
            sent.extend_from_slice(b"\x1b[201~");
        } else {
            // Line ends become CR, which Enter sends.
            let is_second = |at: usize| at > 0 && bytes[at - 1..=at] == *b"\r\n";
            let kept = bytes.iter().enumerate().filter(|(at, _)| !is_second(*at));
            sent = kept.map(|(_, byte)| if *byte == b'\n' { b'\r' } else { *byte }).collect();
        }
        self.for_program(client, &sent)
    }

    fn key(&mut self, client: ClientId, key: &KeyEvent, bytes: &[u8], now: Instant) -> Vec<Effect> {
        let prefix = self.keys.prefix;
        let Some(view) = self.views.get_mut(&client) else { return Vec::new() };
        let press = KeyPress::of(key);
        match &mut view.mode {
            Mode::Program if press == prefix => {
                view.mode = Mode::Prefix;
                bytes.clone_into(&mut view.prefix);
                Vec::new()
            }
            Mode::Program => self.for_program(client, bytes),
            Mode::Prefix => {
                view.mode = Mode::Program;
                let prefix = std::mem::take(&mut view.prefix);
                match self.keys.action(press) {
                    // The first press was encoded for the program; the second one was not.
                    Some(PaneAction::SendPrefix) => self.for_program(client, &prefix),
                    Some(action) => self.perform(client, action, now),
                    None => self.select_workspace(client, key),
                }
            }
            Mode::Help(_) if matches!(key.code, KeyCode::Esc | KeyCode::Char('q')) => {
                view.mode = Mode::Program;
                Vec::new()
            }
            Mode::Help(first) => {
                let first = *first;
                view.turn_help_page(&self.keys, first);
                Vec::new()
            }
            Mode::ConfirmClose => {
                view.mode = Mode::Program;
                match (key.code, self.focused(client).map(|pane| pane.id.clone())) {
                    (KeyCode::Char('y' | 'Y'), Some(pane)) => self.close(&pane),
                    _ => Vec::new(),
                }
            }
            Mode::Scroll => self.scroll_key(client, key, now),
            Mode::Search(_) | Mode::Rename(_) => self.typed_line(client, key, now),
        }
    }

    /// Sends bytes to the program of the focused pane, which is scrolled to its end.
    fn for_program(&mut self, client: ClientId, bytes: &[u8]) -> Vec<Effect> {
        let id = self.focused(client).map(|pane| pane.id.clone());
        let Some(pane) = id.as_ref().and_then(|id| self.panes.get_mut(id)) else { return Vec::new() };
        if pane.emulator.scrolled() > 0 {
            pane.emulator.scroll_to_bottom();
        }
        pane.emulator.clear_selection();
        pane.not_kept = 0;
        id.and_then(|id| self.send(&id, bytes.to_vec())).into_iter().collect()
    }

    fn select_workspace(&mut self, client: ClientId, key: &KeyEvent) -> Vec<Effect> {
        if let KeyCode::Char(digit @ '1'..='9') = key.code
            && let Some(at) = digit.to_digit(10).and_then(|digit| usize::try_from(digit).ok())
        {
            return self.show_workspace(client, at - 1);
        }
        Vec::new()
    }

    /// Shows a workspace by its index.
    pub(super) fn show_workspace(&mut self, client: ClientId, at: usize) -> Vec<Effect> {
        if let (Some(workspace), Some(view)) = (self.workspaces.get(at), self.views.get_mut(&client)) {
            view.workspace.clone_from(&workspace.id);
        }
        Vec::new()
    }

    fn perform(&mut self, client: ClientId, action: PaneAction, now: Instant) -> Vec<Effect> {
        match action {
            PaneAction::SplitRight => self.open_beside(client, SplitDirection::Right, now),
            PaneAction::SplitDown => self.open_beside(client, SplitDirection::Down, now),
            PaneAction::NewWorkspace => {
                let directory = self.directory_for(client);
                let name = self.free_name(&directory);
                self.open_from(client, OpenRequest { workspace: Some(name), ..OpenRequest::default() }, now)
            }
            PaneAction::NextUnread => self.next_unread(client, now),
            PaneAction::FocusLeft => self.focus_side(client, Side::Left),
            PaneAction::FocusRight => self.focus_side(client, Side::Right),
            PaneAction::FocusUp => self.focus_side(client, Side::Up),
            PaneAction::FocusDown => self.focus_side(client, Side::Down),
            PaneAction::NextPane => self.move_focus(client, |workspace| _ = workspace.focus_next()),
            PaneAction::NextWorkspace => self.step_workspace(client, 1),
            PaneAction::PreviousWorkspace => self.step_workspace(client, -1),
            PaneAction::Zoom => self.zoom(client, now),
            PaneAction::ResizeLeft => self.resize_side(client, Side::Left, now),
            PaneAction::ResizeRight => self.resize_side(client, Side::Right, now),
            PaneAction::ResizeUp => self.resize_side(client, Side::Up, now),
            PaneAction::ResizeDown => self.resize_side(client, Side::Down, now),
            PaneAction::Restart => self.restart(client, now),
            PaneAction::SendPrefix => Vec::new(),
            PaneAction::Close
                if self
                    .focused(client)
                    .is_some_and(|pane| pane.ending.is_some() || pane.failure.is_some()) =>
            {
                let pane = self.focused(client).map(|pane| pane.id.clone());
                pane.map(|pane| self.close(&pane)).unwrap_or_default()
            }
            PaneAction::Inbox
            | PaneAction::ScrollBack
            | PaneAction::Search
            | PaneAction::Rename
            | PaneAction::Close
            | PaneAction::Sidebar
            | PaneAction::Detach
            | PaneAction::Help => self.perform_in_view(client, action),
        }
    }

    /// Performs an action that only changes the view.
    fn perform_in_view(&mut self, client: ClientId, action: PaneAction) -> Vec<Effect> {
        let focused = self.focused(client).map(|pane| pane.id.clone());
        let Some(view) = self.views.get_mut(&client) else { return Vec::new() };
        view.mode_pane = focused;
        match action {
            PaneAction::Inbox => {
                view.is_in_inbox = true;
                return vec![Effect::Inbox { client }];
            }
            PaneAction::Detach => return vec![Effect::Leave { client, why: None }],
            PaneAction::ScrollBack => view.mode = Mode::Scroll,
            PaneAction::Search => view.mode = Mode::Search(String::new()),
            PaneAction::Rename => view.mode = Mode::Rename(String::new()),
            PaneAction::Close => view.mode = Mode::ConfirmClose,
            PaneAction::Help => view.mode = Mode::Help(0),
            PaneAction::Sidebar => view.has_sidebar = !view.has_sidebar,
            _ => {}
        }
        Vec::new()
    }

    fn open_beside(&mut self, client: ClientId, split: SplitDirection, now: Instant) -> Vec<Effect> {
        self.open_from(client, OpenRequest { split: Some(split), ..OpenRequest::default() }, now)
    }

    /// Opens a shell in the directory of the focused pane.
    fn open_from(&mut self, client: ClientId, request: OpenRequest, now: Instant) -> Vec<Effect> {
        let directory = self.directory_for(client);
        let mut facts = self.views.get(&client).map(|view| view.facts.clone()).unwrap_or_default();
        facts.directory = directory;
        self.open(OpenRequest { facts, takes_keys: TakesKeys::Always, ..request }, Some(client), now).1
    }

    fn restart(&mut self, client: ClientId, now: Instant) -> Vec<Effect> {
        let environment =
            self.views.get(&client).map(|view| view.facts.environment.clone()).unwrap_or_default();
        let Some(id) = self.focused(client).map(|pane| pane.id.clone()) else { return Vec::new() };
        let workspace = self.workspace_of(&id).map(|workspace| workspace.id.clone()).unwrap_or_default();
        let Some(pane) =
            self.panes.get_mut(&id).filter(|pane| pane.ending.is_some() || pane.failure.is_some())
        else {
            if let Some(view) = self.views.get_mut(&client) {
                view.note("its program still runs", now);
            }
            return Vec::new();
        };
        pane.restart(now);
        let (command, directory, size) = (pane.command.clone(), pane.directory.clone(), pane.emulator.size());
        let forget = Effect::Forget { pane: id.clone() };
        vec![forget, Effect::Start { pane: id, workspace, command, directory, environment, size }]
    }

    /// Focuses the next ringing pane after the focused one, in the order of the workspaces.
    fn next_unread(&mut self, client: ClientId, now: Instant) -> Vec<Effect> {
        let all: Vec<PaneId> = self.workspaces.iter().flat_map(Workspace::panes).collect();
        let own = self.focused(client).map(|pane| pane.id.clone());
        let at = all.iter().position(|pane| Some(pane) == own.as_ref()).map_or(0, |at| at + 1);
        let rings = |pane: &&PaneId| self.panes.get(*pane).is_some_and(|pane| pane.ring.is_lit);
        let next = all[at..].iter().chain(&all[..at]).find(rings).cloned();
        if let Some(next) = next {
            return self.go_to(client, &next, now);
        }
        if let Some(view) = self.views.get_mut(&client) {
            view.note("no other pane rings", now);
        }
        Vec::new()
    }

    fn focus_side(&mut self, client: ClientId, side: Side) -> Vec<Effect> {
        let room = self.room_of(client);
        self.move_focus(client, |workspace| _ = workspace.focus_side(side, room))
    }

    fn zoom(&mut self, client: ClientId, now: Instant) -> Vec<Effect> {
        let is_zoomed = self.shown_workspace(client).is_some_and(Workspace::is_zoomed);
        if is_zoomed || self.has_room_for_all(client, now) {
            self.move_focus(client, Workspace::zoom);
        }
        Vec::new()
    }

    fn resize_side(&mut self, client: ClientId, side: Side, now: Instant) -> Vec<Effect> {
        let room = self.room_of(client);
        if self.has_room_for_all(client, now) {
            self.move_focus(client, |workspace| workspace.resize(side, RESIZE_STEP, room));
        }
        Vec::new()
    }

    /// Returns true if a window has room for all panes of its workspace. Otherwise it shows a message.
    fn has_room_for_all(&mut self, client: ClientId, now: Instant) -> bool {
        let room = self.room_of(client);
        let has_room = self.shown_workspace(client).is_none_or(|workspace| workspace.has_room(room));
        if let Some(view) = self.views.get_mut(&client).filter(|_| !has_room) {
            view.note("no room for all panes in this window", now);
        }
        has_room
    }

    fn move_focus(&mut self, client: ClientId, change: impl FnOnce(&mut Workspace)) -> Vec<Effect> {
        let id = self.views.get(&client).map(|view| view.workspace.clone()).unwrap_or_default();
        if let Some(workspace) = self.workspace_mut(&id) {
            change(workspace);
        }
        Vec::new()
    }

    fn step_workspace(&mut self, client: ClientId, step: isize) -> Vec<Effect> {
        let shown = self.views.get(&client).map(|view| view.workspace.clone()).unwrap_or_default();
        let at = self.workspaces.iter().position(|workspace| workspace.id == shown).unwrap_or(0);
        let count = self.workspaces.len().max(1);
        let next = (at + count).saturating_add_signed(step) % count;
        self.show_workspace(client, next)
    }
}

/// Truncates typed text to its limit.
fn limit_typed(mode: &mut Mode) {
    match mode {
        Mode::Search(text) => text.truncate(text.floor_char_boundary(MAX_TYPED)),
        Mode::Rename(name) => cut_name(name, MAX_NAME),
        _ => {}
    }
}

impl State {
    fn scroll_key(&mut self, client: ClientId, key: &KeyEvent, now: Instant) -> Vec<Effect> {
        let id = self.focused(client).map(|pane| pane.id.clone());
        let (Some(view), Some(pane)) =
            (self.views.get_mut(&client), id.and_then(|id| self.panes.get_mut(&id)))
        else {
            return Vec::new();
        };
        let screenful = i32::from(pane.emulator.size().lines.saturating_sub(1).max(1));
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Up | KeyCode::Char('k') => pane.emulator.scroll(1),
            KeyCode::Down | KeyCode::Char('j') => pane.emulator.scroll(-1),
            KeyCode::PageUp => pane.emulator.scroll(screenful),
            KeyCode::Char('b' | 'u') if is_control => pane.emulator.scroll(screenful),
            KeyCode::PageDown | KeyCode::Char(' ') => pane.emulator.scroll(-screenful),
            KeyCode::Char('f' | 'd') if is_control => pane.emulator.scroll(-screenful),
            KeyCode::Home | KeyCode::Char('g') => pane.emulator.scroll_to_top(),
            KeyCode::End | KeyCode::Char('G') => pane.emulator.scroll_to_bottom(),
            KeyCode::Char('/') => view.mode = Mode::Search(String::new()),
            KeyCode::Char('n' | 'N') if !view.searched.is_empty() => {
                let (text, is_upwards) = (view.searched.clone(), key.code == KeyCode::Char('n'));
                find(view, pane, &text, is_upwards, now);
            }
            KeyCode::Char('y') | KeyCode::Enter => {
                if let Some(text) = pane.emulator.selected_text() {
                    view.mode = Mode::Program;
                    pane.emulator.clear_selection();
                    pane.emulator.scroll_to_bottom();
                    return vec![Effect::Copy { client, text }];
                }
            }
            KeyCode::Char('c') if !is_control => {}
            KeyCode::Esc | KeyCode::Char('q' | 'c') => {
                view.mode = Mode::Program;
                pane.emulator.clear_selection();
                pane.emulator.scroll_to_bottom();
            }
            _ => {}
        }
        Vec::new()
    }

    fn typed_line(&mut self, client: ClientId, key: &KeyEvent, now: Instant) -> Vec<Effect> {
        let id = self.focused(client).map(|pane| pane.id.clone());
        let pane = id.and_then(|id| self.panes.get_mut(&id));
        let (Some(view), Some(pane)) = (self.views.get_mut(&client), pane) else { return Vec::new() };
        let (Mode::Search(text) | Mode::Rename(text)) = &mut view.mode else { return Vec::new() };
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('u') if is_control => text.clear(),
            KeyCode::Char(char) if !is_control => {
                text.push(char);
                limit_typed(&mut view.mode);
            }
            // A search that is cancelled in the scrollback leaves the scroll position as it was.
            KeyCode::Esc | KeyCode::Char('c') => {
                let is_reading = matches!(view.mode, Mode::Search(_)) && pane.emulator.scrolled() > 0;
                view.mode = if is_reading { Mode::Scroll } else { Mode::Program };
            }
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Enter => {
                let typed = std::mem::take(text);
                let is_search = matches!(view.mode, Mode::Search(_));
                view.mode = if is_search { Mode::Scroll } else { Mode::Program };
                if !is_search {
                    pane.name = Some(typed).filter(|name| check_name(name).is_ok());
                } else if !typed.is_empty() {
                    find(view, pane, &typed, true, now);
                    view.searched = typed;
                }
            }
            _ => {}
        }
        Vec::new()
    }
}

/// Scrolls to the next match of a text, or shows a message that there is none.
fn find(view: &mut View, pane: &mut Pane, text: &str, is_upwards: bool, now: Instant) {
    if pane.emulator.find(text, is_upwards) {
        view.clear_note();
    } else {
        view.note(format!("not found: {text}"), now);
    }
}
