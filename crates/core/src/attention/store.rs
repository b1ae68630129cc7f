//! The notification store: read and unread notifications, with an index for each kind of query.
//!
//! Every change updates every index; indexes are rebuilt only once in 4 billion changes (`renumber`). Adding, reading and
//! removing a notification costs about the same with ten notifications as with a million, and clearing costs time in
//! proportion to what it clears.

mod index;

use std::collections::HashMap;

use crate::attention::{Cause, OptionalTime, ReadReason, Record, ResolvedBy};
use crate::message::{
    IdMatch, IdReference, Kind, MessageId, Place, QuestionId, ShownKind, SurfaceId, WorkspaceId,
};

use index::{HOLE, Index, Number, SharedTexts, Slot, SlotById};

#[derive(Debug, Clone)]
struct Entry {
    /// Boxed, so that free slots are small.
    record: Box<Record>,
    /// Position in the order of arrival.
    arrival: Number,
    /// Position in the order in which records became read, or unread.
    change: Number,
}

/// The result of adding a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddOutcome {
    /// True if it was added; false if its id was already there.
    pub is_new: bool,
    /// The notifications of the same surface that it superseded: still there, but read. There is more than one only if the
    /// person had marked older ones unread.
    pub superseded: Vec<MessageId>,
}

/// Notifications with their indexes.
///
/// ```
/// use ringer_core::{Kind, MessageId};
/// use ringer_core::attention::{NotificationStore, ReadReason, Record};
/// use ringer_core::message::{Place, SurfaceId, WorkspaceId};
///
/// let mut store = NotificationStore::default();
/// let pane = Place::surface(WorkspaceId::new("w"), SurfaceId::new("s"));
/// let id = MessageId::new(0, [1; 10]);
/// store.add(Record::new(id.clone(), pane.clone(), Kind::Waiting, "needs you", 0), 0);
/// assert!(store.has_unread(&pane));
/// assert_eq!(store.mark_read(&pane, 1, &ReadReason::Looked), [id]);
/// assert_eq!(store.total_unread(), 0);
/// ```
#[derive(Debug, Clone, Default)]
pub struct NotificationStore {
    /// A slot becomes empty when its record is removed, and is reused for the next one.
    slots: Vec<Option<Entry>>,
    empty_slots: Vec<Slot>,
    by_id: SlotById,
    by_question: HashMap<QuestionId, MessageId>,
    index: Index,
    texts: SharedTexts,
    /// The last number assigned to an arrival or a change.
    last_number: Number,
}

impl NotificationStore {
    /// The number of unread notifications.
    pub fn total_unread(&self) -> usize {
        self.index.unread.len()
    }

    /// The number of notifications.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns true if there are no notifications.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of unread notifications of a workspace.
    pub fn unread_of(&self, workspace: &WorkspaceId) -> usize {
        self.index.workspaces.get(workspace).map_or(0, |group| group.unread.len())
    }

    /// Returns true if a place has an unread notification.
    pub fn has_unread(&self, place: &Place) -> bool {
        self.index
            .group(place)
            .is_some_and(|group| !group.unread.is_empty() || !group.stays_unread.is_empty())
    }

    /// The unread notifications of a place.
    pub fn unread_at(&self, place: &Place) -> impl Iterator<Item = &Record> {
        let group = self.index.group(place).into_iter();
        let slots = group.flat_map(|group| group.unread.slots().chain(group.stays_unread.slots()));
        slots.filter_map(|slot| self.at(slot))
    }

    /// The newest notification of a workspace.
    pub fn latest(&self, workspace: &WorkspaceId) -> Option<&Record> {
        self.at(self.index.workspaces.get(workspace)?.all.slots().next_back()?)
    }

    /// Returns a notification by its id.
    pub fn get(&self, id: &MessageId) -> Option<&Record> {
        self.at(self.slot_of(id)?)
    }

    /// Returns the notification that asks an open question.
    pub fn asking(&self, question: &QuestionId) -> Option<&Record> {
        self.get(self.by_question.get(question)?)
    }

    /// Returns the shown part of a notification's id: as much as distinguishes it from the others.
    pub fn short_id(&self, id: &MessageId) -> Option<String> {
        Some(self.index.short_ids.shown(id, self.slot_of(id)?))
    }

