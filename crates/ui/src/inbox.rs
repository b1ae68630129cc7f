//! The inbox: what is on the screen, and what keys do to it.

use crossterm::event::{
    KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ringer_core::message::ShownKind;
use ringer_core::toast::Colour;

use crate::age::age_changes_in;
use crate::backend::{Request, Response};
use crate::columns::{text_lines, width};
use crate::data::{Data, FooterToast};
use crate::dialog::{Dialog, DialogEffect};
use crate::dialog_room::DialogRoom;
use crate::keys::{Action, KeyMap, KeyPress};
use crate::list_lines::row_at;
use crate::menu::{Menu, Quiet};
use crate::row_list::RowList;
use crate::rows::{RowKey, Section};
use crate::text_input::TextInput;
use crate::view::View;

/// What the program is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// Something that the backend does.
    Request(Request),
    /// Let the person connect their agents.
    Setup,
    /// Leave.
    Quit,
}

/// How long a sentence about the last action stays.
const NOTE_MS: i64 = 8000;
/// Lines above and below the list: the header, the keys and the footer.
pub(crate) const FRAME_LINES: usize = 3;
/// Below this width a row takes two lines.
const WIDE: u16 = 72;

/// The state of the inbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Inbox {
    data: Data,
    list: RowList,
    filter: String,
    view: View,
    note: Option<(FooterToast, i64)>,
    keys: KeyMap,
    size: (u16, u16),
    /// Whether the UI ends when it went somewhere, as in a popup of tmux.
    leaves_when_gone: bool,
    ascii: bool,
    /// The notification whose prompt the person waits for. A key that they press meanwhile is for something else.
    awaited: Option<String>,
}

impl Inbox {
    /// An inbox without rows, on a screen of so many columns and lines.
    pub fn new(keys: KeyMap, size: (u16, u16), leaves_when_gone: bool) -> Self {
        let mut inbox = Self {
            data: Data::default(),
            list: RowList::default(),
            filter: String::new(),
            view: View::List,
            note: None,
            keys,
            size,
            leaves_when_gone,
            ascii: false,
            awaited: None,
        };
        inbox.resize(size);
        inbox
    }

    /// For a terminal that can show only ASCII.
    pub fn ascii(self, ascii: bool) -> Self {
        Self { ascii, ..self }
    }

    pub(crate) fn data(&self) -> &Data {
        &self.data
    }

