//! The book: what the engine ordered to be written down, gathered until it is, in one transaction.
//!
//! Deliveries are entered before they begin and struck out when they are over. So after a crash everything is either in
//! the journal behind the cursor, among the undecided, or in the outbox; nothing is only in somebody's memory.

use std::collections::{HashMap, HashSet};

use ringer_core::{Delivery, DeliveryChannel, MessageId, Place, Record, TrailStep, UnreadReason};
use ringer_journal::{DeadLetter, HubTransaction, PendingDelivery, PlaceFlag, ReadPosition, ShownPopup};

/// What is to be written next, and what was written of the undecided.
#[derive(Debug, Default)]
pub(crate) struct Book {
    next: HubTransaction,
    /// Where a record stands in `next`, so that only its last form is written.
    records: HashMap<MessageId, usize>,
    /// Undecided according to the memory.
    undecided: HashSet<MessageId>,
    /// Flags that are up, according to the memory.
    flags: HashSet<PlaceFlag>,
    /// Popups that may be on the screen, according to the memory.
    popups: HashSet<MessageId>,
    /// Deliveries to begin once they are entered.
    begin: Vec<Delivery>,
}

impl Book {
    /// A book that goes on from what the memory has.
    pub(crate) fn begin(
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

    /// The memory was begun anew, perhaps with less than was written: what holds now is written again.
    pub(crate) fn write_again<'a>(&mut self, records: impl Iterator<Item = &'a Record>, taken: ReadPosition) {
        self.undecided.clear();
        self.flags.clear();
        for record in records {
            if !self.records.contains_key(&record.id) {
                self.remember(record.clone());
            }
        }
        self.take(taken);
    }

    /// The messages up to here are taken.
    pub(crate) fn take(&mut self, taken: ReadPosition) {
        self.next.position = Some(taken);
    }

    /// A notification is new, or changed.
    pub(crate) fn remember(&mut self, record: Record) {
        if let Some(at) = self.records.get(&record.id) {
            self.next.records[*at] = record;
        } else {
            self.records.insert(record.id.clone(), self.next.records.len());
            self.next.records.push(record);
        }
    }

    /// A notification is off the list.
    pub(crate) fn forget(&mut self, id: &MessageId) {
        if self.records.remove(id).is_some() {
            self.next.records.retain(|record| record.id != *id);
            let numbered = self.next.records.iter().enumerate();
            self.records = numbered.map(|(at, record)| (record.id.clone(), at)).collect();
        }
        self.next.forgotten.push(id.clone());
        // Nobody could tell later whether its popup was meant to stay.
        self.gone(id);
    }

    /// Something happened to a message that is no notification.
    pub(crate) fn step(&mut self, id: MessageId, unix_ms: i64, text: String) {
        self.next.steps.push((id, TrailStep { unix_ms, text }));
    }

    /// A delivery is to begin.
    pub(crate) fn send(&mut self, delivery: Delivery) {
        // Plain data: it cannot fail to be written.
        let json = serde_json::to_string(&delivery).unwrap_or_default();
        let way = delivery.channel.as_str().to_owned();
        self.next.started.push(PendingDelivery { id: delivery.id.clone(), way, delivery: json });
        self.begin.push(delivery);
    }

    /// A delivery is over.
    pub(crate) fn settle(&mut self, id: &MessageId, way: DeliveryChannel) {
        self.next.finished.push((id.clone(), way.as_str().to_owned()));
    }

    /// A delivery of an earlier hub is given up.
    pub(crate) fn give_up(&mut self, row: PendingDelivery, why: String, unix_ms: i64) {
        self.next.finished.push((row.id.clone(), row.way.clone()));
        self.bury(DeadLetter { id: row.id, target: row.way, why, unix_ms });
    }

    /// A popup is on the screen.
    pub(crate) fn shown(&mut self, popup: ShownPopup) {
        self.popups.insert(popup.id.clone());
        self.next.shown.push(popup);
    }

    /// A delivery was given up.
    pub(crate) fn bury(&mut self, letter: DeadLetter) {
        self.next.dead_letters.push(letter);
    }

    /// What was shown of a notification is to be taken back, and what has not begun never begins. Its popup stays written
    /// down until it is gone: should this hub die before that, the next one takes it back.
    pub(crate) fn withdraw(&mut self, id: &MessageId) {
        self.begin.retain(|delivery| delivery.id != *id);
        self.next.started.retain(|outgoing| outgoing.id != *id);
        if self.popups.contains(id) {
            for way in DeliveryChannel::ALL {
                self.settle(id, way);
            }
        } else {
            self.next.withdrawn.push(id.clone());
        }
    }

    /// The popup of a notification is gone.
    pub(crate) fn gone(&mut self, id: &MessageId) {
        self.next.shown.retain(|popup| popup.id != *id);
        if self.popups.remove(id) {
            self.next.withdrawn.push(id.clone());
        }
    }

