//! Escalation: a question, permission, stuck agent or error that the person does not deal with is sent to the webhooks for a
//! person who is away. If the person is away, it is sent at once.

use std::time::Duration;

use super::Engine;
use crate::attention::{Cause, Record};
use crate::engine::{Delivery, Order};
use crate::message::{MessageId, ShownKind};
use crate::policy::{DeliveryChannel, Effects};
use crate::time::Now;

impl Engine {
    /// Returns true if a notification may escalate. The caller must stay, or come back, until none may.
    pub fn has_escalations(&self) -> bool {
        self.attention.store().next_escalation().is_some()
    }

    /// Returns when a notification that is shown now escalates. Its webhooks count as commands: what turns off commands turns
    /// off escalation.
    pub(super) fn escalation_of(&self, now: Now, kind: ShownKind, effects: Effects) -> Option<i64> {
        let after = self.preferences.escalate_after.filter(|_| effects.command && kind.escalates())?;
        Some(now.wall_ms.saturating_add(i64::try_from(after.as_millis()).unwrap_or(i64::MAX)))
    }

    pub(super) fn next_escalation_deadline(&self, now: Now) -> Option<Duration> {
        let next = self.attention.store().next_escalation()?;
        Some(if self.is_away() { now.mono } else { now.mono_at(next) })
    }

    /// Escalates the due notifications, or all that may if the person is away. If there are many, the rest follow with the
    /// next tick, which is due at once.
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

/// Builds the delivery of a stored notification.
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
        icon: None,
    }
}
