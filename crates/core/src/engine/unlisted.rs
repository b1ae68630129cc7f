//! Messages of another machine beyond the rows that it may make: one row of its own counts them. They stay in the journal.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Engine, IncomingMessage};
use crate::arrival::ListingLimit;
use crate::attention::{Cause, Record};
use crate::engine::Order;
use crate::message::{Kind, MessageId, Place};
use crate::time::Now;

/// How often the row of a machine changes, however fast messages come: each change is written to the disk.
const UPDATE_EVERY: Duration = Duration::from_secs(1);

/// The row of a machine.
#[derive(Debug, Clone)]
struct Count {
    /// The first message that it stands for.
    row: MessageId,
    /// How many it stands for.
    messages: u64,
    /// How many it says.
    said: u64,
    said_at: Duration,
}

/// What is counted and not listed, by machine: no more machines than may make rows.
#[derive(Debug, Clone, Default)]
pub(super) struct Unlisted {
    pub(super) limit: ListingLimit,
    counts: BTreeMap<String, Count>,
}

/// Machines that have a row here. Messages of others are in the journal alone.
const MAX_MACHINES: usize = 256;

impl Unlisted {
    /// When a row is to be updated.
    pub(super) fn next_update(&self) -> Option<Duration> {
        let behind = self.counts.values().filter(|count| count.messages != count.said);
        behind.map(|count| count.said_at + UPDATE_EVERY).min()
    }
}

fn text(messages: u64, machine: &str) -> String {
    let word = if messages == 1 { "message" } else { "messages" };
    format!("{messages} more {word} from {machine}, see: ringer log --everywhere")
}

impl Engine {
    /// Counts a message that its machine may not list.
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

    /// Brings the rows up to date that are due for it.
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
