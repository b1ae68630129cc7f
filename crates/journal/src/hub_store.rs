//! The hub store (`hub.db`): notifications, their trails, and deliveries in progress.
//!
//! It is separate from the journal so that the hub's writes do not block writers of the journal, and so that a process that opens
//! the journal need not parse the definitions of these tables.

use ringer_core::MessageId;
use ringer_core::attention::{Cause, MAX_TRAIL_STEPS, Record, Trail, TrailStep};
use ringer_core::engine::SavedState;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::db::damage::{REPAIR, quarantine_rows};
use crate::db::database::Database;
use crate::db::tables::{Schema, optional_text, text};
use crate::error::Error;
use crate::ids::IdSource;
use crate::journal::read::{CatchUp, Cursor, ReadPosition};

/// An open hub store.
pub type HubStore = Database<HubSchema>;

/// The schema of the hub store.
#[derive(Debug, Default)]
pub struct HubSchema;

impl Schema for HubSchema {
    const FILE: &'static str = "hub.db";
    const LOCK: &'static str = "hub.lock";
    const TABLES: &'static [&'static str] = &[
        NOTIFICATION,
        "CREATE INDEX notification_read ON notification (is_read)",
        TRAIL,
        "CREATE TABLE undecided (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID",
        OUTBOX,
        POPUP,
        DEAD_LETTER,
        "CREATE TABLE flag (reason TEXT NOT NULL, place TEXT NOT NULL, PRIMARY KEY (reason, place)) STRICT, WITHOUT ROWID",
        HUB_POSITION,
        REPAIR,
        STATE,
    ];
    const RESCUED_TABLES: &'static [&'static str] = &[
        "notification",
        "trail",
        "undecided",
        "outbox",
        "popup",
        "dead_letter",
        "flag",
        "hub_position",
        "repair",
        "state",
    ];
}

const NOTIFICATION: &str = "CREATE TABLE notification (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    is_read INTEGER NOT NULL,
    record TEXT NOT NULL,
    is_open INTEGER NOT NULL DEFAULT 0
) STRICT";

const TRAIL: &str = "CREATE TABLE trail (
    id TEXT NOT NULL,
    step INTEGER NOT NULL,
    ts INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (id, step)
) STRICT, WITHOUT ROWID";

const OUTBOX: &str = "CREATE TABLE outbox (
    id TEXT NOT NULL,
    channel TEXT NOT NULL,
    delivery TEXT NOT NULL,
    PRIMARY KEY (id, channel)
) STRICT, WITHOUT ROWID";

const POPUP: &str = "CREATE TABLE popup (
    key TEXT PRIMARY KEY,
    id TEXT NOT NULL,
    number INTEGER NOT NULL,
    server TEXT NOT NULL,
    offer TEXT
) STRICT, WITHOUT ROWID";

const DEAD_LETTER: &str = "CREATE TABLE dead_letter (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    target TEXT NOT NULL,
    why TEXT NOT NULL,
    ts INTEGER NOT NULL
) STRICT";

/// Values that features of the engine keep.
const STATE: &str = "CREATE TABLE state (
    feature TEXT NOT NULL,
    key TEXT NOT NULL,
    about TEXT,
    value TEXT NOT NULL,
    PRIMARY KEY (feature, key)
) STRICT";

/// Notifications loaded from the hub store.
#[derive(Debug, Default)]
pub struct StoredNotifications {
    /// Readable notifications.
    pub records: Vec<Record>,
    /// Damaged rows.
    pub unreadable: Vec<UnreadableRecord>,
}

/// A damaged notification. Its message may still be in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableRecord {
    /// Row number.
    pub number: i64,
    /// Id of the message.
    pub id: String,
    /// The person has read it.
    pub is_read: bool,
    /// The notification, if only the id is damaged.
    pub record: Option<Record>,
}

/// The hub's [`ReadPosition`] in the journal, in a single row.
const HUB_POSITION: &str = "CREATE TABLE hub_position (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    generation TEXT,
    seq INTEGER NOT NULL,
    id TEXT,
    newest TEXT,
    until INTEGER
) STRICT";

impl HubStore {
    /// Writes a batch of changes atomically.
    pub fn commit(&mut self, changes: &HubChanges) -> Result<(), Error> {
        self.write(|transaction| apply(transaction, changes))
    }

    /// How far the hub has read the journal. `None` if it has never stored that.
    pub fn position(&mut self) -> Result<Option<ReadPosition>, Error> {
        let query = "SELECT generation, seq, id, newest, until FROM hub_position";
        self.read(|connection| {
            let position = connection.query_row(query, [], |row| {
                let (newest, until): (_, Option<i64>) = (optional_text(row, 3)?, row.get(4)?);
                let (generation, id) = (optional_text(row, 0)?, optional_text(row, 2)?);
                Ok(ReadPosition {
                    cursor: Cursor { generation, seq: row.get(1)?, id },
                    catch_up: newest.zip(until).map(|(newest, until)| CatchUp { newest, until }),
                })
            });
            position.optional()
        })
    }

