//! The notification store: read and unread notifications, with an index for each question that is asked of it.
//!
//! Every index is updated with each change and not rebuilt, but for once in 4 billion changes (`numbering`): adding, reading and removing one costs about the same with
//! ten notifications as with a million, and clearing costs time in proportion to what it clears.

mod index;
mod ordered;
mod shared_text;
mod slot_by_id;

use std::collections::HashMap;

use index::Index;
use ordered::{HOLE, Number, Slot};
use shared_text::SharedTexts;
use slot_by_id::SlotById;

use crate::attention::{Cause, OptionalTime, ReadReason, Record, ResolvedBy};
use crate::message::{
    IdReference, Kind, MessageId, Named, Place, QuestionId, ShownKind, SurfaceId, WorkspaceId,
};

#[derive(Debug, Clone)]
struct Entry {
    /// Boxed, so that free slots are small.
    record: Box<Record>,
    /// Its number in the order of arrival.
    arrival: Number,
    /// Its number in the order in which records became read, or unread.
    change: Number,
}

/// What adding a notification did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    /// Whether it was put in; not when its id was there already.
    pub is_new: bool,
    /// The notifications of the same surface that it superseded: still there, but read. More than one only if the person
    /// had marked older ones unread.
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
    /// A slot is empty once its record was removed, until the next one takes it.
    slots: Vec<Option<Entry>>,
    empty_slots: Vec<Slot>,
    by_id: SlotById,
    by_question: HashMap<QuestionId, MessageId>,
    index: Index,
    texts: SharedTexts,
    /// The last number that was given to an arrival or a change.
    last_number: Number,
}

impl NotificationStore {
    /// How many notifications are unread.
    pub fn total_unread(&self) -> usize {
        self.index.unread.len()
    }

    /// How many notifications there are.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many notifications of a workspace are unread.
    pub fn unread_of(&self, workspace: &WorkspaceId) -> usize {
        self.index.workspaces.get(workspace).map_or(0, |group| group.unread.len())
    }

    /// Whether a place has something unread.
    pub fn has_unread(&self, place: &Place) -> bool {
        self.index
            .group(place)
            .is_some_and(|group| !group.unread.is_empty() || !group.stays_unread.is_empty())
    }

    /// What is unread at a place.
    pub fn unread_at(&self, place: &Place) -> impl Iterator<Item = &Record> {
        let group = self.index.group(place).into_iter();
        let slots = group.flat_map(|group| group.unread.slots().chain(group.stays_unread.slots()));
        slots.filter_map(|slot| self.at(slot))
    }

    /// The newest notification of a workspace.
    pub fn latest(&self, workspace: &WorkspaceId) -> Option<&Record> {
        self.at(self.index.workspaces.get(workspace)?.all.slots().next_back()?)
    }

    /// The oldest unread notification, which the jump command opens first.
    pub fn first_unread(&self) -> Option<&Record> {
        self.at(self.index.unread.slots().next()?)
    }

    /// A notification by its id.
    pub fn get(&self, id: &MessageId) -> Option<&Record> {
        self.at(self.slot_of(id)?)
    }

    /// The notification that asks a question, while that is open.
    pub fn asking(&self, question: &QuestionId) -> Option<&Record> {
        self.get(self.by_question.get(question)?)
    }

    /// What is shown of a notification's id: as much as tells it apart from the others.
    pub fn short_id(&self, id: &MessageId) -> Option<String> {
        Some(self.index.short_ids.shown(id, self.slot_of(id)?))
    }

