//! The footer: keys at the left, or what is typed; the toast or the indicators at the right, and how much is unread elsewhere.

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

/// What the footer says of keys, and in which order they are kept where there is no room for all.
const HINTS: [(PaneAction, &str, u8); 7] = [
    (PaneAction::NextUnread, "next unread", 0),
    (PaneAction::Inbox, "inbox", 2),
    (PaneAction::SplitRight, "split", 3),
    (PaneAction::SplitDown, "below", 6),
    (PaneAction::Zoom, "zoom", 5),
    (PaneAction::Detach, "leave", 4),
    (PaneAction::Help, "keys", 1),
];
/// Empty columns between two of them.
const BETWEEN_HINTS: u16 = 3;

/// Empty columns before the toast, and before how much is unread.
const BEFORE_RIGHT: u16 = 1;
const BEFORE_UNREAD: u16 = 2;
/// With fewer columns for it, a toast is not shown beside a question or a text that is typed, and takes the place of keys.
const MIN_RIGHT: u16 = 10;
/// As much of a text that is typed is to be seen.
const MIN_TYPED: u16 = 16;
/// As much of a name as is said where there is little room.
const MAX_LABEL: u16 = 12;
/// The keys of what was scrolled away.
const SCROLLING: [&str; 3] = [
    "↑↓ pages g G scroll   / search   n N next   y copy   q back",
    "↑↓ scroll   / search   q back",
    "q back",
];

/// What stands at the left.
enum Left {
    Hints {
        is_prefix: bool,
    },
    /// A text that is typed, after what it is for, which may be said in two ways.
    Typed {
        what: [&'static str; 2],
        text: String,
    },
    /// The first of these that has room.
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
    // The sidebar says it, too, and where.
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

/// In a window without a footer: draws what is asked, typed or noted over the last line.
pub(super) fn draw_prompt(state: &State, client: ClientId, now: Instant, screen: &mut Screen) {
    let prompt = state.view(client).and_then(|view| prompt(state, client, view, now));
    let (Some(prompt), area) = (prompt, screen.area()) else { return };
    let Some(y) = area.height.checked_sub(1) else { return };
    screen.put(0, y, &" ".repeat(usize::from(area.width)), area.width, Style::default());
    prompt.draw(state, screen, Area { y, height: 1, ..area });
}

impl Left {
    /// Draws it into a line.
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

    /// How many of so many columns are left for the right side: half of them, or what is not needed here.
    fn leaves(&self, whole: u16, keys: &PaneKeys) -> u16 {
        let needed = match self {
            Self::Hints { .. } => HINTS.first().map_or(0, |hint| hint_columns(keys, hint)),
            Self::Typed { what, text } => columns(what[0]) + columns(text).max(MIN_TYPED) + 1,
            Self::Words(words) => words.first().map_or(0, |text| columns(text)),
        };
        let left = whole.saturating_sub(needed.saturating_add(BEFORE_RIGHT + 1));
        match self {
            _ if left >= MIN_RIGHT => left.min(whole / 2),
            // What is new is more useful than what keys do.
            Self::Hints { is_prefix: false } => whole.saturating_sub(1),
            _ => 0,
        }
    }
}

fn left_side(state: &State, client: ClientId, view: &View, now: Instant) -> Left {
    prompt(state, client, view, now).unwrap_or_else(|| match &view.mode {
        Mode::Scroll => Left::Words(SCROLLING.map(str::to_owned).to_vec()),
        mode => Left::Hints { is_prefix: *mode == Mode::Prefix },
    })
}

/// What is asked, typed or noted.
fn prompt(state: &State, client: ClientId, view: &View, now: Instant) -> Option<Left> {
    let prompt = match &view.mode {
        Mode::Search(text) => Left::Typed { what: ["search: ", "/"], text: sanitise_line(text) },
        Mode::Rename(text) => {
            Left::Typed { what: ["name of the pane: ", "name: "], text: sanitise_line(text) }
        }
        Mode::ConfirmClose => {
            let label = state.focused(client).map(Pane::label).unwrap_or_default();
            let short = cut(&label, MAX_LABEL);
            Left::Words(vec![
                format!("Close {label} and end its program?  y yes   other keys no"),
                format!("Close {short} and end its program?  y yes"),
                format!("Close {short}?  y yes   other keys no"),
                "Close?  y yes".to_owned(),
                "Close?  y/n".to_owned(),
                "y/n?".to_owned(),
            ])
        }
        _ => Left::Words(vec![sanitise_line(view.shown_note(now)?.0)]),
    };
    Some(prompt)
}

/// How many columns a key and what it does take.
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

/// Draws the keys that have room, the most useful ones first.
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
        // What is typed is more useful than what it is for.
        _ if 2 * columns(short) > room => "",
        _ => short,
    };
    let x = screen.put(x, y, what, room, Style::default().bold());
    // The cursor is behind the text.
    let left = line.right().saturating_sub(x + 1);
    let x = screen.put(x, y, &end_of(text, left), left, Style::default());
    if x < screen.area().width {
        screen.cursor = Some(Cursor { x, y, shape: 6 });
    }
}
