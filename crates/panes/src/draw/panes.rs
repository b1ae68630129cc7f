//! Draws the panes: borders with titles, the ring, and the screens of programs.

use std::collections::BTreeSet;
use std::time::Instant;

use ringer_term::sanitise_line;
use unicode_width::UnicodeWidthStr;

use super::words::{columns, cut, sign_of};
use crate::actions::{PaneAction, PaneKeys};
use crate::layout::{Area, PaneId};
use crate::pane::Pane;
use crate::screen::{Cursor, Screen};
use crate::state::State;
use crate::style::{Colour, Style};
use crate::view::{ClientId, Mode, View};

/// The characters of a border: the corners from the upper left one in reading order, the horizontal and the vertical line.
const PLAIN: [&str; 6] = ["┌", "┐", "└", "┘", "─", "│"];
const HEAVY: [&str; 6] = ["┏", "┓", "┗", "┛", "━", "┃"];

pub(super) fn draw(state: &State, client: ClientId, now: Instant, screen: &mut Screen, room: Area) {
    let (Some(workspace), Some(view)) = (state.shown_workspace(client), state.view(client)) else { return };
    let (all, seen) = (workspace.panes(), workspace.areas(room));
    for &(ref id, area) in &seen {
        let Some(pane) = state.pane(id) else { continue };
        let is_focused = workspace.focused() == Some(id);
        let style = draw_border(pane, area, is_focused, now, screen);
        // The number is only needed if the other panes are hidden.
        let at = all.iter().position(|own| own == id).filter(|_| seen.len() < all.len());
        let number = at.map(|at| format!("{} of {}", at + 1, all.len()));
        draw_title(pane, area, is_focused, number.as_deref(), style, screen);
        draw_notes(pane, area, workspace.is_zoomed(), style, state.keys(), screen);
        draw_content(pane, area.inside(), 0..pane.emulator.size().lines, screen);
        if is_focused && has_cursor(view) {
            screen.cursor = cursor_in(pane, area.inside());
        }
    }
}

/// Draws changed lines of panes over the picture that the window shows. Returns the lines of the screen that were drawn.
pub(super) fn draw_lines(
    state: &State,
    client: ClientId,
    changed: &[(PaneId, Vec<u16>)],
    shown: &Screen,
    screen: &mut Screen,
) -> BTreeSet<u16> {
    let mut rows = BTreeSet::new();
    screen.cursor = shown.cursor;
    let (Some(workspace), Some(view)) = (state.shown_workspace(client), state.view(client)) else {
        return rows;
    };
    for (id, area) in workspace.areas(view.room()) {
        let Some((_, lines)) = changed.iter().find(|(pane, _)| *pane == id) else { continue };
        let (Some(pane), inside) = (state.pane(&id), area.inside()) else { continue };
        for line in lines.iter().filter(|line| **line < inside.height) {
            if rows.insert(inside.y + line) {
                screen.copy_row(inside.y + line, shown);
            }
        }
        draw_content(pane, inside, lines.iter().copied(), screen);
        if workspace.focused() == Some(&id) && has_cursor(view) {
            screen.cursor = cursor_in(pane, inside);
        }
    }
    rows
}

/// Returns true if the program's cursor is shown, and not the cursor of a prompt.
fn has_cursor(view: &View) -> bool {
    matches!(view.mode, Mode::Program | Mode::Prefix)
}

fn cursor_in(pane: &Pane, inside: Area) -> Option<Cursor> {
    let (x, y, shape) = pane.emulator.cursor().filter(|_| pane.ending.is_none())?;
    let is_inside = x < inside.width && y < inside.height;
    is_inside.then_some(Cursor { x: inside.x + x, y: inside.y + y, shape })
}