    /// The notification that a person means: by its id, its short id, `last`, or a piece of its id. Several are given newest
    /// first.
    pub fn named(&self, text: &str) -> Named {
        if let Some(exact) = MessageId::parse(text).ok().filter(|id| self.has(id)) {
            return Named::One(exact);
        }
        let text = match IdReference::parse(text) {
            IdReference::Last => {
                return Named::of(self.ids(self.index.everything.slots().next_back().into_iter()));
            }
            IdReference::NoId => return Named::Unknown,
            IdReference::Text(text) => text,
        };
        let slots = self.index.short_ids.beginning_with(text);
        let mut entries: Vec<&Entry> =
            slots.filter_map(|slot| self.slots.get(slot as usize)?.as_ref()).collect();
        entries.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.arrival));
        match Named::of(entries.iter().map(|entry| entry.record.id.clone()).collect()) {
            Named::Unknown => {
                let is_meant = |record: &&Record| IdReference::is_piece_of(text, &record.id);
                Named::of(self.newest().filter(is_meant).map(|record| record.id.clone()).collect())
            }
            found => found,
        }
    }

    /// All notifications, newest first.
    pub fn newest(&self) -> impl Iterator<Item = &Record> {
        self.index.everything.slots().rev().filter_map(|slot| self.at(slot))
    }

    /// The unread ones; first the one that became unread last.
    pub fn newest_unread(&self) -> impl Iterator<Item = &Record> {
        self.index.unread.slots().rev().filter_map(|slot| self.at(slot))
    }

    /// The open ones that need the person, in no order.
    pub fn needs_person(&self) -> impl Iterator<Item = &Record> {
        self.index.needs_person.iter().filter_map(|slot| self.at(*slot))
    }

    /// How many that are.
    pub fn needs_person_count(&self) -> usize {
        self.index.needs_person.len()
    }

    /// The open ones of a key, of one sender or of any.
    pub fn open_of<'a>(&'a self, sender: Option<&'a str>, key: &str) -> impl Iterator<Item = &'a Record> {
        let slots = self.index.keys.get(key).into_iter().flatten();
        let is_of = move |record: &&Record| sender.is_none_or(|sender| *record.sender == *sender);
        slots.filter_map(|slot| self.at(*slot)).filter(is_of)
    }

    /// When the next one ends by itself, in milliseconds since 1970.
    pub fn next_expiry(&self) -> Option<i64> {
        self.index.expiring.first().map(|(expires_ms, _)| *expires_ms)
    }

    /// The ones whose time is over, this many at most.
    pub(crate) fn expired(&self, unix_ms: i64, most: usize) -> Vec<MessageId> {
        let expired = self.index.expiring.iter().take_while(|(expires_ms, _)| *expires_ms <= unix_ms);
        self.ids(expired.take(most).map(|(_, slot)| *slot))
    }

    /// Those of a place, newest first.
    pub fn newest_of(&self, place: &Place) -> impl Iterator<Item = &Record> {
        let slots = self.index.group(place).into_iter().flat_map(|group| group.all.slots().rev());
        slots.filter_map(|slot| self.at(slot))
    }

    /// All of them, oldest first.
    pub(crate) fn all_ids(&self) -> Vec<MessageId> {
        self.ids(self.index.everything.slots())
    }

    /// Those of a place, oldest first.
    pub(crate) fn ids_of(&self, place: &Place) -> Vec<MessageId> {
        self.index.group(place).map_or_else(Vec::new, |group| self.ids(group.all.slots()))
    }

    /// Those that are read and resolved; first the one that became so first.
    pub(crate) fn read_ids(&self) -> Vec<MessageId> {
        self.ids(self.index.read.slots())
    }

    /// Those that reading everything changes: what is unread, and what is open.
    pub(crate) fn unread_ids(&self) -> Vec<MessageId> {
        let open = self.open_slots();
        let open = open.filter(|slot| self.at(*slot).is_some_and(|record| record.is_read));
        self.ids(open.chain(self.index.unread.slots()))
    }

    /// Those that reading a place changes: what is unread there, and what is open.
    pub(crate) fn unread_ids_of(&self, place: &Place) -> Vec<MessageId> {
        let Some(group) = self.index.group(place) else { return Vec::new() };
        let open = self.open_slots();
        let is_meant = |record: &Record| record.is_read && place.covers(&record.place);
        let open = open.filter(|slot| self.at(*slot).is_some_and(is_meant));
        self.ids(open.chain(group.unread.slots()).chain(group.stays_unread.slots()))
    }

    /// Those of a repository, newest first.
    pub fn newest_in(&self, scope: &str) -> impl Iterator<Item = &Record> {
        let slots = self.index.scopes.get(scope).into_iter().flat_map(|scope| scope.slots().rev());
        slots.filter_map(|slot| self.at(slot))
    }

    /// The workspaces that have a notification.
    pub fn workspaces(&self) -> impl Iterator<Item = &WorkspaceId> {
        self.index.workspaces.keys()
    }

    /// A place of this surface that has a notification.
    pub fn place_of(&self, surface: &SurfaceId) -> Option<&Place> {
        self.index.surfaces.keys().find(|place| place.surface.as_ref() == Some(surface))
    }

    /// Every place of this surface that has a notification: more than one if the surface moved between workspaces.
    pub(crate) fn places_of(&self, surface: &SurfaceId) -> Vec<Place> {
        let of_surface = |place: &&Place| place.surface.as_ref() == Some(surface);
        self.index.surfaces.keys().filter(of_surface).cloned().collect()
    }

    /// The popup of a notification could not be shown.
    pub(crate) fn popup_failed(&mut self, id: &MessageId) {
        if let Some(entry) = self.entry_mut(id) {
            entry.record.had_popup = false;
        }
    }

    /// Adds a notification. On a surface it supersedes the unread one before it, so that the unread count does not depend on
    /// how many signals reported one event; an open question or permission stays unread.
    pub fn add(&mut self, record: Record, unix_ms: i64) -> Added {
        if self.has(&record.id) {
            return Added { is_new: false, superseded: Vec::new() };
        }
        let superseded = if record.is_read { Vec::new() } else { self.supersede(&record, unix_ms) };
        Added { is_new: self.restore(record), superseded }
    }

    /// Adds a saved notification, read or unread, and supersedes nothing. Returns whether it was added.
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

    /// Marks everything at a place as read. Returns the ids that changed.
    pub fn mark_read(&mut self, place: &Place, unix_ms: i64, by: &ReadReason) -> Vec<MessageId> {
        let ids = self.unread_ids_of(place);
        self.mark_these_read(ids, unix_ms, by)
    }

    /// Marks everything as read. Returns the ids that changed.
    pub fn mark_all_read(&mut self, unix_ms: i64, by: &ReadReason) -> Vec<MessageId> {
        let ids = self.unread_ids();
        self.mark_these_read(ids, unix_ms, by)
    }

    /// Marks one as read or unread. Reading resolves it too, unless an agent waits for the person. Returns whether that
    /// changed it.
    pub fn mark(&mut self, id: &MessageId, is_read: bool, unix_ms: i64, by: &ReadReason) -> bool {
        let Some(record) = self.get(id) else { return false };
        let is_resolved = record.is_resolved || (is_read && record.ends_when_read(by));
        let cause = if is_read { Cause::MarkedRead { by: by.clone() } } else { Cause::MarkedUnread };
        self.set_state(id, (is_read, is_resolved), unix_ms, cause)
    }

    /// What one is about has ended: it is resolved, and read. Returns whether that changed it.
    pub fn resolve(&mut self, id: &MessageId, unix_ms: i64, by: ResolvedBy) -> bool {
        if self.get(id).is_none_or(|record| record.is_resolved) {
            return false;
        }
        self.set_state(id, (true, true), unix_ms, Cause::Resolved { by })
    }

    /// Makes one read or not, and resolved or not. Returns whether that changed it.
    pub(crate) fn set_state(
        &mut self,
        id: &MessageId,
        state: (bool, bool),
        unix_ms: i64,
        cause: Cause,
    ) -> bool {
        // What is unread or over is not snoozed any more.
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

    /// A question was answered or closed: its notification is read and resolved. Returns its id if that changed it.
    pub fn close_question(
        &mut self,
        question: &QuestionId,
        unix_ms: i64,
        by: &ReadReason,
    ) -> Option<MessageId> {
        let id = self.by_question.remove(question)?;
        let has_changed = self.mark(&id, true, unix_ms, by);
        if let Some(entry) = self.entry_mut(&id) {
            entry.record.open_question = None;
        }
        has_changed.then_some(id)
    }

    /// Removes one.
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

    /// Removes the ones that were read first until at most `most` are left, or only unread and open ones. Returns how many
    /// were removed.
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

    /// The first steps of a notification's trail are saved and need not be kept here.
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
    /// Those that came from other machines, newest first.
    pub fn newest_elsewhere(&self) -> impl Iterator<Item = &Record> {
        self.index.elsewhere.slots().rev().filter_map(|slot| self.at(slot))
    }

    /// Changes the text of one.
    pub(crate) fn set_body(&mut self, id: &MessageId, body: &str) {
        if let Some(entry) = self.entry_mut(id) {
            entry.record.body = body.into();
        }
    }
}

