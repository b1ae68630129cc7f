//! A text in a box on top of the list: it is scrolled, and closed.

use crossterm::event::{KeyCode, KeyEvent};

use crate::columns::text_lines;
use crate::keys::Action;

/// The lines that a key for a page moves by.
const PAGE: usize = 10;

/// The text, and which of its lines is the first one shown.
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

    /// The text is another one by now. What is shown of it stays at its line.
    pub(crate) fn replace(&mut self, lines: Vec<String>) {
        self.lines = lines;
    }

    /// A key on a screen of that many columns and lines.
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

    /// The wheel was moved by so many lines.
    pub(crate) fn scroll_by(&mut self, lines: isize, size: (u16, u16)) {
        self.scroll = self.scroll.saturating_add_signed(lines).min(self.last_scroll(size));
    }

    /// With the last line at the end of the box.
    fn last_scroll(&self, size: (u16, u16)) -> usize {
        text_lines(&self.lines, size.0).len().saturating_sub(shown_lines(size.1))
    }
}

/// How many lines of a long text fit on a screen of that many lines.
pub(crate) fn shown_lines(lines: u16) -> usize {
    usize::from(lines).saturating_sub(4)
}
