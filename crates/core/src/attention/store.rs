//! The notification store: read and unread notifications, with an index for each question that is asked of it.
//!
//! Every index is updated with each change and never rebuilt: adding, reading and removing one costs the same with ten
//! notifications as with a million, and clearing costs time in proportion to what it clears.

use std::collections::HashMap;

use super::linked_list::{Arena, Link, Linked, LinkedList, Slot};
use crate::attention::Record;
use crate::message::{MessageId, Place, QuestionId, WorkspaceId};

/// The lists that an entry may be in.
#[derive(Debug, Clone, Copy)]
enum List {
    Everything,
    Read,
    Unread,
    OfWorkspace,
    UnreadOfWorkspace,
    OfSurface,
    UnreadOfSurface,
    QuestionsOfSurface,
}

const LISTS: usize = 8;

#[derive(Debug, Clone, Default)]
struct Entry {
    record: Option<Record>,
    links: [Link; LISTS],
}

impl Linked<List> for Entry {
    fn link(&self, list: List) -> Link {
        self.links[list as usize]
    }

    fn link_mut(&mut self, list: List) -> &mut Link {
        &mut self.links[list as usize]
    }
}

/// What there is of one workspace, or of one surface.
#[derive(Debug, Clone, Default)]
struct Group {
    all: LinkedList,
    /// Of a surface, without the open questions.
    unread: LinkedList,
    /// The open questions of a surface. A newer notification supersedes the others, so these have a list of their own.
    questions: LinkedList,
}

impl Group {
    fn first_unread(&self) -> Option<Slot> {
        self.unread.first().or(self.questions.first())
    }
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
/// use ringer_core::attention::{Record, NotificationStore};
/// use ringer_core::message::{Place, SurfaceId, WorkspaceId};
///
/// let mut store = NotificationStore::default();
/// let pane = Place::surface(WorkspaceId::new("w"), SurfaceId::new("s"));
/// let id = MessageId::new(0, [1; 10]);
/// store.add(Record::new(id.clone(), pane.clone(), Kind::Waiting, "needs you", 0), 0);
/// assert!(store.has_unread(&pane));
/// assert_eq!(store.mark_read(&pane, 1, "the pane was focused"), [id]);
/// assert_eq!(store.total_unread(), 0);
/// ```
#[derive(Debug, Clone, Default)]
pub struct NotificationStore {
    arena: Arena<Entry>,
    by_id: HashMap<MessageId, Slot>,
    by_question: HashMap<QuestionId, Slot>,
    everything: LinkedList,
    read: LinkedList,
    unread: LinkedList,
    workspaces: HashMap<WorkspaceId, Group>,
    surfaces: HashMap<Place, Group>,
}

impl NotificationStore {
    /// How many notifications are unread.
    pub fn total_unread(&self) -> usize {
        self.unread.len()
    }

