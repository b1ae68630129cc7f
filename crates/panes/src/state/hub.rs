//! Reports to the hub, and its orders.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use ringer_ipc::HostFacts;
use ringer_term::sanitise_line;
use ringer_ui::Agent;
use serde_json::{Value, json};

use super::{State, TYPED_AGAIN};
use crate::effect::{Effect, HubOrder};
use crate::layout::PaneId;
use crate::pane::{Pane, PaneAgent, PaneEvent, Ring, surface_of};
use crate::sidebar_page::{Row, SidebarPage};
use crate::view::{ClientId, View};
use crate::workspace::Workspace;

impl State {
    /// Updates the hub's facts: the panes, and what the person looks at.
    pub(super) fn update_facts(&mut self) -> Option<Effect> {
        let parent = self.latest_client().and_then(|client| self.views.get(&client)?.facts.surface.clone());
        let mut surfaces = BTreeMap::new();
        for workspace in &self.workspaces {
            for (number, id) in (1..).zip(workspace.panes()) {
                let is_known = |pane: &&Pane| pane.tty.is_some() || pane.failure.is_some();
                let Some(pane) = self.panes.get(&id).filter(is_known) else { continue };
                let place = match &pane.name {
                    Some(name) => format!("{} · {}", workspace.name, sanitise_line(name)),
                    None => format!("{} · pane {number}", workspace.name),
                };
                surfaces.insert(pane.surface(), pane.described(&workspace.id, &place, parent.as_deref()));
            }
        }
        let facts = HostFacts { surfaces, views: Some(self.looks()) };
        (facts != self.facts).then(|| {
            self.facts.clone_from(&facts);
            Effect::SetFacts(facts)
        })
    }

    /// The panes that the person looks at, as far as known.
    fn looks(&self) -> Value {
        let seen = self.views.iter().filter(|(_, view)| view.is_looked_at(self.now) && !view.is_in_inbox);
        let views: Vec<Value> = seen
            .filter_map(|(client, _)| {
                let pane = self.focused(*client)?;
                Some(json!({ "client": format!("client {}", client.0), "surface_id": pane.surface() }))
            })
            .collect();
        let is_complete = self.views.values().all(|view| view.has_focus.is_some());
        json!({ "views": views, "is_complete": is_complete })
    }

    /// Updates the time. In a terminal that does not report focus, a person who has not typed for a while may look elsewhere.
    pub(crate) fn tick(&mut self, now: Instant) -> Option<Effect> {
        self.now = self.now.max(now);
        let is_over = |view: &View| view.looks_until().is_some_and(|until| until <= now);
        if self.views.values().any(is_over) { self.update_facts() } else { None }
    }

    /// Reports that the person types, at most every [`TYPED_AGAIN`].
    pub(super) fn typed(&mut self, now: Instant) -> Option<Effect> {
        let is_due = self.presence_reported.is_none_or(|at| now.saturating_duration_since(at) >= TYPED_AGAIN);
        is_due.then(|| {
            self.presence_reported = Some(now);
            Effect::ReportPresence
        })
    }

    pub(crate) fn hub_connected(&mut self) {
        self.panes.values_mut().for_each(Pane::find_hub);
    }

    /// Removes all rings, badges, toasts and indicators, because there is no hub.
    pub(crate) fn hub_lost(&mut self) {
        self.panes.values_mut().for_each(Pane::lose_hub);
        self.workspaces.iter_mut().for_each(|workspace| workspace.unread = 0);
        (self.toast, self.indicators) = (None, BTreeMap::new());
    }

    pub(crate) fn pane_of_surface(&self, surface: &str) -> Option<PaneId> {
        self.panes.keys().find(|pane| surface_of(pane) == surface).cloned()
    }

    /// Performs an order of the hub.
    pub(crate) fn order(&mut self, order: HubOrder, now: Instant) -> Vec<Effect> {
        match order {
            HubOrder::Ring { surface_id, lit, unread, kind } => {
                let ring = Ring { is_lit: lit, unread, kind };
                return self.change_pane(&surface_id, |pane| pane.set_ring(ring));
            }
            HubOrder::Badge { workspace_id, badge } => {
                if let Some(workspace) = self.workspace_mut(&workspace_id) {
                    workspace.unread = badge;
                }
            }
            HubOrder::Flash { surface_id } => {
                if let Some(pane) = self.pane_of_surface(&surface_id).and_then(|id| self.panes.get_mut(&id)) {
                    pane.flash(now);
                }
            }
            HubOrder::Focus { surface_id } => return self.go_to_surface(&surface_id, now),
            HubOrder::Toast { text } => self.toast = text,
            HubOrder::Indicator { key, text } if text.is_empty() => drop(self.indicators.remove(&key)),
            HubOrder::Indicator { key, text } => drop(self.indicators.insert(key, text)),
        }
        Vec::new()
    }

    /// Changes the pane of a surface. Returns the effects.
    fn change_pane<E: IntoIterator<Item = PaneEvent>>(
        &mut self,
        surface: &str,
        change: impl FnOnce(&mut Pane) -> E,
    ) -> Vec<Effect> {
        let Some(id) = self.pane_of_surface(surface) else { return Vec::new() };
        let events = self.panes.get_mut(&id).map(change).into_iter().flatten().collect();
        self.pane_events(&id, events)
    }