    /// These are undecided now; those that were and are no longer, are decided.
    pub(crate) fn set_undecided<'a>(&mut self, now: impl Iterator<Item = &'a MessageId>) {
        let now: HashSet<MessageId> = now.cloned().collect();
        self.next.undecided = now.difference(&self.undecided).cloned().collect();
        self.next.decided = self.undecided.difference(&now).cloned().collect();
    }

    /// These flags are up now, and no others.
    pub(crate) fn set_flags(&mut self, now: impl Iterator<Item = PlaceFlag>) {
        let now: HashSet<PlaceFlag> = now.collect();
        self.next.flags_set = now.difference(&self.flags).cloned().collect();
        self.next.flags_cleared = self.flags.difference(&now).cloned().collect();
    }

    /// What is to be written.
    pub(crate) fn settlement(&self) -> &HubTransaction {
        &self.next
    }

    /// It is written. Gives the deliveries that may begin.
    pub(crate) fn written(&mut self) -> Vec<Delivery> {
        self.undecided.extend(self.next.undecided.drain(..));
        for id in self.next.decided.drain(..) {
            self.undecided.remove(&id);
        }
        self.flags.extend(self.next.flags_set.drain(..));
        for flag in self.next.flags_cleared.drain(..) {
            self.flags.remove(&flag);
        }
        self.next = HubTransaction::default();
        self.records.clear();
        std::mem::take(&mut self.begin)
    }
}

/// A reason and a place, as they are written down.
pub(crate) fn flag(reason: UnreadReason, place: &Place) -> PlaceFlag {
    // Plain data: it cannot fail to be written.
    let place = serde_json::to_string(place).unwrap_or_default();
    PlaceFlag { reason: reason.as_str().to_owned(), place }
}

/// What was written down; `None` where it makes no sense any more.
pub(crate) fn unflag(flag: &PlaceFlag) -> Option<(UnreadReason, Place)> {
    Some((UnreadReason::named(&flag.reason)?, serde_json::from_str(&flag.place).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringer_core::{Kind, Place, WorkspaceId};

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
            kind: Kind::Status,
            sender: "system".into(),
            replaces: None,
        }
    }

    #[test]
    fn only_the_last_form_of_a_record_is_written() {
        let mut book = Book::default();
        book.remember(record(1, "first"));
        book.remember(record(2, "other"));
        book.remember(record(1, "last"));
        let bodies: Vec<&str> = book.settlement().records.iter().map(|record| record.body.as_str()).collect();
        assert_eq!(bodies, ["last", "other"]);
        book.forget(&id(1));
        book.remember(record(2, "newer"));
        assert_eq!(book.settlement().records, [record(2, "newer")]);
        assert_eq!(book.settlement().forgotten, [id(1)]);
    }

    #[test]
    fn what_is_withdrawn_before_it_began_never_begins() {
        let mut book = Book::default();
        book.send(delivery(1));
        book.send(delivery(2));
        book.withdraw(&id(1));
        assert_eq!(book.settlement().started.len(), 1);
        assert_eq!(book.written(), [delivery(2)]);
        assert!(book.settlement().is_empty() && book.written().is_empty());
    }

    #[test]
    fn a_popup_stays_written_down_until_it_is_gone() {
        let shown = |number| ShownPopup {
            key: "s".to_owned(),
            id: id(number),
            number: 7,
            server: "bus :1.1".to_owned(),
        };
        let mut book = Book::begin([], [], [id(1)]);
        book.shown(shown(2));
        book.withdraw(&id(1));
        book.withdraw(&id(2));
        assert_eq!((book.settlement().withdrawn.len(), book.settlement().shown.len()), (0, 1));
        assert!(book.settlement().finished.contains(&(id(1), "desktop".to_owned())), "nothing begins again");
        book.written();
        book.gone(&id(1));
        book.gone(&id(1));
        book.shown(shown(3));
        book.gone(&id(3));
        assert_eq!(book.settlement().withdrawn, [id(1), id(3)]);
        assert!(book.settlement().shown.is_empty());
        book.written();
        book.forget(&id(2));
        assert_eq!(book.settlement().withdrawn, [id(2)]);
    }

    #[test]
    fn the_undecided_are_entered_once_and_struck_out_once() {
        let mut book = Book::begin([id(1)], [], []);
        book.set_undecided([id(1), id(2)].iter());
        assert_eq!(
            (book.settlement().undecided.as_slice(), book.settlement().decided.len()),
            (&[id(2)][..], 0)
        );
        book.written();
        book.set_undecided([id(2)].iter());
        assert_eq!(
            (book.settlement().undecided.len(), book.settlement().decided.as_slice()),
            (0, &[id(1)][..])
        );
        book.written();
        book.set_undecided([id(2)].iter());
        assert!(book.settlement().is_empty());
    }

    #[test]
    fn flags_are_written_when_they_change() {
        let place = Place::workspace(WorkspaceId::new("w"));
        let mut book = Book::default();
        let marked = [(UnreadReason::Manual, place.clone())];
        let flags = || marked.iter().map(|(reason, place)| flag(*reason, place));
        book.set_flags(flags());
        let written = book.settlement().flags_set.clone();
        assert_eq!(written.iter().filter_map(unflag).collect::<Vec<_>>(), marked);
        book.written();
        book.set_flags(flags());
        assert!(book.settlement().is_empty());
        book.set_flags([].into_iter());
        assert_eq!(book.settlement().flags_cleared, written);
        book.written();
        book.set_flags([].into_iter());
        assert!(book.settlement().is_empty());
    }
}
