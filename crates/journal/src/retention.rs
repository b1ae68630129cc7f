//! What is kept, and for how long.

use std::time::Duration;

use ringer_core::{Draft, Kind, Recipient, Scope, Sender};
use rusqlite::{OptionalExtension, Transaction, params};

use crate::append::put;
use crate::error::Error;
use crate::journal::Journal;
use crate::note::OF_GONE_AGENTS;
use crate::stamp::Stamp;

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Older messages that everybody has read are forgotten.
    pub age: Duration,
    /// More messages than this are not kept either, oldest first; at twice as many, not even unread ones.
    pub messages: u32,
    /// A cursor that nobody touched for this long holds nothing back.
    pub idle_cursor: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        const DAY: Duration = Duration::from_hours(24);
        Self { age: DAY * 30, messages: 100_000, idle_cursor: DAY * 30 }
    }
}

/// What was forgotten.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Messages.
    pub messages: usize,
    /// Of them, how many somebody had not read yet.
    pub unread: usize,
}

/// The note that remembers that the person was told.
const TOLD: &str = "told of forgotten messages";
/// The note that remembers when the journal was last pruned.
const PRUNED: &str = "pruned";
/// How often that is worth it.
const INTERVAL_MS: i64 = 24 * 60 * 60 * 1000;

impl Journal {
    /// Prunes with the usual limits if that was not done for a day. For those who have time: listeners, the hub.
    pub fn prune_if_due(&mut self, stamp: &Stamp) -> Result<(), Error> {
        let last: Option<String> = self.healing(|journal| {
            let note = journal
                .connection
                .query_row("SELECT value FROM note WHERE name = ?1", [PRUNED], |row| row.get(0))
                .optional();
            note.map_err(|error| journal.error(error))
        })?;
        let last = last.and_then(|last| last.parse::<i64>().ok());
        // A clock that went back must not put this off for years.
        if last.is_none_or(|last| !(last..last.saturating_add(INTERVAL_MS)).contains(&stamp.unix_ms)) {
            self.prune(Limits::default(), stamp)?;
        }
        Ok(())
    }

    /// Forgets what is over the limits: never what a cursor in use has not read, unless there is twice too much. Then
    /// the person is told, once.
    pub fn prune(&mut self, limits: Limits, stamp: &Stamp) -> Result<Pruned, Error> {
        let ms = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        let old = stamp.unix_ms.saturating_sub(ms(limits.age));
        let idle = stamp.unix_ms.saturating_sub(ms(limits.idle_cursor));
        let (most, twice) = (i64::from(limits.messages), i64::from(limits.messages) * 2);
        self.write(|transaction| {
            let beyond = "seq <= (SELECT seq FROM message ORDER BY seq DESC LIMIT 1 OFFSET ?1)";
            let messages = transaction
                .prepare(&format!(
                    "DELETE FROM message WHERE ({beyond} OR ts < ?2) AND NOT EXISTS (
                         SELECT 1 FROM cursor
                         WHERE cursor.scope IN (message.scope, '*') AND cursor.seq < message.seq AND touched >= ?3)"
                ))?
                .execute(params![most, old, idle])?;
            let unread =
                transaction.prepare(&format!("DELETE FROM message WHERE {beyond}"))?.execute([twice])?;
            if unread > 0 {
                tell_once(transaction, unread, stamp)?;
            }
            transaction
                .prepare("INSERT OR REPLACE INTO note (name, value) VALUES (?1, ?2)")?
                .execute(params![PRUNED, stamp.unix_ms.to_string()])?;
            transaction.execute("DELETE FROM receipt WHERE seq NOT IN (SELECT seq FROM message)", [])?;
            transaction.prepare("DELETE FROM agent WHERE state = 'exited' AND seen < ?1")?.execute([old])?;
            transaction.execute(&format!("DELETE FROM note WHERE {OF_GONE_AGENTS}"), [])?;
            transaction
                .prepare("DELETE FROM question WHERE answered IS NOT NULL AND answered < ?1")?
                .execute([old])?;
            Ok(Pruned { messages: messages + unread, unread })
        })
    }
}

fn tell_once(transaction: &Transaction<'_>, unread: usize, stamp: &Stamp) -> rusqlite::Result<()> {
    let told: Option<String> = transaction
        .prepare("SELECT value FROM note WHERE name = ?1")?
        .query_row([TOLD], |row| row.get(0))
        .optional()?;
    if told.is_some() {
        return Ok(());
    }
    transaction
        .prepare("INSERT INTO note (name, value) VALUES (?1, ?2)")?
        .execute(params![TOLD, stamp.unix_ms.to_string()])?;
    let text = format!(
        "The journal grew too long: {unread} messages that nobody had read were forgotten. \
         `ringer status` shows who does not read."
    );
    let mut draft =
        Draft::tagged(Scope::global(), Sender::system(), ringer_core::Tag::Notice(Kind::Error), &text);
    draft.recipient = Recipient::Person;
    // Nobody waits for this on a doorbell that the caller could ring: the next message will.
    put(transaction, &draft, &stamp.message_id(), stamp.unix_ms).map(drop)
}
