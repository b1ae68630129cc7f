//! Saves a session, and restores it in the next server.

use std::path::Path;
use std::time::Instant;

use super::State;
use crate::effect::Effect;
use crate::late_output::LateOutput;
use crate::layout::SplitDirection;
use crate::pane::Pane;
use crate::view::ClientId;
use crate::workspace::{PanePlace, Workspace};

impl State {
    /// Adds a pane of an earlier server, and the output of its program since then.
    pub(crate) fn adopt(
        &mut self,
        pane: Pane,
        place: Option<PanePlace>,
        late: LateOutput<'_>,
        now: Instant,
    ) -> Vec<Effect> {
        let id = pane.id.clone();
        if self.workspace_of(&id).is_none() {
            let has_keys = place.as_ref().is_none_or(|place| place.has_keys);
            let own = self.workspace_for(place, &pane.directory);
            if let Some(workspace) = self.workspace_mut(&own) {
                let before = workspace.focused().cloned();
                workspace.add(id.clone(), None, SplitDirection::Right);
                if let Some(before) = before.filter(|_| !has_keys) {
                    workspace.focus(&before);
                }
            }
        }
        self.panes.insert(id.clone(), pane);
        self.late_output(&id, late, now)
    }

    /// Returns the workspace for a pane that is in none: the one it was in, which is created again, or the first one.
    fn workspace_for(&mut self, place: Option<PanePlace>, directory: &Path) -> String {
        let is_open = |place: &PanePlace| self.workspaces.iter().any(|own| own.id == place.workspace);
        let first = || self.workspaces.first().map(|own| own.id.clone());
        let (id, name) = match place {
            Some(place) if is_open(&place) => return place.workspace,
            Some(PanePlace { workspace, name, .. }) => (workspace, name),
            None => match first() {
                Some(first) => return first,
                None => (format!("panes:{}", (self.new_id)()), self.free_name(directory)),
            },
        };
        self.workspaces.push(Workspace::new(id.clone(), name));
        id
    }

    /// Restores the workspaces of the previous session. Panes are adopted after that; [`Self::forget_missing`] then removes the
    /// panes that no longer exist.
    pub(crate) fn restore(&mut self, workspaces: Vec<Workspace>, shown: Option<String>) {
        self.last_shown = shown;
        let is_new = |own: &Workspace| !self.workspaces.iter().any(|known| known.id == own.id);
        let workspaces: Vec<Workspace> = workspaces.into_iter().filter(is_new).collect();
        self.workspaces.extend(workspaces);
    }

    /// Removes panes from the layouts that were not adopted, and empty workspaces.
    pub(crate) fn forget_missing(&mut self) -> Vec<Effect> {
        let panes = &self.panes;
        for workspace in &mut self.workspaces {
            workspace.keep(|pane| panes.contains_key(pane));
        }
        self.workspaces.retain(|workspace| !workspace.is_empty());
        self.finish(Vec::new())
    }

    /// Shows a message in a window for a while.
    pub(crate) fn note(&mut self, client: ClientId, text: impl Into<String>, now: Instant) {
        if let Some(view) = self.views.get_mut(&client) {
            view.note(text, now);
        }
    }

    /// The workspace of the window that was used last, or the one that was shown before the last window left.
    pub(crate) fn last_shown(&self) -> Option<&str> {
        let shown = self
            .latest_client()
            .and_then(|client| self.views.get(&client))
            .map(|view| view.workspace.as_str());
        shown.or(self.last_shown.as_deref())
    }

    /// The workspaces for the next server, without unread counts, which the hub sends to it.
    pub(crate) fn saved_workspaces(&self) -> Vec<Workspace> {
        let mut workspaces = self.workspaces.clone();
        for workspace in &mut workspaces {
            workspace.unread = 0;
        }
        workspaces
    }
}
