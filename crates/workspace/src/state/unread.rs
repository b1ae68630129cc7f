//! How much is unread, and where.

use super::State;
use crate::sidebar_page::{Row, SidebarPage};
use crate::view::{ClientId, View};
use crate::workspace::Workspace;

impl State {
    fn unread_of_panes(&self, workspace: &Workspace) -> usize {
        let panes = workspace.panes();
        panes.iter().filter_map(|pane| self.panes.get(pane)).map(|pane| pane.ring.unread).sum()
    }

    /// How much is unread in a workspace. A server that has just started knows only what is unread in its panes.
    pub(crate) fn unread_in(&self, workspace: &Workspace) -> usize {
        workspace.unread.max(self.unread_of_panes(workspace))
    }

    /// How much is unread in rows of the sidebar. That of a workspace has what is in none of its panes.
    pub(crate) fn unread_in_rows(&self, rows: &[Row]) -> usize {
        let unread = |row: &Row| match row {
            Row::Workspace { at } => self
                .workspaces
                .get(*at)
                .map_or(0, |own| self.unread_in(own).saturating_sub(self.unread_of_panes(own))),
            Row::Pane { pane, .. } => self.panes.get(pane).map_or(0, |pane| pane.ring.unread),
        };
        rows.iter().map(unread).sum()
    }

    /// How much is unread elsewhere than in the pane that has the keys of a client.
    pub(crate) fn unread_elsewhere(&self, client: ClientId) -> usize {
        let all: usize = self.workspaces.iter().map(|workspace| self.unread_in(workspace)).sum();
        all.saturating_sub(self.focused(client).map_or(0, |pane| pane.ring.unread))
    }

    /// What a client sees of the sidebar.
    pub(crate) fn sidebar_page(&self, client: ClientId) -> Option<SidebarPage> {
        let view = self.views.get(&client).filter(|view| view.shows_sidebar())?;
        Some(SidebarPage::new(&self.workspaces, &view.workspace, view.room().height, view.sidebar_first))
    }

    /// Remembers which part of the sidebar each client sees, so that it moves no more than it has to.
    pub(super) fn keep_sidebars(&mut self) {
        let rows = self.workspaces.len() + self.panes.len();
        let is_too_long = |view: &View| view.shows_sidebar() && rows > usize::from(view.room().height);
        for view in self.views.values_mut().filter(|view| is_too_long(view)) {
            let (height, first) = (view.room().height, view.sidebar_first);
            view.sidebar_first = SidebarPage::new(&self.workspaces, &view.workspace, height, first).first;
        }
    }
}
