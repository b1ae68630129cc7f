//! Retention: prunes old messages and everything that belongs to them.
//!
//! Age is counted in prunings, not by the wall clock: a clock that jumps forward by years must not delete a message from a
//! minute ago. Each pruning records the highest sequence number, and there is at most one per [`INTERVAL`] of uptime.
//!
//! Messages are deleted in pieces, each in its own transaction, because hooks wait only 50 ms for the write lock. If a process is
//! killed between two pieces, the next pruning deletes the rest.

use std::thread;
use std::time::Duration;

use ringer_core::message::Tag;
use ringer_core::{Draft, Kind, MessageId, Recipient, Scope, Sender};
use rusqlite::{Connection, OptionalExtension, Transaction};
use serde::{Deserialize, Serialize};

use crate::db::tables::text;
use crate::error::Error;
use crate::ids::{IdSource, Uptime};
use crate::journal::agent::apply::forget_ended_processes;
use crate::journal::append::put;
use crate::journal::relay::forget_messages_of_machines;
use crate::journal::schema::{self, Journal, POSITION};

/// Limits on what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionLimits {
    /// Messages older than this many prunings are deleted, unless a cursor, an inbox or an open question still needs them. A
    /// cursor that was not used for that long does not count.
    pub prunings: usize,
    /// Maximum number of messages. The oldest ones above it are deleted, read or not.
    pub messages: u32,
    /// Maximum size of the database, in bytes.
    pub bytes: u64,
}

impl Default for RetentionLimits {
    /// About a month, and an amount that a query over all messages can handle.
    fn default() -> Self {
        Self { prunings: 30, messages: 200_000, bytes: 1 << 30 }
    }
}

/// The result of a pruning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PruneResult {
    /// Number of deleted messages.
    pub messages: usize,
    /// How many of them were deleted because of a limit, read or not.
    pub over_limit: usize,
}

/// Minimum uptime between two prunings. Less than a day, so that a daily routine does not skip every second one.
const INTERVAL: Duration = Duration::from_hours(20);
/// How often the elapsed uptime is stored, so that a machine that is rebooted every day prunes as well.
const NOTE_AFTER: Duration = Duration::from_hours(1);
/// How many messages are checked or deleted in one transaction: a few milliseconds for which other writers wait.
const PIECE: usize = 200;
/// Pause between two pieces, for other writers. A waiting writer tries the lock at least every 25 ms.
const PAUSE: Duration = Duration::from_millis(30);

/// Note with the [`PruningHistory`].
const PRUNINGS: &str = "prunings";
/// Note with the oldest message that remained after the last deletion.
const KEPT_FROM: &str = "kept from";
/// Note with the time at which deletions were last reported to the person.
const REPORTED: &str = "told of forgotten messages";
/// Note with the number of messages that were deleted because of a limit since then.
const UNREPORTED: &str = "forgotten messages to tell of";

/// SQL condition for notes about deleted agents (`agent:ID`).
const OF_GONE_AGENTS: &str = "name LIKE 'agent:%' AND substr(name, 7) NOT IN (SELECT id FROM agent)";

/// Earlier prunings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct PruningHistory {
    /// Their number.
    count: usize,
    /// Highest sequence number at each of the last prunings, oldest first.
    highest: Vec<i64>,
    /// The boot in which `at` was stored.
    boot: String,
    /// Uptime in that boot, in seconds.
    at: u64,
    /// Uptime between the last pruning and `at`, in seconds.
    waited: u64,
}

impl PruningHistory {
    fn read(connection: &Connection) -> rusqlite::Result<Option<Self>> {
        let known =
            schema::note(connection, PRUNINGS)?.and_then(|note| serde_json::from_str::<Self>(&note).ok());
        // Sequence numbers only grow. Others are damaged and must not make messages count as old.
        Ok(known.filter(|known| known.highest.is_sorted()))
    }

