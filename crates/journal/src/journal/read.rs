//! Reads and follows the journal.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use ringer_core::{Kind, Message, MessageId, Scope};
use rusqlite::{Connection, ToSql, params};

use crate::db::column::{optional_text, text};
use crate::db::repair_record::quarantine_rows;
use crate::error::Error;
use crate::ids::IdSource;
use crate::journal::row::{COLUMNS, has_id, read};
use crate::journal::schema::{Journal, generation, highest};
use crate::position::{Age, CatchUp, Cursor, ReadPosition};
use crate::wake::subscription::Topic;
use crate::wake::waiter::{OnParentExit, Waiter, WakeReason};

/// Selects messages. Unset fields match everything.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Scope.
    pub scope: Option<Scope>,
    /// Sender.
    pub sender: Option<String>,
    /// Kind.
    pub kind: Option<Kind>,
    /// Category.
    pub category: Option<&'static str>,
    /// Recipient.
    pub recipient: Option<String>,
    /// Earliest time of sending, in milliseconds since 1970.
    pub since_ms: Option<i64>,
}

/// Messages read after a cursor.
#[derive(Debug, Default)]
pub struct Batch {
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// Sequence numbers of rows that are too damaged to be messages.
    pub unreadable: Vec<i64>,
}

impl Journal {
    /// The messages after a sequence number, in order, and the unreadable rows among them; at most `most` messages.
    pub fn batch_after(&mut self, seq: i64, most: usize) -> Result<Batch, Error> {
        let query = format!("SELECT {COLUMNS} FROM message WHERE seq > ?1 ORDER BY seq");
        self.read(|connection| {
            let mut statement = connection.prepare(&query)?;
            let mut rows = statement.query([seq])?;
            let mut batch = Batch::default();
            while batch.messages.len() < most
                && let Some(row) = rows.next()?
            {
                match read(row)? {
                    Some(message) => batch.messages.push(message),
                    None if has_id(row)? => {}
                    None => batch.unreadable.push(row.get(0)?),
                }
            }
            Ok(batch)
        })
    }

    /// Quarantines unreadable rows by their sequence numbers. Their bytes are kept.
    pub fn quarantine_messages(&mut self, numbers: &[i64], stamp: &IdSource) -> Result<(), Error> {
        self.write(|transaction| quarantine_rows(transaction, ("message", "seq"), numbers, *stamp))
    }

    /// The messages after a sequence number, in order, including marks; at most `most`.
    pub fn messages_after(&mut self, seq: i64, most: usize) -> Result<Vec<Message>, Error> {
        self.select(&format!("SELECT {COLUMNS} FROM message WHERE seq > ?1 ORDER BY seq"), &[&seq], most)
    }

    /// The matching messages after a sequence number, in order, without marks; at most `most`.
    pub fn matching_after(&mut self, filter: &Filter, seq: i64, most: usize) -> Result<Vec<Message>, Error> {
        self.matching(filter, seq, "ASC", most)
    }

    /// The newest matching messages, newest first, without marks; at most `most`.
    pub fn newest_matching(&mut self, filter: &Filter, most: usize) -> Result<Vec<Message>, Error> {
        self.matching(filter, 0, "DESC", most)
    }

    fn matching(
        &mut self,
        filter: &Filter,
        seq: i64,
        order: &str,
        most: usize,
    ) -> Result<Vec<Message>, Error> {
        self.select(
            &format!(
                "SELECT {COLUMNS} FROM message
                 WHERE seq > ?1 AND kind NOT LIKE 'mark-%'
                   AND (?2 IS NULL OR scope = ?2) AND (?3 IS NULL OR sender = ?3) AND (?4 IS NULL OR kind = ?4)
                   AND (?5 IS NULL OR recipient = ?5) AND (?6 IS NULL OR ts >= ?6)
                   AND (?7 IS NULL OR category = ?7)
                 ORDER BY seq {order}"
            ),
            params![
                seq,
                filter.scope.as_ref().map(Scope::as_str),
                filter.sender,
                filter.kind.map(Kind::as_str),
                filter.recipient,
                filter.since_ms,
                filter.category,
            ],
            most,
        )
    }

    /// Sequence number of the last message; 0 if there is none.
    pub fn last_seq(&mut self) -> Result<i64, Error> {
        let query = "SELECT coalesce(max(seq), 0) FROM message";
        self.read(|connection| connection.query_row(query, [], |row| row.get(0)))
    }

    /// A message by its id.
    pub fn message(&mut self, id: &str) -> Result<Option<Message>, Error> {
        let found = self.select(&format!("SELECT {COLUMNS} FROM message WHERE id = ?1"), &[&id], 1)?;
        Ok(found.into_iter().next())
    }

    /// The ids of all messages, newest first, without marks.
    pub fn message_ids(&mut self) -> Result<Vec<MessageId>, Error> {
        self.read(|connection| {
            let query = "SELECT id FROM message WHERE kind NOT LIKE 'mark-%' ORDER BY seq DESC";
            let mut statement = connection.prepare(query)?;
            let ids: Vec<String> = statement.query_map([], |row| text(row, 0))?.collect::<Result<_, _>>()?;
            Ok(ids.iter().filter_map(|id| MessageId::parse(id).ok()).collect())
        })
    }

    /// The messages with these ids that still exist, in order.
    pub fn messages(&mut self, ids: &[MessageId]) -> Result<Vec<Message>, Error> {
        let mut messages = Vec::new();
        for id in ids {
            messages.extend(self.message(id.as_str())?);
        }
        messages.sort_by_key(|message| message.seq);
        Ok(messages)
    }

