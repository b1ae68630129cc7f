//! Escalation: an open question, permission, stuck agent or error that the person does not deal with is sent to the webhooks
//! for when they are away; at once when they are.

use std::time::Duration;

use super::Engine;
use crate::attention::{Cause, Record};
use crate::engine::{Delivery, Order};
use crate::message::{MessageId, ShownKind};
use crate::policy::{DeliveryChannel, Effects};
use crate::time::Now;

impl Engine {
    /// Whether a notification may escalate. Then the caller stays, or comes back, until none may.
    pub fn has_escalations(&self) -> bool {
        self.attention.store().next_escalation().is_some()
    }

    /// When a notification that is shown now escalates. The webhooks for it are commands as the others: what turns those off
    /// turns it off.
    pub(super) fn escalation_of(&self, now: Now, kind: ShownKind, effects: Effects) -> Option<i64> {
        let after = self.preferences.escalate_after.filter(|_| effects.command && kind.escalates())?;
        Some(now.wall_ms.saturating_add(i64::try_from(after.as_millis()).unwrap_or(i64::MAX)))
    }

    pub(super) fn next_escalation_deadline(&self, now: Now) -> Option<Duration> {
        let next = self.attention.store().next_escalation()?;
        Some(if self.is_away() { now.mono } else { now.mono_at(next) })
    }

    /// Escalates what is due, or everything that may if the person is away. Of many, the others follow with the next tick: it
    /// is due at once.
    pub(super) fn escalate(&mut self, now: Now, orders: &mut Vec<Order>) {
        let away = self.is_away();
        let until_ms = if away { i64::MAX } else { now.wall_ms };
        for id in self.attention.store().due_escalations(until_ms, self.bulk_marks.most) {
            self.escalate_one(now, &id, away, orders);
        }
    }

    fn escalate_one(&mut self, now: Now, id: &MessageId, away: bool, orders: &mut Vec<Order>) {
        self.attention.store_mut().set_escalation(id, None);
        let Some(record) = self.attention.store().get(id).cloned() else { return };
        let of = (&*record.sender, &record.place, &*record.scope);
        let (_, muted) =
            self.apply_mutes(now, Effects::default(), of, (record.shown_kind(), record.category.as_deref()));
        let quiet = muted.or_else(|| self.rules.is_quiet(now).then_some(Cause::QuietHours));
        let is_quiet = quiet.is_some();
        let cause = quiet.unwrap_or(Cause::Escalated { away });
        self.attention.store_mut().add_trail_step(id, now.wall_ms, cause);
        self.changed_without_withdrawing(id, orders);
        if !is_quiet {
            self.start_delivery(delivery_of(&record, DeliveryChannel::AwayWebhook), Vec::new(), orders);
        }
    }
}

/// A notification that is in the store, to be delivered.
pub(super) fn delivery_of(record: &Record, channel: DeliveryChannel) -> Delivery {
    let text = |text: &Option<Box<str>>| text.as_deref().unwrap_or_default().to_owned();
    Delivery {
        id: record.id.clone(),
        place: record.place.clone(),
        channel,
        title: text(&record.title),
        subtitle: text(&record.subtitle),
        body: record.body.to_string(),
        kind: record.shown_kind(),
        sender: record.sender.to_string(),
        replaces: None,
    }
}
