//! While the person is away, notifications that can wait make no popup; when the person comes back, one digest summarises
//! them.

use std::time::Duration;

use super::Engine;
use crate::attention::{AwayPeriod, Cause, DIGEST_TITLE, Digest, Record, digest_id};
use crate::engine::{Delivery, FeatureValue, Order};
use crate::message::ShownKind;
use crate::policy::{DeliveryChannel, Effects, plan_delivery};
use crate::time::Now;

impl FeatureValue for AwayPeriod {
    const FEATURE: &'static str = "away";

    fn key(&self) -> String {
        "last".to_owned()
    }
}

impl Engine {
    /// The last period in which the person was away. It may still be going on.
    pub fn away_period(&self) -> Option<AwayPeriod> {
        self.away
    }

    pub(super) fn restore_away(&mut self, now: Now, away: AwayPeriod) {
        self.away = Some(away);
        if self.is_away() {
            self.presence.restore_away(now.mono);
        }
    }

    /// Returns true if there will be a digest when the person comes back. The caller must not exit before.
    pub fn has_digest(&self) -> bool {
        self.away
            .is_some_and(|away| away.until_ms.is_none() && self.in_digest(away.since_ms).next().is_some())
    }

    pub(super) fn is_away(&self) -> bool {
        self.away.is_some_and(|away| away.until_ms.is_none())
    }

    pub(super) fn next_presence_change(&self, now: Now) -> Option<Duration> {
        self.presence.next_change(now.mono, self.preferences.away_after)
    }

    /// Checks whether the person has left or come back.
    pub(super) fn update_away(&mut self, now: Now, orders: &mut Vec<Order>) {
        let is_away = self.presence.is_away(now.mono, self.preferences.away_after);
        match self.away.filter(|away| away.until_ms.is_none()) {
            None if is_away => {
                let away = AwayPeriod { since_ms: now.wall_ms, until_ms: None };
                self.away = Some(away);
                orders.push(Order::SaveState(Box::new(away.saved())));
            }
            Some(away) if !is_away => {
                let away = AwayPeriod { until_ms: Some(now.wall_ms), ..away };
                self.away = Some(away);
                orders.push(Order::SaveState(Box::new(away.saved())));
                for surface in self.focus.looked_at() {
                    self.read_surface(now, surface, i64::MAX, orders);
                }
                self.show_digest(now, away.since_ms, orders);
            }
            _ => {}
        }
    }

    /// Returns true if a popup of this kind is held back because the person is away.
    pub(super) fn is_held_back(&self, kind: ShownKind) -> bool {
        self.is_away() && matches!(kind, ShownKind::Complete | ShownKind::Idle | ShownKind::Status)
    }

    /// Removes popup and sound if the person is away. Returns the remaining effects and the reason. Hooks cannot turn them on
    /// again: no one would see or hear them.
    pub(super) fn hold_back(&self, effects: Effects, kind: ShownKind) -> (Effects, Option<Cause>) {
        if self.is_held_back(kind) && (effects.desktop || effects.sound) {
            (Effects { desktop: false, sound: false, ..effects }, Some(Cause::Away))
        } else {
            (effects, None)
        }
    }

    fn in_digest(&self, since_ms: i64) -> impl Iterator<Item = &Record> {
        let store = self.attention.store();
        let open = store.needs_person().filter(|record| record.is_read);
        store.newest_unread().chain(open).filter(move |record| Digest::includes(record, since_ms))
    }

    /// Shows one popup for everything that arrived since. Muted notifications are not counted.
    fn show_digest(&mut self, now: Now, since_ms: i64, orders: &mut Vec<Order>) {
        if self.rules.is_quiet(now) {
            return;
        }
        let is_muted = |record: &Record| {
            let of = (&*record.sender, &record.place, &*record.scope);
            self.mutes.muting(now.wall_ms, of, record.shown_kind()).is_some()
        };
        let records: Vec<&Record> = self.in_digest(since_ms).filter(|record| !is_muted(record)).collect();
        let digest = Digest::of(records.iter().copied());
        let Some(first) = records.into_iter().min_by(|one, two| one.by_urgency(two)) else { return };
        let delivery = Delivery {
            id: digest_id(),
            // A terminal shows it at the most urgent notification.
            place: first.place.clone(),
            channel: DeliveryChannel::Desktop,
            title: DIGEST_TITLE.to_owned(),
            subtitle: String::new(),
            body: digest.to_string(),
            // Desktops show no banner for a lower urgency.
            kind: ShownKind::Complete,
            sender: "system".to_owned(),
            replaces: None,
            icon: None,
        };
        let effects = Effects { desktop: true, ..Effects::NONE };
        let mut plan = plan_delivery(effects, false, self.preferences.popup, false);
        self.leave_out_disabled(&mut plan, delivery.kind);
        for channels in plan.deliveries {
            if let Some((first, rest)) = channels.split_first() {
                self.start_delivery(Delivery { channel: *first, ..delivery.clone() }, rest.to_vec(), orders);
            }
        }
    }
}