impl NotificationStore {
    /// When the next one escalates, in milliseconds since 1970.
    pub fn next_escalation(&self) -> Option<i64> {
        self.index.escalating.first().map(|(escalates_ms, _)| *escalates_ms)
    }

    /// Those that are to escalate by then, this many at most.
    pub(crate) fn due_escalations(&self, unix_ms: i64, most: usize) -> Vec<MessageId> {
        let due = self.index.escalating.iter().take_while(|(escalates_ms, _)| *escalates_ms <= unix_ms);
        self.ids(due.take(most).map(|(_, slot)| *slot))
    }

    /// Sets when one escalates, or that it does not. What is over does not in any case.
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

    /// Numbers all records anew, in the same orders, after 4 billion changes. The only place that rebuilds the indexes.
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
    /// When the next snoozed one comes back, in milliseconds since 1970.
    pub fn next_snooze_end(&self) -> Option<i64> {
        self.index.snoozed.first().map(|(until_ms, _)| *until_ms)
    }

    /// The snoozed ones that are to come back, this many at most.
    pub(crate) fn due_snoozed(&self, unix_ms: i64, most: usize) -> Vec<MessageId> {
        let due = self.index.snoozed.iter().take_while(|(until_ms, _)| *until_ms <= unix_ms);
        self.ids(due.take(most).map(|(_, slot)| *slot))
    }

