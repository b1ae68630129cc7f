//! The views on top of the list: a text to scroll, the page of an agent, a menu, a dialog.

use crossterm::event::{KeyCode, KeyEvent};

use crate::backend::Request;
use crate::columns::{text_lines, text_room};
use crate::dialog::Dialog;
use crate::keys::Action;
use crate::text_input::TextInput;

/// The view on top of the list, if any.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum View {
    List,
    Filter(TextInput),
    Help,
    /// A text in a pager.
    Text(Pager),
    Agent(AgentView),
    Menu(Menu),
    ConfirmClear,
    Dialog(Box<Dialog>),
}

/// The page of one agent. It is loaded again after every change of the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentView {
    agent: String,
    /// `None` until the first load.
    text: Option<Pager>,
    /// True if every background task is shown with its whole text.
    verbose: bool,
    is_loading: bool,
    /// True if something has changed since the load began.
    is_stale: bool,
}

impl AgentView {
    pub(crate) fn new(agent: String) -> Self {
        Self { agent, text: None, verbose: false, is_loading: false, is_stale: false }
    }

    pub(crate) fn text(&self) -> Option<&Pager> {
        self.text.as_ref()
    }

    pub(crate) fn text_mut(&mut self) -> Option<&mut Pager> {
        self.text.as_mut()
    }

    pub(crate) fn is_verbose(&self) -> bool {
        self.verbose
    }

    pub(crate) fn toggle_verbose(&mut self) {
        self.verbose = !self.verbose;
    }

    /// Requests the page. Only one load runs at a time, so that an older page cannot arrive after a newer one.
    pub(crate) fn load(&mut self, columns: u16, ascii: bool) -> Option<Request> {
        if self.is_loading {
            self.is_stale = true;
            return None;
        }
        self.is_loading = true;
        self.is_stale = false;
        let (agent, verbose) = (self.agent.clone(), self.verbose);
        Some(Request::AgentPage { agent, width: text_room(columns), verbose, ascii })
    }

    /// Shows a loaded page if it is of this agent. Returns true if it must be loaded again.
    pub(crate) fn receive(&mut self, agent: &str, lines: Vec<String>) -> bool {
        if agent != self.agent {
            return false;
        }
        self.is_loading = false;
        match &mut self.text {
            Some(text) => text.replace(lines),
            None => self.text = Some(Pager::new("Agent", lines)),
        }
        self.is_stale
    }
}

/// The number of lines that Page Up and Page Down scroll by.
const PAGE: usize = 10;

/// A text, and the first line that is visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pager {
    title: &'static str,
    lines: Vec<String>,
    scroll: usize,
}

impl Pager {
    pub(crate) fn new(title: &'static str, lines: Vec<String>) -> Self {
        Self { title, lines, scroll: 0 }
    }

    pub(crate) fn title(&self) -> &'static str {
        self.title
    }

    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }

    pub(crate) fn scroll(&self) -> usize {
        self.scroll
    }

    /// Replaces the text and keeps the scroll position.
    pub(crate) fn replace(&mut self, lines: Vec<String>) {
        self.lines = lines;
    }

    /// Handles a key. `size` is the size of the screen, in columns and lines.
    pub(crate) fn press(&mut self, key: &KeyEvent, action: Option<Action>, size: (u16, u16)) {
        let end = self.last_scroll(size);
        self.scroll = match (action, key.code) {
            (Some(Action::Down), _) => self.scroll + 1,
            (Some(Action::Up), _) => self.scroll.min(end).saturating_sub(1),
            (Some(Action::Top), _) => 0,
            (Some(Action::Bottom), _) => end,
            (_, KeyCode::PageDown | KeyCode::Char(' ')) => self.scroll + PAGE,
            (_, KeyCode::PageUp) => self.scroll.min(end).saturating_sub(PAGE),
            _ => self.scroll,
        };
        self.scroll = self.scroll.min(end);
    }

    pub(crate) fn scroll_by(&mut self, lines: isize, size: (u16, u16)) {
        self.scroll = self.scroll.saturating_add_signed(lines).min(self.last_scroll(size));
    }

    /// Returns the scroll position at which the last line is at the bottom of the box.
    fn last_scroll(&self, size: (u16, u16)) -> usize {
        text_lines(&self.lines, size.0).len().saturating_sub(visible_lines(size.1))
    }
}

/// Returns the number of text lines that fit on a screen with this many lines.
pub(crate) fn visible_lines(lines: u16) -> usize {
    usize::from(lines).saturating_sub(4)
}

/// The target of a menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SilenceTarget {
    /// A notification is hidden, and comes back later.
    Snooze { id: String },
    /// An agent is muted.
    Mute { agent: String },
}

/// A menu of durations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Menu {
    quiet: SilenceTarget,
    title: String,
}

const SNOOZE: [(&str, &str); 5] = [
    ("10 minutes", "10m"),
    ("20 minutes", "20m"),
    ("1 hour", "1h"),
    ("4 hours", "4h"),
    ("tomorrow 09:00", "tomorrow"),
];
const MUTE: [(&str, &str); 4] =
    [("1 hour", "1h"), ("4 hours", "4h"), ("tomorrow 09:00", "tomorrow"), ("unmute", "")];

impl Menu {
    pub(crate) fn new(quiet: SilenceTarget, label: &str) -> Self {
        let title = match quiet {
            SilenceTarget::Snooze { .. } => format!("Put off: {label}"),
            SilenceTarget::Mute { .. } => format!("Mute: {label}"),
        };
        Self { quiet, title }
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    fn entries(&self) -> &'static [(&'static str, &'static str)] {
        match self.quiet {
            SilenceTarget::Snooze { .. } => &SNOOZE,
            SilenceTarget::Mute { .. } => &MUTE,
        }
    }

    /// Returns the entries with their numbers.
    pub(crate) fn lines(&self) -> Vec<String> {
        (1..).zip(self.entries()).map(|(number, (words, _))| format!("[{number}] {words}")).collect()
    }

    /// Returns the request for a number.
    pub(crate) fn choose(&self, number: u32) -> Option<Request> {
        let (_, until) = self.entries().get(usize::try_from(number).ok()?.checked_sub(1)?)?;
        let until = (*until).to_owned();
        Some(match &self.quiet {
            SilenceTarget::Snooze { id } => Request::Snooze { id: id.clone(), until },
            SilenceTarget::Mute { agent } if until.is_empty() => Request::Unmute { agent: agent.clone() },
            SilenceTarget::Mute { agent } => Request::Mute { agent: agent.clone(), until },
        })
    }
}
