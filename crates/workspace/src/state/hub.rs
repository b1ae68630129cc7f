//! What the hub is told, and what it orders.

use std::collections::BTreeMap;
use std::time::Instant;

use ringer_term::sanitise_line;
use ringer_ui::Agent;
use serde_json::{Value, json};

use super::told::Told;
use super::{State, TYPED_AGAIN};
use crate::effect::Effect;
use crate::hub_order::HubOrder;
use crate::layout::PaneId;
use crate::pane::{Pane, PaneAgent, PaneEvent, Ring, surface_of};
use crate::view::View;

impl State {
    /// What the hub does not know yet: panes that were opened, closed or changed, and what the person looks at.
    pub(super) fn tell_hub(&mut self) -> Vec<Effect> {
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
        let tell = |method, params| Effect::Tell { method, params };
        let mut effects = Vec::new();
        for gone in self.told.surfaces.keys().filter(|surface| !surfaces.contains_key(*surface)) {
            effects.push(tell("surface.closed", json!({ "surface_id": gone })));
        }
        for (surface, described) in &surfaces {
            match self.told.surfaces.get(surface) {
                None => effects.push(tell("surface.opened", described.clone())),
                Some(before) if before != described => {
                    effects.push(tell("surface.changed", described.clone()));
                }
                Some(_) => {}
            }
        }
        self.told.surfaces = surfaces;
        let looks = self.looks();
        if self.told.looks.as_ref() != Some(&looks) {
            effects.push(tell("surface.looks", looks.clone()));
            self.told.looks = Some(looks);
        }
        effects
    }

    /// What the person looks at, as far as is known.
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

    /// Time has passed: in a terminal that does not tell of its focus, a person who types nothing may look elsewhere.
    pub(crate) fn tick(&mut self, now: Instant) -> Vec<Effect> {
        self.now = self.now.max(now);
        let is_over = |view: &View| view.looks_until().is_some_and(|until| until <= now);
        let is_news = || self.told.looks.as_ref().is_some_and(|told| *told != self.looks());
        if self.views.values().any(is_over) && is_news() { self.tell_hub() } else { Vec::new() }
    }

    /// The person typed. The hub is told now and then.
    pub(super) fn typed(&mut self, now: Instant) -> Option<Effect> {
        let is_due = self.typed_told.is_none_or(|at| now.saturating_duration_since(at) >= TYPED_AGAIN);
        is_due.then(|| {
            self.typed_told = Some(now);
            let mut params = self.looks();
            params["present"] = json!(true);
            Effect::Tell { method: "surface.looks", params }
        })
    }

    /// Another hub is there: it knows nothing.
    pub(crate) fn hub_connected(&mut self) -> Vec<Effect> {
        self.told = Told::default();
        self.panes.values_mut().for_each(Pane::find_hub);
        self.tell_hub()
    }

    /// There is no hub: nothing rings.
    pub(crate) fn hub_lost(&mut self) {
        self.panes.values_mut().for_each(Pane::lose_hub);
        self.workspaces.iter_mut().for_each(|workspace| workspace.unread = 0);
        (self.toast, self.indicators) = (None, BTreeMap::new());
    }

    pub(crate) fn pane_of_surface(&self, surface: &str) -> Option<PaneId> {
        self.panes.keys().find(|pane| surface_of(pane) == surface).cloned()
    }

    /// Does what the hub orders.
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

    /// Changes the pane of a surface. Gives what follows from that.
    fn change_pane<E: IntoIterator<Item = PaneEvent>>(
        &mut self,
        surface: &str,
        change: impl FnOnce(&mut Pane) -> E,
    ) -> Vec<Effect> {
        let Some(id) = self.pane_of_surface(surface) else { return Vec::new() };
        let events = self.panes.get_mut(&id).map(change).into_iter().flatten().collect();
        self.pane_events(&id, events)
    }

    /// Goes to a pane in the client in which the person did something last, and answers the hub.
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
        effects.push(Effect::Tell { method: "surface.focused", params: answer });
        effects
    }

    /// Shows a pane in a client, and gives it the keys.
    pub(crate) fn go_to(&mut self, client: super::ClientId, pane: &PaneId, now: Instant) -> Vec<Effect> {
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

    /// The agents, as the hub knows them.
    pub(crate) fn agents(&mut self, agents: &[Agent]) {
        for pane in self.panes.values_mut() {
            let surface = pane.surface();
            let own = agents.iter().filter(|agent| agent.surface.as_deref() == Some(&surface));
            // The one whose state changed last, if several were there.
            let own = own.filter(|agent| agent.state != "exited").max_by_key(|agent| agent.since_ms);
            pane.agent = own.map(|agent| PaneAgent {
                label: agent.label.clone(),
                client: agent.client.clone(),
                state: agent.state.clone(),
            });
        }
    }
}
