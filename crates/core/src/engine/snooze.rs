//! Snoozing: a notification is hidden until a moment, and then comes back as new, unless its cause has ended before.

use std::time::Duration;

use super::Engine;
use super::escalation::delivery_of;
use crate::attention::{Cause, ReadReason, Record};
use crate::engine::Order;
use crate::message::MessageId;
use crate::policy::{DeliveryChannel, Subject, plan_delivery};
use crate::time::Now;

impl Engine {
    /// Returns true if a notification is snoozed. The caller must stay, or come back, until none is.
    pub fn has_snoozed(&self) -> bool {
        self.attention.store().next_snooze_end().is_some()
    }

    /// Snoozes a notification. One that is resolved, or not on the list, is left alone.
    pub(super) fn snooze(&mut self, now: Now, id: &MessageId, until_unix_ms: i64, orders: &mut Vec<Order>) {
        let span_ms = u64::try_from(until_unix_ms.saturating_sub(now.wall_ms)).unwrap_or(0);
        let cause = Cause::Snoozed { until_unix_ms, span_ms };
        if self.attention.store_mut().snooze(id, until_unix_ms, now.wall_ms, cause) {
            self.attention.store_mut().set_escalation(id, None);
            self.changed_at(now, id, orders);
        }
    }

    pub(super) fn next_snooze_deadline(&self, now: Now) -> Option<Duration> {
        self.attention.store().next_snooze_end().map(|until_ms| now.mono_at(until_ms))
    }

    /// Shows the notifications whose snooze has ended as new. If there are many, the rest follow with the next tick, which is
    /// due at once.
    pub(super) fn end_snoozes(&mut self, now: Now, orders: &mut Vec<Order>) {
        for id in self.attention.store().due_snoozed(now.wall_ms, self.bulk_marks.most) {
            if let Some(record) = self.attention.store().get(&id).cloned() {
                self.show_again(now, &record, orders);
            }
        }
    }

    /// Applies the current rules. Hooks do not run again: the record has their changes, and the person asked for it
    /// themselves.
    fn show_again(&mut self, now: Now, record: &Record, orders: &mut Vec<Order>) {
        let subject = Subject {
            sender: &record.sender,
            scope: &record.scope,
            kind: record.shown_kind(),
            is_subagent: false,
            turn: None,
            focus_known: false,
            turn_had_popup: false,
        };
        let (effects, why) = self.rules.decide(now, &subject);
        let of = (&*record.sender, &record.place, &*record.scope);
        let (effects, muted) =
            self.apply_mutes(now, effects, of, (record.shown_kind(), record.category.as_deref()));
        let (effects, held_back) = self.hold_back(effects, record.shown_kind());
        let mut plan = plan_delivery(
            effects,
            self.is_in_view(&record.place),
            self.preferences.popup,
            self.preferences.reorder,
        );
        self.leave_out_disabled(&mut plan, record.shown_kind());
        let is_read = !plan.unread;
        let is_resolved = is_read && record.ends_when_read(&ReadReason::Looked);
        self.attention.store_mut().end_snooze(&record.id, (is_read, is_resolved), now.wall_ms);
        let decided = Cause::Decided {
            channels: plan.deliveries.clone(),
            listed: plan.record,
            unread: plan.unread,
            effects: effects.names().into_iter().map(str::to_owned).collect(),
        };
        for step in why.into_iter().chain(muted).chain(held_back).chain(plan.why.drain(..)).chain([decided]) {
            self.attention.store_mut().add_trail_step(&record.id, now.wall_ms, step);
        }
        let escalates_ms = self.escalation_of(now, record.shown_kind(), effects);
        self.attention.store_mut().set_escalation(&record.id, escalates_ms);
        self.changed_without_withdrawing(&record.id, orders);
        let delivery = |channel: DeliveryChannel| delivery_of(record, channel);
        self.present(now, &record.place, plan, delivery, orders);
    }
}
