//! The inbox: the state of the screen, and its reactions to keys, data and time.

use crossterm::event::{
    KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ringer_core::toast::Colour;
use ringer_term::sanitise_line;

use crate::backend::{Data, FooterToast, Request, Response};
use crate::columns::width;
use crate::dialog::{Dialog, DialogEffect, DialogRoom};
use crate::keys::{Action, KeyMap, KeyPress};
use crate::row_list::{RowEffect, RowList, row_at, row_effect};
use crate::rows::next_age_change_in;
use crate::text_input::TextInput;
use crate::view::{AgentView, Pager, View};

/// An action that the inbox leaves to the loop.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// Send a request to the backend.
    Request(Request),
    /// Run the setup, in which the person connects their agents.
    Setup,
    /// Open a text in the person's editor.
    Edit(String),
    /// Quit the UI.
    Quit,
}

/// The number of lines above and below the list: the header, the keys and the footer.
pub(crate) const FRAME_LINES: usize = 3;
/// Minimum width of the screen for rows of one line. On a narrower screen a row takes two.
const WIDE: u16 = 72;
/// The key that shows every background task on the page of an agent, or fewer again.
pub(crate) const VERBOSE_KEY: KeyPress = KeyPress::plain('v');
/// The number of lines that the wheel scrolls a text by.
const WHEEL_LINES: isize = 3;

/// The state of the inbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Inbox {
    data: Data,
    list: RowList,
    filter: String,
    view: View,
    note: FooterNote,
    keys: KeyMap,
    size: (u16, u16),
    /// True if the UI quits after jumping to a terminal, as in a tmux popup.
    quit_after_jump: bool,
    ascii: bool,
    /// The name of the person's editor, if one is configured.
    editor: Option<String>,
    /// The notification whose prompt was requested. A key or a click before it arrives cancels it.
    awaited_prompt: Option<String>,
}

impl Inbox {
    /// Creates an empty inbox. `size` is the size of the screen, in columns and lines.
    pub fn new(keys: KeyMap, size: (u16, u16), quit_after_jump: bool) -> Self {
        let mut inbox = Self {
            data: Data::default(),
            list: RowList::default(),
            filter: String::new(),
            view: View::List,
            note: FooterNote::default(),
            keys,
            size,
            quit_after_jump,
            ascii: false,
            editor: None,
            awaited_prompt: None,
        };
        // Returns no effects, because no agent page is open.
        let _ = inbox.resize(size);
        inbox
    }

    /// Sets whether the terminal can show only ASCII.
    pub fn ascii(self, ascii: bool) -> Self {
        Self { ascii, ..self }
    }