    /// Finds the notification that a person named: by its id, its short id, `last`, a name that lists show, a piece of its id,
    /// or the beginning of a name. If several match, they are returned newest first. A name stands for one notification of each
    /// sender that has it: the newest that waits for an answer, else the newest unread, else the newest.
    pub fn named(&self, text: &str) -> IdMatch {
        if let Some(exact) = MessageId::parse(text).ok().filter(|id| self.has(id)) {
            return IdMatch::One(exact);
        }
        let text = match IdReference::parse(text) {
            IdReference::Last => {
                return IdMatch::of(self.ids(self.index.everything.slots().next_back().into_iter()));
            }
            IdReference::NoId => return IdMatch::Unknown,
            IdReference::Text(text) => text,
        };
        let slots = self.index.short_ids.beginning_with(text);
        let mut entries: Vec<&Entry> =
            slots.filter_map(|slot| self.slots.get(slot as usize)?.as_ref()).collect();
        entries.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.arrival));
        let by_short_id = IdMatch::of(entries.iter().map(|entry| entry.record.id.clone()).collect());
        let by_piece = || {
            let is_meant = |record: &&Record| IdReference::is_piece_of(text, &record.id);
            IdMatch::of(self.newest().filter(is_meant).map(|record| record.id.clone()).collect())
        };
        let by_name = || of_each_sender(self.with_name(text));
        by_short_id.or(by_name).or(by_piece).or(|| of_each_sender(self.with_name_beginning(text)))
    }

    /// The notifications with a name that lists show, newest first.
    pub fn with_name<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Record> {
        self.newest().filter(move |record| record.has_name(|own| own == name))
    }

    /// The notifications with a name that begins like this, newest first.
    pub fn with_name_beginning<'a>(&'a self, beginning: &'a str) -> impl Iterator<Item = &'a Record> {
        self.newest().filter(move |record| record.has_name(|own| own.starts_with(beginning)))
    }

    /// All notifications, newest first.
    pub fn newest(&self) -> impl Iterator<Item = &Record> {
        self.index.everything.slots().rev().filter_map(|slot| self.at(slot))
    }

    /// The unread notifications, most recently unread first.
    pub fn newest_unread(&self) -> impl Iterator<Item = &Record> {
        self.index.unread.slots().rev().filter_map(|slot| self.at(slot))
    }

    /// The open notifications that need the person, in no order.
    pub fn needs_person(&self) -> impl Iterator<Item = &Record> {
        self.index.needs_person.iter().filter_map(|slot| self.at(*slot))
    }

    /// The number of open notifications that need the person.
    pub fn needs_person_count(&self) -> usize {
        self.index.needs_person.len()
    }

    /// The open notifications with a key, of one sender or of any.
    pub fn open_of<'a>(&'a self, sender: Option<&'a str>, key: &str) -> impl Iterator<Item = &'a Record> {
        let slots = self.index.keys.get(key).into_iter().flatten();
        let is_of = move |record: &&Record| sender.is_none_or(|sender| *record.sender == *sender);
        slots.filter_map(|slot| self.at(*slot)).filter(is_of)
    }

    /// When the next notification expires, in milliseconds since 1970.
    pub fn next_expiry(&self) -> Option<i64> {
        self.index.expiring.first().map(|(expires_ms, _)| *expires_ms)
    }

    /// The expired notifications, at most this many.
    pub(crate) fn expired(&self, unix_ms: i64, most: usize) -> Vec<MessageId> {
        let expired = self.index.expiring.iter().take_while(|(expires_ms, _)| *expires_ms <= unix_ms);
        self.ids(expired.take(most).map(|(_, slot)| *slot))
    }

    /// The notifications of a place, newest first.
    pub fn newest_of(&self, place: &Place) -> impl Iterator<Item = &Record> {
        let slots = self.index.group(place).into_iter().flat_map(|group| group.all.slots().rev());
        slots.filter_map(|slot| self.at(slot))
    }

    /// All notifications, oldest first.
    pub(crate) fn all_ids(&self) -> Vec<MessageId> {
        self.ids(self.index.everything.slots())
    }

    /// The notifications of a place, oldest first.
    pub(crate) fn ids_of(&self, place: &Place) -> Vec<MessageId> {
        self.index.group(place).map_or_else(Vec::new, |group| self.ids(group.all.slots()))
    }

    /// The read and resolved notifications, in the order in which they became so.
    pub(crate) fn read_ids(&self) -> Vec<MessageId> {
        self.ids(self.index.read.slots())
    }

    /// The notifications that reading everything changes: the unread ones and the open ones.
    pub(crate) fn unread_ids(&self) -> Vec<MessageId> {
        let open = self.open_slots();
        let open = open.filter(|slot| self.at(*slot).is_some_and(|record| record.is_read));
        self.ids(open.chain(self.index.unread.slots()))
    }

    /// The notifications that reading a place changes: its unread ones and its open ones.
    pub(crate) fn unread_ids_of(&self, place: &Place) -> Vec<MessageId> {
        let Some(group) = self.index.group(place) else { return Vec::new() };
        let open = self.open_slots();
        let is_meant = |record: &Record| record.is_read && place.covers(&record.place);
        let open = open.filter(|slot| self.at(*slot).is_some_and(is_meant));
        self.ids(open.chain(group.unread.slots()).chain(group.stays_unread.slots()))
    }

    /// The notifications of a repository, newest first.
    pub fn newest_in(&self, scope: &str) -> impl Iterator<Item = &Record> {
        let slots = self.index.scopes.get(scope).into_iter().flat_map(|scope| scope.slots().rev());
        slots.filter_map(|slot| self.at(slot))
    }

    /// The workspaces that have a notification.
    pub fn workspaces(&self) -> impl Iterator<Item = &WorkspaceId> {
        self.index.workspaces.keys()
    }

    /// Returns a place of this surface that has a notification.
    pub fn place_of(&self, surface: &SurfaceId) -> Option<&Place> {
        self.index.surfaces.keys().find(|place| place.surface.as_ref() == Some(surface))
    }

    /// Returns every place of this surface that has a notification: more than one if the surface moved between workspaces.
    pub(crate) fn places_of(&self, surface: &SurfaceId) -> Vec<Place> {
        let of_surface = |place: &&Place| place.surface.as_ref() == Some(surface);
        self.index.surfaces.keys().filter(of_surface).cloned().collect()
    }

    /// Records that the popup of a notification could not be shown.
    pub(crate) fn popup_failed(&mut self, id: &MessageId) {
        if let Some(entry) = self.entry_mut(id) {
            entry.record.had_popup = false;
        }
    }

    /// Adds a notification. On a surface it supersedes the unread one before it, so that the unread count does not depend on
    /// how many signals reported one event. An open question or permission stays unread.
    pub fn add(&mut self, record: Record, unix_ms: i64) -> AddOutcome {
        if self.has(&record.id) {
            return AddOutcome { is_new: false, superseded: Vec::new() };
        }
        let superseded = if record.is_read { Vec::new() } else { self.supersede(&record, unix_ms) };
        AddOutcome { is_new: self.restore(record), superseded }
    }

    /// Adds a saved notification, read or unread, and supersedes nothing. Returns true if it was added.
    pub(crate) fn restore(&mut self, mut record: Record) -> bool {
        if self.has(&record.id) {
            return false;
        }
        let next_slot = || Slot::try_from(self.slots.len()).ok().filter(|slot| *slot != HOLE);
        let Some(slot) = self.empty_slots.pop().or_else(next_slot) else { return false };
        self.texts.share(&mut record);
        let number = self.next_number();
        self.index.add(&record, slot, number);
        self.index.add_state(&record, slot, number);
        self.by_id.insert(&record.id, slot);
        if let Some(question) = &record.open_question {
            self.by_question.insert(question.clone(), record.id.clone());
        }
        let entry = Some(Entry { record: Box::new(record), arrival: number, change: number });
        match self.slots.get_mut(slot as usize) {
            Some(empty) => *empty = entry,
            None => self.slots.push(entry),
        }
        true
    }

    /// Marks everything at a place read. Returns the ids that changed.
    pub fn mark_read(&mut self, place: &Place, unix_ms: i64, by: &ReadReason) -> Vec<MessageId> {
        let ids = self.unread_ids_of(place);
        self.mark_these_read(ids, unix_ms, by)
    }

    /// Marks a notification read or unread. Reading also resolves it, unless an agent waits for the person. Returns true if
    /// that changed it.
    pub fn mark(&mut self, id: &MessageId, is_read: bool, unix_ms: i64, by: &ReadReason) -> bool {
        let Some(record) = self.get(id) else { return false };
        let is_resolved = record.is_resolved || (is_read && record.ends_when_read(by));
        let cause = if is_read { Cause::MarkedRead { by: by.clone() } } else { Cause::MarkedUnread };
        self.set_state(id, (is_read, is_resolved), unix_ms, cause)
    }

    /// Resolves a notification whose cause has ended, and marks it read. Returns true if that changed it.
    pub fn resolve(&mut self, id: &MessageId, unix_ms: i64, by: ResolvedBy) -> bool {
        if self.get(id).is_none_or(|record| record.is_resolved) {
            return false;
        }
        self.set_state(id, (true, true), unix_ms, Cause::Resolved { by })
    }

    /// Sets whether a notification is read and whether it is resolved. Returns true if that changed it.
    pub(crate) fn set_state(
        &mut self,
        id: &MessageId,
        state: (bool, bool),
        unix_ms: i64,
        cause: Cause,
    ) -> bool {
        // A notification that is unread or resolved is not snoozed any more.
        let snoozed_until = self.get(id).map_or(OptionalTime::NONE, |record| record.snoozed_until);
        let snoozed_until = if state == (true, false) { snoozed_until } else { OptionalTime::NONE };
        self.set_state_until(id, state, snoozed_until, unix_ms, cause)
    }

    fn set_state_until(
        &mut self,
        id: &MessageId,
        state: (bool, bool),
        snoozed_until: OptionalTime,
        unix_ms: i64,
        cause: Cause,
    ) -> bool {
        let number = self.next_number();
        let Some(slot) = self.slot_of(id) else { return false };
        let Some(entry) = self.slots[slot as usize].as_mut() else { return false };
        let record = &entry.record;
        if ((record.is_read, record.is_resolved), record.snoozed_until) == (state, snoozed_until) {
            return false;
        }
        self.index.remove_state(&entry.record, slot, entry.change);
        entry.change = number;
        (entry.record.is_read, entry.record.is_resolved) = state;
        entry.record.snoozed_until = snoozed_until;
        entry.record.add_step(unix_ms, cause);
        self.index.add_state(&entry.record, slot, number);
        true
    }

    /// Resolves the notification of a question that was answered or closed, and marks it read. Returns its id, if the list has
    /// it: it changes in any case, because its question is no longer open.
    pub fn close_question(
        &mut self,
        question: &QuestionId,
        unix_ms: i64,
        by: &ReadReason,
    ) -> Option<MessageId> {
        let id = self.by_question.remove(question)?;
        self.mark(&id, true, unix_ms, by);
        self.entry_mut(&id)?.record.open_question = None;
        Some(id)
    }

    /// Removes a notification.
    pub fn remove(&mut self, id: &MessageId) -> Option<Record> {
        let slot = self.slot_of(id)?;
        self.by_id.remove(id, slot);
        let Entry { record, arrival, change } = self.slots.get_mut(slot as usize)?.take()?;
        self.empty_slots.push(slot);
        self.index.remove_state(&record, slot, change);
        self.index.remove(&record, slot, arrival);
        if let Some(question) = &record.open_question {
            self.by_question.remove(question);
        }
        self.texts.release(&record);
        Some(*record)
    }

    /// Removes everything at a place.
    pub fn clear(&mut self, place: &Place) -> Vec<Record> {
        let ids = self.ids_of(place);
        ids.iter().filter_map(|id| self.remove(id)).collect()
    }

    /// Removes the notifications that were read first until at most `most` are left, or only unread and open ones. Returns the
    /// number of removed ones.
    pub fn trim(&mut self, most: usize) -> usize {
        let too_many = self.len().saturating_sub(most);
        let ids = self.ids(self.index.read.slots().take(too_many));
        ids.iter().filter_map(|id| self.remove(id)).count()
    }

    /// Adds a step to a notification's trail.
    pub fn add_trail_step(&mut self, id: &MessageId, unix_ms: i64, cause: Cause) {
        if let Some(entry) = self.entry_mut(id) {
            entry.record.add_step(unix_ms, cause);
        }
    }

    /// Drops the first steps of a notification's trail, because they are saved.
    pub(crate) fn forget_trail_steps(&mut self, id: &MessageId, steps: usize) {
        if let Some(entry) = self.entry_mut(id) {
            entry.record.trail.forget_first(steps);
        }
    }

    fn has(&self, id: &MessageId) -> bool {
        self.slot_of(id).is_some()
    }

    fn slot_of(&self, id: &MessageId) -> Option<Slot> {
        self.by_id.get(id, |slot| self.at(slot).is_some_and(|record| record.id == *id))
    }

    fn at(&self, slot: Slot) -> Option<&Record> {
        self.slots.get(slot as usize)?.as_ref().map(|entry| &*entry.record)
    }

    fn entry_mut(&mut self, id: &MessageId) -> Option<&mut Entry> {
        let slot = self.slot_of(id)?;
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    fn ids(&self, slots: impl Iterator<Item = Slot>) -> Vec<MessageId> {
        slots.filter_map(|slot| self.at(slot)).map(|record| record.id.clone()).collect()
    }

    fn mark_these_read(&mut self, mut ids: Vec<MessageId>, unix_ms: i64, by: &ReadReason) -> Vec<MessageId> {
        ids.retain(|id| self.mark(id, true, unix_ms, by));
        ids
    }
}

