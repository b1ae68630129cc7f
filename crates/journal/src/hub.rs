//! What the hub alone does with the journal: its doorbell, and what it remembers of the notifications it took.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::{Duration, Instant};

use ringer_core::{MAX_STEPS, Message, MessageId, Record, Step, Trail};
use rusqlite::{OptionalExtension, Transaction, params};

use crate::doorbell::{self, Doorbell, Holder};
use crate::error::Error;
use crate::home::Home;
use crate::open::Journal;
use crate::process::started;
use crate::row::COLUMNS;

/// The name of the hub's cursor.
const CONSUMER: &str = "hub";
/// The scope of that cursor: all of them. No repository has this id.
const EVERYWHERE: &str = "*";

/// How long to try for the hub's lock: somebody may hold it for a moment, to see whether the hub is alive.
const ASIDE: Duration = Duration::from_millis(200);

/// The hub's doorbell. Whoever has it is the hub: there is one, and it dies with its process.
#[derive(Debug)]
pub struct HubBell(Doorbell);

impl HubBell {
    /// Hangs it. `None` if there is a hub already.
    pub fn hang(home: &Home) -> Result<Option<Self>, Error> {
        let pid = std::process::id();
        let holder = Holder {
            pid,
            started: started(pid),
            consumer: CONSUMER.to_owned(),
            scope: EVERYWHERE.to_owned(),
        };
        home.make_directories().map_err(|error| home.error("making the home", error))?;
        match Doorbell::hang(home, doorbell::HUB, &holder, Some(Instant::now() + ASIDE)) {
            Ok(bell) => Ok(Some(Self(bell))),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(home.error("hanging the hub's doorbell", error)),
        }
    }

    /// Forgets the rings so far. To be done before looking in the journal.
    pub fn empty(&self, home: &Home) -> Result<(), Error> {
        self.0.empty().map_err(|error| home.error("emptying the hub's doorbell", error))
    }

    /// The hub that is alive, if one is.
    pub fn holder(home: &Home) -> Option<Holder> {
        let path = doorbell::named(home, doorbell::HUB);
        doorbell::is_alive(&path).then(|| doorbell::holder(&path)).flatten()
    }
}

impl AsFd for HubBell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for HubBell {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// A delivery that is under way, as it is written down until it is settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The notification.
    pub id: MessageId,
    /// The way out.
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

/// How many of them are kept; the oldest go first.
const MAX_DEAD: i64 = 100;

/// What the hub did, to be written down in one transaction: taken messages, decisions, deliveries. Either all of it
/// happened or none of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settlement {
    /// The hub has taken everything up to here.
    pub cursor: Option<i64>,
    /// Messages that were taken and are not decided.
    pub undecided: Vec<MessageId>,
    /// Messages that are decided now.
    pub decided: Vec<MessageId>,
    /// Notifications, new or changed, with their trails.
    pub records: Vec<Record>,
    /// Notifications that are off the list.
    pub forgotten: Vec<MessageId>,
    /// Steps of messages that are no notifications.
    pub steps: Vec<(MessageId, Step)>,
    /// Deliveries that begin.
    pub outgoing: Vec<Outgoing>,
    /// Deliveries that are over, by id and way.
    pub settled: Vec<(MessageId, String)>,
    /// Popups that are on the screen now.
    pub shown: Vec<ShownPopup>,
    /// Popups that are not.
    pub withdrawn: Vec<MessageId>,
    /// Deliveries that were given up.
    pub dead: Vec<DeadLetter>,
}

impl Settlement {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Journal {
    /// How far the hub has come.
    pub fn hub_cursor(&self) -> Result<i64, Error> {
        self.connection
            .query_row(
                "SELECT seq FROM cursor WHERE consumer = ?1 AND scope = ?2",
                [CONSUMER, EVERYWHERE],
                |row| row.get(0),
            )
            .optional()
            .map(Option::unwrap_or_default)
            .map_err(|error| self.error(error))
    }

    /// The messages that no hub has taken yet, in order; the last thousand of them.
    pub fn not_taken(&self) -> Result<Vec<Message>, Error> {
        let after = self.hub_cursor()?.max(self.last_seq()?.saturating_sub(1000));
        self.messages_after(after, usize::MAX)
    }

    /// Writes down what the hub did.
    pub fn settle(&mut self, settlement: &Settlement, unix_ms: i64) -> Result<(), Error> {
        self.write(|transaction| settle(transaction, settlement, unix_ms))
    }

    /// The messages that the hub took and had not decided when it ended.
    pub fn undecided(&self) -> Result<Vec<Message>, Error> {
        self.select(
            &format!("SELECT {COLUMNS} FROM message WHERE seq IN (SELECT seq FROM undecided) ORDER BY seq"),
            &[],
            usize::MAX,
        )
    }

