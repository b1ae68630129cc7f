//! Reads the journal from a cursor on.

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

/// Which messages to read.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only of this scope.
    pub scope: Option<Scope>,
    /// Only from this sender.
    pub sender: Option<String>,
    /// Only of this kind.
    pub kind: Option<Kind>,
    /// Only of this category.
    pub category: Option<&'static str>,
    /// Only for this recipient.
    pub recipient: Option<String>,
    /// Only sent at this time (milliseconds since 1970) or later.
    pub since_ms: Option<i64>,
}

/// What was read behind a cursor.
#[derive(Debug, Default)]
pub struct Batch {
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// The numbers of rows that are damaged so that they are no messages any more.
    pub unreadable: Vec<i64>,
}

impl Journal {
    /// Every message after a sequence number, in order, and what cannot be read among them; at most `most` messages.
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

    /// Takes messages out that are damaged so that they are none any more, by their numbers. Their bytes are kept.
    pub fn quarantine_messages(&mut self, numbers: &[i64], stamp: &IdSource) -> Result<(), Error> {
        self.write(|transaction| quarantine_rows(transaction, ("message", "seq"), numbers, *stamp))
    }

    /// Every message after a sequence number, in order, marks included; at most `most`.
    pub fn messages_after(&mut self, seq: i64, most: usize) -> Result<Vec<Message>, Error> {
        self.select(&format!("SELECT {COLUMNS} FROM message WHERE seq > ?1 ORDER BY seq"), &[&seq], most)
    }

    /// The messages after a sequence number that match, without marks, in order; at most `most`.
    pub fn matching_after(&mut self, filter: &Filter, seq: i64, most: usize) -> Result<Vec<Message>, Error> {
        self.matching(filter, seq, "ASC", most)
    }

    /// The newest messages that match, without marks, the newest first; at most so many.
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

    /// The number of the last message; 0 in an empty journal.
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

    /// Those of some messages that are kept, in order.
    pub fn messages(&mut self, ids: &[MessageId]) -> Result<Vec<Message>, Error> {
        let mut messages = Vec::new();
        for id in ids {
            messages.extend(self.message(id.as_str())?);
        }
        messages.sort_by_key(|message| message.seq);
        Ok(messages)
    }

    /// All rows of a query, read before anything else happens: no read transaction stays open.
    ///
    /// At most `most` are given; counted here and not by SQL, because an invalid row does not count.
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
                // A damaged row is skipped: it must not block the messages after it.
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
    taken: ReadPosition,
}

impl<'a> JournalFollower<'a> {
    /// Begins to follow after a message, or at the beginning.
    pub fn begin(
        journal: &'a mut Journal,
        after: Option<&Message>,
        parent: OnParentExit,
    ) -> Result<Self, Error> {
        let (waiter, ()) =
            Waiter::register(journal, Topic::Everything, &Scope::global(), "watch", parent, |_| Ok(()))?;
        let mut taken = ReadPosition::default();
        if let Some(message) = after {
            taken.cursor.generation = Some(journal.generation()?);
            taken.advance(message.seq, &message.id);
        }
        Ok(Self { journal, waiter, taken })
    }

    /// The next messages that match, once there are some. Empty when the deadline passed or the parent ended.
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
    /// What matches behind our place. If the journal was exchanged, it starts over, without what was sent before the last
    /// message that it gave.
    fn read(&mut self, filter: &Filter, most: usize) -> Result<Vec<Message>, Error> {
        self.taken = self.journal.resume_at(&self.taken)?;
        loop {
            let mut messages = self.journal.matching_after(filter, self.taken.cursor.seq, most)?;
            let is_end = messages.is_empty();
            messages.retain(|message| {
                let is_old = self.taken.age(message) == Age::Old;
                self.taken.advance(message.seq, &message.id);
                !is_old
            });
            if is_end || !messages.is_empty() {
                return Ok(messages);
            }
        }
    }
}

impl Journal {
    /// The random word that this file was begun with. Empty if damage took it.
    pub fn generation(&mut self) -> Result<String, Error> {
        self.read(generation)
    }

    /// Where a reader goes on in this file: at its place if that is one of this file, else at the beginning.
    pub fn resume_at(&mut self, taken: &ReadPosition) -> Result<ReadPosition, Error> {
        self.read(|connection| resume_at(connection, taken))
    }

    /// The number of the last message that the journal ever had; 0 in a new one.
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
        // What schema 1 noted was a number alone.
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

/// A doorbell that rings for every message, and when an agent is in another state. What it announces is read after [`JournalWatch::prepare`].
#[derive(Debug)]
pub struct JournalWatch {
    waiter: Waiter,
}

impl JournalWatch {
    /// Registers it. From here on nothing is missed.
    pub fn register(journal: &mut Journal) -> Result<Self, Error> {
        // No repository has this id, so `ringer nuke` of a repository ends no link.
        let scope = Scope::new("links").unwrap_or_else(|_| Scope::global());
        let parent = OnParentExit::Continue;
        let (waiter, ()) =
            Waiter::register(journal, Topic::EverythingAndAgents, &scope, "relay", parent, |_| Ok(()))?;
        Ok(Self { waiter })
    }

    /// To be called before each read of the journal: drains the doorbell, and opens the journal again if another file has
    /// its name by now.
    pub fn prepare(&mut self, journal: &mut Journal) -> Result<(), Error> {
        self.waiter.prepare(journal)
    }
}

impl AsFd for JournalWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waiter.doorbell().as_fd()
    }
}