    /// Returns true if the hub has read a message before: it is a notification, or has a trail, or is undecided.
    pub fn knows(&mut self, id: &MessageId) -> Result<bool, Error> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM notification WHERE id = ?1)
                     OR EXISTS (SELECT 1 FROM trail WHERE id = ?1)
                     OR EXISTS (SELECT 1 FROM undecided WHERE id = ?1)",
            )?;
            statement.query_row([id.as_str()], |row| row.get(0))
        })
    }

    /// Messages that the hub had read but not decided when it exited.
    pub fn undecided(&mut self) -> Result<Vec<MessageId>, Error> {
        self.rows("SELECT id FROM undecided ORDER BY id", message_id)
    }

    /// Loads the notifications in order of arrival: all that are unread or open, and at most `most_read` others. Their trails
    /// are not loaded.
    pub fn notifications(&mut self, most_read: usize) -> Result<StoredNotifications, Error> {
        let most = i64::try_from(most_read).unwrap_or(i64::MAX);
        self.read(|connection| {
            let mut statement = connection.prepare(
                "SELECT number, id, is_read, record FROM (
                     SELECT * FROM notification WHERE is_read = 0
                     UNION ALL
                     SELECT * FROM notification WHERE is_read <> 0 AND is_open <> 0
                     UNION ALL
                     SELECT * FROM (
                         SELECT * FROM notification WHERE is_read <> 0 AND is_open = 0 ORDER BY number DESC LIMIT ?1)
                 ) ORDER BY number",
            )?;
            let mut rows = statement.query([most])?;
            let mut stored = StoredNotifications::default();
            while let Some(row) = rows.next()? {
                let (id, record) = (text(row, 1)?, text(row, 3)?);
                let record = serde_json::from_str::<Record>(&record).ok();
                if let Some(record) = record.as_ref().filter(|record| record.id.as_str() == id) {
                    stored.records.push(record.clone());
                } else {
                    let (number, is_read) = (row.get(0)?, row.get(2)?);
                    stored.unreadable.push(UnreadableRecord { number, id, is_read, record });
                }
            }
            Ok(stored)
        })
    }

    /// Number of unread notifications.
    pub fn unread(&mut self) -> Result<i64, Error> {
        let count = "SELECT count(*) FROM notification WHERE is_read = 0";
        self.read(|connection| connection.query_row(count, [], |row| row.get(0)))
    }

    /// A notification with its trail.
    pub fn notification(&mut self, id: &str) -> Result<Option<Record>, Error> {
        self.read(|connection| {
            let found = connection
                .query_row("SELECT record FROM notification WHERE id = ?1", [id], |row| text(row, 0))
                .optional()?;
            let record = found.and_then(|record| serde_json::from_str::<Record>(&record).ok());
            record.map(|record| Ok(Record { trail: steps_of(connection, id)?, ..record })).transpose()
        })
    }

    /// The trail of a message: what happened to it, step by step.
    pub fn trail(&mut self, id: &str) -> Result<Trail, Error> {
        self.read(|connection| steps_of(connection, id))
    }

    /// Deliveries that were in progress when the hub exited.
    pub fn outbox(&mut self) -> Result<Vec<PendingDelivery>, Error> {
        self.rows("SELECT id, channel, delivery FROM outbox ORDER BY id, channel", |row| {
            let Some(id) = message_id(row)? else { return Ok(None) };
            Ok(Some(PendingDelivery { id, channel: text(row, 1)?, delivery: text(row, 2)? }))
        })
    }

    /// A delivery in progress, by message and channel.
    pub fn pending_delivery(
        &mut self,
        id: &MessageId,
        channel: &str,
    ) -> Result<Option<PendingDelivery>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached("SELECT delivery FROM outbox WHERE id = ?1 AND channel = ?2")?
                .query_row([id.as_str(), channel], |row| {
                    Ok(PendingDelivery {
                        id: id.clone(),
                        channel: channel.to_owned(),
                        delivery: text(row, 0)?,
                    })
                })
                .optional()
        })
    }

    /// Deliveries that were given up, newest first.
    pub fn dead_letters(&mut self) -> Result<Vec<DeadLetter>, Error> {
        self.rows("SELECT id, target, why, ts FROM dead_letter ORDER BY number DESC", |row| {
            let Some(id) = message_id(row)? else { return Ok(None) };
            Ok(Some(DeadLetter { id, target: text(row, 1)?, why: text(row, 2)?, unix_ms: row.get(3)? }))
        })
    }

    /// Popups that were on the screen when the hub exited, oldest first.
    pub fn popups(&mut self) -> Result<Vec<ShownPopup>, Error> {
        self.rows("SELECT id, key, number, server, offer FROM popup ORDER BY id", |row| {
            let (Some(id), Ok(number)) = (message_id(row)?, row.get::<_, i64>(2)?.try_into()) else {
                return Ok(None);
            };
            let (key, server, offer) = (text(row, 1)?, text(row, 3)?, optional_text(row, 4)?);
            Ok(Some(ShownPopup { key, id, number, server, offer }))
        })
    }

    /// The flags that are set.
    pub fn flags(&mut self) -> Result<Vec<PlaceFlag>, Error> {
        self.rows("SELECT reason, place FROM flag ORDER BY reason, place", |row| {
            Ok(Some(PlaceFlag { reason: text(row, 0)?, place: text(row, 1)? }))
        })
    }

    /// The values of all features, in the order of their keys.
    pub fn states(&mut self) -> Result<Vec<SavedState>, Error> {
        self.rows("SELECT feature, key, value FROM state ORDER BY feature, key", |row| {
            let (feature, key, value) = (text(row, 0)?.into(), text(row, 1)?, Some(text(row, 2)?));
            Ok(Some(SavedState { feature, key, about: None, value }))
        })
    }

    /// All rows of a query. Skips damaged ones.
    fn rows<T>(
        &mut self,
        query: &str,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<Option<T>>,
    ) -> Result<Vec<T>, Error> {
        self.read(|connection| {
            let mut statement = connection.prepare(query)?;
            let mut rows = statement.query([])?;
            let mut all = Vec::new();
            while let Some(row) = rows.next()? {
                all.extend(read(row)?);
            }
            Ok(all)
        })
    }

    /// Quarantines unreadable notifications, by their row numbers. Their bytes are kept.
    pub fn quarantine_notifications(&mut self, numbers: &[i64], stamp: &IdSource) -> Result<(), Error> {
        self.write(|transaction| quarantine_rows(transaction, ("notification", "number"), numbers, *stamp))
    }

    /// Deletes everything about some messages.
    pub fn forget(&mut self, ids: &[MessageId]) -> Result<(), Error> {
        self.write(|transaction| {
            for table in ["notification", "trail", "undecided", "outbox", "popup", "dead_letter"] {
                let mut delete = transaction.prepare(&format!("DELETE FROM {table} WHERE id = ?1"))?;
                for id in ids {
                    delete.execute([id.as_str()])?;
                }
            }
            let mut delete = transaction.prepare("DELETE FROM state WHERE about = ?1")?;
            for id in ids {
                delete.execute([id.as_str()])?;
            }
            Ok(())
        })
    }
}