    /// How many notifications there are.
    pub fn len(&self) -> usize {
        self.everything.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many notifications of a workspace are unread.
    pub fn unread_of(&self, workspace: &WorkspaceId) -> usize {
        self.workspaces.get(workspace).map_or(0, |group| group.unread.len())
    }

    /// Whether a place has something unread.
    pub fn has_unread(&self, place: &Place) -> bool {
        self.group(place).is_some_and(|group| group.first_unread().is_some())
    }

    /// The newest notification of a workspace.
    pub fn latest(&self, workspace: &WorkspaceId) -> Option<&Record> {
        self.record(self.workspaces.get(workspace)?.all.last()?)
    }

    /// The oldest unread notification, which the jump command opens first.
    pub fn first_unread(&self) -> Option<&Record> {
        self.record(self.unread.first()?)
    }

    /// A notification by its id.
    pub fn get(&self, id: &MessageId) -> Option<&Record> {
        self.record(*self.by_id.get(id)?)
    }

    /// All notifications, newest first.
    pub fn newest(&self) -> impl Iterator<Item = &Record> {
        self.everything.backwards(&self.arena, List::Everything).filter_map(|slot| self.record(slot))
    }

    /// The unread ones, newest first.
    pub fn newest_unread(&self) -> impl Iterator<Item = &Record> {
        self.unread.backwards(&self.arena, List::Unread).filter_map(|slot| self.record(slot))
    }

    /// Those of a place, newest first.
    pub fn newest_of(&self, place: &Place) -> impl Iterator<Item = &Record> {
        let (entries, list) = match self.group(place) {
            Some(group) if place.surface.is_some() => (group.all, List::OfSurface),
            Some(group) => (group.all, List::OfWorkspace),
            None => (LinkedList::default(), List::OfWorkspace),
        };
        entries.backwards(&self.arena, list).filter_map(|slot| self.record(slot))
    }

    /// Adds a notification. On a surface it supersedes the unread one before it, so that the unread count does not depend on
    /// how many signals reported one event; an open question stays unread until it is answered.
    pub fn add(&mut self, record: Record, unix_ms: i64) -> Added {
        if self.by_id.contains_key(&record.id) {
            return Added { is_new: false, superseded: Vec::new() };
        }
        let superseded = if record.is_read { Vec::new() } else { self.supersede(&record, unix_ms) };
        Added { is_new: self.restore(record), superseded }
    }

    /// Adds a saved notification, read or unread, and supersedes nothing. Returns whether it was added.
    pub(crate) fn restore(&mut self, record: Record) -> bool {
        let (id, question) = (record.id.clone(), record.open_question.clone());
        if self.by_id.contains_key(&id) {
            return false;
        }
        let Some(slot) = self.arena.insert(Entry { record: Some(record), links: Default::default() }) else {
            return false;
        };
        self.by_id.insert(id, slot);
        if let Some(question) = question {
            self.by_question.insert(question, slot);
        }
        self.link(slot);
        self.link_by_state(slot);
        true
    }

    /// Marks everything at a place as read. Returns the ids that were unread.
    pub fn mark_read(&mut self, place: &Place, unix_ms: i64, why: &str) -> Vec<MessageId> {
        let mut ids = Vec::new();
        while let Some(slot) = self.group(place).and_then(Group::first_unread) {
            ids.extend(self.set_read(slot, true, unix_ms, why));
        }
        ids
    }

    /// Marks everything as read. Returns the ids that were unread.
    pub fn mark_all_read(&mut self, unix_ms: i64, why: &str) -> Vec<MessageId> {
        let mut ids = Vec::new();
        while let Some(slot) = self.unread.first() {
            ids.extend(self.set_read(slot, true, unix_ms, why));
        }
        ids
    }

    /// Marks one as read or unread. Returns whether that changed it.
    pub fn mark(&mut self, id: &MessageId, is_read: bool, unix_ms: i64, why: &str) -> bool {
        let slot = self.by_id.get(id).copied();
        slot.and_then(|slot| self.set_read(slot, is_read, unix_ms, why)).is_some()
    }

    /// A question was answered: its notification is read. Returns its id if it was unread.
    pub fn close_question(&mut self, question: &QuestionId, unix_ms: i64, why: &str) -> Option<MessageId> {
        let slot = self.by_question.remove(question)?;
        let unread = self.set_read(slot, true, unix_ms, why);
        // Only now: an open question is linked in another list than the rest.
        if let Some(record) = &mut self.arena.get_mut(slot).record {
            record.open_question = None;
        }
        unread
    }

    /// Removes one.
    pub fn remove(&mut self, id: &MessageId) -> Option<Record> {
        let slot = self.by_id.get(id).copied()?;
        self.unlink_and_remove(slot)
    }

    /// Removes everything at a place.
    pub fn clear(&mut self, place: &Place) -> Vec<Record> {
        let mut records = Vec::new();
        while let Some(slot) = self.group(place).and_then(|group| group.all.first()) {
            records.extend(self.unlink_and_remove(slot));
        }
        records
    }

    /// Removes the oldest read ones until at most `most` are left, or only unread ones. Returns how many were removed.
    pub fn trim(&mut self, most: usize) -> usize {
        let before = self.len();
        while self.len() > most
            && let Some(slot) = self.read.first()
        {
            self.unlink_and_remove(slot);
        }
        before - self.len()
    }

    /// Adds a step to a notification's trail.
    pub fn add_trail_step(&mut self, id: &MessageId, unix_ms: i64, text: impl Into<String>) {
        if let Some(slot) = self.by_id.get(id)
            && let Some(record) = &mut self.arena.get_mut(*slot).record
        {
            record.trail.add(unix_ms, text);
        }
    }

    fn record(&self, slot: Slot) -> Option<&Record> {
        self.arena.get(slot).record.as_ref()
    }

    fn group(&self, place: &Place) -> Option<&Group> {
        if place.surface.is_some() { self.surfaces.get(place) } else { self.workspaces.get(&place.workspace) }
    }

    fn supersede(&mut self, newer: &Record, unix_ms: i64) -> Vec<MessageId> {
        let mut superseded = Vec::new();
        while let Some(slot) = self.surfaces.get(&newer.place).and_then(|group| group.unread.first()) {
            superseded.extend(self.set_read(slot, true, unix_ms, &format!("superseded by {}", newer.id)));
        }
        superseded
    }

    /// Moves an entry between the read and the unread. `None` if it was in that state already.
    fn set_read(&mut self, slot: Slot, is_read: bool, unix_ms: i64, why: &str) -> Option<MessageId> {
        let record = self.arena.get_mut(slot).record.as_mut().filter(|record| record.is_read != is_read)?;
        record.trail.add(unix_ms, format!("marked {}: {why}", if is_read { "read" } else { "unread" }));
        let id = record.id.clone();
        self.unlink_by_state(slot);
        if let Some(record) = &mut self.arena.get_mut(slot).record {
            record.is_read = is_read;
        }
        self.link_by_state(slot);
        Some(id)
    }

    fn unlink_and_remove(&mut self, slot: Slot) -> Option<Record> {
        self.unlink_by_state(slot);
        self.unlink(slot);
        let record = self.arena.remove(slot).record?;
        self.by_id.remove(&record.id);
        if let Some(question) = &record.open_question {
            self.by_question.remove(question);
        }
        Some(record)
    }

    /// Adds an entry to the lists of its place.
    fn link(&mut self, slot: Slot) {
        let Some(place) = self.record(slot).map(|record| record.place.clone()) else { return };
        let arena = &mut self.arena;
        self.everything.push(arena, slot, List::Everything);
        self.workspaces.entry(place.workspace.clone()).or_default().all.push(arena, slot, List::OfWorkspace);
        if place.surface.is_some() {
            self.surfaces.entry(place).or_default().all.push(arena, slot, List::OfSurface);
        }
    }

    /// Removes it from them. A place with no entries is removed.
    fn unlink(&mut self, slot: Slot) {
        let Some(place) = self.record(slot).map(|record| record.place.clone()) else { return };
        let arena = &mut self.arena;
        self.everything.unlink(arena, slot, List::Everything);
        if let Some(group) = self.workspaces.get_mut(&place.workspace) {
            group.all.unlink(arena, slot, List::OfWorkspace);
            if group.all.len() == 0 {
                self.workspaces.remove(&place.workspace);
            }
        }
        if let Some(group) = self.surfaces.get_mut(&place) {
            group.all.unlink(arena, slot, List::OfSurface);
            if group.all.len() == 0 {
                self.surfaces.remove(&place);
            }
        }
    }

    /// Adds an entry to the lists of the read or the unread.
    fn link_by_state(&mut self, slot: Slot) {
        let Some(record) = self.record(slot) else { return };
        let (place, is_read, is_question) =
            (record.place.clone(), record.is_read, record.open_question.is_some());
        let arena = &mut self.arena;
        if is_read {
            self.read.push(arena, slot, List::Read);
            return;
        }
        self.unread.push(arena, slot, List::Unread);
        if let Some(group) = self.workspaces.get_mut(&place.workspace) {
            group.unread.push(arena, slot, List::UnreadOfWorkspace);
        }
        if let Some(group) = self.surfaces.get_mut(&place) {
            if is_question {
                group.questions.push(arena, slot, List::QuestionsOfSurface);
            } else {
                group.unread.push(arena, slot, List::UnreadOfSurface);
            }
        }
    }

    fn unlink_by_state(&mut self, slot: Slot) {
        let Some(record) = self.record(slot) else { return };
        let (place, is_read, is_question) =
            (record.place.clone(), record.is_read, record.open_question.is_some());
        let arena = &mut self.arena;
        if is_read {
            self.read.unlink(arena, slot, List::Read);
            return;
        }
        self.unread.unlink(arena, slot, List::Unread);
        if let Some(group) = self.workspaces.get_mut(&place.workspace) {
            group.unread.unlink(arena, slot, List::UnreadOfWorkspace);
        }
        if let Some(group) = self.surfaces.get_mut(&place) {
            if is_question {
                group.questions.unlink(arena, slot, List::QuestionsOfSurface);
            } else {
                group.unread.unlink(arena, slot, List::UnreadOfSurface);
            }
        }
    }
}

#[cfg(test)]
mod tests;