impl NotificationStore {
    /// The notifications of other machines, newest first.
    pub fn newest_elsewhere(&self) -> impl Iterator<Item = &Record> {
        self.index.elsewhere.slots().rev().filter_map(|slot| self.at(slot))
    }

    /// Changes the text of a notification.
    pub(crate) fn set_body(&mut self, id: &MessageId, body: &str) {
        if let Some(entry) = self.entry_mut(id) {
            entry.record.body = body.into();
        }
    }
}

impl NotificationStore {
    /// When the next notification escalates, in milliseconds since 1970.
    pub fn next_escalation(&self) -> Option<i64> {
        self.index.escalating.first().map(|(escalates_ms, _)| *escalates_ms)
    }

    /// The notifications that escalate by then, at most this many.
    pub(crate) fn due_escalations(&self, unix_ms: i64, most: usize) -> Vec<MessageId> {
        let due = self.index.escalating.iter().take_while(|(escalates_ms, _)| *escalates_ms <= unix_ms);
        self.ids(due.take(most).map(|(_, slot)| *slot))
    }

    /// Sets when a notification escalates, or that it does not. A resolved one never does.
    pub(crate) fn set_escalation(&mut self, id: &MessageId, escalates_ms: Option<i64>) {
        let Some(slot) = self.slot_of(id) else { return };
        let Some(entry) = self.slots[slot as usize].as_mut() else { return };
        let before = std::mem::replace(&mut entry.record.escalates_ms, escalates_ms.into());
        if let Some(before) = before.get() {
            self.index.escalating.remove(&(before, slot));
        }
        if let Some(escalates_ms) = escalates_ms.filter(|_| !entry.record.is_resolved) {
            self.index.escalating.insert((escalates_ms, slot));
        }
    }
}

