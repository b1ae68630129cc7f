//! Draws the sidebar: workspaces with their unread counts, and their panes.

use ringer_core::attention::Badge;

use super::words::{columns, cut, sign_of};
use crate::pane::Pane;
use crate::screen::Screen;
use crate::sidebar_page::{Row, SidebarLine};
use crate::state::State;
use crate::style::{Colour, Style};
use crate::view::ClientId;

/// Draws the sidebar. Its last column is a vertical line.
pub(super) fn draw(state: &State, client: ClientId, screen: &mut Screen, columns: u16, lines: u16) {
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
                draw_pane(state, pane, workspace, client, screen, room, y);
            }
            SidebarLine::Above(rows) => draw_more("▴", state, &rows, screen, room, y),
            SidebarLine::Below(rows) => draw_more("▾", state, &rows, screen, room, y),
        }
    }
    for y in 0..lines {
        screen.put(room, y, "│", 1, Style::default().dim());
    }
}

/// Draws a text, and an unread count at the right.
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

fn draw_pane(
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
