//! What is kept of a session, and how the next server goes on with it.

use std::time::Instant;

use super::State;
use crate::effect::Effect;
use crate::late_output::LateOutput;
use crate::layout::SplitDirection;
use crate::pane::Pane;
use crate::workspace::Workspace;

impl State {
    /// A pane that another server had, as it was shown there, and what its program wrote since.
    pub(crate) fn adopt(
        &mut self,
        pane: Pane,
        workspace: Option<&str>,
        late: LateOutput<'_>,
        now: Instant,
    ) -> Vec<Effect> {
        let id = pane.id.clone();
        if self.workspace_of(&id).is_none() {
            let known = workspace
                .filter(|name| self.workspaces.iter().any(|own| own.id == **name))
                .map(str::to_owned);
            let known = known.or_else(|| self.workspaces.first().map(|own| own.id.clone()));
            let own = known.unwrap_or_else(|| {
                let id = format!("panes:{}", (self.new_id)());
                let name = self.free_name(&pane.directory);
                self.workspaces.push(Workspace::new(id.clone(), name));
                id
            });
            if let Some(workspace) = self.workspace_mut(&own) {
                workspace.add(id.clone(), None, SplitDirection::Right);
            }
        }
        self.panes.insert(id.clone(), pane);
        self.late_output(&id, late, now)
    }

    /// The workspaces of the session before. Panes are adopted after that; those that are not there any more go with
    /// [`Self::forget_missing`].
    pub(crate) fn restore(&mut self, workspaces: Vec<Workspace>, shown: Option<String>) {
        self.last_shown = shown;
        let is_new = |own: &Workspace| !self.workspaces.iter().any(|known| known.id == own.id);
        let workspaces: Vec<Workspace> = workspaces.into_iter().filter(is_new).collect();
        self.workspaces.extend(workspaces);
    }

    /// Removes what no pane was adopted for.
    pub(crate) fn forget_missing(&mut self) -> Vec<Effect> {
        let panes = &self.panes;
        for workspace in &mut self.workspaces {
            workspace.keep(|pane| panes.contains_key(pane));
        }
        self.workspaces.retain(|workspace| !workspace.is_empty());
        self.finish(Vec::new())
    }

    /// The workspace that is shown, or was shown last.
    pub(crate) fn last_shown(&self) -> Option<&str> {
        let shown = self
            .latest_client()
            .and_then(|client| self.views.get(&client))
            .map(|view| view.workspace.as_str());
        shown.or(self.last_shown.as_deref())
    }

    /// What is kept for the next server.
    pub(crate) fn saved_workspaces(&self) -> Vec<Workspace> {
        self.workspaces.clone()
    }
}
