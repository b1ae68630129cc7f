//! The hub store (`hub.db`): notifications, their trails, and deliveries in progress.
//!
//! It is separate from the journal so that the hub's writes do not block writers of the journal, and so that a process that opens
//! the journal need not parse the definitions of these tables.

use ringer_core::MessageId;
use ringer_core::attention::{Cause, Record, Trail};
use ringer_core::engine::SavedState;
use rusqlite::{Connection, OptionalExtension, Row};

use crate::db::column::{optional_text, text};
use crate::db::database::Database;
use crate::db::repair_record::{REPAIR, quarantine_rows};
use crate::db::tables::Schema;
use crate::error::Error;
use crate::hub_store::transaction::{self, DeadLetter, HubChanges, PendingDelivery, PlaceFlag, ShownPopup};
use crate::ids::IdSource;
use crate::position::{CatchUp, Cursor, ReadPosition};

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
        self.write(|transaction| transaction::apply(transaction, changes))
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
