//! Resolves notifications whose cause has ended, and withdraws their popups.

use super::{Candidate, Engine};
use crate::arrival::Arrival;
use crate::attention::{Cause, Record, ResolvedBy};
use crate::engine::Order;
use crate::message::{MessageId, Place};
use crate::time::Now;

impl Engine {
    /// Resolves the notifications with a key, including undecided ones: of one sender, or of any. The key of an agent's
    /// episode names the agent, and no other sender may use it.
    pub(super) fn resolve_key(
        &mut self,
        now: Now,
        sender: Option<&str>,
        key: &str,
        by: ResolvedBy,
        orders: &mut Vec<Order>,
    ) {
        let of_key = |candidate: &Candidate| {
            let draft = &candidate.incoming.message.draft;
            draft.key.as_deref() == Some(key) && sender.is_none_or(|sender| draft.sender.as_str() == sender)
        };
        self.resolve_undecided(now, of_key, by, orders);
        let has_key = |record: &Record| {
            record.key.as_deref() == Some(key) && sender.is_none_or(|sender| &*record.sender == sender)
        };
        self.end_undo(has_key, orders);
        let open = self.attention.store().open_of(sender, key);
        let ids = open.map(|record| record.id.clone()).collect();
        self.resolve_messages(now, ids, by, orders);
    }

    /// Resolves notifications.
    pub(super) fn resolve_messages(
        &mut self,
        now: Now,
        ids: Vec<MessageId>,
        by: ResolvedBy,
        orders: &mut Vec<Order>,
    ) {
        for id in ids {
            self.resolve_undecided(now, |candidate| candidate.incoming.message.id == id, by, orders);
            if self.attention.store_mut().resolve(&id, now.wall_ms, by) {
                self.changed_at(now, &id, orders);
            }
        }
    }

    /// Resolves expired notifications. If there are many, the rest follow with the next event, which is due at once.
    pub(super) fn expire(&mut self, now: Now, orders: &mut Vec<Order>) {
        if self.attention.store().next_expiry().is_some_and(|expires_ms| expires_ms <= now.wall_ms) {
            let expired = self.attention.store().expired(now.wall_ms, self.bulk_marks.most);
            self.resolve_messages(now, expired, ResolvedBy::Expired, orders);
        }
    }

    /// Records undecided notifications whose cause has ended as read. No hook runs: there is nothing left to show.
    fn resolve_undecided(
        &mut self,
        now: Now,
        ended: impl Fn(&Candidate) -> bool,
        by: ResolvedBy,
        orders: &mut Vec<Order>,
    ) {
        let mut arrivals = self.queue.take(&ended);
        arrivals.extend(self.stop_hook_chains(|arrival| ended(&arrival.item)));
        for Arrival { place, item, generation, .. } in arrivals {
            let id = item.incoming.message.id.clone();
            if self.fence.admits(&place, generation) {
                self.record_ended(now, place, item, by, orders);
            } else {
                orders.push(Order::AddTrailStep { id, cause: Cause::Cleared });
            }
        }
    }

    /// Removes notifications from their hook chains. The answers of hooks that still run are ignored.
    pub(super) fn stop_hook_chains(
        &mut self,
        which: impl Fn(&Arrival<Candidate>) -> bool,
    ) -> Vec<Arrival<Candidate>> {
        let stopped = self.hook_chains.extract_if(|_, running| which(&running.arrival));
        let stopped: Vec<_> = stopped.collect();
        self.pointless_hooks.extend(stopped.iter().map(|(ticket, _)| *ticket));
        stopped.into_iter().map(|(_, running)| running.arrival).collect()
    }

    fn record_ended(
        &mut self,
        now: Now,
        place: Place,
        candidate: Candidate,
        by: ResolvedBy,
        orders: &mut Vec<Order>,
    ) {
        let Candidate { incoming, steps, .. } = candidate;
        let Some(record) = Record::of(&incoming.message) else { return };
        let mut record = Record { place, is_read: true, is_resolved: true, pane_flash: false, ..record };
        for step in steps.into_iter().chain([Cause::Resolved { by }]) {
            record.add_step(now.wall_ms, step);
        }
        let id = record.id.clone();
        self.turn_ends.add(&record);
        if self.attention.store_mut().add(record, now.wall_ms).is_new {
            self.added(&id, orders);
        }
    }
}
