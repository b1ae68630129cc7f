//! One atomic batch of hub state: cursor, decisions, deliveries.

use ringer_core::MessageId;
use ringer_core::attention::{AwayPeriod, MAX_TRAIL_STEPS, Record, Trail, TrailStep, UndoItem};
use ringer_core::policy::{MuteTarget, RequestedMute};
use rusqlite::{Transaction, params};

use crate::position::ReadPosition;

/// A delivery in progress, stored until it is finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingDelivery {
    /// The notification.
    pub id: MessageId,
    /// The delivery channel.
    pub way: String,
    /// Everything about it; only the hub reads it.
    pub delivery: String,
}

/// A popup that is on the screen, so that the next one can take its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownPopup {
    /// What the next one of the same key takes the place of.
    pub key: String,
    /// The notification.
    pub id: MessageId,
    /// The number that the desktop gave it.
    pub number: u32,
    /// Which desktop that was.
    pub server: String,
    /// What it says and which answers it offers, if it offers any; only the hub reads it.
    pub offer: Option<String>,
}

/// A delivery that was given up after several attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The notification.
    pub id: MessageId,
    /// Where it should have gone.
    pub target: String,
    /// What went wrong.
    pub why: String,
    /// When, in milliseconds since 1970.
    pub unix_ms: i64,
}

/// A lasting fact about a place: it is unread for another reason than a notification, or its title has a mark.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PlaceFlag {
    /// The reason, by its name.
    pub reason: String,
    /// The place; only the hub reads it.
    pub place: String,
}

/// How many dead letters are kept; the oldest go first.
const MAX_DEAD: i64 = 100;

/// The changes to write.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HubChanges {
    /// The hub has read everything up to here.
    pub position: Option<ReadPosition>,
    /// Messages that were read and are not decided.
    pub undecided: Vec<MessageId>,
    /// Messages that are decided now.
    pub decided: Vec<MessageId>,
    /// Notifications, new or changed, with the steps that their trails get.
    pub records: Vec<Record>,
    /// Notifications that are off the list.
    pub forgotten: Vec<MessageId>,
    /// Steps of messages that are no notifications.
    pub steps: Vec<(MessageId, TrailStep)>,
    /// Deliveries that begin.
    pub started: Vec<PendingDelivery>,
    /// Deliveries that are finished, by id and channel.
    pub finished: Vec<(MessageId, String)>,
    /// Popups that are on the screen now.
    pub shown: Vec<ShownPopup>,
    /// Popups that are not.
    pub withdrawn: Vec<MessageId>,
    /// Deliveries that were given up.
    pub dead_letters: Vec<DeadLetter>,
    /// Flags that are set now.
    pub flags_set: Vec<PlaceFlag>,
    /// Flags that are cleared now.
    pub flags_cleared: Vec<PlaceFlag>,
    /// What commands of the person changed, new or changed.
    pub undo_saved: Vec<UndoItem>,
    /// What of that is not kept any more, by its number.
    pub undo_deleted: Vec<i64>,
    /// What the person muted now, and the mutes that ended (`None`), in their order.
    pub mutes: Vec<(MuteTarget, Option<RequestedMute>)>,
    /// The last time that the person was away, if that changed.
    pub away: Option<AwayPeriod>,
}

impl HubChanges {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

pub(crate) fn apply(transaction: &Transaction<'_>, changes: &HubChanges) -> rusqlite::Result<()> {
    if let Some(ReadPosition { cursor, catch_up }) = &changes.position {
        let (newest, until) = catch_up.as_ref().map(|catch_up| (&catch_up.newest, catch_up.until)).unzip();
        transaction
            .prepare_cached(
                "INSERT OR REPLACE INTO taken (one, generation, seq, id, newest, until)
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
        .prepare_cached("INSERT OR REPLACE INTO outbox (id, way, delivery) VALUES (?1, ?2, ?3)")?;
    for outgoing in &changes.started {
        begin.execute(params![outgoing.id.as_str(), outgoing.way, outgoing.delivery])?;
    }
    let mut end = transaction.prepare_cached("DELETE FROM outbox WHERE id = ?1 AND way = ?2")?;
    for (id, way) in &changes.finished {
        end.execute(params![id.as_str(), way])?;
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
    if let Some(away) = changes.away {
        transaction
            .prepare_cached("INSERT OR REPLACE INTO away (one, since, until) VALUES (1, ?1, ?2)")?
            .execute(params![away.since_ms, away.until_ms])?;
    }
    write_undo(transaction, changes)?;
    write_mutes(transaction, &changes.mutes)
}

fn write_undo(transaction: &Transaction<'_>, changes: &HubChanges) -> rusqlite::Result<()> {
    let mut save =
        transaction.prepare_cached("INSERT OR REPLACE INTO undo (number, id, item) VALUES (?1, ?2, ?3)")?;
    for item in &changes.undo_saved {
        let id = item.record().map_or("", |record| record.id.as_str());
        // Plain data: it cannot fail to be written.
        save.execute(params![item.number, id, serde_json::to_string(item).unwrap_or_default()])?;
    }
    let mut delete = transaction.prepare_cached("DELETE FROM undo WHERE number = ?1")?;
    for number in &changes.undo_deleted {
        delete.execute([number])?;
    }
    Ok(())
}

fn write_mutes(
    transaction: &Transaction<'_>,
    mutes: &[(MuteTarget, Option<RequestedMute>)],
) -> rusqlite::Result<()> {
    let mut save =
        transaction.prepare_cached("INSERT OR REPLACE INTO mute (target, mute) VALUES (?1, ?2)")?;
    let mut delete = transaction.prepare_cached("DELETE FROM mute WHERE target = ?1")?;
    for (target, mute) in mutes {
        match mute {
            // Plain data: it cannot fail to be written.
            Some(mute) => {
                save.execute([target.to_string(), serde_json::to_string(mute).unwrap_or_default()])?
            }
            None => delete.execute([target.to_string()])?,
        };
    }
    Ok(())
}

/// Writes a notification, and the steps of its trail that are not written yet.
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

/// Adds steps to a trail. One that is full lets the oldest step of its second half go, as [`Trail`] does.
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
