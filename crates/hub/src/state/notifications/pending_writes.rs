//! Collects the writes that the engine orders, until they are committed in one transaction.
//!
//! A delivery is stored before it starts and removed when it ends. So after a crash everything is in the journal beyond the
//! position, among the undecided messages, or among the started deliveries; nothing is only in memory.

use std::collections::{HashMap, HashSet};

use ringer_core::MessageId;
use ringer_core::attention::{Cause, Record, TrailStep, UnreadReason};
use ringer_core::engine::{Delivery, SavedState};
use ringer_core::message::Place;
use ringer_core::policy::DeliveryChannel;
use ringer_journal::{DeadLetter, HubChanges, PendingDelivery, PlaceFlag, ReadPosition, ShownPopup};

/// The next transaction, and the part of the store that it is compared with.
#[derive(Debug, Default)]
pub(in crate::state) struct PendingWrites {
    next: HubChanges,
    /// The index of each record in `next`, so that only its last version is written.
    records: HashMap<MessageId, usize>,
    /// Undecided, according to the store.
    undecided: HashSet<MessageId>,
    /// Flags that are set, according to the store.
    flags: HashSet<PlaceFlag>,
    /// Popups that may be on the screen, according to the store.
    popups: HashSet<MessageId>,
    /// Deliveries that start once they are written.
    to_start: Vec<Delivery>,
}