impl NotificationStore {
    fn next_number(&mut self) -> Number {
        if self.last_number == Number::MAX {
            self.renumber();
        }
        self.last_number += 1;
        self.last_number
    }

    /// Renumbers all records, in the same orders, after 4 billion changes. This is the only place that rebuilds the indexes.
    fn renumber(&mut self) {
        let mut slots: Vec<Slot> = self.index.everything.slots().collect();
        (self.index, self.last_number) = (Index::default(), 0);
        for (number, slot) in (1..).zip(&slots) {
            if let Some(entry) = self.slots[*slot as usize].as_mut() {
                entry.arrival = number;
                self.index.add(&entry.record, *slot, number);
            }
        }
        slots.sort_by_key(|slot| self.slots[*slot as usize].as_ref().map(|entry| entry.change));
        for (number, slot) in (1..).zip(&slots) {
            if let Some(entry) = self.slots[*slot as usize].as_mut() {
                entry.change = number;
                self.index.add_state(&entry.record, *slot, number);
                self.last_number = number;
            }
        }
    }
}

impl NotificationStore {
    /// When the next snooze ends, in milliseconds since 1970.
    pub fn next_snooze_end(&self) -> Option<i64> {
        self.index.snoozed.first().map(|(until_ms, _)| *until_ms)
    }