    /// The notifications that are remembered, oldest first: all that are unread, and so many of the others.
    pub fn remembered(&self, most_read: usize) -> Result<Vec<Record>, Error> {
        let most = i64::try_from(most_read).unwrap_or(i64::MAX);
        let select = || -> rusqlite::Result<Vec<Record>> {
            let mut statement = self.connection.prepare(
                "SELECT id, record FROM (
                     SELECT * FROM notification WHERE is_read = 0
                     UNION ALL
                     SELECT * FROM (SELECT * FROM notification WHERE is_read = 1 ORDER BY seq DESC LIMIT ?1)
                 ) ORDER BY seq",
            )?;
            let mut rows = statement.query([most])?;
            let mut records = Vec::new();
            while let Some(row) = rows.next()? {
                let (id, record): (String, String) = (row.get(0)?, row.get(1)?);
                // A row that makes no sense is passed over.
                if let Ok(mut record) = serde_json::from_str::<Record>(&record) {
                    record.trail = self.steps_of(&id)?;
                    records.push(record);
                }
            }
            Ok(records)
        };
        select().map_err(|error| self.error(error))
    }

    /// One notification, with its trail.
    pub fn notification(&self, id: &str) -> Result<Option<Record>, Error> {
        let select = || -> rusqlite::Result<Option<Record>> {
            let found: Option<String> = self
                .connection
                .query_row("SELECT record FROM notification WHERE id = ?1", [id], |row| row.get(0))
                .optional()?;
            let record = found.and_then(|record| serde_json::from_str::<Record>(&record).ok());
            record.map(|record| Ok(Record { trail: self.steps_of(id)?, ..record })).transpose()
        };
        select().map_err(|error| self.error(error))
    }

    /// What became of a message, step by step.
    pub fn trail(&self, id: &str) -> Result<Trail, Error> {
        self.steps_of(id).map_err(|error| self.error(error))
    }

    fn steps_of(&self, id: &str) -> rusqlite::Result<Trail> {
        let mut statement =
            self.connection.prepare_cached("SELECT ts, text FROM trail WHERE id = ?1 ORDER BY step")?;
        let mut rows = statement.query([id])?;
        let mut trail = Trail::default();
        while let Some(row) = rows.next()? {
            trail.add(row.get(0)?, row.get::<_, String>(1)?);
        }
        Ok(trail)
    }

    /// The deliveries that were under way when the hub ended.
    pub fn outbox(&self) -> Result<Vec<Outgoing>, Error> {
        let select = || -> rusqlite::Result<Vec<Outgoing>> {
            let mut statement =
                self.connection.prepare("SELECT id, way, delivery FROM outbox ORDER BY id, way")?;
            let mut rows = statement.query([])?;
            let mut outgoing = Vec::new();
            while let Some(row) = rows.next()? {
                if let Ok(id) = MessageId::parse(&row.get::<_, String>(0)?) {
                    outgoing.push(Outgoing { id, way: row.get(1)?, delivery: row.get(2)? });
                }
            }
            Ok(outgoing)
        };
        select().map_err(|error| self.error(error))
    }

    /// The deliveries that were given up, newest first.
    pub fn dead_letters(&self) -> Result<Vec<DeadLetter>, Error> {
        let select = || -> rusqlite::Result<Vec<DeadLetter>> {
            let mut statement = self
                .connection
                .prepare("SELECT id, target, why, ts FROM dead_letter ORDER BY number DESC")?;
            let mut rows = statement.query([])?;
            let mut letters = Vec::new();
            while let Some(row) = rows.next()? {
                if let Ok(id) = MessageId::parse(&row.get::<_, String>(0)?) {
                    let (target, why, unix_ms) = (row.get(1)?, row.get(2)?, row.get(3)?);
                    letters.push(DeadLetter { id, target, why, unix_ms });
                }
            }
            Ok(letters)
        };
        select().map_err(|error| self.error(error))
    }

    /// The popups that were on the screen when the hub ended.
    pub fn popups(&self) -> Result<Vec<ShownPopup>, Error> {
        let select = || -> rusqlite::Result<Vec<ShownPopup>> {
            let mut statement = self.connection.prepare("SELECT key, id, number, server FROM popup")?;
            let mut rows = statement.query([])?;
            let mut popups = Vec::new();
            while let Some(row) = rows.next()? {
                if let Ok(id) = MessageId::parse(&row.get::<_, String>(1)?) {
                    popups.push(ShownPopup {
                        key: row.get(0)?,
                        id,
                        number: row.get(2)?,
                        server: row.get(3)?,
                    });
                }
            }
            Ok(popups)
        };
        select().map_err(|error| self.error(error))
    }
}