    /// Takes one out of the way until a moment. What is over is left as it is. Returns whether that changed it.
    pub(crate) fn snooze(&mut self, id: &MessageId, until_ms: i64, unix_ms: i64, cause: Cause) -> bool {
        let is_open = self.get(id).is_some_and(|record| !record.is_resolved);
        is_open && self.set_state_until(id, (true, false), Some(until_ms).into(), unix_ms, cause)
    }

    /// Makes one read or not, resolved or not, and snoozed or not, as it was before. Returns whether that changed it.
    pub(crate) fn take_back(&mut self, before: &Record, unix_ms: i64, cause: Cause) -> bool {
        let state = (before.is_read, before.is_resolved);
        self.set_state_until(&before.id, state, before.snoozed_until, unix_ms, cause)
    }

    /// A snoozed one comes back: read or not, and resolved or not.
    pub(crate) fn end_snooze(&mut self, id: &MessageId, state: (bool, bool), unix_ms: i64) {
        if self.get(id).is_none_or(|record| record.snoozed_until.is_none()) {
            return;
        }
        self.set_state_until(id, state, OptionalTime::NONE, unix_ms, Cause::SnoozeEnded);
    }

    /// The open ones that reading changes although they are read: those that need the person, and those that are snoozed.
    fn open_slots(&self) -> impl Iterator<Item = Slot> {
        let snoozed = self.index.snoozed.iter().map(|(_, slot)| *slot);
        self.index.needs_person.iter().copied().chain(snoozed)
    }
}

impl NotificationStore {
    /// The unread one that superseded a notification, or would have if it had been unread.
    pub(crate) fn superseding(&self, older: &Record) -> Option<&MessageId> {
        let is_concerned = older.place.surface.is_some() && !older.stays_unread();
        let group = self.index.group(&older.place).filter(|_| is_concerned)?;
        let unread = group.unread.slots().chain(group.stays_unread.slots());
        let mut unread = unread.filter_map(|slot| self.at(slot));
        let is_newer = |newer: &Record| (newer.unix_ms, &newer.id) > (older.unix_ms, &older.id);
        Some(&unread.find(|newer| is_newer(newer) && !says_more(older, newer))?.id)
    }

    fn supersede(&mut self, newer: &Record, unix_ms: i64) -> Vec<MessageId> {
        // What has no surface supersedes nothing.
        let surface = Some(&newer.place).filter(|place| place.surface.is_some());
        let Some(group) = surface.and_then(|place| self.index.group(place)) else { return Vec::new() };
        let slots = group.unread.slots();
        let ids = self.ids(slots.filter(|slot| self.at(*slot).is_some_and(|older| !says_more(older, newer))));
        self.mark_these_read(ids, unix_ms, &ReadReason::Newer(newer.id.clone()))
    }
}

/// That an agent has been waiting since its turn ended says less than how the turn ended.
fn says_more(older: &Record, newer: &Record) -> bool {
    newer.shown_kind() == ShownKind::Idle && older.kind == Kind::Complete && older.sender == newer.sender
}

#[cfg(test)]
mod tests;