    /// Reads all messages of a query at once, so that no read transaction stays open.
    ///
    /// Returns at most `most`, counted here and not in SQL because damaged rows do not count.
    pub(crate) fn select(
        &mut self,
        query: &str,
        parameters: &[&dyn ToSql],
        most: usize,
    ) -> Result<Vec<Message>, Error> {
        self.read(|connection| {
            let mut statement = connection.prepare(query)?;
            let mut rows = statement.query(parameters)?;
            let mut messages = Vec::new();
            while messages.len() < most
                && let Some(row) = rows.next()?
            {
                // Skips a damaged row: it must not block the messages after it.
                messages.extend(read(row)?);
            }
            Ok(messages)
        })
    }
}

/// Follows the whole journal as it grows.
#[derive(Debug)]
pub struct JournalFollower<'a> {
    journal: &'a mut Journal,
    waiter: Waiter,
    position: ReadPosition,
}

impl<'a> JournalFollower<'a> {
    /// Starts after a message, or at the beginning.
    pub fn begin(
        journal: &'a mut Journal,
        after: Option<&Message>,
        parent: OnParentExit,
    ) -> Result<Self, Error> {
        let (waiter, ()) =
            Waiter::register(journal, Topic::Everything, &Scope::global(), "watch", parent, |_| Ok(()))?;
        let mut position = ReadPosition::default();
        if let Some(message) = after {
            position.cursor.generation = Some(journal.generation()?);
            position.advance(message.seq, &message.id);
        }
        Ok(Self { journal, waiter, position })
    }

    /// Waits for the next matching messages. Empty if the deadline passed or the parent exited.
    pub fn next(
        &mut self,
        filter: &Filter,
        deadline: Option<Instant>,
        most: usize,
    ) -> Result<Vec<Message>, Error> {
        loop {
            self.waiter.prepare(self.journal)?;
            let messages = self.read(filter, most)?;
            if !messages.is_empty() {
                return Ok(messages);
            }
            if self.waiter.wait(self.journal, &[], deadline)? != WakeReason::Rung {
                return Ok(Vec::new());
            }
        }
    }

    /// The matching messages after the position. If the journal file was replaced, starts over and skips messages that were
    /// sent before the last one it returned.
    fn read(&mut self, filter: &Filter, most: usize) -> Result<Vec<Message>, Error> {
        self.position = self.journal.resume_at(&self.position)?;
        loop {
            let mut messages = self.journal.matching_after(filter, self.position.cursor.seq, most)?;
            let is_end = messages.is_empty();
            messages.retain(|message| {
                let is_old = self.position.age(message) == Age::Old;
                self.position.advance(message.seq, &message.id);
                !is_old
            });
            if is_end || !messages.is_empty() {
                return Ok(messages);
            }
        }
    }
}

impl Journal {
    /// The generation of this file: a random word written when it was created. Empty if it is damaged.
    pub fn generation(&mut self) -> Result<String, Error> {
        self.read(generation)
    }

    /// Where a reader continues in this file: at its position if that belongs to this file, else at the beginning. The file may
    /// have been removed, damaged, or replaced by an older copy since.
    pub fn resume_at(&mut self, taken: &ReadPosition) -> Result<ReadPosition, Error> {
        self.read(|connection| resume_at(connection, taken))
    }

    /// The highest sequence number that this file ever assigned; 0 in a new one.
    pub fn highest(&mut self) -> Result<i64, Error> {
        self.read(highest)
    }
}

fn resume_at(connection: &Connection, taken: &ReadPosition) -> rusqlite::Result<ReadPosition> {
    let (generation, highest) = (generation(connection)?, highest(connection)?);
    let cursor = &taken.cursor;
    let id: Option<String> =
        connection.query_row("SELECT (SELECT id FROM message WHERE seq = ?1)", [cursor.seq], |row| {
            optional_text(row, 0)
        })?;
    let is_same = match &cursor.generation {
        Some(known) => *known == generation && (id.is_none() || id == cursor.id),
        // A position without a generation is trusted.
        None => true,
    };
    if is_same && cursor.seq <= highest {
        let id = id.or_else(|| cursor.id.clone());
        let cursor = Cursor { generation: Some(generation), seq: cursor.seq, id };
        return Ok(ReadPosition { cursor, catch_up: taken.catch_up.clone() });
    }
    let has_taken = cursor.seq > 0 || taken.catch_up.is_some();
    let catch_up = CatchUp { newest: taken.newest().unwrap_or_default(), until: highest };
    let catch_up = Some(catch_up).filter(|_| has_taken);
    Ok(ReadPosition { cursor: Cursor { generation: Some(generation), seq: 0, id: None }, catch_up })
}

/// A doorbell for a link to other machines. It rings for every message and for every change of an agent's state.
#[derive(Debug)]
pub struct JournalWatch {
    waiter: Waiter,
}

impl JournalWatch {
    /// Registers the doorbell. From now on no change is missed.
    pub fn register(journal: &mut Journal) -> Result<Self, Error> {
        // No repository has this id, so `ringer nuke` for a repository does not end a link.
        let scope = Scope::new("links").unwrap_or_else(|_| Scope::global());
        let parent = OnParentExit::Continue;
        let (waiter, ()) =
            Waiter::register(journal, Topic::EverythingAndAgents, &scope, "relay", parent, |_| Ok(()))?;
        Ok(Self { waiter })
    }

    /// Drains the doorbell, and reopens the journal if its file was replaced. Call it before each read of the journal.
    pub fn prepare(&mut self, journal: &mut Journal) -> Result<(), Error> {
        self.waiter.prepare(journal)
    }
}

impl AsFd for JournalWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waiter.doorbell().as_fd()
    }
}
