//! Draws the footer: keys or a prompt at the left, the toast or the indicators and the unread count at the right.

use std::time::Instant;

use ringer_core::attention::Badge;
use ringer_term::sanitise_line;

use super::words::{columns, cut, end_of};
use crate::actions::{PaneAction, PaneKeys};
use crate::layout::Area;
use crate::pane::Pane;
use crate::screen::{Cursor, Screen};
use crate::state::State;
use crate::style::{Colour, Style};
use crate::view::{ClientId, Mode, View};

/// The key hints, each with its rank. If there is not enough room, lower ranks are kept.
const HINTS: [(PaneAction, &str, u8); 7] = [
    (PaneAction::NextUnread, "next unread", 0),
    (PaneAction::Inbox, "inbox", 2),
    (PaneAction::SplitRight, "split", 3),
    (PaneAction::SplitDown, "below", 6),
    (PaneAction::Zoom, "zoom", 5),
    (PaneAction::Detach, "leave", 4),
    (PaneAction::Help, "keys", 1),
];
/// Empty columns between two hints.
const BETWEEN_HINTS: u16 = 3;

/// Empty columns before the toast, and before the unread count.
const BEFORE_RIGHT: u16 = 1;
const BEFORE_UNREAD: u16 = 2;
/// The least width of a toast. With less room, it is not shown beside a prompt, and replaces the key hints.
const MIN_RIGHT: u16 = 10;
/// The least width for typed text.
const MIN_TYPED: u16 = 16;
/// The longest name in a short question.
const MAX_LABEL: u16 = 12;
/// The keys of the scrollback, from the longest to the shortest text.
const SCROLLING: [&str; 3] = [
    "↑↓ pages g G scroll   / search   n N next   y copy   q back",
    "↑↓ scroll   / search   q back",
    "q back",
];

/// The left side of the footer.
enum LeftSide {
    Hints {
        is_prefix: bool,
    },
    /// A prompt with typed text. `what` is a long and a short label.
    Typed {
        what: [&'static str; 2],
        text: String,
    },
    /// The first of these texts that fits.
    Words(Vec<String>),
}

pub(super) fn draw(state: &State, client: ClientId, now: Instant, screen: &mut Screen) {
    let Some(view) = state.view(client) else { return };
    let area = screen.area();
    let (line, y) = (area.height.saturating_sub(2), area.height.saturating_sub(1));
    for x in 0..area.width {
        screen.put(x, line, "─", 1, Style::default().dim());
    }
    let mut end = area.width.saturating_sub(1);
    let unread = Badge(state.unread_elsewhere(client)).to_string();
    // The sidebar shows the counts, too.
    if !view.shows_sidebar() && !unread.is_empty() {
        let text = format!("● {unread}");
        let x = end.saturating_sub(columns(&text));
        screen.put(x, y, &text, end - x, Style::foreground(Colour::Indexed(4)).bold());
        end = x.saturating_sub(BEFORE_UNREAD);
    }
    let left = left_side(state, client, view, now);
    let (text, style) = right_side(state);
    let width = columns(&text).min(left.leaves(end, state.keys()));
    let x = end.saturating_sub(width);
    screen.put(x, y, &cut(&text, width), width, style);
    let room = if width == 0 { end } else { x.saturating_sub(BEFORE_RIGHT) }.saturating_sub(1);
    left.draw(state, screen, Area::new(1, y, room, 1));
}

/// Draws a prompt or message over the last line of a window without a footer.
pub(super) fn draw_prompt(state: &State, client: ClientId, now: Instant, screen: &mut Screen) {
    let prompt = state.view(client).and_then(|view| prompt(state, client, view, now));
    let (Some(prompt), area) = (prompt, screen.area()) else { return };
    let Some(y) = area.height.checked_sub(1) else { return };
    screen.put(0, y, &" ".repeat(usize::from(area.width)), area.width, Style::default());
    prompt.draw(state, screen, Area { y, height: 1, ..area });
}

impl LeftSide {
    fn draw(self, state: &State, screen: &mut Screen, line: Area) {
        match self {
            Self::Hints { is_prefix } => hints(state, screen, line, is_prefix),
            Self::Typed { what, text } => typed(screen, line, what, &text),
            Self::Words(words) => {
                let fits = |text: &&String| columns(text) <= line.width;
                let text = words.iter().find(fits).or(words.last()).map(|text| cut(text, line.width));
                let warning = Style::foreground(Colour::Indexed(3));
                screen.put(line.x, line.y, &text.unwrap_or_default(), line.width, warning);
            }
        }
    }