    fn write(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        // Plain data: it cannot fail to be written.
        let value = serde_json::to_string(self).unwrap_or_default();
        schema::set_note(transaction, PRUNINGS, &value)
    }

    /// Uptime since `at`, as far as it is known.
    fn passed(&self, uptime: &Uptime) -> Duration {
        let at = if uptime.boot == self.boot { Duration::from_secs(self.at) } else { Duration::ZERO };
        uptime.since_boot.saturating_sub(at)
    }

    fn look(&mut self, uptime: &Uptime) {
        self.waited = self.waited.saturating_add(self.passed(uptime).as_secs());
        (self.boot, self.at) = (uptime.boot.clone(), uptime.since_boot.as_secs());
    }
}

impl Journal {
    /// Prunes with the default limits if a pruning is due. May take seconds if there is much to delete.
    pub fn prune_if_due(&mut self, uptime: &Uptime, stamp: &IdSource) -> Result<(), Error> {
        let known = self.read(PruningHistory::read)?;
        let passed = known.as_ref().map(|known| known.passed(uptime));
        let waited =
            known.as_ref().zip(passed).map(|(known, passed)| Duration::from_secs(known.waited) + passed);
        if waited.is_none_or(|waited| waited >= INTERVAL) {
            self.prune_at(RetentionLimits::default(), uptime, stamp)?;
        } else if passed.is_some_and(|passed| passed >= NOTE_AFTER)
            || known.is_some_and(|known| known.boot != uptime.boot)
        {
            self.write(|transaction| {
                let mut prunings = PruningHistory::read(transaction)?.unwrap_or_default();
                prunings.look(uptime);
                prunings.write(transaction)
            })?;
        }
        self.forget_over_limit(RetentionLimits::default(), stamp).map(drop)
    }

    /// Prunes now.
    pub fn prune(&mut self, limits: RetentionLimits, stamp: &IdSource) -> Result<PruneResult, Error> {
        self.prune_at(limits, &Uptime::now(), stamp)
    }

    fn prune_at(
        &mut self,
        limits: RetentionLimits,
        uptime: &Uptime,
        stamp: &IdSource,
    ) -> Result<PruneResult, Error> {
        let (old, prunings) = self.write(|transaction| {
            let mut prunings = PruningHistory::read(transaction)?.unwrap_or_default();
            prunings.look(uptime);
            prunings.waited = 0;
            prunings.count += 1;
            let highest = schema::highest(transaction)?;
            let old = match prunings.highest.len().checked_sub(limits.prunings) {
                Some(place) => prunings.highest[place],
                None => 0,
            };
            prunings.highest.push(highest);
            let surplus = prunings.highest.len().saturating_sub(limits.prunings);
            prunings.highest.drain(..surplus);
            prunings.write(transaction)?;
            Ok((old, prunings))
        })?;
        let messages = self.forget_old(old, limits)?;
        self.forget_prompts()?;
        self.write(|transaction| {
            forget_receipts(transaction)?;
            forget_questions(transaction)?;
            transaction.execute("UPDATE cursor SET idle = idle + 1", [])?;
            forget_agents(transaction, &prunings, limits)?;
            forget_messages_of_machines(transaction)
        })?;
        let over_limit = self.forget_over_limit(limits, stamp)?;
        Ok(PruneResult { messages: messages + over_limit, over_limit })
    }

    /// Deletes messages up to a sequence number that are not needed any more. Returns their number.
    fn forget_old(&mut self, old: i64, limits: RetentionLimits) -> Result<usize, Error> {
        let idle = i64::try_from(limits.prunings).unwrap_or(i64::MAX);
        let (mut after, mut forgotten) = (i64::MIN, 0);
        while let Some(last) = self.read(|connection| end_of_piece(connection, after, old))? {
            // Checked before taking the write lock: most old messages are kept for a reason.
            if self.read(|connection| has_old(connection, (after, last), idle))? {
                if forgotten > 0 {
                    thread::sleep(PAUSE);
                }
                forgotten += self.write(|transaction| forget_old_piece(transaction, (after, last), idle))?;
            }
            after = last;
        }
        Ok(forgotten)
    }