    /// Sets the name of the editor for long texts.
    pub fn editor(self, editor: Option<String>) -> Self {
        Self { editor, ..self }
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

    pub(crate) fn is_loaded(&self) -> bool {
        self.data.was_read
    }

    pub(crate) fn toast(&self) -> Option<&FooterToast> {
        self.note.current().or(self.data.toast.as_ref())
    }

    /// Adapts to a new size of the screen.
    pub fn resize(&mut self, size: (u16, u16)) -> Vec<Effect> {
        self.size = size;
        let lines = usize::from(size.1).saturating_sub(FRAME_LINES);
        self.list.resize(lines, if size.0 < WIDE { 2 } else { 1 });
        let room = self.dialog_room();
        if let View::Dialog(dialog) = &mut self.view {
            room.limit_scroll(dialog);
        }
        self.load_page()
    }

    /// Shows new data.
    pub fn update(&mut self, data: Data, now_ms: i64) -> Vec<Effect> {
        self.data = data;
        self.list.refresh(&self.data, &self.filter, now_ms);
        let View::Dialog(dialog) = &mut self.view else { return self.load_page() };
        let is_open = self.data.needs_you.iter().any(|one| one.id == dialog.id());
        if !is_open && !dialog.is_sending() && !dialog.is_over() {
            dialog.end("It is no longer open: it was answered elsewhere, or it is over.".to_owned(), true);
        }
        Vec::new()
    }

    /// Updates ages, and removes messages whose time is over.
    pub fn tick(&mut self, now_ms: i64) {
        self.note.tick(now_ms);
        self.list.refresh(&self.data, &self.filter, now_ms);
    }

    /// Returns the milliseconds until the screen changes by itself, at least 1.
    pub fn next_change_in(&self, now_ms: i64) -> i64 {
        // Ages that change within a second change together.
        let ages = self.list.rows().all().map(|row| next_age_change_in(now_ms - row.since_ms).max(1000));
        // The clock in the header.
        let minute = 60_000 - now_ms.rem_euclid(60_000);
        ages.chain(self.note.ends_in(now_ms)).chain([minute]).min().unwrap_or(minute).max(1)
    }

    /// Handles the outcome of a request.
    pub fn respond(&mut self, response: Response, now_ms: i64) -> Vec<Effect> {
        match response {
            Response::Done { text } => {
                if let Some(text) = text {
                    self.say(text, Colour::Success, now_ms);
                }
            }
            // A message may contain a command, so it is not cut.
            Response::Failed { text } if self.view == View::List && width(&text) > self.footer_width() => {
                self.view = View::Text(Pager::new("Not done", vec![text]));
            }
            Response::Failed { text } => self.say(text, Colour::Error, now_ms),
            Response::Went if self.quit_after_jump => return vec![Effect::Quit],
            Response::Went => {}
            Response::Prompt(details) => {
                // A dialog must not open while the person is already doing something else.
                if self.view == View::List && self.awaited_prompt.take().as_ref() == Some(&details.id) {
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
            Response::Why { lines } => self.view = View::Text(Pager::new("Why", lines)),
            Response::AgentPage { agent, lines } => {
                if let View::Agent(view) = &mut self.view
                    && view.receive(&agent, lines)
                {
                    return self.load_page();
                }
            }
        }
        Vec::new()
    }

    /// Shows a warning in the footer.
    pub fn warn(&mut self, text: String, now_ms: i64) {
        self.say(text, Colour::Warning, now_ms);
    }

    fn say(&mut self, text: String, colour: Colour, now_ms: i64) {
        self.note.say(text, colour, now_ms);
    }

    /// Handles a paste.
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

    /// Handles a key.
    pub fn press(&mut self, key: &KeyEvent, now_ms: i64) -> Vec<Effect> {
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        self.awaited_prompt = None;
        let has_modifier = key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        // Esc and the quit key leave a view. In a text field, the quit key is a letter.
        let action = self.keys.action(KeyPress::of(key));
        let leaves = key.code == KeyCode::Esc || action == Some(Action::Quit);
        match &mut self.view {
            View::List => return self.act(key, action, now_ms),
            View::Help if leaves || action == Some(Action::Help) => self.view = View::List,
            View::Help => {}
            View::Text(_) if leaves || matches!(action, Some(Action::Why | Action::GoThere)) => {
                self.view = View::List;
            }
            View::Text(text) => text.press(key, action, self.size),
            View::Agent(_) if leaves => self.view = View::List,
            View::Agent(_) => return self.press_on_page(key, action, now_ms),
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
            View::Dialog(_) => return self.press_in_dialog(key, now_ms),
        }
        Vec::new()
    }

    /// Returns the columns for a message in the footer.
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
        // Before any agent was seen, there is nowhere to go to, so this key starts the setup.
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
        let Some(row) = self.list.selected_row() else { return Vec::new() };
        match row_effect(action, row, &self.data) {
            RowEffect::Request(request) => {
                if let Request::Prompt { id } = &request {
                    self.awaited_prompt = Some(id.clone());
                }
                return vec![Effect::Request(request)];
            }
            RowEffect::Page(agent) => {
                self.view = View::Agent(AgentView::new(agent));
                return self.load_page();
            }
            RowEffect::Menu(menu) => self.view = View::Menu(menu),
            RowEffect::Refused(why) => self.say(why.to_owned(), Colour::Warning, now_ms),
            RowEffect::Nothing => {}
        }
        Vec::new()
    }

    /// Loads the agent page again, if one is open.
    fn load_page(&mut self) -> Vec<Effect> {
        let View::Agent(view) = &mut self.view else { return Vec::new() };
        view.load(self.size.0, self.ascii).map(Effect::Request).into_iter().collect()
    }

    fn press_on_page(&mut self, key: &KeyEvent, action: Option<Action>, now_ms: i64) -> Vec<Effect> {
        let View::Agent(view) = &mut self.view else { return Vec::new() };
        match action {
            Some(Action::Show) => self.view = View::List,
            // The page belongs to the selected row.
            Some(action @ (Action::GoThere | Action::Answer)) => {
                self.view = View::List;
                return self.act_on_row(action, now_ms);
            }
            _ if KeyPress::of(key) == VERBOSE_KEY => {
                view.toggle_verbose();
                return self.load_page();
            }
            _ => {
                if let Some(text) = view.text_mut() {
                    text.press(key, action, self.size);
                }
            }
        }
        Vec::new()
    }

    /// Returns true if no agent or notification was ever seen.
    pub(crate) fn is_first_run(&self) -> bool {
        self.data.was_read && !self.data.has_history
    }

    /// Handles the mouse. A click selects a row, a click on the selected row goes to its terminal, and the wheel scrolls.
    pub fn mouse(&mut self, event: MouseEvent, now_ms: i64) -> Vec<Effect> {
        let wheel = match event.kind {
            MouseEventKind::ScrollDown => 1,
            MouseEventKind::ScrollUp => -1,
            _ => 0,
        };
        let size = self.size;
        match &mut self.view {
            View::List => {}
            View::Text(text) => {
                text.scroll_by(wheel * WHEEL_LINES, size);
                return Vec::new();
            }
            View::Agent(view) => {
                if let Some(text) = view.text_mut() {
                    text.scroll_by(wheel * WHEEL_LINES, size);
                }
                return Vec::new();
            }
            _ => return Vec::new(),
        }
        self.awaited_prompt = None;
        match event.kind {
            _ if wheel != 0 => self.list.move_by(wheel),
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

/// How long the message about the last action is shown.
const NOTE_MS: i64 = 8000;
/// How long the hint about the editor is shown.
const HINT_MS: i64 = 5000;

/// The message about the last action, and the hint about the editor, which hides the message.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FooterNote {
    note: Option<(FooterToast, i64)>,
    hint: Hint,
}

/// Points to the editor while the typed text is too long for its line.
#[derive(Debug, Clone, Default, PartialEq)]
enum Hint {
    #[default]
    None,
    Shown(FooterToast, i64),
    /// The hint was shown long enough; the text is still too long.
    Over,
}

impl FooterNote {
    pub(crate) fn say(&mut self, text: String, colour: Colour, now_ms: i64) {
        self.note = Some((FooterToast::new(text, colour), now_ms + NOTE_MS));
    }

    /// Shows the hint, unless it was shown already. `None` means that the typed text fits its line, and resets the hint.
    pub(crate) fn set_hint(&mut self, text: Option<String>, now_ms: i64) {
        match (text, &self.hint) {
            (None, _) => self.hint = Hint::None,
            (Some(text), Hint::None) => {
                self.hint = Hint::Shown(FooterToast::new(text, Colour::Plain), now_ms + HINT_MS);
            }
            (Some(_), _) => {}
        }
    }

    pub(crate) fn tick(&mut self, now_ms: i64) {
        self.note.take_if(|(_, until)| *until <= now_ms);
        if matches!(self.hint, Hint::Shown(_, until) if until <= now_ms) {
            self.hint = Hint::Over;
        }
    }

    pub(crate) fn current(&self) -> Option<&FooterToast> {
        match &self.hint {
            Hint::Shown(hint, _) => Some(hint),
            Hint::None | Hint::Over => self.note.as_ref().map(|(note, _)| note),
        }
    }

    /// Returns the milliseconds until the message and the hint disappear.
    pub(crate) fn ends_in(&self, now_ms: i64) -> impl Iterator<Item = i64> {
        let hint = if let Hint::Shown(_, until) = &self.hint { Some(*until) } else { None };
        let note = self.note.as_ref().map(|(_, until)| *until);
        note.into_iter().chain(hint).map(move |until| until - now_ms)
    }
}

/// The key that opens the typed text in the person's editor.
const EDITOR_KEY: KeyPress = KeyPress::with_control('g');

impl Inbox {
    fn press_in_dialog(&mut self, key: &KeyEvent, now_ms: i64) -> Vec<Effect> {
        let effects = self.press_key_of_dialog(key);
        self.hint_at_editor(now_ms);
        effects
    }

    fn press_key_of_dialog(&mut self, key: &KeyEvent) -> Vec<Effect> {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            self.view = View::List;
            return Vec::new();
        }
        let room = self.dialog_room();
        let View::Dialog(dialog) = &mut self.view else { return Vec::new() };
        if KeyPress::of(key) == EDITOR_KEY
            && self.editor.is_some()
            && let Some(input) = dialog.input()
        {
            return vec![Effect::Edit(input.text())];
        }
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

    /// Takes over the text from the editor.
    pub fn edited(&mut self, text: &str, now_ms: i64) {
        if let View::Dialog(dialog) = &mut self.view {
            dialog.replace_input(text);
        }
        self.hint_at_editor(now_ms);
    }

    /// Shows the hint about the editor if the typed text is longer than its line.
    fn hint_at_editor(&mut self, now_ms: i64) {
        let room = self.dialog_room().input_columns();
        let input = if let View::Dialog(dialog) = &self.view { dialog.input() } else { None };
        let is_long = input.is_some_and(|input| width(&input.text()) > room);
        let hint = self.editor.as_ref().filter(|_| is_long);
        let hint = hint.map(|editor| format!("{EDITOR_KEY} goes on in {}", sanitise_line(editor)));
        self.note.set_hint(hint, now_ms);
    }

    pub(crate) fn dialog_room(&self) -> DialogRoom {
        DialogRoom::on(self.size)
    }

    /// Records that the current state is on the screen: keys allow or approve only what the person could see.
    pub fn mark_drawn(&mut self) {
        let room = self.dialog_room();
        if let View::Dialog(dialog) = &mut self.view {
            room.mark_drawn(dialog);
        }
    }
}
