//! A batch of changes to the hub store, and how it is written.

use ringer_core::MessageId;
use ringer_core::attention::{MAX_TRAIL_STEPS, Record, Trail, TrailStep};
use ringer_core::engine::SavedState;
use rusqlite::{Transaction, params};

use crate::position::ReadPosition;

/// A delivery in progress, stored until it is finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingDelivery {
    /// The notification.
    pub id: MessageId,
    /// Delivery channel.
    pub channel: String,
    /// The delivery, in a format of the hub.
    pub delivery: String,
}

/// A popup that is on the screen, so that the next one can take its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownPopup {
    /// Key: the next popup with the same key replaces this one.
    pub key: String,
    /// The notification.
    pub id: MessageId,
    /// Id that the desktop assigned.
    pub number: u32,
    /// The notification server that assigned it.
    pub server: String,
    /// Its text and answers, if it offers any, in a format of the hub.
    pub offer: Option<String>,
}

/// A delivery that was given up after several attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The notification.
    pub id: MessageId,
    /// Where it was to be delivered.
    pub target: String,
    /// The last error.
    pub why: String,
    /// When, in milliseconds since 1970.
    pub unix_ms: i64,
}

/// A persistent flag of a place: it is unread for a reason other than a notification, or its title has a mark.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PlaceFlag {
    /// Name of the reason.
    pub reason: String,
    /// The place, in a format of the hub.
    pub place: String,
}

/// How many dead letters are kept.
const MAX_DEAD: i64 = 100;

/// A batch of changes to the hub store.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HubChanges {
    /// New read position in the journal.
    pub position: Option<ReadPosition>,
    /// Messages that were read but are not decided.
    pub undecided: Vec<MessageId>,
    /// Messages that are now decided.
    pub decided: Vec<MessageId>,
    /// New and changed notifications, with the new steps of their trails.
    pub records: Vec<Record>,
    /// Notifications that were removed from the list.
    pub forgotten: Vec<MessageId>,
    /// New trail steps of messages that are not notifications.
    pub steps: Vec<(MessageId, TrailStep)>,
    /// Deliveries that started.
    pub started: Vec<PendingDelivery>,
    /// Deliveries that finished, by id and channel.
    pub finished: Vec<(MessageId, String)>,
    /// Popups that appeared on the screen.
    pub shown: Vec<ShownPopup>,
    /// Popups that were closed.
    pub withdrawn: Vec<MessageId>,
    /// Deliveries that were given up.
    pub dead_letters: Vec<DeadLetter>,
    /// Flags that were set.
    pub flags_set: Vec<PlaceFlag>,
    /// Flags that were cleared.
    pub flags_cleared: Vec<PlaceFlag>,
    /// Values of features that were set or removed, in order.
    pub states: Vec<SavedState>,
}