    /// The columns that are left for the right side: half of them, or the part that is not needed here.
    fn leaves(&self, whole: u16, keys: &PaneKeys) -> u16 {
        let needed = match self {
            Self::Hints { .. } => HINTS.first().map_or(0, |hint| hint_columns(keys, hint)),
            Self::Typed { what, text } => columns(what[0]) + columns(text).max(MIN_TYPED) + 1,
            Self::Words(words) => words.first().map_or(0, |text| columns(text)),
        };
        let left = whole.saturating_sub(needed.saturating_add(BEFORE_RIGHT + 1));
        match self {
            _ if left >= MIN_RIGHT => left.min(whole / 2),
            // A toast is more useful than key hints.
            Self::Hints { is_prefix: false } => whole.saturating_sub(1),
            _ => 0,
        }
    }
}

fn left_side(state: &State, client: ClientId, view: &View, now: Instant) -> LeftSide {
    prompt(state, client, view, now).unwrap_or_else(|| match &view.mode {
        Mode::Scroll => LeftSide::Words(SCROLLING.map(str::to_owned).to_vec()),
        mode => LeftSide::Hints { is_prefix: *mode == Mode::Prefix },
    })
}

/// The prompt or message, if there is one.
fn prompt(state: &State, client: ClientId, view: &View, now: Instant) -> Option<LeftSide> {
    let prompt = match &view.mode {
        Mode::Search(text) => LeftSide::Typed { what: ["search: ", "/"], text: sanitise_line(text) },
        Mode::Rename(text) => {
            LeftSide::Typed { what: ["name of the pane: ", "name: "], text: sanitise_line(text) }
        }
        Mode::ConfirmClose => {
            let label = state.focused(client).map(Pane::label).unwrap_or_default();
            let short = cut(&label, MAX_LABEL);
            LeftSide::Words(vec![
                format!("Close {label} and end its program?  y yes   other keys no"),
                format!("Close {short} and end its program?  y yes"),
                format!("Close {short}?  y yes   other keys no"),
                "Close?  y yes".to_owned(),
                "Close?  y/n".to_owned(),
                "y/n?".to_owned(),
            ])
        }
        _ => LeftSide::Words(vec![sanitise_line(view.shown_note(now)?.0)]),
    };
    Some(prompt)
}

/// The width of a key hint.
fn hint_columns(keys: &PaneKeys, (action, words, _): &(PaneAction, &str, u8)) -> u16 {
    columns(&keys.shown(*action)) + 1 + columns(words)
}

fn right_side(state: &State) -> (String, Style) {
    if let Some(toast) = state.toast() {
        return (sanitise_line(toast), Style::foreground(Colour::Indexed(3)));
    }
    let indicators: Vec<String> = state.indicators().map(sanitise_line).collect();
    (indicators.join(" │ "), Style::default().dim())
}

/// Draws the key hints that fit, and prefers lower ranks.
fn hints(state: &State, screen: &mut Screen, line: Area, is_prefix: bool) {
    let mut ranked = HINTS;
    ranked.sort_by_key(|(_, _, rank)| *rank);
    let (mut kept, mut left) = (Vec::new(), line.width.saturating_add(BETWEEN_HINTS));
    for hint in &ranked {
        let width = hint_columns(state.keys(), hint) + BETWEEN_HINTS;
        if width <= left {
            left -= width;
            kept.push(hint.2);
        } else if !kept.is_empty() {
            break;
        }
    }
    let Area { mut x, y, width: room, .. } = line;
    for (action, words, _) in HINTS.iter().filter(|(_, _, rank)| kept.contains(rank)) {
        let style = Style::default().bold();
        let key = state.keys().shown(*action);
        x = screen.put(x, y, &key, room, if is_prefix { style.reversed() } else { style });
        x = screen.put(x, y, &format!(" {words}"), room, Style::default().dim()) + BETWEEN_HINTS;
    }
}

fn typed(screen: &mut Screen, line: Area, [long, short]: [&str; 2], text: &str) {
    let Area { x, y, width: room, .. } = line;
    let what = match room {
        _ if columns(long) + MIN_TYPED <= room => long,
        // The typed text is more useful than the label.
        _ if 2 * columns(short) > room => "",
        _ => short,
    };
    let x = screen.put(x, y, what, room, Style::default().bold());
    // One column is for the cursor after the text.
    let left = line.right().saturating_sub(x + 1);
    let x = screen.put(x, y, &end_of(text, left), left, Style::default());
    if x < screen.area().width {
        screen.cursor = Some(Cursor { x, y, shape: 6 });
    }
}