fn settle(transaction: &Transaction<'_>, done: &Settlement, unix_ms: i64) -> rusqlite::Result<()> {
    if let Some(seq) = done.cursor {
        transaction
            .prepare_cached(
                "INSERT INTO cursor (consumer, scope, seq, touched) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (consumer, scope) DO UPDATE
                 SET seq = max(seq, excluded.seq), touched = excluded.touched",
            )?
            .execute(params![CONSUMER, EVERYWHERE, seq, unix_ms])?;
    }
    for (ids, change) in [
        (&done.undecided, "INSERT OR IGNORE INTO undecided SELECT seq FROM message WHERE id = ?1"),
        (&done.decided, "DELETE FROM undecided WHERE seq = (SELECT seq FROM message WHERE id = ?1)"),
        (&done.forgotten, "DELETE FROM notification WHERE id = ?1"),
        (&done.withdrawn, "DELETE FROM popup WHERE id = ?1"),
        (&done.withdrawn, "DELETE FROM outbox WHERE id = ?1"),
    ] {
        let mut statement = transaction.prepare_cached(change)?;
        for id in ids {
            statement.execute([id.as_str()])?;
        }
    }
    for record in &done.records {
        remember(transaction, record)?;
    }
    let most = i64::try_from(MAX_STEPS).unwrap_or(i64::MAX);
    for (id, step) in &done.steps {
        transaction
            .prepare_cached(
                "INSERT INTO trail (id, step, ts, text)
                 SELECT ?1, coalesce(max(step) + 1, 0), ?2, ?3 FROM trail WHERE id = ?1 HAVING count(*) < ?4",
            )?
            .execute(params![id.as_str(), step.unix_ms, step.text, most])?;
    }
    let mut begin = transaction
        .prepare_cached("INSERT OR REPLACE INTO outbox (id, way, delivery) VALUES (?1, ?2, ?3)")?;
    for outgoing in &done.outgoing {
        begin.execute(params![outgoing.id.as_str(), outgoing.way, outgoing.delivery])?;
    }
    let mut end = transaction.prepare_cached("DELETE FROM outbox WHERE id = ?1 AND way = ?2")?;
    for (id, way) in &done.settled {
        end.execute(params![id.as_str(), way])?;
    }
    for letter in &done.dead {
        transaction
            .prepare_cached("INSERT INTO dead_letter (id, target, why, ts) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![letter.id.as_str(), letter.target, letter.why, letter.unix_ms])?;
        transaction
            .prepare_cached(
                "DELETE FROM dead_letter WHERE number <= (SELECT max(number) FROM dead_letter) - ?1",
            )?
            .execute([MAX_DEAD])?;
    }
    let mut show = transaction
        .prepare_cached("INSERT OR REPLACE INTO popup (key, id, number, server) VALUES (?1, ?2, ?3, ?4)")?;
    for popup in &done.shown {
        show.execute(params![popup.key, popup.id.as_str(), popup.number, popup.server])?;
    }
    Ok(())
}

/// Writes a notification, and the steps of its trail that are not written yet.
fn remember(transaction: &Transaction<'_>, record: &Record) -> rusqlite::Result<()> {
    let bare = Record { trail: Trail::default(), ..record.clone() };
    // Plain data: it cannot fail to be written.
    let json = serde_json::to_string(&bare).unwrap_or_default();
    transaction
        .prepare_cached(
            "INSERT INTO notification (id, seq, is_read, record)
             VALUES (?1, coalesce((SELECT seq FROM message WHERE id = ?1), 0), ?2, ?3)
             ON CONFLICT (id) DO UPDATE SET is_read = excluded.is_read, record = excluded.record",
        )?
        .execute(params![record.id.as_str(), record.is_read, json])?;
    let written: i64 = transaction
        .prepare_cached("SELECT count(*) FROM trail WHERE id = ?1")?
        .query_row([record.id.as_str()], |row| row.get(0))?;
    // A full trail lets steps of its middle go, so all of it is written again.
    let from = if record.trail.steps().len() >= MAX_STEPS { 0 } else { written };
    let unwritten = (0i64..).zip(record.trail.steps()).filter(|(number, _)| *number >= from);
    let mut add = transaction
        .prepare_cached("INSERT OR REPLACE INTO trail (id, step, ts, text) VALUES (?1, ?2, ?3, ?4)")?;
    for (number, step) in unwritten {
        add.execute(params![record.id.as_str(), number, step.unix_ms, step.text])?;
    }
    Ok(())
}
