//! The sidebar: workspaces with their numbers, and the panes in them.

use unicode_width::UnicodeWidthStr;

use super::words::{cut, sign_of};
use crate::layout::PaneId;
use crate::screen::Screen;
use crate::state::State;
use crate::style::{Colour, Style};
use crate::view::ClientId;
use crate::workspace::Workspace;

/// A line of the sidebar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Row {
    /// A workspace, by its place in the list.
    Workspace {
        at: usize,
    },
    Pane {
        pane: PaneId,
        workspace: usize,
    },
}

/// The lines of the sidebar, in an order that does not change by itself.
pub(crate) fn rows(state: &State) -> Vec<Row> {
    let workspaces = state.workspaces().iter().enumerate();
    workspaces
        .flat_map(|(at, workspace)| {
            let panes = workspace.panes().into_iter().map(move |pane| Row::Pane { pane, workspace: at });
            std::iter::once(Row::Workspace { at }).chain(panes)
        })
        .collect()
}

/// The number of a workspace. A server that has just started knows that of its panes only.
fn badge_of(state: &State, workspace: &Workspace) -> String {
    let panes = workspace.panes();
    let unread: usize = panes.iter().filter_map(|pane| state.pane(pane)).map(|pane| pane.ring.unread).sum();
    match (&workspace.badge, unread) {
        (badge, _) if !badge.is_empty() => badge.clone(),
        (_, 0) => String::new(),
        (_, 1..100) => unread.to_string(),
        _ => "99+".to_owned(),
    }
}

/// Draws it in so many columns, the last of which is a line.
pub(super) fn draw(state: &State, client: ClientId, screen: &mut Screen, columns: u16, lines: u16) {
    let room = columns.saturating_sub(1);
    let shown = state.shown_workspace(client).map(|workspace| workspace.id.as_str());
    let focused = state.focused(client).map(|pane| &pane.id);
    for (y, row) in (0..lines).zip(rows(state)) {
        match row {
            Row::Workspace { at } => {
                let Some(workspace) = state.workspaces().get(at) else { continue };
                let is_shown = shown == Some(workspace.id.as_str());
                let style = if is_shown { Style::default().bold() } else { Style::default() };
                let text = badge_of(state, workspace);
                let badge = u16::try_from(text.width()).unwrap_or(0);
                let name = cut(&workspace.name, room.saturating_sub(badge + 3));
                screen.put(1, y, &name, room, style);
                let unread = Style::foreground(Colour::Indexed(4)).bold();
                screen.put(room.saturating_sub(badge + 1), y, &text, badge, unread);
            }
            Row::Pane { pane, workspace } => {
                let Some(pane) = state.pane(&pane) else { continue };
                let label = pane.label();
                // Below `api`, `api/auth` is `auth`.
                let within = |name: &str| label.strip_prefix(name)?.strip_prefix('/').map(str::to_owned);
                let short = state.workspaces().get(workspace).and_then(|own| within(&own.name));
                let label = short.filter(|short| !short.is_empty()).unwrap_or(label);
                let (sign, _, colour) = sign_of(pane);
                let mut style = Style::foreground(colour);
                style.bold = pane.ring.is_lit;
                let x = screen.put(2, y, sign, 2, style);
                let is_focused = focused == Some(&pane.id);
                let style = if is_focused { Style::default().bold() } else { Style::default() };
                let name = cut(&label, room.saturating_sub(x + 1));
                screen.put(x + 1, y, &name, room.saturating_sub(x + 1), style);
            }
        }
    }
    for y in 0..lines {
        screen.put(room, y, "│", 1, Style::default().dim());
    }
}