    /// The notifications whose snooze has ended, at most this many.
    pub(crate) fn due_snoozed(&self, unix_ms: i64, most: usize) -> Vec<MessageId> {
        let due = self.index.snoozed.iter().take_while(|(until_ms, _)| *until_ms <= unix_ms);
        self.ids(due.take(most).map(|(_, slot)| *slot))
    }

    /// Snoozes an open notification. Returns true if that changed it.
    pub(crate) fn snooze(&mut self, id: &MessageId, until_ms: i64, unix_ms: i64, cause: Cause) -> bool {
        let is_open = self.get(id).is_some_and(|record| !record.is_resolved);
        is_open && self.set_state_until(id, (true, false), Some(until_ms).into(), unix_ms, cause)
    }

    /// Restores the state of a notification (read, resolved, snoozed) from before a command. Returns true if that changed it.
    pub(crate) fn take_back(&mut self, before: &Record, unix_ms: i64, cause: Cause) -> bool {
        let state = (before.is_read, before.is_resolved);
        self.set_state_until(&before.id, state, before.snoozed_until, unix_ms, cause)
    }

    /// Ends the snooze of a notification and sets whether it is read and whether it is resolved.
    pub(crate) fn end_snooze(&mut self, id: &MessageId, state: (bool, bool), unix_ms: i64) {
        if self.get(id).is_none_or(|record| record.snoozed_until.is_none()) {
            return;
        }
        self.set_state_until(id, state, OptionalTime::NONE, unix_ms, Cause::SnoozeEnded);
    }