    /// Deletes prompts without messages. Finding them requires reading all messages, so that happens without the write lock.
    fn forget_prompts(&mut self) -> Result<(), Error> {
        let (newest, keys) = self.read(|connection| {
            let newest = schema::highest(connection)?;
            let keys: rusqlite::Result<Vec<String>> = connection
                .prepare(
                    "SELECT key FROM prompt WHERE key NOT IN (SELECT key FROM message WHERE key IS NOT NULL)",
                )?
                .query_map([], |row| text(row, 0))?
                .collect();
            Ok((newest, keys?))
        })?;
        if keys.is_empty() {
            return Ok(());
        }
        self.write(|transaction| {
            // A prompt may have got a new message meanwhile.
            let mut delete = transaction.prepare(
                "DELETE FROM prompt WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM message WHERE seq > ?2 AND key = ?1)",
            )?;
            keys.iter().try_for_each(|key| delete.execute((key, newest)).map(drop))
        })
    }

    /// The oldest message that remained after the last deletion. Older messages were deleted on purpose and not lost to damage.
    pub fn kept_from(&mut self) -> Result<Option<MessageId>, Error> {
        self.read(|connection| {
            let parse = |id: String| MessageId::parse(&id).ok();
            let noted = schema::note(connection, KEPT_FROM)?.and_then(parse);
            // The note may be damaged, too: it cannot be newer than the oldest message.
            Ok(noted.zip(oldest(connection)?.and_then(parse)).map(|(noted, oldest)| noted.min(oldest)))
        })
    }

    /// Deletes the oldest messages above the limits, read or not, and reports that to the person. Returns their number.
    pub fn forget_over_limit(&mut self, limits: RetentionLimits, stamp: &IdSource) -> Result<usize, Error> {
        let mut forgotten = 0;
        while self.read(|connection| is_over(connection, limits))? {
            let surplus = self.read(|connection| surplus(connection, limits))?;
            let mut deleted = 0;
            for piece in surplus.chunks(PIECE) {
                if forgotten > 0 {
                    thread::sleep(PAUSE);
                }
                let gone = self.write(|transaction| forget_piece(transaction, piece))?;
                (deleted, forgotten) = (deleted + gone, forgotten + gone);
            }
            // Nothing left to delete, or another process is deleting.
            if deleted == 0 {
                break;
            }
        }
        // Includes deletions by a process that was killed before it reported them.
        if self.read(|connection| to_report(connection, stamp))?.is_some() {
            self.write(|transaction| report(transaction, stamp))?;
        }
        Ok(forgotten)
    }
}

/// The oldest message by its id, that is by its time. Messages do not arrive in that order.
fn oldest(connection: &Connection) -> rusqlite::Result<Option<String>> {
    connection.query_row("SELECT id FROM message ORDER BY id LIMIT 1", [], |row| text(row, 0)).optional()
}

/// Updates the note with the oldest message, after a deletion.
fn note_oldest(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    match oldest(transaction)? {
        Some(id) => schema::set_note(transaction, KEPT_FROM, &id),
        None => Ok(()),
    }
}

fn is_over(connection: &Connection, limits: RetentionLimits) -> rusqlite::Result<bool> {
    // An upper bound that is cheap to compute: sequence numbers have gaps.
    let span: i64 = connection.query_row(
        "SELECT coalesce((SELECT max(seq) FROM message) - (SELECT min(seq) FROM message) + 1, 0)",
        [],
        |row| row.get(0),
    )?;
    if used_bytes(connection)? > limits.bytes {
        return Ok(true);
    }
    let most = i64::from(limits.messages);
    let count = "SELECT count(*) FROM message";
    Ok(span > most && connection.query_row(count, [], |row| row.get::<_, i64>(0))? > most)
}