    /// Focuses a pane in the window that was used last, and answers the hub.
    fn go_to_surface(&mut self, surface: &str, now: Instant) -> Vec<Effect> {
        let mut answer = json!({ "surface_id": surface });
        let mut effects = Vec::new();
        match (self.latest_client(), self.pane_of_surface(surface)) {
            (Some(client), Some(pane)) => {
                effects = self.go_to(client, &pane, now);
                effects.extend(self.change_pane(surface, Pane::click));
            }
            (None, Some(_)) => {
                answer["why"] = json!("no window shows its workspace");
                answer["hint"] = json!("ringer attach");
            }
            (_, None) => answer["why"] = json!("the pane is closed"),
        }
        effects.push(Effect::AnswerFocus(answer));
        effects
    }

    /// Shows and focuses a pane in a client.
    pub(crate) fn go_to(&mut self, client: ClientId, pane: &PaneId, now: Instant) -> Vec<Effect> {
        let workspace = self.workspace_of(pane).map(|workspace| workspace.id.clone());
        if let (Some(workspace), Some(view)) = (workspace, self.views.get_mut(&client)) {
            (view.workspace, view.active) = (workspace.clone(), now);
            if let Some(own) = self.workspace_mut(&workspace) {
                own.focus(pane);
            }
            return self.finish(Vec::new());
        }
        Vec::new()
    }

    /// Updates the agents of all panes.
    pub(crate) fn agents(&mut self, agents: &[Agent]) {
        for pane in self.panes.values_mut() {
            let surface = pane.surface();
            let own = agents.iter().filter(|agent| agent.surface.as_deref() == Some(&surface));
            // Of several agents in a pane, the one whose state changed last.
            let own = own.filter(|agent| agent.state != "exited").max_by_key(|agent| agent.since_ms);
            pane.agent = own.map(|agent| PaneAgent {
                label: agent.label.clone(),
                client: agent.client.clone(),
                state: agent.state.clone(),
            });
        }
    }
}

impl State {
    fn unread_of_panes(&self, workspace: &Workspace) -> usize {
        let panes = workspace.panes();
        panes.iter().filter_map(|pane| self.panes.get(pane)).map(|pane| pane.ring.unread).sum()
    }

    /// Unread notifications of a workspace. A server that has just started only knows those of its panes.
    pub(crate) fn unread_in(&self, workspace: &Workspace) -> usize {
        workspace.unread.max(self.unread_of_panes(workspace))
    }

    /// Unread notifications in rows of the sidebar. The row of a workspace counts those that belong to none of its panes.
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

    /// Unread notifications outside of the focused pane of a client.
    pub(crate) fn unread_elsewhere(&self, client: ClientId) -> usize {
        let all: usize = self.workspaces.iter().map(|workspace| self.unread_in(workspace)).sum();
        all.saturating_sub(self.focused(client).map_or(0, |pane| pane.ring.unread))
    }

    /// The visible part of a client's sidebar.
    pub(crate) fn sidebar_page(&self, client: ClientId) -> Option<SidebarPage> {
        let view = self.views.get(&client).filter(|view| view.shows_sidebar())?;
        Some(SidebarPage::new(&self.workspaces, &view.workspace, view.room().height, view.sidebar_first))
    }

    /// Saves the scroll position of each sidebar, so that it scrolls only if necessary.
    pub(super) fn keep_sidebars(&mut self) {
        let rows = self.workspaces.len() + self.panes.len();
        let is_too_long = |view: &View| view.shows_sidebar() && rows > usize::from(view.room().height);
        for view in self.views.values_mut().filter(|view| is_too_long(view)) {
            let (height, first) = (view.room().height, view.sidebar_first);
            view.sidebar_first = SidebarPage::new(&self.workspaces, &view.workspace, height, first).first;
        }
    }
}

const FOCUS_IN: &[u8] = b"\x1b[I";
const FOCUS_OUT: &[u8] = b"\x1b[O";

impl State {
    /// The focused panes of windows that have the focus. A terminal that does not report focus counts as focused.
    fn panes_in_focus(&self) -> BTreeSet<PaneId> {
        let windows =
            self.views.iter().filter(|(_, view)| view.has_focus != Some(false) && !view.is_in_inbox);
        windows.filter_map(|(client, _)| self.focused(*client)).map(|pane| pane.id.clone()).collect()
    }

    /// Sends focus events to the programs that asked for them and whose focus has changed since the last call.
    pub(super) fn report_focus(&mut self) -> Vec<Effect> {
        let after = self.panes_in_focus();
        let before = std::mem::replace(&mut self.in_focus, after.clone());
        let wants =
            |pane: &&PaneId| self.panes.get(*pane).is_some_and(|pane| pane.emulator.input_modes().focus);
        let lost = before.difference(&after).filter(wants).map(|pane| (pane, FOCUS_OUT));
        let got = after.difference(&before).filter(wants).map(|pane| (pane, FOCUS_IN));
        lost.chain(got).filter_map(|(pane, bytes)| self.send(pane, bytes.to_vec())).collect()
    }

    /// Ends modes that refer to a pane that is not focused any more, because they would act on another pane.
    pub(super) fn end_stale_modes(&mut self) {
        let clients: Vec<_> = self.views.keys().copied().collect();
        for client in clients {
            let focused = self.focused(client).map(|pane| pane.id.clone());
            if let Some(view) = self.views.get_mut(&client) {
                view.end_mode_of_other_panes(focused.as_ref());
            }
        }
    }
}
