//! The view of one client: a window on a workspace.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::actions::{HelpPage, PaneKeys};
use crate::layout::{Area, GrabbedBorder, PaneId};
use crate::protocol::WindowView;

/// The columns of the sidebar, including the line at its right.
pub(crate) const SIDEBAR: u16 = 16;
/// A narrower window has no sidebar.
const MIN_COLUMNS_WITH_SIDEBAR: u16 = 70;
/// The lines of the footer. A window with fewer lines than `MIN_LINES_WITH_FOOTER` has none.
pub(crate) const FOOTER: u16 = 2;
const MIN_LINES_WITH_FOOTER: u16 = 8;
/// Clicks on the same cell within this time are a double or triple click.
const CLICKS_WITHIN: Duration = Duration::from_millis(400);
/// How long after a key the person counts as present.
const TYPED_FOR: Duration = Duration::from_secs(10);
/// How long a message is shown.
const NOTE_SHOWN: Duration = Duration::from_secs(4);

/// The id of an attached client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ClientId(pub(crate) u64);

/// The mode of a window, which determines what keys do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Keys go to the focused program.
    #[default]
    Program,
    /// The prefix was pressed; the next key is a command.
    Prefix,
    /// Keys move in the scrollback.
    Scroll,
    /// The person types a search text.
    Search(String),
    /// The person types a name for the pane.
    Rename(String),
    /// The window asks whether to close the pane.
    ConfirmClose,
    /// The help page that begins with this key binding is shown.
    Help(usize),
}

/// The properties that a client reports when it attaches.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientFacts {
    pub(crate) columns: u16,
    pub(crate) lines: u16,
    /// The surface of the client's terminal.
    pub(crate) surface: Option<String>,
    /// The environment for new panes.
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) directory: PathBuf,
    /// The view of its window under an earlier server.
    pub(crate) shown: Option<WindowView>,
}

/// The view of one client, and the state of the person's input there.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) facts: ClientFacts,
    /// The id of the workspace that is shown.
    pub(crate) workspace: String,
    pub(crate) mode: Mode,
    /// The pane that the mode refers to.
    pub(crate) mode_pane: Option<PaneId>,
    /// The bytes of the prefix that the terminal sent.
    pub(crate) prefix: Vec<u8>,
    pub(crate) has_sidebar: bool,
    /// The first visible row of the sidebar.
    pub(crate) sidebar_first: usize,
    /// The focus of the terminal, once it has reported it.
    pub(crate) has_focus: Option<bool>,
    /// Support for kitty's keyboard protocol, once the terminal has answered.
    pub(crate) has_kitty_keyboard: Option<bool>,
    /// The client shows the inbox instead of panes.
    pub(crate) is_in_inbox: bool,
    /// When the person last used the window.
    pub(crate) active: Instant,
    /// When the person last typed or used the mouse there.
    pub(crate) typed: Option<Instant>,
    /// The last search text.
    pub(crate) searched: String,
    /// The pane in which a mouse button was pressed.
    pub(crate) pressed: Option<PaneId>,
    /// The border that is dragged.
    pub(crate) grabbed: Option<GrabbedBorder>,
    last_click: Option<(Instant, u16, u16, u8)>,
    note: Option<(String, Instant)>,
}

impl View {
    pub(crate) fn new(facts: ClientFacts, workspace: String, now: Instant) -> Self {
        let has_sidebar = facts.shown.as_ref().is_none_or(|shown| shown.has_sidebar);
        Self {
            facts,
            workspace,
            mode: Mode::default(),
            mode_pane: None,
            prefix: Vec::new(),
            has_sidebar,
            sidebar_first: 0,
            has_focus: None,
            has_kitty_keyboard: None,
            is_in_inbox: false,
            active: now,
            typed: None,
            searched: String::new(),
            pressed: None,
            grabbed: None,
            last_click: None,
            note: None,
        }
    }

    /// Returns true if the view is the one that its client was other.
    pub(crate) fn matches(&self, other: &WindowView) -> bool {
        self.workspace == other.workspace && self.has_sidebar == other.has_sidebar
    }

    /// The view that the client will report to the next server.
    pub(crate) fn shown(&self) -> WindowView {
        WindowView { workspace: self.workspace.clone(), has_sidebar: self.has_sidebar }
    }

    pub(crate) fn shows_sidebar(&self) -> bool {
        self.has_sidebar && self.facts.columns >= MIN_COLUMNS_WITH_SIDEBAR
    }

    pub(crate) fn shows_footer(&self) -> bool {
        self.facts.lines >= MIN_LINES_WITH_FOOTER
    }

    /// The room for panes.
    pub(crate) fn room(&self) -> Area {
        let left = if self.shows_sidebar() { SIDEBAR } else { 0 };
        let below = if self.shows_footer() { FOOTER } else { 0 };
        Area::new(left, 0, self.facts.columns.saturating_sub(left), self.facts.lines.saturating_sub(below))
    }

    /// Returns true if the person looks at the window: its terminal has the focus, or does not report focus and they typed
    /// there a moment ago.
    pub(crate) fn is_looked_at(&self, now: Instant) -> bool {
        let typed = || self.typed.is_some_and(|at| now.saturating_duration_since(at) < TYPED_FOR);
        self.has_focus.unwrap_or_else(typed)
    }

    /// How long the person counts as looking at the window, if its terminal does not report focus.
    pub(crate) fn looks_until(&self) -> Option<Instant> {
        self.typed.filter(|_| self.has_focus.is_none()).map(|at| at + TYPED_FOR)
    }

    /// Ends a mode that refers to one pane, unless that is the focused one.
    pub(crate) fn end_mode_of_other_panes(&mut self, focused: Option<&PaneId>) {
        let is_about_pane =
            matches!(self.mode, Mode::Scroll | Mode::Search(_) | Mode::Rename(_) | Mode::ConfirmClose);
        if is_about_pane && self.mode_pane.as_ref() != focused {
            self.mode = Mode::Program;
        }
    }

    /// Shows the help page after the one that begins with `first`, or the panes after the last page.
    pub(crate) fn turn_help_page(&mut self, keys: &PaneKeys, first: usize) {
        let window = Area::new(0, 0, self.facts.columns, self.facts.lines);
        self.mode = HelpPage::new(keys, window, first).next.map_or(Mode::Program, Mode::Help);
    }

    /// Counts a click at a cell. Returns 1 to 3 for single to triple clicks.
    pub(crate) fn click(&mut self, x: u16, y: u16, now: Instant) -> u8 {
        let before = self.last_click.filter(|(at, column, line, _)| {
            now.saturating_duration_since(*at) < CLICKS_WITHIN && (*column, *line) == (x, y)
        });
        let clicks = before.map_or(1, |(_, _, _, clicks)| clicks % 3 + 1);
        self.last_click = Some((now, x, y, clicks));
        clicks
    }

    /// Shows a message for a while.
    pub(crate) fn note(&mut self, text: impl Into<String>, now: Instant) {
        self.note = Some((text.into(), now));
    }

    pub(crate) fn clear_note(&mut self) {
        self.note = None;
    }

    /// The current message and its end.
    pub(crate) fn shown_note(&self, now: Instant) -> Option<(&str, Instant)> {
        let (text, since) = self.note.as_ref()?;
        let until = *since + NOTE_SHOWN;
        (now < until).then_some((text, until))
    }
}