impl HubChanges {
    /// Returns true if there is nothing to write.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

pub(crate) fn apply(transaction: &Transaction<'_>, changes: &HubChanges) -> rusqlite::Result<()> {
    if let Some(ReadPosition { cursor, catch_up }) = &changes.position {
        let (newest, until) = catch_up.as_ref().map(|catch_up| (&catch_up.newest, catch_up.until)).unzip();
        transaction
            .prepare_cached(
                "INSERT OR REPLACE INTO hub_position (one, generation, seq, id, newest, until)
                 VALUES (1, ?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![cursor.generation, cursor.seq, cursor.id, newest, until])?;
    }
    for (ids, change) in [
        (&changes.undecided, "INSERT OR IGNORE INTO undecided VALUES (?1)"),
        (&changes.decided, "DELETE FROM undecided WHERE id = ?1"),
        (&changes.forgotten, "DELETE FROM notification WHERE id = ?1"),
        (&changes.withdrawn, "DELETE FROM popup WHERE id = ?1"),
        (&changes.withdrawn, "DELETE FROM outbox WHERE id = ?1"),
    ] {
        let mut statement = transaction.prepare_cached(change)?;
        for id in ids {
            statement.execute([id.as_str()])?;
        }
    }
    for record in &changes.records {
        upsert_notification(transaction, record)?;
    }
    for (id, step) in &changes.steps {
        add_steps(transaction, id, std::iter::once(step))?;
    }
    let mut begin = transaction
        .prepare_cached("INSERT OR REPLACE INTO outbox (id, channel, delivery) VALUES (?1, ?2, ?3)")?;
    for outgoing in &changes.started {
        begin.execute(params![outgoing.id.as_str(), outgoing.channel, outgoing.delivery])?;
    }
    let mut end = transaction.prepare_cached("DELETE FROM outbox WHERE id = ?1 AND channel = ?2")?;
    for (id, channel) in &changes.finished {
        end.execute(params![id.as_str(), channel])?;
    }
    for letter in &changes.dead_letters {
        transaction
            .prepare_cached("INSERT INTO dead_letter (id, target, why, ts) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![letter.id.as_str(), letter.target, letter.why, letter.unix_ms])?;
        transaction
            .prepare_cached(
                "DELETE FROM dead_letter WHERE number <= (SELECT max(number) FROM dead_letter) - ?1",
            )?
            .execute([MAX_DEAD])?;
    }
    let mut show = transaction.prepare_cached(
        "INSERT OR REPLACE INTO popup (key, id, number, server, offer) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for popup in &changes.shown {
        show.execute(params![popup.key, popup.id.as_str(), popup.number, popup.server, popup.offer])?;
    }
    for (flags, change) in [
        (&changes.flags_cleared, "DELETE FROM flag WHERE reason = ?1 AND place = ?2"),
        (&changes.flags_set, "INSERT OR IGNORE INTO flag (reason, place) VALUES (?1, ?2)"),
    ] {
        let mut statement = transaction.prepare_cached(change)?;
        for flag in flags {
            statement.execute([&flag.reason, &flag.place])?;
        }
    }
    let mut set = transaction.prepare_cached(
        "INSERT OR REPLACE INTO state (feature, key, about, value) VALUES (?1, ?2, ?3, ?4)",
    )?;
    let mut remove = transaction.prepare_cached("DELETE FROM state WHERE feature = ?1 AND key = ?2")?;
    for SavedState { feature, key, about, value } in &changes.states {
        match value {
            Some(value) => {
                set.execute(params![feature, key, about.as_ref().map(MessageId::as_str), value])?
            }
            None => remove.execute(params![feature, key])?,
        };
    }
    Ok(())
}

/// Writes a notification and the new steps of its trail.
fn upsert_notification(transaction: &Transaction<'_>, record: &Record) -> rusqlite::Result<()> {
    let bare = Record { trail: Trail::default(), ..record.clone() };
    // Plain data: it cannot fail to be written.
    let json = serde_json::to_string(&bare).unwrap_or_default();
    transaction
        .prepare_cached(
            "INSERT INTO notification (id, is_read, is_open, record) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (id) DO UPDATE SET
                 is_read = excluded.is_read, is_open = excluded.is_open, record = excluded.record",
        )?
        .execute(params![record.id.as_str(), record.is_read, !record.is_resolved, json])?;
    add_steps(transaction, &record.id, record.trail.steps())
}

/// Appends steps to a trail. If it is full, drops the oldest steps of its second half, as [`Trail`] does.
fn add_steps<'a>(
    transaction: &Transaction<'_>,
    id: &MessageId,
    steps: impl ExactSizeIterator<Item = &'a TrailStep>,
) -> rusqlite::Result<()> {
    if steps.len() == 0 {
        return Ok(());
    }
    let (written, next): (i64, i64) = transaction
        .prepare_cached("SELECT count(*), coalesce(max(step) + 1, 0) FROM trail WHERE id = ?1")?
        .query_row([id.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let surplus = written + number(steps.len()) - number(MAX_TRAIL_STEPS);
    let mut add =
        transaction.prepare_cached("INSERT INTO trail (id, step, ts, text) VALUES (?1, ?2, ?3, ?4)")?;
    for (place, step) in (next..).zip(steps) {
        add.execute(params![
            id.as_str(),
            place,
            step.unix_ms,
            serde_json::to_string(&step.cause).unwrap_or_default()
        ])?;
    }
    if surplus > 0 {
        transaction
            .prepare_cached(
                "DELETE FROM trail WHERE id = ?1 AND step IN (
                     SELECT step FROM trail WHERE id = ?1 ORDER BY step LIMIT ?2 OFFSET ?3)",
            )?
            .execute(params![id.as_str(), surplus, number(MAX_TRAIL_STEPS / 2)])?;
    }
    Ok(())
}
