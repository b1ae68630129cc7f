//! Formats notifications as a table that fits its terminal.
//!
//! Widths are counted in terminal columns. If a row does not fit, its parts shrink in this order: the place, the detail, the
//! label.

use std::io::{self, IsTerminal};

use ringer_hub::Clock;
use ringer_journal::IdSource;
use ringer_term::sanitise_line;
use ringer_ui::age;
use ringer_ui::columns::{cut_end, cut_front, cut_middle, pad, pad_front};
use rustix::termios::tcgetwinsize;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::notifications::label_and_text;
use crate::places::Places;

/// Width of output that is not a terminal and has no `COLUMNS`.
const DEFAULT_WIDTH: usize = 100;
/// Width of a table for a program.
const PROGRAM_WIDTH: usize = 240;
/// Minimum width. In a narrower terminal the lines wrap.
const MIN_WIDTH: usize = 40;
const MAX_LABEL: usize = 24;
const MAX_PLACE: usize = 20;
/// The detail gets these columns before the place is shown.
const DETAIL_BEFORE_PLACE: usize = 24;
/// The detail gets these columns before the label is cut.
const DETAIL_BEFORE_LABEL: usize = 16;
const MIN_LABEL: usize = 8;
/// Replaces the kind of a question that has been answered.
pub(crate) const ANSWERED: &str = "answered";
const GAP: &str = "  ";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    width: usize,
    colour: bool,
}

impl Style {
    /// Returns the style for standard output: its width, and colours on a terminal unless `NO_COLOR` is set.
    pub(crate) fn of_stdout() -> Self {
        let is_terminal = io::stdout().is_terminal();
        let measured = tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
        let configured = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let width = measured.filter(|width| is_terminal && *width > 0).or_else(configured);
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            width: width.unwrap_or(DEFAULT_WIDTH).max(MIN_WIDTH),
            colour: is_terminal && !no_colour && std::env::var_os("TERM").is_none_or(|term| term != "dumb"),
        }
    }
}

impl Style {
    /// Returns the style for a program that reads the text: without colours, and wide enough that little is cut.
    pub(crate) fn for_programs() -> Self {
        Self { width: PROGRAM_WIDTH, colour: false }
    }

    pub(crate) fn width(self) -> usize {
        self.width
    }
}

/// One notification. Its texts are safe to print.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    is_unread: bool,
    short_id: String,
    label: String,
    kind: String,
    detail: String,
    age: String,
    place: String,
}

impl Row {
    /// Converts notifications from the hub's form.
    pub(crate) fn all(rows: &[Value]) -> Vec<Self> {
        let (clock, now_ms) = (Clock::local(), IdSource::now().unix_ms);
        let places = Places::of(rows.iter());
        rows.iter().map(|row| Self::of(row, &places, &clock, now_ms)).collect()
    }

    fn of(row: &Value, places: &Places, clock: &Clock, now_ms: i64) -> Self {
        let text = |name: &str| sanitise_line(row[name].as_str().unwrap_or_default());
        let (label, detail) = label_and_text(row);
        let (label, detail) = (sanitise_line(&label), sanitise_line(&detail));
        let until = row["snoozed_until"].as_str().and_then(|stamp| clock.parse_stamp(stamp));
        let detail = match until {
            Some(until) => format!("snoozed until {}: {detail}", clock.near(until, now_ms)),
            None => detail,
        };
        let sent = row["ts"].as_str().and_then(|stamp| clock.parse_stamp(stamp));
        Self {
            is_unread: row["is_read"].as_bool() == Some(false),
            short_id: text("short_id"),
            label,
            kind: text("kind"),
            detail: detail.split_whitespace().collect::<Vec<_>>().join(" "),
            age: sent.map(|sent| age(now_ms.saturating_sub(sent))).unwrap_or_default(),
            place: row["surface"].as_str().map(|surface| places.name(surface)).unwrap_or_default(),
        }
    }

    /// Cuts a command, and a question with its answer, in the middle; any other text at the end.
    fn detail(&self, width: usize) -> String {
        match self.kind.as_str() {
            "permission" | ANSWERED => cut_middle(&self.detail, width),
            _ => cut_end(&self.detail, width),
        }
    }
}

/// Formats a line for each row. With `marks`, unread rows are marked.
pub(crate) fn format_rows(rows: &[Row], marks: bool, style: Style) -> String {
    let widest = |column: fn(&Row) -> &str, most: usize| {
        rows.iter().map(|row| column(row).width()).max().unwrap_or(0).min(most)
    };
    let id = widest(|row| &row.short_id, usize::MAX);
    let kind = widest(|row| &row.kind, usize::MAX);
    let age = widest(|row| &row.age, usize::MAX);
    let mut label = widest(|row| &row.label, MAX_LABEL);
    let mut place = widest(|row| &row.place, MAX_PLACE);
    let gaps = |columns: usize| columns * GAP.len();
    // Two columns for the mark, or one space before the id.
    let mark = if marks { 2 } else { 1 };
    let fixed = mark + id + kind + age + gaps(4);
    let rest = |label: usize, place: usize| {
        let place = if place > 0 { place + GAP.len() } else { 0 };
        style.width.saturating_sub(fixed + label + place)
    };
    if rest(label, place) < DETAIL_BEFORE_PLACE {
        place = 0;
    }
    if rest(label, place) < DETAIL_BEFORE_LABEL {
        let missing = DETAIL_BEFORE_LABEL - rest(label, place);
        label = label.saturating_sub(missing).max(MIN_LABEL.min(label));
    }
    let longest = rows.iter().map(|row| row.detail.width()).max().unwrap_or(0);
    let detail = rest(label, place).min(longest);
    let line = |row: &Row| {
        let mark = match (marks, row.is_unread) {
            (false, _) => " ",
            (true, true) => "* ",
            (true, false) => "  ",
        };
        let mut line = format!(
            "{mark}{}{GAP}{}{GAP}{}{GAP}{}{GAP}{}",
            pad(&row.short_id, id),
            pad(&cut_front(&row.label, label), label),
            style.paint(&row.kind, &pad(&row.kind, kind)),
            pad(&row.detail(detail), detail),
            pad_front(&row.age, age),
        );
        if place > 0 {
            line += GAP;
            // Cut in the middle, because the window's number is at the end.
            line += &cut_middle(&row.place, place);
        }
        let line = line.trim_end();
        if marks && row.is_unread { style.bold(line) } else { line.to_owned() }
    };
    rows.iter().map(|row| line(row) + "\n").collect()
}

impl Style {
    fn paint(self, kind: &str, text: &str) -> String {
        let code = match kind {
            "permission" | "waiting" => "1;33",
            "question" => "1;34",
            "error" => "31",
            "stuck" => "35",
            "complete" => "32",
            _ => "2",
        };
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn bold(self, line: &str) -> String {
        // A colour in the line resets all attributes, so bold starts again after it.
        if self.colour {
            format!("\x1b[1m{}\x1b[0m", line.replace("\x1b[0m", "\x1b[0;1m"))
        } else {
            line.to_owned()
        }
    }
}

#[cfg(test)]
mod tests;
