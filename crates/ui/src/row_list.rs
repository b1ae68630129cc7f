//! The rows, which one is selected, and which are on the screen.

use crate::data::Data;
use crate::layout::{Shares, first_shown};
use crate::rows::{Row, RowKey, Rows, Section};

/// The list of the inbox.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RowList {
    rows: Rows,
    selected: Option<RowKey>,
    /// The first row that is shown, by section.
    first: [usize; 3],
    lines: usize,
    row_lines: usize,
}

impl RowList {
    pub(crate) fn rows(&self) -> &Rows {
        &self.rows
    }

    pub(crate) fn selected(&self) -> Option<&RowKey> {
        self.selected.as_ref()
    }

    pub(crate) fn selected_row(&self) -> Option<&Row> {
        self.rows.find(self.selected.as_ref()?)
    }

    /// How many lines a row takes.
    pub(crate) fn row_lines(&self) -> usize {
        self.row_lines
    }

    /// How the lines are divided, and the first row of each section.
    pub(crate) fn shares(&self) -> (Shares, [usize; 3]) {
        let section = self.selected.as_ref().map(|key| key.section);
        (Shares::of(self.lines, self.rows.counts(), self.row_lines, section), self.first)
    }

    /// It has so many lines, and a row takes so many of them.
    pub(crate) fn resize(&mut self, lines: usize, row_lines: usize) {
        (self.lines, self.row_lines) = (lines, row_lines);
        self.scroll_to_selected();
    }

    pub(crate) fn refresh(&mut self, data: &Data, filter: &str, now_ms: i64) {
        let old = std::mem::replace(&mut self.rows, Rows::of(data, filter, now_ms));
        let is_there = self.selected.as_ref().is_some_and(|key| self.rows.find(key).is_some());
        if !is_there {
            // The row that has taken its place, so that keys go on where they were.
            let index = self.selected.as_ref().and_then(|key| old.all().position(|row| row.key == *key));
            self.select_at(index.unwrap_or(0));
        }
        self.scroll_to_selected();
    }

    fn scroll_to_selected(&mut self) {
        let (shares, _) = self.shares();
        for (index, section) in Section::ALL.into_iter().enumerate() {
            let rows = self.rows.section(section);
            let selected = rows.iter().position(|row| Some(&row.key) == self.selected.as_ref());
            self.first[index] = first_shown(self.first[index], selected, shares.rows[index], rows.len());
        }
    }

    pub(crate) fn select(&mut self, key: RowKey) {
        self.selected = Some(key);
        self.scroll_to_selected();
    }

    /// Selects the row of a number, or the last one.
    pub(crate) fn select_at(&mut self, index: usize) {
        let rows: Vec<&Row> = self.rows.all().collect();
        self.selected = rows.get(index).or(rows.last()).map(|row| row.key.clone());
        self.scroll_to_selected();
    }

    fn position(&self) -> Option<usize> {
        let selected = self.selected.as_ref()?;
        self.rows.all().position(|row| row.key == *selected)
    }

    pub(crate) fn move_by(&mut self, step: isize) {
        let at = self.position().unwrap_or(0);
        self.select_at(at.saturating_add_signed(step));
    }

    pub(crate) fn move_section(&mut self, step: isize) {
        let shown: Vec<Section> =
            Section::ALL.into_iter().filter(|section| !self.rows.section(*section).is_empty()).collect();
        let own = self.selected.as_ref().map(|key| key.section);
        let at = shown.iter().position(|section| Some(*section) == own).unwrap_or(0);
        let next = shown.get(at.saturating_add_signed(step)).or(shown.last());
        if let Some(row) = next.and_then(|section| self.rows.section(*section).first()) {
            self.select(row.key.clone());
        }
    }

    pub(crate) fn select_next_unread(&mut self) {
        let at = self.position().map_or(0, |at| at + 1);
        let rows: Vec<&Row> = self.rows.all().collect();
        let (before, after) = rows.split_at(at.min(rows.len()));
        if let Some(key) = after.iter().chain(before).find(|row| row.is_unread).map(|row| row.key.clone()) {
            self.select(key);
        }
    }
}