/// The messages to delete to stay within the limits. Those of other machines come first: they are stored there, and no machine
/// should displace messages of this one.
fn surplus(connection: &Connection, limits: RetentionLimits) -> rusqlite::Result<Vec<i64>> {
    let count: i64 = connection.query_row("SELECT count(*) FROM message", [], |row| row.get(0))?;
    let mut wanted = usize::try_from(count - i64::from(limits.messages)).unwrap_or(0);
    if used_bytes(connection)? > limits.bytes {
        wanted = wanted.max(PIECE);
    }
    let mut surplus = Vec::new();
    for whose in ["machine IS NOT NULL", "machine IS NULL"] {
        let select = format!("SELECT seq FROM message WHERE {whose} ORDER BY seq LIMIT ?1");
        let lacking = i64::try_from(wanted - surplus.len()).unwrap_or(i64::MAX);
        let found: rusqlite::Result<Vec<i64>> =
            connection.prepare(&select)?.query_map([lacking], |row| row.get(0))?.collect();
        surplus.extend(found?);
    }
    Ok(surplus)
}

/// Deletes messages. Returns how many still existed.
fn forget_piece(transaction: &Transaction<'_>, seqs: &[i64]) -> rusqlite::Result<usize> {
    let mut message = transaction.prepare("DELETE FROM message WHERE seq = ?1")?;
    let mut receipt = transaction.prepare("DELETE FROM receipt WHERE seq = ?1")?;
    let mut forgotten = 0;
    for seq in seqs {
        forgotten += message.execute([seq])?;
        receipt.execute([seq])?;
    }
    note_oldest(transaction)?;
    let unreported = unreported(transaction)?.saturating_add(u64::try_from(forgotten).unwrap_or(u64::MAX));
    schema::set_note(transaction, UNREPORTED, &unreported.to_string())?;
    Ok(forgotten)
}

/// The last message of the next piece up to `old`. `None` if none is left.
fn end_of_piece(connection: &Connection, after: i64, old: i64) -> rusqlite::Result<Option<i64>> {
    let piece = i64::try_from(PIECE).unwrap_or(i64::MAX);
    let select =
        "SELECT max(seq) FROM (SELECT seq FROM message WHERE seq > ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3)";
    connection.query_row(select, [after, old, piece], |row| row.get(0))
}

/// SQL statement on the messages of a piece that are not needed any more: every cursor in use has passed them, every live agent
/// has seen them, and they do not belong to an open question.
fn old_messages(action: &str) -> String {
    format!(
        "WITH place(scope, seq) AS MATERIALIZED (SELECT scope, {POSITION} FROM cursor WHERE idle < ?3)
         {action} FROM message WHERE seq > ?1 AND seq <= ?2
         AND NOT EXISTS (SELECT 1 FROM place
             WHERE place.scope IN (message.scope, '*') AND place.seq < message.seq)
         AND NOT EXISTS (SELECT 1 FROM receipt JOIN agent ON agent.id = receipt.agent
             WHERE receipt.seq = message.seq AND receipt.state <> 'seen' AND agent.state <> 'exited')
         AND NOT EXISTS (SELECT 1 FROM question
             WHERE question.id = message.question_id AND question.answered IS NULL)"
    )
}

fn has_old(connection: &Connection, (after, last): (i64, i64), idle: i64) -> rusqlite::Result<bool> {
    connection.prepare(&old_messages("SELECT 1"))?.exists([after, last, idle])
}

fn forget_old_piece(
    transaction: &Transaction<'_>,
    (after, last): (i64, i64),
    idle: i64,
) -> rusqlite::Result<usize> {
    let messages = transaction.prepare(&old_messages("DELETE"))?.execute([after, last, idle])?;
    if messages > 0 {
        note_oldest(transaction)?;
    }
    Ok(messages)
}

fn forget_questions(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let delete = "DELETE FROM question WHERE answered IS NOT NULL AND id NOT IN (
                      SELECT question_id FROM message WHERE question_id IS NOT NULL)";
    transaction.execute(delete, []).map(drop)
}