    /// The open notifications that reading changes although they are read: those that need the person, and the snoozed ones.
    fn open_slots(&self) -> impl Iterator<Item = Slot> {
        let snoozed = self.index.snoozed.iter().map(|(_, slot)| *slot);
        self.index.needs_person.iter().copied().chain(snoozed)
    }
}

impl NotificationStore {
    /// Returns the unread notification that superseded an older one, or would have if the older one had been unread.
    pub(crate) fn superseding(&self, older: &Record) -> Option<&MessageId> {
        let is_concerned = older.place.surface.is_some() && !older.stays_unread();
        let group = self.index.group(&older.place).filter(|_| is_concerned)?;
        let unread = group.unread.slots().chain(group.stays_unread.slots());
        let mut unread = unread.filter_map(|slot| self.at(slot));
        let is_newer = |newer: &Record| (newer.unix_ms, &newer.id) > (older.unix_ms, &older.id);
        Some(&unread.find(|newer| is_newer(newer) && !says_more(older, newer))?.id)
    }

    fn supersede(&mut self, newer: &Record, unix_ms: i64) -> Vec<MessageId> {
        // A notification without a surface supersedes nothing.
        let surface = Some(&newer.place).filter(|place| place.surface.is_some());
        let Some(group) = surface.and_then(|place| self.index.group(place)) else { return Vec::new() };
        let slots = group.unread.slots();
        let ids = self.ids(slots.filter(|slot| self.at(*slot).is_some_and(|older| !says_more(older, newer))));
        self.mark_these_read(ids, unix_ms, &ReadReason::Newer(newer.id.clone()))
    }
}

/// Returns true if the older notification says more: how a turn ended says more than that the agent has been waiting since.
fn says_more(older: &Record, newer: &Record) -> bool {
    newer.shown_kind() == ShownKind::Idle && older.kind == Kind::Complete && older.sender == newer.sender
}

/// Returns one notification of each sender: the newest that waits for an answer, else the newest unread, else the newest.
fn of_each_sender<'a>(newest: impl Iterator<Item = &'a Record>) -> IdMatch {
    let rank = |record: &Record| (record.waits_for_answer(), !record.is_read);
    let mut senders: Vec<&Record> = Vec::new();
    for record in newest {
        match senders.iter_mut().find(|one| one.sender == record.sender) {
            Some(one) if rank(record) > rank(one) => *one = record,
            Some(_) => {}
            None => senders.push(record),
        }
    }
    IdMatch::of(senders.into_iter().map(|record| record.id.clone()).collect())
}

#[cfg(test)]
mod tests;
