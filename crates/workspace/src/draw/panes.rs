//! The panes: borders with titles, the ring, and what programs show.

use std::time::Instant;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::words::{cut, sign_of};
use crate::area::Area;
use crate::pane::Pane;
use crate::screen::{Cursor, Screen};
use crate::state::State;
use crate::style::{Colour, Style};
use crate::view::{ClientId, Mode};

/// The signs of a border: its corners from the upper left one on, the horizontal and the vertical line.
const PLAIN: [&str; 6] = ["┌", "┐", "└", "┘", "─", "│"];
const HEAVY: [&str; 6] = ["┏", "┓", "┗", "┛", "━", "┃"];

pub(super) fn draw(state: &State, client: ClientId, now: Instant, screen: &mut Screen, room: Area) {
    let (Some(workspace), Some(view)) = (state.shown_workspace(client), state.view(client)) else { return };
    for (id, area) in workspace.areas(room) {
        let Some(pane) = state.pane(&id) else { continue };
        let is_focused = workspace.focused() == Some(&id);
        draw_border(pane, area, is_focused, workspace.is_zoomed(), now, screen);
        draw_content(pane, area.inside(), screen);
        let has_cursor =
            is_focused && matches!(view.mode, Mode::Program | Mode::Prefix) && pane.ending.is_none();
        if has_cursor && let Some((x, y, shape)) = pane.emulator.cursor() {
            let inside = area.inside();
            if x < inside.width && y < inside.height {
                screen.cursor = Some(Cursor { x: inside.x + x, y: inside.y + y, shape });
            }
        }
    }
}

fn draw_border(
    pane: &Pane,
    area: Area,
    is_focused: bool,
    is_zoomed: bool,
    now: Instant,
    screen: &mut Screen,
) {
    if area.width < 2 || area.height < 2 {
        return;
    }
    let is_ringing = pane.ring.is_lit;
    let signs = if is_ringing { HEAVY } else { PLAIN };
    let mut style = match (is_ringing, is_focused) {
        (true, _) => Style::foreground(Colour::Indexed(4)).bold(),
        (false, true) => Style::default(),
        (false, false) => Style::default().dim(),
    };
    if pane.is_flashing(now) {
        style = Style::foreground(Colour::Indexed(12)).bold().reversed();
    }
    let (right, bottom) = (area.right() - 1, area.bottom() - 1);
    for x in area.x + 1..right {
        screen.put(x, area.y, signs[4], 1, style);
        screen.put(x, bottom, signs[4], 1, style);
    }
    for y in area.y + 1..bottom {
        screen.put(area.x, y, signs[5], 1, style);
        screen.put(right, y, signs[5], 1, style);
    }
    for (sign, x, y) in [
        (signs[0], area.x, area.y),
        (signs[1], right, area.y),
        (signs[2], area.x, bottom),
        (signs[3], right, bottom),
    ] {
        screen.put(x, y, sign, 1, style);
    }
    let room = area.width.saturating_sub(6);
    let title = cut(&title(pane), room);
    if !title.is_empty() && room > 2 {
        let style = match (is_ringing, is_focused) {
            (true, _) => style.reversed(),
            (false, true) => Style::default().bold(),
            (false, false) => Style::default().dim(),
        };
        screen.put(area.x + 2, area.y, &format!(" {title} "), room + 2, style);
    }
    let notes = [
        is_zoomed.then(|| "zoomed".to_owned()),
        pane.progress(),
        Some(pane.emulator.scrolled()).filter(|lines| *lines > 0).map(|lines| format!("{lines} lines back")),
    ];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    if !notes.is_empty() {
        let text = cut(&notes.join(" · "), room);
        let width = u16::try_from(text.width()).unwrap_or(0) + 2;
        let x = right.saturating_sub(width + 1).max(area.x + 1);
        screen.put(x, bottom, &format!(" {text} "), width, style);
    }
    let end = match (&pane.ending, &pane.failure) {
        (_, Some(why)) => Some(format!("{why} · ^g r try again · ^g x close")),
        (Some(ending), None) => Some(format!("{} · ^g r start again · ^g x close", ending.text())),
        (None, None) => None,
    };
    if let Some(text) = end {
        let text = cut(&text, room);
        screen.put(area.x + 2, bottom, &format!(" {text} "), room + 2, Style::default().bold());
    }
}

/// `! api/auth · claude · needs permission`, or `api · cargo test`.
fn title(pane: &Pane) -> String {
    let (sign, word, _) = sign_of(pane);
    let label = pane.label();
    let mut parts = vec![label.clone()];
    match &pane.agent {
        Some(agent) => {
            parts.extend([agent.client.clone(), word.to_owned()]);
        }
        None => parts.push(pane.title()),
    }
    parts.dedup();
    parts.retain(|part| !part.trim().is_empty());
    let text = parts.join(" · ");
    if sign.trim().is_empty() { text } else { format!("{sign} {text}") }
}

fn draw_content(pane: &Pane, inside: Area, screen: &mut Screen) {
    let right = inside.right();
    pane.emulator.each_cell(|x, y, cell| {
        if x >= inside.width || y >= inside.height {
            return;
        }
        let at = inside.x + x;
        // Where the client is narrower than the pane, a wide character may be cut.
        let is_cut = at + 1 == right && cell.character.is_some_and(|char| char.width() == Some(2));
        if let Some(own) = screen.cell_mut(at, inside.y + y) {
            *own = cell;
            if is_cut {
                own.character = Some(' ');
            }
        }
    });
}