fn forget_receipts(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute("DELETE FROM receipt WHERE seq NOT IN (SELECT seq FROM message)", []).map(drop)
}

/// Deletes agents that have been gone for the given number of prunings, and the notes about them. A note `gone:ID` contains the
/// first pruning that found the agent gone, and when it was last seen. An agent that is only known from its terminal never
/// reports its end: it counts as gone until it is seen again.
fn forget_agents(
    transaction: &Transaction<'_>,
    prunings: &PruningHistory,
    limits: RetentionLimits,
) -> rusqlite::Result<()> {
    let count = i64::try_from(prunings.count).unwrap_or(i64::MAX);
    let old = count.saturating_sub(i64::try_from(limits.prunings).unwrap_or(i64::MAX));
    let gone = "(state = 'exited' OR (client = 'terminal' AND pid IS NULL AND NOT by_hooks))";
    transaction.execute(
        &format!(
            "DELETE FROM note WHERE name LIKE 'gone:%' AND NOT EXISTS (
                 SELECT 1 FROM agent WHERE id = substr(note.name, 6) AND {gone}
                 AND (state = 'exited' OR note.value LIKE '% ' || seen))"
        ),
        [],
    )?;
    transaction.execute(
        &format!(
            "INSERT OR IGNORE INTO note (name, value)
             SELECT 'gone:' || id, ?1 || ' ' || seen FROM agent WHERE {gone}"
        ),
        [count],
    )?;
    transaction.execute(
        &format!(
            "DELETE FROM agent WHERE {gone} AND id IN (
                 SELECT substr(name, 6) FROM note WHERE name LIKE 'gone:%' AND CAST(value AS INTEGER) <= ?1)"
        ),
        [old],
    )?;
    transaction.execute(&format!("DELETE FROM note WHERE {OF_GONE_AGENTS}"), [])?;
    forget_ended_processes(transaction)
}

/// Size of the used pages.
fn used_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    let number =
        |pragma: &str| connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, i64>(0));
    let pages = number("page_count")?.saturating_sub(number("freelist_count")?);
    Ok(pages.saturating_mul(number("page_size")?).try_into().unwrap_or(0))
}

/// Number of deleted messages that were not reported to the person.
fn unreported(connection: &Connection) -> rusqlite::Result<u64> {
    Ok(schema::note(connection, UNREPORTED)?.and_then(|count| count.parse().ok()).unwrap_or(0))
}

/// The number to report now, at most once a day.
fn to_report(connection: &Connection, stamp: &IdSource) -> rusqlite::Result<Option<u64>> {
    const DAY_MS: i64 = 24 * 60 * 60 * 1000;
    let told = schema::note(connection, REPORTED)?.and_then(|told| told.parse::<i64>().ok());
    if told.is_some_and(|told| (told..told.saturating_add(DAY_MS)).contains(&stamp.unix_ms)) {
        return Ok(None);
    }
    Ok(Some(unreported(connection)?).filter(|count| *count > 0))
}

/// Appends the report for the person.
fn report(transaction: &Transaction<'_>, stamp: &IdSource) -> rusqlite::Result<()> {
    let Some(forgotten) = to_report(transaction, stamp)? else { return Ok(()) };
    schema::set_note(transaction, REPORTED, &stamp.unix_ms.to_string())?;
    schema::set_note(transaction, UNREPORTED, "0")?;
    let text = format!(
        "The journal is full: its {forgotten} oldest messages were removed, read or not. \
         `ringer status` shows who sends and who does not read."
    );
    let mut draft = Draft::tagged(Scope::global(), Sender::system(), Tag::Notice(Kind::Error), &text);
    draft.recipient = Recipient::Person;
    // Wakes no doorbell: the hub reads it with the next message.
    put(transaction, &draft, &stamp.message_id(), stamp.unix_ms).map(drop)
}
