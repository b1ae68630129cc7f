//! Counts messages of other machines that are over the listing limit.

use super::unlisted::{Count, MAX_MACHINES, UPDATE_EVERY, text};
use super::{Engine, IncomingMessage};
use crate::attention::{Cause, Record};
use crate::engine::Order;
use crate::message::{Kind, MessageId, Place};
use crate::time::Now;

impl Engine {
    /// Counts a message that is over its machine's listing limit.
    pub(super) fn count_unlisted(&mut self, now: Now, incoming: &IncomingMessage, orders: &mut Vec<Order>) {
        let message = &incoming.message;
        let Some(machine) = message.machine.as_deref() else { return };
        let cause = Cause::OnlyCounted { machine: machine.to_owned() };
        let store = self.attention.store();
        let is_there = |row: &MessageId| store.get(row).is_some_and(|record| !record.is_read);
        if let Some(count) = self.unlisted.counts.get_mut(machine).filter(|count| is_there(&count.row)) {
            if count.row == message.id {
                return;
            }
            count.messages += 1;
            orders.push(Order::AddTrailStep { id: message.id.clone(), cause });
            return self.update_unlisted(now, orders);
        }
        if self.unlisted.counts.len() >= MAX_MACHINES {
            self.unlisted.counts.retain(|_, count| is_there(&count.row));
        }
        if self.unlisted.counts.len() >= MAX_MACHINES {
            return orders.push(Order::AddTrailStep { id: message.id.clone(), cause });
        }
        let place = self.surfaces.resolve(&incoming.caller).map(|resolved| resolved.place.workspace);
        let place =
            place.map_or_else(|| Place::own_workspace(message.draft.scope.as_str()), Place::workspace);
        let row = Record::from_message(message, place.clone(), Kind::Status, text(1, machine));
        let (label, sender) = (Some(machine.into()), machine.into());
        let mut row = Record { key: None, category: None, label, sender, ..row };
        row.add_step(now.wall_ms, cause);
        let count = Count { row: message.id.clone(), messages: 1, said: 1, said_at: now.mono };
        self.unlisted.counts.insert(machine.to_owned(), count);
        if self.attention.add(row, now.wall_ms).is_new {
            self.added(&message.id, orders);
            self.redraw(now.mono, &place, orders);
        }
    }

    /// Updates the rows whose count has changed, at most once per `UPDATE_EVERY`.
    pub(super) fn update_unlisted(&mut self, now: Now, orders: &mut Vec<Order>) {
        let mut updated = Vec::new();
        for (machine, count) in &mut self.unlisted.counts {
            if count.messages != count.said && now.mono >= count.said_at + UPDATE_EVERY {
                (count.said, count.said_at) = (count.messages, now.mono);
                updated.push((count.row.clone(), text(count.messages, machine)));
            }
        }
        for (row, text) in updated {
            self.attention.store_mut().set_body(&row, &text);
            self.changed_without_withdrawing(&row, orders);
        }
    }
}
