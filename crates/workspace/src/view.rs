//! What one client shows: a window on a workspace.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::actions::PaneKeys;
use crate::help_page::HelpPage;
use crate::layout::{Area, GrabbedBorder, PaneId};
use crate::protocol::WindowShown;

/// The columns of the sidebar, with the line at its right.
pub(crate) const SIDEBAR: u16 = 16;
/// With fewer columns there is no sidebar.
const MIN_COLUMNS_WITH_SIDEBAR: u16 = 70;
/// The lines of the footer. With fewer lines of the terminal there is none.
pub(crate) const FOOTER: u16 = 2;
const MIN_LINES_WITH_FOOTER: u16 = 8;
/// Clicks that come sooner after each other, at one place, are one of two or three.
const CLICKS_WITHIN: Duration = Duration::from_millis(400);
/// How long after a key the person is taken to be there.
const TYPED_FOR: Duration = Duration::from_secs(10);
/// How long a sentence about what was done is shown.
const NOTE_SHOWN: Duration = Duration::from_secs(4);

/// A client, as long as it is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ClientId(pub(crate) u64);

/// What keys are for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// For the program in the pane.
    #[default]
    Program,
    /// For the workspace: the prefix was pressed.
    Prefix,
    /// For what was scrolled away.
    Scroll,
    /// A text to search is typed.
    Search(String),
    /// A name is typed.
    Rename(String),
    /// Whether to close a pane is asked.
    ConfirmClose,
    /// The keys are shown, from this one on.
    Help(usize),
}

/// What a client says of itself when it attaches.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientFacts {
    pub(crate) columns: u16,
    pub(crate) lines: u16,
    /// The surface of its terminal.
    pub(crate) surface: Option<String>,
    /// The environment that new panes get.
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) directory: PathBuf,
    /// What its window showed with another server.
    pub(crate) shown: Option<WindowShown>,
}

/// What one client shows, and what the person does there.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) facts: ClientFacts,
    /// The workspace that is shown.
    pub(crate) workspace: String,
    pub(crate) mode: Mode,
    /// The pane that is read, named or closed in that mode.
    pub(crate) mode_pane: Option<PaneId>,
    /// The prefix, as the terminal sent it.
    pub(crate) prefix: Vec<u8>,
    pub(crate) has_sidebar: bool,
    /// The row of the sidebar from which on it is seen.
    pub(crate) sidebar_first: usize,
    /// Whether its terminal has the focus, once it has said so.
    pub(crate) has_focus: Option<bool>,
    /// Whether its terminal has kitty's keyboard protocol, once it has answered.
    pub(crate) has_kitty_keyboard: Option<bool>,
    /// Whether it shows the inbox in the meantime.
    pub(crate) is_in_inbox: bool,
    /// When the person did something there.
    pub(crate) active: Instant,
    /// When they typed or used the mouse there.
    pub(crate) typed: Option<Instant>,
    /// The text that was searched last.
    pub(crate) searched: String,
    /// The pane in which a button of the mouse was pressed.
    pub(crate) pressed: Option<PaneId>,
    /// The border that moves with the mouse, as long as the button is held.
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

    /// Whether it shows what its client was told.
    pub(crate) fn is_as_told(&self, told: &WindowShown) -> bool {
        self.workspace == told.workspace && self.has_sidebar == told.has_sidebar
    }

    /// What its client says to the next server.
    pub(crate) fn shown(&self) -> WindowShown {
        WindowShown { workspace: self.workspace.clone(), has_sidebar: self.has_sidebar }
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

    /// Whether the person looks at it: its terminal has the focus, or does not tell and they typed there a moment ago.
    pub(crate) fn is_looked_at(&self, now: Instant) -> bool {
        let typed = || self.typed.is_some_and(|at| now.saturating_duration_since(at) < TYPED_FOR);
        self.has_focus.unwrap_or_else(typed)
    }

    /// Until when they are taken to look at it, in a terminal that does not tell.
    pub(crate) fn looks_until(&self) -> Option<Instant> {
        self.typed.filter(|_| self.has_focus.is_none()).map(|at| at + TYPED_FOR)
    }

    /// Ends a mode that is about one pane, unless this is the one that has the keys.
    pub(crate) fn end_mode_of_other_panes(&mut self, focused: Option<&PaneId>) {
        let is_about_pane =
            matches!(self.mode, Mode::Scroll | Mode::Search(_) | Mode::Rename(_) | Mode::ConfirmClose);
        if is_about_pane && self.mode_pane.as_ref() != focused {
            self.mode = Mode::Program;
        }
    }

    /// Shows the keys that did not fit on a page that began with this one. After the last page, the panes.
    pub(crate) fn turn_help_page(&mut self, keys: &PaneKeys, first: usize) {
        let window = Area::new(0, 0, self.facts.columns, self.facts.lines);
        self.mode = HelpPage::new(keys, window, first).next.map_or(Mode::Program, Mode::Help);
    }

    /// How many clicks there were at a cell, with this one: from 1 to 3.
    pub(crate) fn click(&mut self, x: u16, y: u16, now: Instant) -> u8 {
        let before = self.last_click.filter(|(at, column, line, _)| {
            now.saturating_duration_since(*at) < CLICKS_WITHIN && (*column, *line) == (x, y)
        });
        let clicks = before.map_or(1, |(_, _, _, clicks)| clicks % 3 + 1);
        self.last_click = Some((now, x, y, clicks));
        clicks
    }

    /// Shows a sentence for a while.
    pub(crate) fn note(&mut self, text: impl Into<String>, now: Instant) {
        self.note = Some((text.into(), now));
    }

    /// No sentence is shown any more.
    pub(crate) fn clear_note(&mut self) {
        self.note = None;
    }

    /// The sentence that is shown, and until when.
    pub(crate) fn shown_note(&self, now: Instant) -> Option<(&str, Instant)> {
        let (text, since) = self.note.as_ref()?;
        let until = *since + NOTE_SHOWN;
        (now < until).then_some((text, until))
    }
}