/// Draws the border. Returns the style of its lines.
fn draw_border(pane: &Pane, area: Area, is_focused: bool, now: Instant, screen: &mut Screen) -> Style {
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
    if area.width < 2 || area.height < 2 {
        return style;
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
    style
}

/// Draws the title into the upper border, and a number like "2 of 3" at its right.
fn draw_title(
    pane: &Pane,
    area: Area,
    is_focused: bool,
    number: Option<&str>,
    line: Style,
    screen: &mut Screen,
) {
    let style = match (pane.ring.is_lit, is_focused) {
        (true, _) => line.reversed(),
        (false, true) => Style::default().bold(),
        (false, false) => Style::default().dim(),
    };
    let mut room = area.width.saturating_sub(6);
    if let Some(number) = number.filter(|number| columns(number) <= room && area.height > 1) {
        let x = area.right() - columns(number) - 4;
        screen.put(x, area.y, &format!(" {number} "), room + 2, line);
        room = room.saturating_sub(columns(number) + 3);
    }
    let title = cut(&title(pane, room), room);
    if !title.is_empty() && room > 2 && area.height > 1 {
        screen.put(area.x + 2, area.y, &format!(" {title} "), room + 2, style);
    }
}

/// Draws the lower border: at the left how the program ended and the keys for that, at the right the state of the pane.
fn draw_notes(pane: &Pane, area: Area, is_zoomed: bool, style: Style, keys: &PaneKeys, screen: &mut Screen) {
    let room = area.width.saturating_sub(6);
    if room <= 2 || area.height < 2 {
        return;
    }
    let bottom = area.bottom() - 1;
    let (again, close) = (keys.shown(PaneAction::Restart), keys.shown(PaneAction::Close));
    let end = match (&pane.ending, &pane.failure) {
        (_, Some(why)) => Some(format!("{} · {again} try again · {close} close", sanitise_line(why))),
        (Some(ending), None) => Some(format!("{} · {again} start again · {close} close", ending.text())),
        (None, None) => None,
    };
    let end = end.map(|text| cut(&text, room));
    if let Some(text) = &end {
        screen.put(area.x + 2, bottom, &format!(" {text} "), room + 2, Style::default().bold());
    }
    let notes = [
        is_zoomed.then(|| "zoomed".to_owned()),
        Some(pane.not_kept).filter(|bytes| *bytes > 0).map(|bytes| format!("{bytes} bytes not kept")),
        pane.progress(),
        Some(pane.emulator.scrolled()).filter(|lines| *lines > 0).map(|lines| format!("{lines} lines back")),
    ];
    let text = cut(&notes.into_iter().flatten().collect::<Vec<_>>().join(" · "), room);
    let taken = end.map_or(0, |text| columns(&text) + 3);
    if !text.is_empty() && taken + columns(&text) <= room {
        let x = area.right().saturating_sub(columns(&text) + 4);
        screen.put(x, bottom, &format!(" {text} "), room + 2, style);
    }
}

/// The title: `! api/auth · claude · needs permission`, or `api · cargo test`. If it does not fit, the client is left out first.
fn title(pane: &Pane, room: u16) -> String {
    let (sign, word, _) = sign_of(pane);
    let label = pane.label();
    let joined = |parts: &[String]| {
        let mut parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        parts.dedup();
        parts.retain(|part| !part.trim().is_empty());
        let text = parts.join(" · ");
        if sign.trim().is_empty() { text } else { format!("{sign} {text}") }
    };
    let Some(agent) = &pane.agent else { return joined(&[label, pane.title()]) };
    let whole = joined(&[label.clone(), sanitise_line(&agent.client), word.to_owned()]);
    if whole.width() <= usize::from(room) { whole } else { joined(&[label, word.to_owned()]) }
}

/// Draws lines of a program's screen.
fn draw_content(
    pane: &Pane,
    inside: Area,
    lines: impl IntoIterator<Item = u16, IntoIter: Clone>,
    screen: &mut Screen,
) {
    let lines = lines.into_iter().filter(|line| *line < inside.height);
    pane.emulator.each_cell(lines.clone(), |x, y, cell| {
        if x < inside.width
            && let Some(own) = screen.cell_mut(inside.x + x, inside.y + y)
        {
            *own = cell;
        }
    });
    for line in lines {
        screen.mend_halves(Area { y: inside.y + line, height: 1, ..inside });
    }
}
