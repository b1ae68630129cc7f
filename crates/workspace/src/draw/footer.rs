//! The footer: keys at the left, or what is typed; the toast or the indicators at the right.

use std::time::Instant;

use ringer_term::sanitise_line;
use unicode_width::UnicodeWidthStr;

use super::words::cut;
use crate::actions::PaneAction;
use crate::screen::{Cursor, Screen};
use crate::state::State;
use crate::style::{Colour, Style};
use crate::view::{ClientId, Mode};

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
            let text = format!("Close {label}? Its program is ended.  y yes   any other key no");
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
    let shown = [
        (PaneAction::NextUnread, "next unread"),
        (PaneAction::Inbox, "inbox"),
        (PaneAction::SplitRight, "split"),
        (PaneAction::SplitDown, "below"),
        (PaneAction::Zoom, "zoom"),
        (PaneAction::Detach, "leave"),
        (PaneAction::Help, "keys"),
    ];
    let mut x = 1;
    for (action, words) in shown {
        let key = state.keys().shown(action);
        let width = u16::try_from(key.width() + words.width() + 4).unwrap_or(u16::MAX);
        if x + width > room + 3 {
            break;
        }
        let style = Style::default().bold();
        x = screen.put(x, y, &key, room, if is_prefix { style.reversed() } else { style });
        x = screen.put(x, y, &format!(" {words}   "), room, Style::default().dim());
    }
}

fn typed(screen: &mut Screen, y: u16, room: u16, what: &str, text: &str) {
    let x = screen.put(1, y, what, room, Style::default().bold());
    let x = screen.put(x, y, &sanitise_line(text), room.saturating_sub(x), Style::default());
    screen.cursor = Some(Cursor { x, y, shape: 6 });
}
