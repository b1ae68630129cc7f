//! Notifications: the engine that decides about them, the pending writes of its decisions, and their store.

mod pending_writes;

use std::collections::HashSet;
use std::time::Duration;

use ringer_core::attention::{Attention, NotificationStore, Record};
use ringer_core::engine::Delivery;
use ringer_core::message::Place;
use ringer_core::toast::Toast;
use ringer_core::{Engine, Event, MessageId, Now, Order, Preferences};
use ringer_journal::{Error, HubStore, PlaceFlag, StoredNotifications};
use serde_json::Value;

pub(super) use pending_writes::PendingWrites;
use pending_writes::{flag, unflag};

use crate::clock::Clock;
use crate::view;

/// The most notifications that wait for hooks; further messages stay in the journal. Sixteen hooks run at once, so 256 keep them
/// busy, and fit into memory even with bodies of 64 KiB (16 MiB).
const MAX_UNDECIDED: usize = 256;
/// The most unwritten records. While the hub store cannot be written, further messages stay in the journal.
const MAX_UNWRITTEN: usize = 1024;
/// The most read notifications in memory. Older ones are in the journal.
pub const MAX_READ: usize = 10_000;
/// Notifications that a mark changes at once. Small in the simulation, so that a mark on a few takes several pieces.
const MARKED_AT_ONCE: usize = if cfg!(test) { 2 } else { 64 };
/// Notifications that are added before memory is trimmed again.
const TRIM_EVERY: usize = 1_000;

/// The notifications of this hub.
#[derive(Debug)]
pub(super) struct Notifications {
    engine: Engine,
    store: HubStore,
    writes: PendingWrites,
    added_since_trim: usize,
}

impl Notifications {
    pub(super) fn new(store: HubStore, preferences: Preferences) -> Self {
        let mut engine = Engine::new(preferences);
        engine.limit_marks(MARKED_AT_ONCE);
        Self { engine, store, writes: PendingWrites::default(), added_since_trim: 0 }
    }

    /// Returns the store, for reads and maintenance.
    pub(super) fn store(&mut self) -> &mut HubStore {
        &mut self.store
    }

    /// Returns the writes of the next commit.
    pub(super) fn writes(&mut self) -> &mut PendingWrites {
        &mut self.writes
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(super) fn attention(&self) -> &Attention {
        self.engine.attention()
    }

    /// Returns the notifications in memory.
    pub(super) fn list(&self) -> &NotificationStore {
        self.engine.attention().store()
    }

    pub(super) fn get(&self, id: &MessageId) -> Option<&Record> {
        self.list().get(id)
    }

    /// Formats a notification.
    pub(super) fn view(&self, record: &Record, clock: &Clock) -> Value {
        view::notification(record, self.list().short_id(&record.id).as_deref(), clock)
    }

    /// Returns true if a notification is known and read.
    pub(super) fn is_read(&self, id: &MessageId) -> bool {
        self.get(id).is_some_and(|record| record.is_read)
    }

    pub(super) fn toast(&self) -> Option<&Toast> {
        self.engine.toast()
    }

    /// Lets the engine handle an event. Returns its orders.
    pub(super) fn handle(&mut self, now: Now, event: Event) -> Vec<Order> {
        self.engine.handle(now, event)
    }

    /// Returns true if a mark is not yet applied to all its notifications.
    pub(super) fn has_unfinished_marks(&self) -> bool {
        self.engine.has_unfinished_marks()
    }

    /// Applies unfinished marks to the next notifications. Returns the engine's orders.
    pub(super) fn continue_marks(&mut self, now: Now) -> Vec<Order> {
        self.engine.continue_marks(now)
    }

    /// Replaces the engine's preferences. Returns its orders.
    pub(super) fn set_preferences(&mut self, now: Now, preferences: Preferences) -> Vec<Order> {
        self.engine.set_preferences(preferences);
        self.engine.redraw_rings(now)
    }

    /// Returns the revisions of the settings whose hooks the engine may still order.
    pub(super) fn hook_revisions(&self) -> HashSet<u64> {
        self.engine.hook_revisions()
    }

    pub(super) fn undecided(&self) -> usize {
        self.engine.undecided()
    }

    pub(super) fn has_room(&self) -> bool {
        self.undecided() < MAX_UNDECIDED && self.writes.len() < MAX_UNWRITTEN
    }

    pub(super) fn next_deadline(&self, now: Now) -> Option<Duration> {
        self.engine.next_deadline(now)
    }

    /// Saves a notification with the next commit.
    pub(super) fn save(&mut self, record: Record) {
        self.writes.upsert(record);
        self.added_since_trim += 1;
        if self.added_since_trim >= TRIM_EVERY {
            self.added_since_trim = 0;
            self.engine.trim(MAX_READ);
        }
    }

    /// Adds notifications that were already decided, without a new decision. Returns the engine's orders.
    pub(super) fn restore(&mut self, now: Now, records: Vec<Record>, flags: &[PlaceFlag]) -> Vec<Order> {
        self.engine.restore(now, records, flags.iter().filter_map(unflag))
    }

    /// Restores what the features of the last hub saved.
    pub(super) fn restore_features(&mut self, now: Now) -> Result<(), Error> {
        self.engine.restore_state(now, self.store.states()?);
        Ok(())
    }

    /// Forgets the undo log of a repository's notifications. Returns the engine's orders.
    pub(super) fn forget_undo(&mut self, scope: &str) -> Vec<Order> {
        self.engine.forget_undo(scope)
    }

    /// Resumes a delivery of an earlier hub, which replaces these older popups. Returns the engine's orders.
    pub(super) fn resume(&mut self, delivery: Delivery, older: Vec<MessageId>) -> Vec<Order> {
        self.engine.resume(delivery, older)
    }

    /// Returns the notifications in the store: all unread ones, and the latest read ones.
    pub(super) fn stored(&mut self) -> Result<StoredNotifications, Error> {
        self.store.notifications(MAX_READ)
    }

    /// Sets what the store contains, to which further writes are added.
    pub(super) fn begin_writes(
        &mut self,
        undecided: &[MessageId],
        flags: Vec<PlaceFlag>,
        popups: impl IntoIterator<Item = MessageId>,
    ) {
        self.writes = PendingWrites::new(undecided.iter().cloned(), flags, popups);
    }

    /// Commits the pending writes in one transaction. Returns the deliveries that may start; no delivery starts in any other way.
    /// `marks` are the title marks. Returns `None` if there was nothing to write.
    pub(super) fn commit(
        &mut self,
        marks: impl Iterator<Item = PlaceFlag>,
    ) -> Result<Option<Vec<Delivery>>, Error> {
        self.writes.set_undecided(self.engine.undecided_ids());
        let reasons = self.engine.attention().reasons().map(|(reason, place)| flag(reason, &place));
        self.writes.set_flags(reasons.chain(marks));
        if self.writes.transaction().is_empty() {
            return Ok(None);
        }
        self.store.commit(self.writes.transaction())?;
        // Trails stay in the store. With 100,000 unread notifications they would take half of the hub's memory.
        for record in &self.writes.transaction().records {
            self.engine.forget_trail_steps(&record.id, record.trail.steps().len());
        }
        Ok(Some(self.writes.committed()))
    }

    /// Returns true if a place has a ring.
    pub(super) fn has_ring(&self, place: &Place, now: Duration) -> bool {
        self.attention().has_ring(place, now)
    }
}
