//! Draws the window of a client: its sidebar, panes, footer and help page.

mod footer;
mod panes;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeSet;
use std::time::Instant;

use ringer_core::attention::Badge;

use self::words::{columns, cut, sign_of};
use crate::actions::{AFTER_KEY, BETWEEN, HelpPage, OTHER_LINES, PaneKeys, SIDE};
use crate::layout::{Area, PaneId};
use crate::pane::Pane;
use crate::screen::Screen;
use crate::sidebar_page::{Row, SidebarLine};
use crate::state::State;
use crate::style::{Colour, Style};
use crate::view::{ClientId, Mode};

/// Draws a whole window.
pub(crate) fn draw(state: &State, client: ClientId, now: Instant, screen: &mut Screen) {
    let Some(view) = state.view(client) else { return };
    screen.clear(view.facts.columns, view.facts.lines);
    let room = view.room();
    if view.shows_sidebar() {
        draw_sidebar(state, client, screen, room.x, room.height);
    }
    panes::draw(state, client, now, screen, room);
    if view.shows_footer() {
        footer::draw(state, client, now, screen);
    } else {
        footer::draw_prompt(state, client, now, screen);
    }
    if let Mode::Help(first) = view.mode {
        draw_help(state.keys(), first, screen);
        screen.cursor = None;
    }
}

/// Draws changed lines of panes, if nothing else has changed. Returns the lines of the screen that were drawn, or `None` if the
/// whole window has to be drawn.
pub(crate) fn draw_lines(
    state: &State,
    client: ClientId,
    changed: &[(PaneId, Vec<u16>)],
    shown: &Screen,
    screen: &mut Screen,
) -> Option<BTreeSet<u16>> {
    let view = state.view(client)?;
    let size = Area::new(0, 0, view.facts.columns, view.facts.lines);
    // The help page covers the panes.
    if matches!(view.mode, Mode::Help(_)) || shown.area() != size {
        return None;
    }
    screen.match_size(shown);
    Some(panes::draw_lines(state, client, changed, shown, screen))
}

/// The hint below the keys if there is another page.
const MORE: &str = "any key: more   esc: back";

fn draw_help(keys: &PaneKeys, first: usize, screen: &mut Screen) {
    let room = screen.area();
    let page = HelpPage::new(keys, room, first);
    let tallest = page.columns.iter().map(|column| column.lines.len()).max().unwrap_or(0);
    let width = page.width().min(room.width);
    let height = (u16::try_from(tallest).unwrap_or(0) + OTHER_LINES).min(room.height);
    let area = Area::new((room.width - width) / 2, (room.height - height) / 2, width, height);
    let style = Style::default().reversed();
    for y in area.y..area.bottom() {
        screen.put(area.x, y, &" ".repeat(usize::from(width)), width, style);
    }
    let title = format!("After {}:", keys.prefix.to_string().replace("ctrl-", "^"));
    let inside = width.saturating_sub(2 * SIDE);
    screen.put(area.x + SIDE, area.y + 1, &cut(&title, inside), inside, style.bold());
    if page.next.is_some() {
        let last = area.bottom().saturating_sub(1);
        screen.put(area.x + SIDE, last, &cut(MORE, inside), inside, style);
    }
    let mut x = area.x + SIDE;
    for column in &page.columns {
        for (y, (key, words)) in (area.y + 2..area.bottom().saturating_sub(1)).zip(&column.lines) {
            let left = |x: u16| area.right().saturating_sub(x + SIDE);
            screen.put(x, y, &cut(key, left(x)), left(x), style.bold());
            let x = x + column.keys_width + AFTER_KEY;
            screen.put(x, y, &cut(words, left(x)), left(x), style);
        }
        x += column.width + BETWEEN;
    }
}

/// Draws the sidebar. Its last column is a vertical line.
fn draw_sidebar(state: &State, client: ClientId, screen: &mut Screen, columns: u16, lines: u16) {
    let room = columns.saturating_sub(1);
    let seen = state.sidebar_page(client).map(|page| page.lines).unwrap_or_default();
    for (y, line) in (0..lines).zip(seen) {
        match line {
            SidebarLine::Row(Row::Workspace { at }) => {
                let Some(workspace) = state.workspaces().get(at) else { continue };
                let is_shown = state.shown_workspace(client).is_some_and(|shown| shown.id == workspace.id);
                let style = if is_shown { Style::default().bold() } else { Style::default() };
                draw_heading(&workspace.name, state.unread_in(workspace), style, screen, room, y);
            }
            SidebarLine::Row(Row::Pane { pane, workspace }) => {
                let Some(pane) = state.pane(&pane) else { continue };
                draw_sidebar_pane(state, pane, workspace, client, screen, room, y);
            }
            SidebarLine::Above(rows) => draw_more("▴", state, &rows, screen, room, y),
            SidebarLine::Below(rows) => draw_more("▾", state, &rows, screen, room, y),
        }
    }
    for y in 0..lines {
        screen.put(room, y, "│", 1, Style::default().dim());
    }
}

/// Draws a line of the sidebar with an unread count at its right.
fn draw_heading(text: &str, unread: usize, style: Style, screen: &mut Screen, room: u16, y: u16) {
    let number = Badge(unread).to_string();
    let width = columns(&number);
    screen.put(1, y, &cut(text, room.saturating_sub(width + 3)), room, style);
    let style = Style::foreground(Colour::Indexed(4)).bold();
    screen.put(room.saturating_sub(width + 1), y, &number, width, style);
}

/// Draws a line that stands for hidden rows.
fn draw_more(sign: &str, state: &State, rows: &[Row], screen: &mut Screen, room: u16, y: u16) {
    let text = format!("{sign} {} more", rows.len());
    draw_heading(&text, state.unread_in_rows(rows), Style::default().dim(), screen, room, y);
}

fn draw_sidebar_pane(
    state: &State,
    pane: &Pane,
    workspace: usize,
    client: ClientId,
    screen: &mut Screen,
    room: u16,
    y: u16,
) {
    let label = pane.label();
    // Below the workspace `api`, the pane `api/auth` is called `auth`.
    let within = |name: &str| label.strip_prefix(name)?.strip_prefix('/').map(str::to_owned);
    let short = state.workspaces().get(workspace).and_then(|own| within(&own.name));
    let label = short.filter(|short| !short.is_empty()).unwrap_or(label);
    let (sign, _, colour) = sign_of(pane);
    let mut style = Style::foreground(colour);
    style.bold = pane.ring.is_lit;
    let x = screen.put(2, y, sign, 2, style);
    let is_focused = state.focused(client).is_some_and(|focused| focused.id == pane.id);
    let style = if is_focused { Style::default().bold() } else { Style::default() };
    let name = cut(&label, room.saturating_sub(x + 1));
    screen.put(x + 1, y, &name, room.saturating_sub(x + 1), style);
}