    pub(crate) fn list(&self) -> &RowList {
        &self.list
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    pub(crate) fn keys(&self) -> &KeyMap {
        &self.keys
    }

    pub(crate) fn filter(&self) -> &str {
        &self.filter
    }

    /// Whether the data was read at all.
    pub(crate) fn is_loaded(&self) -> bool {
        self.data.was_read
    }

    pub(crate) fn toast(&self) -> Option<&FooterToast> {
        self.note.as_ref().map(|(note, _)| note).or(self.data.toast.as_ref())
    }

    /// The screen has another size.
    pub fn resize(&mut self, size: (u16, u16)) {
        self.size = size;
        let lines = usize::from(size.1).saturating_sub(FRAME_LINES);
        self.list.resize(lines, if size.0 < WIDE { 2 } else { 1 });
        let room = self.dialog_room();
        if let View::Dialog(dialog) = &mut self.view {
            room.limit_scroll(dialog);
        }
    }

    /// New data was read.
    pub fn update(&mut self, data: Data, now_ms: i64) {
        self.data = data;
        self.list.refresh(&self.data, &self.filter, now_ms);
        let View::Dialog(dialog) = &mut self.view else { return };
        let is_open = self.data.needs_you.iter().any(|one| one.id == dialog.id());
        if is_open || dialog.is_sending() || dialog.is_over() {
            return;
        }
        dialog.end("It is no longer open: it was answered elsewhere, or it is over.".to_owned(), true);
    }

    /// The time has gone on: ages change, and sentences end.
    pub fn tick(&mut self, now_ms: i64) {
        if self.note.as_ref().is_some_and(|(_, until)| *until <= now_ms) {
            self.note = None;
        }
        self.list.refresh(&self.data, &self.filter, now_ms);
    }

    /// In how many milliseconds the screen changes without anything having happened.
    pub fn next_change_in(&self, now_ms: i64) -> i64 {
        // Ages that change within a second change together.
        let ages = self.list.rows().all().map(|row| age_changes_in(now_ms - row.since_ms).max(1000));
        let note = self.note.iter().map(|(_, until)| until - now_ms);
        // The clock in the header.
        let minute = 60_000 - now_ms.rem_euclid(60_000);
        ages.chain(note).chain([minute]).min().unwrap_or(minute).max(1)
    }

    /// What came of a request.
    pub fn respond(&mut self, response: Response, now_ms: i64) -> Vec<Effect> {
        match response {
            Response::Done { text } => {
                if let Some(text) = text {
                    self.say(text, Colour::Success, now_ms);
                }
            }
            // A sentence with a command in it must not be cut.
            Response::Failed { text } if self.view == View::List && width(&text) > self.footer_width() => {
                self.view = View::Text { title: "Not done", lines: vec![text], scroll: 0 };
            }
            Response::Failed { text } => self.say(text, Colour::Error, now_ms),
            Response::Went if self.leaves_when_gone => return vec![Effect::Quit],
            Response::Went => {}
            Response::Prompt(details) => {
                // It must not open under the fingers of a person who does something else by now.
                if self.view == View::List && self.awaited.take().as_ref() == Some(&details.id) {
                    self.view = View::Dialog(Box::new(Dialog::new(*details, self.ascii)));
                }
            }
            Response::Answered { id, is_taken, text } => match &mut self.view {
                View::Dialog(dialog) if dialog.id() == id && is_taken => {
                    self.view = View::List;
                    self.say(text, Colour::Success, now_ms);
                }
                View::Dialog(dialog) if dialog.id() == id => dialog.end(text, false),
                _ => self.say(text, if is_taken { Colour::Success } else { Colour::Error }, now_ms),
            },
            Response::Why { .. } if self.view != View::List => {}
            Response::Why { lines } => self.view = View::Text { title: "Why", lines, scroll: 0 },
        }
        Vec::new()
    }

    /// Says what is wrong.
    pub fn warn(&mut self, text: String, now_ms: i64) {
        self.say(text, Colour::Warning, now_ms);
    }

    fn say(&mut self, text: String, colour: Colour, now_ms: i64) {
        self.note = Some((FooterToast::new(text, colour), now_ms + NOTE_MS));
    }

    /// A text was pasted.
    pub fn paste(&mut self, text: &str, now_ms: i64) {
        match &mut self.view {
            View::Filter(input) => {
                input.paste(text);
                self.filter = input.text();
                self.list.refresh(&self.data, &self.filter, now_ms);
            }
            View::Dialog(dialog) => dialog.paste(text),
            _ => {}
        }
    }

    /// A key was pressed.
    pub fn press(&mut self, key: &KeyEvent, now_ms: i64) -> Vec<Effect> {
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        self.awaited = None;
        let has_modifier = key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        // A view is left with Esc, and with the key of leaving; in a text, that is a letter.
        let action = self.keys.action(KeyPress::of(key));
        let leaves = key.code == KeyCode::Esc || action == Some(Action::Quit);
        match &mut self.view {
            View::List => return self.act(key, action, now_ms),
            View::Help if leaves || action == Some(Action::Help) => self.view = View::List,
            View::Help => {}
            View::Text { .. } if leaves || matches!(action, Some(Action::Why | Action::GoThere)) => {
                self.view = View::List;
            }
            View::Text { lines, scroll, .. } => {
                let last = text_lines(lines, self.size.0).len().saturating_sub(1);
                match (action, key.code) {
                    (Some(Action::Down), _) => *scroll = (*scroll + 1).min(last),
                    (Some(Action::Up), _) => *scroll = scroll.saturating_sub(1),
                    (_, KeyCode::PageDown | KeyCode::Char(' ')) => *scroll = (*scroll + 5).min(last),
                    (_, KeyCode::PageUp) => *scroll = scroll.saturating_sub(5),
                    _ => {}
                }
            }
            View::Menu(menu) => {
                let number = match key.code {
                    KeyCode::Char(char) if !has_modifier => char.to_digit(10),
                    _ => None,
                };
                let request = number.and_then(|number| menu.choose(number));
                if leaves || request.is_some() {
                    self.view = View::List;
                }
                return request.map(Effect::Request).into_iter().collect();
            }
            View::ConfirmClear => {
                self.view = View::List;
                if key.code == KeyCode::Char('y') && !has_modifier {
                    return vec![Effect::Request(Request::ClearAll)];
                }
            }
            View::Filter(input) => {
                match key.code {
                    KeyCode::Esc => {
                        self.filter.clear();
                        self.view = View::List;
                    }
                    KeyCode::Enter | KeyCode::Down => self.view = View::List,
                    _ if action == Some(Action::Quit) && has_modifier => {
                        return vec![Effect::Quit];
                    }
                    _ => {
                        input.handle(key);
                        self.filter = input.text();
                    }
                }
                self.list.refresh(&self.data, &self.filter, now_ms);
            }
            View::Dialog(_) => return self.press_in_dialog(key),
        }
        Vec::new()
    }

    fn press_in_dialog(&mut self, key: &KeyEvent) -> Vec<Effect> {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            self.view = View::List;
            return Vec::new();
        }
        let room = self.dialog_room();
        let View::Dialog(dialog) = &mut self.view else { return Vec::new() };
        let id = dialog.id().to_owned();
        let effect = dialog.handle(key, room.lines(dialog));
        room.limit_scroll(dialog);
        match effect {
            Some(DialogEffect::Send(words)) => vec![Effect::Request(Request::Answer { id, words })],
            Some(DialogEffect::GoThere) => {
                self.view = View::List;
                vec![Effect::Request(Request::GoTo { id })]
            }
            Some(DialogEffect::Close) => {
                self.view = View::List;
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// The room for a dialog.
    pub(crate) fn dialog_room(&self) -> DialogRoom {
        DialogRoom::on(self.size)
    }

    /// What it is like is on the screen now.
    pub fn drawn(&mut self) {
        let room = self.dialog_room();
        if let View::Dialog(dialog) = &mut self.view {
            room.drawn(dialog);
        }
    }

    /// Columns for a sentence in the footer.
    fn footer_width(&self) -> usize {
        let columns = usize::from(self.size.0).saturating_sub(2);
        let is_shared = self.data.problem.is_some() || !self.filter.is_empty();
        if is_shared { columns - columns / 3 } else { columns }
    }

    fn act(&mut self, key: &KeyEvent, action: Option<Action>, now_ms: i64) -> Vec<Effect> {
        if key.code == KeyCode::Esc && !self.filter.is_empty() {
            self.filter.clear();
            self.list.refresh(&self.data, &self.filter, now_ms);
            return Vec::new();
        }
        // Before any agent was seen, there is one thing to do.
        if self.is_first_run() && action == Some(Action::GoThere) {
            return vec![Effect::Setup];
        }
        match action {
            Some(Action::Quit) => return vec![Effect::Quit],
            Some(Action::Setup) => return vec![Effect::Setup],
            Some(Action::Help) => self.view = View::Help,
            Some(Action::Filter) => {
                let mut input = TextInput::default();
                input.paste(&self.filter);
                self.view = View::Filter(input);
            }
            Some(Action::ClearAll) => self.view = View::ConfirmClear,
            Some(Action::Undo) => return vec![Effect::Request(Request::Undo)],
            Some(Action::Down) => self.list.move_by(1),
            Some(Action::Up) => self.list.move_by(-1),
            Some(Action::Top) => self.list.select_at(0),
            Some(Action::Bottom) => self.list.select_at(usize::MAX),
            Some(Action::NextSection) => self.list.move_section(1),
            Some(Action::PreviousSection) => self.list.move_section(-1),
            Some(Action::NextUnread) => self.list.select_next_unread(),
            Some(action) => return self.act_on_row(action, now_ms),
            None => {}
        }
        Vec::new()
    }

    fn act_on_row(&mut self, action: Action, now_ms: i64) -> Vec<Effect> {
        let Some(key) = self.list.selected().cloned() else { return Vec::new() };
        let is_agent = key.section == Section::Agents;
        let agent = self.data.agents.iter().find(|agent| agent.id == key.id);
        let open = agent.and_then(|agent| self.data.needs_you.iter().find(|one| one.from == agent.sender));
        // What an agent asks is answered on its own row, too.
        let id = if is_agent { open.map(|one| one.id.clone()) } else { Some(key.id.clone()) };
        let request = match (action, id) {
            (Action::GoThere, None) => {
                let Some(surface) = agent.and_then(|agent| agent.surface.clone()) else {
                    let why = "It is not known where this agent runs.";
                    self.say(why.to_owned(), Colour::Warning, now_ms);
                    return Vec::new();
                };
                Request::GoToSurface { surface }
            }
            (Action::Mute, _) => {
                self.open_mute_menu(&key);
                return Vec::new();
            }
            (_, None) => {
                self.say("This agent has nothing open.".to_owned(), Colour::Warning, now_ms);
                return Vec::new();
            }
            (Action::GoThere, Some(id)) => Request::GoTo { id },
            (Action::Answer, Some(id)) => {
                let asks =
                    |kind| matches!(kind, ShownKind::Permission | ShownKind::Question | ShownKind::Waiting);
                if !self.data.needs_you.iter().any(|one| one.id == id && asks(one.kind)) {
                    self.say("This asks nothing.".to_owned(), Colour::Warning, now_ms);
                    return Vec::new();
                }
                Request::Prompt { id }
            }
            (Action::Snooze, Some(id)) => {
                let label = self.list.selected_row().map(|row| row.label.clone()).unwrap_or_default();
                self.view = View::Menu(Menu::new(Quiet::Snooze { id }, &label));
                return Vec::new();
            }
            (Action::Read, Some(id)) => Request::Read { id },
            (Action::Unread, Some(id)) => Request::Unread { id },
            (Action::Remove, Some(id)) => Request::Remove { id },
            (Action::Why, Some(id)) => Request::Why { id },
            _ => return Vec::new(),
        };
        if let Request::Prompt { id } = &request {
            self.awaited = Some(id.clone());
        }
        vec![Effect::Request(request)]
    }

    fn open_mute_menu(&mut self, key: &RowKey) {
        let all = self.data.needs_you.iter().chain(&self.data.recent);
        let from = |id: &str| all.clone().find(|one| one.id == id).map(|one| one.from.clone());
        // Mutes are of senders: an agent with a name sends under it.
        let sender =
            |id: &str| self.data.agents.iter().find(|agent| agent.id == id).map(|agent| agent.sender.clone());
        let agent = if key.section == Section::Agents { sender(&key.id) } else { from(&key.id) };
        let label = self.list.selected_row().map(|row| row.label.clone()).unwrap_or_default();
        if let Some(agent) = agent {
            self.view = View::Menu(Menu::new(Quiet::Mute { agent }, &label));
        }
    }

    /// Whether no agent was ever seen.
    pub(crate) fn is_first_run(&self) -> bool {
        self.data.was_read && !self.data.has_history
    }

    /// The mouse was used. A click selects, a click on what is selected opens it, the wheel moves.
    pub fn mouse(&mut self, event: MouseEvent, now_ms: i64) -> Vec<Effect> {
        if self.view != View::List {
            return Vec::new();
        }
        self.awaited = None;
        match event.kind {
            MouseEventKind::ScrollDown => self.list.move_by(1),
            MouseEventKind::ScrollUp => self.list.move_by(-1),
            MouseEventKind::Down(MouseButton::Left) => {
                let Some(key) = row_at(&self.list, event.row) else { return Vec::new() };
                if self.list.selected() == Some(&key) {
                    return self.act_on_row(Action::GoThere, now_ms);
                }
                self.list.select(key);
            }
            _ => return Vec::new(),
        }
        Vec::new()
    }
}