impl PendingWrites {
    /// Starts with the contents of the store.
    pub(super) fn new(
        undecided: impl IntoIterator<Item = MessageId>,
        flags: impl IntoIterator<Item = PlaceFlag>,
        popups: impl IntoIterator<Item = MessageId>,
    ) -> Self {
        Self {
            undecided: undecided.into_iter().collect(),
            flags: flags.into_iter().collect(),
            popups: popups.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Sets the position up to which messages were read.
    pub(in crate::state) fn set_position(&mut self, position: ReadPosition) {
        self.next.position = Some(position);
    }

    /// Adds or changes a notification.
    pub(in crate::state) fn upsert(&mut self, record: Record) {
        if let Some(at) = self.records.get(&record.id) {
            self.next.records[*at] = record;
        } else {
            self.records.insert(record.id.clone(), self.next.records.len());
            self.next.records.push(record);
        }
    }

    /// Returns the number of unwritten notifications.
    pub(super) fn len(&self) -> usize {
        self.next.records.len()
    }

    /// Removes a notification.
    pub(in crate::state) fn delete(&mut self, id: &MessageId) {
        if self.records.remove(id).is_some() {
            self.next.records.retain(|record| record.id != *id);
            let numbered = self.next.records.iter().enumerate();
            self.records = numbered.map(|(at, record)| (record.id.clone(), at)).collect();
        }
        self.next.forgotten.push(id.clone());
        // Once the record is deleted, recovery cannot know whether this popup should be closed.
        self.popup_gone(id);
    }

    /// Sets or removes a value of a feature.
    pub(in crate::state) fn save_state(&mut self, state: SavedState) {
        self.next.states.push(state);
    }

    /// Adds a trail step to a message that is not a notification.
    pub(in crate::state) fn add_step(&mut self, id: MessageId, unix_ms: i64, cause: Cause) {
        self.next.steps.push((id, TrailStep { unix_ms, cause }));
    }

    /// Adds a delivery, which starts after the commit.
    pub(in crate::state) fn start_delivery(&mut self, delivery: Delivery) {
        // Serialising plain data cannot fail.
        let json = serde_json::to_string(&delivery).unwrap_or_default();
        let channel = delivery.channel.as_str().to_owned();
        // A notification that returns from a snooze may have been withdrawn in the same turn. The end of that delivery came
        // first.
        self.next.finished.retain(|(id, finished)| *id != delivery.id || *finished != channel);
        self.next.started.push(PendingDelivery { id: delivery.id.clone(), channel, delivery: json });
        self.to_start.push(delivery);
    }

    /// Records the end of a delivery.
    pub(in crate::state) fn finish_delivery(&mut self, id: &MessageId, channel: DeliveryChannel) {
        self.next.finished.push((id.clone(), channel.as_str().to_owned()));
    }

    /// Gives up a delivery of an earlier hub.
    pub(in crate::state) fn give_up(&mut self, row: PendingDelivery, why: String, unix_ms: i64) {
        self.next.finished.push((row.id.clone(), row.channel.clone()));
        self.add_dead_letter(DeadLetter { id: row.id, target: row.channel, why, unix_ms });
    }

    /// Records a popup that is on the screen.
    pub(in crate::state) fn popup_shown(&mut self, popup: ShownPopup) {
        self.popups.insert(popup.id.clone());
        self.next.shown.push(popup);
    }

    /// Records a delivery that was given up.
    pub(in crate::state) fn add_dead_letter(&mut self, letter: DeadLetter) {
        self.next.dead_letters.push(letter);
    }

    /// Withdraws a notification. Its deliveries that have not started never do. Its popup stays in the store until it is gone: if
    /// this hub dies before that, the next one withdraws it.
    pub(in crate::state) fn withdraw(&mut self, id: &MessageId) {
        self.to_start.retain(|delivery| delivery.id != *id);
        self.next.started.retain(|started| started.id != *id);
        if self.popups.contains(id) {
            for channel in DeliveryChannel::ALL {
                self.finish_delivery(id, channel);
            }
        } else {
            self.next.withdrawn.push(id.clone());
        }
    }

    /// Records that a notification's popup is gone.
    pub(in crate::state) fn popup_gone(&mut self, id: &MessageId) {
        self.next.shown.retain(|popup| popup.id != *id);
        if self.popups.remove(id) {
            self.next.withdrawn.push(id.clone());
        }
    }

    /// Sets the undecided messages. Those that are missing now count as decided.
    pub(super) fn set_undecided<'a>(&mut self, now: impl Iterator<Item = &'a MessageId>) {
        let now: HashSet<MessageId> = now.cloned().collect();
        self.next.undecided = now.difference(&self.undecided).cloned().collect();
        self.next.decided = self.undecided.difference(&now).cloned().collect();
    }

    /// Sets the flags, replacing all others.
    pub(super) fn set_flags(&mut self, now: impl Iterator<Item = PlaceFlag>) {
        let now: HashSet<PlaceFlag> = now.collect();
        self.next.flags_set = now.difference(&self.flags).cloned().collect();
        self.next.flags_cleared = self.flags.difference(&now).cloned().collect();
    }

    /// Returns the next transaction.
    pub(super) fn transaction(&self) -> &HubChanges {
        &self.next
    }

    /// Records that the transaction was committed. Returns the deliveries that may start.
    pub(super) fn committed(&mut self) -> Vec<Delivery> {
        self.undecided.extend(self.next.undecided.drain(..));
        for id in self.next.decided.drain(..) {
            self.undecided.remove(&id);
        }
        self.flags.extend(self.next.flags_set.drain(..));
        for flag in self.next.flags_cleared.drain(..) {
            self.flags.remove(&flag);
        }
        self.next = HubChanges::default();
        self.records.clear();
        std::mem::take(&mut self.to_start)
    }
}

/// Encodes a reason and a place for the store.
pub(super) fn flag(reason: UnreadReason, place: &Place) -> PlaceFlag {
    // Serialising plain data cannot fail.
    let place = serde_json::to_string(place).unwrap_or_default();
    PlaceFlag { reason: reason.as_str().to_owned(), place }
}

/// Decodes a flag. Returns `None` if it is no longer valid.
pub(super) fn unflag(flag: &PlaceFlag) -> Option<(UnreadReason, Place)> {
    Some((UnreadReason::named(&flag.reason)?, serde_json::from_str(&flag.place).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringer_core::Kind;
    use ringer_core::message::ShownKind;
    use ringer_core::message::{Place, WorkspaceId};

    fn id(number: u64) -> MessageId {
        MessageId::new(number, [0; 10])
    }

    fn record(number: u64, body: &str) -> Record {
        Record::new(id(number), Place::workspace(WorkspaceId::new("w")), Kind::Status, body, 0)
    }

    fn delivery(number: u64) -> Delivery {
        Delivery {
            id: id(number),
            place: Place::workspace(WorkspaceId::new("w")),
            channel: DeliveryChannel::Desktop,
            title: String::new(),
            subtitle: String::new(),
            body: "x".into(),
            kind: ShownKind::Status,
            sender: "system".into(),
            replaces: None,
            icon: None,
        }
    }

    #[test]
    fn only_the_last_form_of_a_record_is_written() {
        let mut writes = PendingWrites::default();
        writes.upsert(record(1, "first"));
        writes.upsert(record(2, "other"));
        writes.upsert(record(1, "last"));
        let bodies: Vec<&str> = writes.transaction().records.iter().map(|record| &*record.body).collect();
        assert_eq!(bodies, ["last", "other"]);
        writes.delete(&id(1));
        writes.upsert(record(2, "newer"));
        assert_eq!(writes.transaction().records, [record(2, "newer")]);
        assert_eq!(writes.transaction().forgotten, [id(1)]);
    }

    #[test]
    fn what_is_withdrawn_before_it_began_never_begins() {
        let mut writes = PendingWrites::default();
        writes.start_delivery(delivery(1));
        writes.start_delivery(delivery(2));
        writes.withdraw(&id(1));
        assert_eq!(writes.transaction().started.len(), 1);
        assert_eq!(writes.committed(), [delivery(2)]);
        assert!(writes.transaction().is_empty() && writes.committed().is_empty());
    }

    #[test]
    fn a_delivery_that_starts_again_is_written_as_started() {
        let mut writes = PendingWrites::new([], [], [id(1)]);
        writes.withdraw(&id(1));
        writes.start_delivery(delivery(1));
        let changes = writes.transaction();
        assert_eq!(changes.started.len(), 1);
        assert!(!changes.finished.contains(&(id(1), "desktop".to_owned())));
        assert!(changes.finished.contains(&(id(1), "webhook".to_owned())));
    }

    #[test]
    fn a_popup_stays_written_down_until_it_is_gone() {
        let shown = |number| ShownPopup {
            key: "s".to_owned(),
            id: id(number),
            number: 7,
            server: "bus :1.1".to_owned(),
            offer: None,
        };
        let mut writes = PendingWrites::new([], [], [id(1)]);
        writes.popup_shown(shown(2));
        writes.withdraw(&id(1));
        writes.withdraw(&id(2));
        assert_eq!((writes.transaction().withdrawn.len(), writes.transaction().shown.len()), (0, 1));
        assert!(
            writes.transaction().finished.contains(&(id(1), "desktop".to_owned())),
            "nothing begins again"
        );
        writes.committed();
        writes.popup_gone(&id(1));
        writes.popup_gone(&id(1));
        writes.popup_shown(shown(3));
        writes.popup_gone(&id(3));
        assert_eq!(writes.transaction().withdrawn, [id(1), id(3)]);
        assert!(writes.transaction().shown.is_empty());
        writes.committed();
        writes.delete(&id(2));
        assert_eq!(writes.transaction().withdrawn, [id(2)]);
    }

    #[test]
    fn the_undecided_are_entered_once_and_struck_out_once() {
        let mut writes = PendingWrites::new([id(1)], [], []);
        writes.set_undecided([id(1), id(2)].iter());
        assert_eq!(
            (writes.transaction().undecided.as_slice(), writes.transaction().decided.len()),
            (&[id(2)][..], 0)
        );
        writes.committed();
        writes.set_undecided([id(2)].iter());
        assert_eq!(
            (writes.transaction().undecided.len(), writes.transaction().decided.as_slice()),
            (0, &[id(1)][..])
        );
        writes.committed();
        writes.set_undecided([id(2)].iter());
        assert!(writes.transaction().is_empty());
    }

    #[test]
    fn flags_are_written_when_they_change() {
        let place = Place::workspace(WorkspaceId::new("w"));
        let mut writes = PendingWrites::default();
        let marked = [(UnreadReason::Manual, place.clone())];
        let flags = || marked.iter().map(|(reason, place)| flag(*reason, place));
        writes.set_flags(flags());
        let written = writes.transaction().flags_set.clone();
        assert_eq!(written.iter().filter_map(unflag).collect::<Vec<_>>(), marked);
        writes.committed();
        writes.set_flags(flags());
        assert!(writes.transaction().is_empty());
        writes.set_flags([].into_iter());
        assert_eq!(writes.transaction().flags_cleared, written);
        writes.committed();
        writes.set_flags([].into_iter());
        assert!(writes.transaction().is_empty());
    }
}
