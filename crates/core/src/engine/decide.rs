//! Deciding: the built-in rules, then the hooks, and whether anybody still wants to know.

use std::sync::Arc;

use super::{Candidate, Engine, WithHooks, kind_of};
use crate::bus::Arrival;
use crate::delivery::Focus;
use crate::hooks::{Chain, Next};
use crate::now::Now;
use crate::order::{Order, Ticket};
use crate::policy::{AgentContext, Context, Effects, Envelope, Text};
use crate::rules::Subject;
use crate::surface::Place;
use crate::toast::{Priority, Toast};

impl Engine {
    pub(super) fn start(&mut self, now: Now, mut arrival: Arrival<Candidate>, orders: &mut Vec<Order>) {
        let incoming = &arrival.item.incoming;
        let draft = &incoming.message.draft;
        let scope = draft.scope.clone();
        let subject = Subject {
            sender: draft.sender.as_str(),
            scope: draft.scope.as_str(),
            kind: kind_of(draft.tag),
            is_subagent: incoming.is_subagent,
        };
        let (effects, why) = self.rules.decide(now, &subject);
        arrival.item.steps.extend(why);
        let mut envelope = self.envelope(&arrival);
        envelope.effects = effects;
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        // What the rules silenced for good is not worth a program.
        let hooks = if effects == Effects::NONE { Arc::default() } else { Arc::clone(&arrival.item.hooks) };
        let (chain, next) = Chain::begin(hooks, scope.as_str(), envelope, &self.hooks_in_force);
        self.go_on(now, ticket, WithHooks { arrival, chain }, next, orders);
    }

    pub(super) fn go_on(
        &mut self,
        now: Now,
        ticket: Ticket,
        mut with: WithHooks,
        next: Next,
        orders: &mut Vec<Order>,
    ) {
        match next {
            Next::Run { hook, envelope } => {
                orders.push(Order::RunHook { ticket, hook, envelope: Box::new(envelope) });
                self.with_hooks.insert(ticket, with);
            }
            Next::Decided { envelope, steps, failures } => {
                with.arrival.item.steps.extend(steps);
                for (hook, why) in failures {
                    if self.failures.is_due(now.mono, &hook) {
                        let key = format!("hook-failed-{hook}");
                        let text = format!("notification hook {hook}: {why}");
                        self.toasts.add(now.mono, Toast::new(key, Priority::Medium, text));
                    }
                }
                if self.fence.admits(&with.arrival.place, with.arrival.generation) {
                    self.remember(now, with.arrival, &envelope, orders);
                } else {
                    let id = with.arrival.item.incoming.message.id;
                    orders.push(Order::Trail {
                        id,
                        text: "its place was cleared before it was decided".to_owned(),
                    });
                }
            }
        }
    }

    fn envelope(&self, arrival: &Arrival<Candidate>) -> Envelope {
        let incoming = &arrival.item.incoming;
        let draft = &incoming.message.draft;
        let focus = self.focus(&arrival.place);
        let text = Text {
            workspace_id: arrival.place.workspace.to_string(),
            surface_id: arrival.place.surface.as_ref().map(ToString::to_string),
            title: draft.title.clone().unwrap_or_default(),
            subtitle: draft.subtitle.clone().unwrap_or_default(),
            body: draft.body.clone(),
        };
        let context = Context {
            cwd: draft.origin.cwd.clone(),
            app_focused: focus.app,
            focused_panel: focus.is_on_it(),
            ..Context::default()
        };
        let agent = AgentContext {
            kind: Some(kind_of(draft.tag).as_str().to_owned()),
            category: draft.category.clone(),
            pending: incoming.pending,
            is_subagent: incoming.is_subagent,
        };
        Envelope::new(text, context, agent)
    }

    pub(super) fn focus(&self, place: &Place) -> Focus {
        let workspace = self.looking.workspace.as_ref() == Some(&place.workspace);
        let surface = place.surface.is_some() && self.looking.surface == place.surface;
        Focus { app: self.looking.app, workspace, surface }
    }
}
