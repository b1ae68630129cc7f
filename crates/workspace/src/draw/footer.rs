//! The footer: keys at the left, or what is typed; the toast or the indicators at the right.

use std::time::Instant;

use ringer_term::sanitise_line;
use unicode_width::UnicodeWidthStr;

use super::words::{cut, end_of};
use crate::actions::PaneAction;
use crate::screen::{Cursor, Screen};
use crate::state::State;
use crate::style::{Colour, Style};
use crate::view::{ClientId, Mode};

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

/// A key and what it does.
struct Hint {
    key: String,
    words: &'static str,
    rank: u8,
}

pub(super) fn draw(state: &State, client: ClientId, now: Instant, screen: &mut Screen) {
    let Some(view) = state.view(client) else { return };
    let area = screen.area();
    let (line, y) = (area.height.saturating_sub(2), area.height.saturating_sub(1));
    for x in 0..area.width {
        screen.put(x, line, "─", 1, Style::default().dim());
    }
    let right = right_side(state);
    let right_width = u16::try_from(right.0.width()).unwrap_or(0).min(area.width / 2);
    let room = area.width.saturating_sub(right_width + 3);
    let warning = Style::foreground(Colour::Indexed(3));
    match &view.mode {
        Mode::Search(text) => typed(screen, y, room, "search: ", text),
        Mode::Rename(text) => typed(screen, y, room, "name of the pane: ", text),
        Mode::ConfirmClose => {
            let label = state.focused(client).map(crate::pane::Pane::label).unwrap_or_default();
            let text = format!("Close {label} and end its program?  y yes   other keys no");
            screen.put(1, y, &cut(&text, room), room, warning);
        }
        Mode::Scroll if view.shown_note(now).is_none() => {
            let text = "↑↓ pages g G scroll   / search   n N next   y copy   q back";
            screen.put(1, y, &cut(text, room), room, warning);
        }
        _ => match view.shown_note(now) {
            Some((note, _)) => drop(screen.put(1, y, &cut(&sanitise_line(note), room), room, warning)),
            None => hints(state, screen, y, room, view.mode == Mode::Prefix),
        },
    }
    let x = area.width.saturating_sub(right_width + 1);
    screen.put(x, y, &cut(&right.0, right_width), right_width, right.1);
}

fn right_side(state: &State) -> (String, Style) {
    if let Some(toast) = state.toast() {
        return (sanitise_line(toast), Style::foreground(Colour::Indexed(3)));
    }
    let indicators: Vec<String> = state.indicators().map(sanitise_line).collect();
    (indicators.join(" │ "), Style::default().dim())
}

fn hints(state: &State, screen: &mut Screen, y: u16, room: u16, is_prefix: bool) {
    let width = |hint: &Hint| u16::try_from(hint.key.width() + hint.words.width() + 1).unwrap_or(u16::MAX);
    let mut hints: Vec<Hint> = HINTS
        .iter()
        .map(|(action, words, rank)| Hint { key: state.keys().shown(*action), words, rank: *rank })
        .collect();
    let all = |hints: &[Hint]| hints.iter().map(|hint| width(hint) + BETWEEN_HINTS).sum::<u16>();
    while all(&hints).saturating_sub(BETWEEN_HINTS) > room {
        let last = hints.iter().map(|hint| hint.rank).max();
        hints.retain(|hint| Some(hint.rank) != last);
    }
    let mut x = 1;
    for hint in hints {
        let style = Style::default().bold();
        x = screen.put(x, y, &hint.key, room, if is_prefix { style.reversed() } else { style });
        x = screen.put(x, y, &format!(" {}", hint.words), room, Style::default().dim()) + BETWEEN_HINTS;
    }
}

fn typed(screen: &mut Screen, y: u16, room: u16, what: &str, text: &str) {
    let x = screen.put(1, y, what, room, Style::default().bold());
    let x = screen.put(x, y, &end_of(&sanitise_line(text), room.saturating_sub(x)), room, Style::default());
    if x < screen.area().width {
        screen.cursor = Some(Cursor { x, y, shape: 6 });
    }
}
