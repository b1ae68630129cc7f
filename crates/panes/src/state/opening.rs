//! Opens panes, and adopts those of an earlier server.

use std::path::Path;
use std::time::Instant;

use super::{OpenRequest, State, TakesKeys, UNSEEN};
use crate::effect::Effect;
use crate::layout::{Area, PaneId, SplitDirection};
use crate::pane::Pane;
use crate::protocol::{MAX_NAME, check_name, cut_name};
use crate::unread_output::UnreadOutput;
use crate::view::{ClientId, View};
use crate::workspace::{PanePlace, Workspace};

/// The most characters of a number after the name of a workspace, including the space.
const MAX_NUMBER: usize = 5;

impl State {
    /// Opens a pane. If it takes the focus, it is shown in `client`, or in the window that was used last, or in the next window
    /// if there is none.
    pub(crate) fn open(
        &mut self,
        request: OpenRequest,
        client: Option<ClientId>,
        now: Instant,
    ) -> (PaneId, Vec<Effect>) {
        let pane = PaneId::new(&(self.new_id)());
        let window = client.or_else(|| self.latest_client());
        let caller = request.caller.as_ref();
        let takes_keys = match request.takes_keys {
            TakesKeys::Never => false,
            TakesKeys::FromCaller => {
                window.zip(caller).is_some_and(|(window, caller)| self.has_keys_of(window, caller))
            }
            TakesKeys::Always => true,
        };
        let shown = || client.and_then(|client| self.shown_workspace(client)).map(|own| own.id.clone());
        let found = match &request.workspace {
            Some(name) => self.workspaces.iter().find(|own| own.name == *name).map(|own| own.id.clone()),
            None => caller
                .and_then(|caller| self.workspace_of(caller))
                .map(|own| own.id.clone())
                .or_else(shown)
                .or_else(|| self.usual_workspace()),
        };
        let id = found.unwrap_or_else(|| {
            let id = format!("panes:{}", (self.new_id)());
            let name = request.workspace.clone().unwrap_or_else(|| self.free_name(&request.facts.directory));
            self.workspaces.push(Workspace::new(id.clone(), name));
            id
        });
        let room = self.usual_room(&id);
        if let Some(workspace) = self.workspace_mut(&id) {
            match (takes_keys, request.split) {
                (true, split) => {
                    workspace.add(pane.clone(), caller, split.unwrap_or(SplitDirection::Right));
                }
                (false, Some(split)) => workspace.add_behind(pane.clone(), caller, split),
                (false, None) => workspace.add_where_room_is(pane.clone(), room),
            }
        }
        match window.and_then(|window| self.views.get_mut(&window)).filter(|_| takes_keys) {
            Some(view) => view.workspace.clone_from(&id),
            None if takes_keys => self.last_shown = Some(id.clone()),
            None => {}
        }
        for view in self.views.values_mut().filter(|view| view.workspace.is_empty()) {
            view.workspace.clone_from(&id);
        }
        let size = self.size_of(&pane).unwrap_or(UNSEEN);
        let mut own = Pane::new(pane.clone(), request.facts.directory.clone(), size, now);
        own.name = request.name;
        own.command.clone_from(&request.command);
        self.panes.insert(pane.clone(), own);
        let start = Effect::Start {
            pane: pane.clone(),
            workspace: id,
            command: request.command,
            directory: request.facts.directory,
            environment: request.facts.environment,
            size,
        };
        (pane, self.finish(vec![start]))
    }

    /// A name for a workspace that no other one has, made from its directory.
    pub(super) fn free_name(&self, directory: &Path) -> String {
        let mut base =
            directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        // Leaves room for a number.
        cut_name(&mut base, MAX_NAME - MAX_NUMBER);
        let base = if check_name(&base).is_ok() { base } else { "work".to_owned() };
        let is_free = |name: &String| !self.workspaces.iter().any(|workspace| workspace.name == *name);
        let numbered = (2..).map(|number| format!("{base} {number}"));
        std::iter::once(base.clone()).chain(numbered).find(is_free).unwrap_or(base)
    }

    /// The room of the workspace in the window that shows it and was used last, or in the window that was used last.
    fn usual_room(&self, workspace: &str) -> Area {
        let views = self.views.values();
        let view = views.max_by_key(|view| (view.workspace == workspace, view.active));
        view.map_or(Area::new(0, 0, UNSEEN.columns, UNSEEN.lines), View::room)
    }

    /// Adds a pane of an earlier server, and the output of its program since then.
    pub(crate) fn adopt(
        &mut self,
        pane: Pane,
        place: Option<PanePlace>,
        unread: UnreadOutput<'_>,
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
        self.unread_output(&id, unread, now)
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
