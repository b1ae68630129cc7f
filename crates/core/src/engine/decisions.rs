//! Decides the effects of a notification: the built-in rules first, then the hooks, then the fence.

use std::sync::Arc;

use super::records::kind_of;
use super::{Candidate, Engine, RunningChain};
use crate::arrival::{Arrival, text_with_count};
use crate::attention::Cause;
use crate::engine::{Order, Ticket};
use crate::message::{About, ShownKind};
use crate::policy::{
    AgentContext, Effects, HookChain, HookChainStep, HookInput, HookInputContext, HookInputText, Subject,
};
use crate::time::Now;
use crate::toast::{Priority, Toast};

impl Engine {
    pub(super) fn start_hooks(&mut self, now: Now, mut arrival: Arrival<Candidate>, orders: &mut Vec<Order>) {
        let incoming = &arrival.item.incoming;
        let draft = &incoming.message.draft;
        let scope = draft.scope.clone();
        let subject = Subject {
            sender: draft.sender.as_str(),
            scope: draft.scope.as_str(),
            kind: ShownKind::of(kind_of(draft.tag), draft.category.as_deref()),
            is_subagent: incoming.is_subagent,
            turn: draft.about.as_ref().and_then(About::turn),
            focus_known: arrival.place.surface.as_ref().is_some_and(|id| self.surfaces.reports_focus(id)),
            turn_had_popup: self.turn_ends.had_popup(draft.sender.as_str()),
        };
        let (effects, why) = self.rules.decide(now, &subject);
        arrival.item.steps.extend(why);
        let mut hook_input = self.hook_input(&arrival);
        hook_input.effects = effects;
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        // No hook runs if the rules turned everything off.
        let hooks = if effects == Effects::NONE { Arc::default() } else { Arc::clone(&arrival.item.hooks) };
        let (chain, next) = HookChain::begin(hooks, scope.as_str(), hook_input, &self.active_hooks);
        self.continue_hooks(now, ticket, RunningChain { arrival, chain }, next, orders);
    }

    pub(super) fn continue_hooks(
        &mut self,
        now: Now,
        ticket: Ticket,
        mut running: RunningChain,
        next: HookChainStep,
        orders: &mut Vec<Order>,
    ) {
        match next {
            HookChainStep::Run { hook, hook_input } => {
                orders.push(Order::RunHook { ticket, hook, hook_input: Box::new(hook_input) });
                self.hook_chains.insert(ticket, running);
            }
            HookChainStep::Decided { hook_input, steps, failures } => {
                orders.extend(steps.iter().filter_map(hook_report));
                running.arrival.item.steps.extend(steps);
                for (hook, why) in failures {
                    if self.failures.is_due(now.mono, &hook) {
                        let key = format!("hook-failed-{hook}");
                        let text = format!("notification hook {hook}: {why}");
                        self.toasts.add(now.mono, Toast::new(key, Priority::Medium, text));
                    }
                }
                if self.fence.admits(&running.arrival.place, running.arrival.generation) {
                    self.record(now, running.arrival, &hook_input, orders);
                } else {
                    let id = running.arrival.item.incoming.message.id;
                    orders.push(Order::AddTrailStep { id, cause: Cause::Cleared });
                }
            }
        }
    }

    fn hook_input(&self, arrival: &Arrival<Candidate>) -> HookInput {
        let incoming = &arrival.item.incoming;
        let draft = &incoming.message.draft;
        let person = draft.for_person();
        let text = HookInputText {
            workspace_id: arrival.place.workspace.to_string(),
            surface_id: arrival.place.surface.as_ref().map(ToString::to_string),
            title: person.title.unwrap_or_default(),
            subtitle: draft.subtitle.clone().unwrap_or_default(),
            body: text_with_count(&person.body, arrival.item.others),
        };
        let context = HookInputContext {
            cwd: draft.origin.cwd.clone(),
            app_focused: self.focus.is_anywhere(),
            focused_panel: self.is_in_view(&arrival.place),
            ..HookInputContext::default()
        };
        let agent = AgentContext {
            kind: Some(kind_of(draft.tag).as_str().to_owned()),
            shown: Some(ShownKind::of(kind_of(draft.tag), draft.category.as_deref()).as_str().to_owned()),
            category: draft.category.clone(),
            pending: incoming.pending,
            is_subagent: incoming.is_subagent,
        };
        HookInput::new(text, context, agent)
    }
}

/// The report about the hook that a step mentions.
fn hook_report(step: &Cause) -> Option<Order> {
    match step {
        Cause::HookRan { hook, .. } => Some(Order::ReportHook { hook: hook.clone(), failure: None }),
        Cause::HookFailed { hook, why } => {
            Some(Order::ReportHook { hook: hook.clone(), failure: Some(why.clone()) })
        }
        _ => None,
    }
}