fn steps_of(connection: &Connection, id: &str) -> rusqlite::Result<Trail> {
    let mut statement =
        connection.prepare_cached("SELECT ts, text FROM trail WHERE id = ?1 ORDER BY step")?;
    let mut rows = statement.query([id])?;
    let mut trail = Trail::default();
    while let Some(row) = rows.next()? {
        // Skips damaged steps.
        if let Ok(cause) = serde_json::from_str::<Cause>(&text(row, 1)?) {
            trail.add(row.get(0)?, cause);
        }
    }
    Ok(trail)
}

/// The id in the first column, if it is one.
fn message_id(row: &Row<'_>) -> rusqlite::Result<Option<MessageId>> {
    Ok(MessageId::parse(&text(row, 0)?).ok())
}

/// How many trail steps are pruned in one transaction: a few milliseconds.
const PIECE: i64 = 500;

/// A pruning of the hub store in progress. It removes what is older than the journal, in pieces, because the hub does it on its
/// loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubPruning {
    /// Next id to check.
    from: String,
    /// Ids from this one on are kept.
    before: String,
}

impl HubPruning {
    /// A pruning of everything older than the oldest message of the journal.
    pub fn of(oldest: &MessageId) -> Self {
        // The first 13 characters of an id are its time; the rest is random.
        let before = oldest.as_str().get(..13).unwrap_or_default().to_owned();
        Self { from: String::new(), before }
    }
}

impl HubStore {
    /// Deletes one piece: notifications that are read and resolved, and trails. Unread and open notifications stay. Returns the
    /// rest of the pruning, if any.
    pub fn prune(&mut self, pruning: HubPruning) -> Result<Option<HubPruning>, Error> {
        let HubPruning { from, before } = pruning;
        let end = self.write(|transaction| {
            let end: Option<String> = transaction
                .query_row(
                    "SELECT id FROM trail WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT 1 OFFSET ?3",
                    (&from, &before, PIECE),
                    |row| text(row, 0),
                )
                .optional()?
                // The steps of one message may fill more than one piece.
                .filter(|end| *end > from);
            let to = end.as_ref().unwrap_or(&before);
            for query in [
                // `+is_read` makes SQLite use the ids and not the index on `is_read`, which covers nearly all rows.
                "DELETE FROM notification WHERE +is_read = 1 AND +is_open = 0 AND id >= ?1 AND id < ?2",
                "DELETE FROM trail WHERE id >= ?1 AND id < ?2 AND id NOT IN (SELECT id FROM notification)",
            ] {
                transaction.prepare(query)?.execute((&from, to))?;
            }
            if end.is_none() {
                transaction.execute("DELETE FROM state WHERE about < ?1", [&before])?;
            }
            Ok(end)
        })?;
        Ok(end.map(|from| HubPruning { from, before }))
    }
}

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
