//! Reading the journal from some place on.

use std::time::Instant;

use ringer_core::{Kind, Message, MessageId, Scope};
use rusqlite::{ToSql, params};

use crate::cursor::{Age, Taken};
use crate::error::Error;
use crate::journal::Journal;
use crate::row::{COLUMNS, read};
use crate::vigil::{Parent, Vigil, Woke};
use crate::waiter::Topic;

/// Which messages to read.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only of this scope.
    pub scope: Option<Scope>,
    /// Only from this sender.
    pub sender: Option<String>,
    /// Only of this kind.
    pub kind: Option<Kind>,
    /// Only for this recipient.
    pub recipient: Option<String>,
    /// Only sent at this time (milliseconds since 1970) or later.
    pub since_ms: Option<i64>,
}

impl Journal {
    /// Every message after a place, in order, marks included; at most so many.
    pub fn messages_after(&self, seq: i64, most: usize) -> Result<Vec<Message>, Error> {
        self.select(&format!("SELECT {COLUMNS} FROM message WHERE seq > ?1 ORDER BY seq"), &[&seq], most)
    }

    /// The messages after a place that match, without marks, in order; at most so many.
    pub fn matching_after(&self, filter: &Filter, seq: i64, most: usize) -> Result<Vec<Message>, Error> {
        self.select(
            &format!(
                "SELECT {COLUMNS} FROM message
                 WHERE seq > ?1 AND kind NOT LIKE 'mark-%'
                   AND (?2 IS NULL OR scope = ?2) AND (?3 IS NULL OR sender = ?3) AND (?4 IS NULL OR kind = ?4)
                   AND (?5 IS NULL OR recipient = ?5) AND (?6 IS NULL OR ts >= ?6)
                 ORDER BY seq"
            ),
            params![
                seq,
                filter.scope.as_ref().map(Scope::as_str),
                filter.sender,
                filter.kind.map(Kind::as_str),
                filter.recipient,
                filter.since_ms,
            ],
            most,
        )
    }

    /// The number of the last message; 0 in an empty journal.
    pub fn last_seq(&self) -> Result<i64, Error> {
        self.connection
            .query_row("SELECT coalesce(max(seq), 0) FROM message", [], |row| row.get(0))
            .map_err(|error| self.error(error))
    }

    /// A message by its id.
    pub fn message(&self, id: &str) -> Result<Option<Message>, Error> {
        let found = self.select(&format!("SELECT {COLUMNS} FROM message WHERE id = ?1"), &[&id], 1)?;
        Ok(found.into_iter().next())
    }

    /// Those of some messages that are kept, in order.
    pub fn messages(&self, ids: &[MessageId]) -> Result<Vec<Message>, Error> {
        let mut messages = Vec::new();
        for id in ids {
            messages.extend(self.message(id.as_str())?);
        }
        messages.sort_by_key(|message| message.seq);
        Ok(messages)
    }

    /// All rows of a query, read before anything else happens: no read transaction stays open.
    ///
    /// At most so many are given; counted here and not by SQL, because a row that makes no sense does not count.
    pub(crate) fn select(
        &self,
        query: &str,
        parameters: &[&dyn ToSql],
        most: usize,
    ) -> Result<Vec<Message>, Error> {
        let select = || -> rusqlite::Result<Vec<Message>> {
            let mut statement = self.connection.prepare(query)?;
            let mut rows = statement.query(parameters)?;
            let mut messages = Vec::new();
            while messages.len() < most
                && let Some(row) = rows.next()?
            {
                // A row that makes no sense is passed over: it must not keep everybody from what comes after it.
                messages.extend(read(row).ok());
            }
            Ok(messages)
        };
        select().map_err(|error| self.error(error))
    }
}

/// Follows the whole journal as it grows.
#[derive(Debug)]
pub struct Watch<'a> {
    journal: &'a mut Journal,
    vigil: Vigil,
    taken: Taken,
}

impl<'a> Watch<'a> {
    /// Begins to follow after a message, or at the beginning.
    pub fn begin(journal: &'a mut Journal, after: Option<&Message>, parent: Parent) -> Result<Self, Error> {
        let (vigil, ()) =
            Vigil::keep(journal, Topic::Everything, &Scope::global(), "watch", parent, |_| Ok(()))?;
        let mut taken = Taken::default();
        if let Some(message) = after {
            taken.cursor.generation = Some(journal.generation()?);
            taken.take(message.seq, &message.id);
        }
        Ok(Self { journal, vigil, taken })
    }

    /// The next messages that match, once there are some. Empty when the deadline passed or the parent ended.
    pub fn next(
        &mut self,
        filter: &Filter,
        deadline: Option<Instant>,
        most: usize,
    ) -> Result<Vec<Message>, Error> {
        loop {
            self.vigil.prepare(self.journal)?;
            let messages = self.read(filter, most)?;
            if !messages.is_empty() {
                return Ok(messages);
            }
            if self.vigil.sleep(self.journal, deadline)? != Woke::Rang {
                return Ok(Vec::new());
            }
        }
    }
    /// What matches behind our place. If the journal was exchanged, it starts over, without what was sent before the last
    /// message that it gave.
    fn read(&mut self, filter: &Filter, most: usize) -> Result<Vec<Message>, Error> {
        let taken = &self.taken;
        self.taken = self.journal.healing(|journal| journal.go_on(taken))?;
        loop {
            let seq = self.taken.cursor.seq;
            let mut messages = self.journal.healing(|journal| journal.matching_after(filter, seq, most))?;
            let is_end = messages.is_empty();
            messages.retain(|message| {
                let is_old = self.taken.age(message) == Age::Old;
                self.taken.take(message.seq, &message.id);
                !is_old
            });
            if is_end || !messages.is_empty() {
                return Ok(messages);
            }
        }
    }
}
