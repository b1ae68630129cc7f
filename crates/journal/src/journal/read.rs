//! Reads messages: by position, by id, and with a filter; and follows the journal from a position.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use ringer_core::message::{QuestionId, Tag};
use ringer_core::{Draft, Kind, Message, MessageId, Recipient, Scope, Sender};
use rusqlite::{Connection, Row, ToSql, params};

use crate::db::damage::quarantine_rows;
use crate::db::tables::{optional_text, text};
use crate::error::Error;
use crate::ids::IdSource;
use crate::journal::schema::{Journal, generation, highest};
use crate::wake::subscription::Topic;
use crate::wake::waiter::{OnParentExit, Waiter, WakeReason};

/// The columns of a message, in the order that [`read_message`] expects.
pub(crate) const COLUMNS: &str = "seq, id, ts, scope, sender, kind, recipient, title, subtitle, body, category, \
                                  question_id, key, ttl, origin, machine, about";

/// Prefix of the kinds of marks. Unknown marks are of a newer version and are ignored.
const MARKS: &str = "mark-";

/// Reads a row of [`COLUMNS`]. `None` if its id is damaged, and for a mark that this version does not know.
///
/// Other damaged columns are replaced by defaults: a message with a wrong sender is better than none.
pub(crate) fn read_message(row: &Row<'_>) -> rusqlite::Result<Option<Message>> {
    let kind = text(row, 5)?;
    let tag = Tag::named(&kind).or_else(|| (!kind.starts_with(MARKS)).then_some(Tag::Notice(Kind::Status)));
    let (Some(tag), Ok(id)) = (tag, MessageId::parse(&text(row, 1)?)) else { return Ok(None) };
    let ttl: Option<i64> = row.get(13)?;
    Ok(Some(Message {
        seq: row.get(0)?,
        id,
        unix_ms: row.get(2)?,
        draft: Draft {
            tag,
            scope: Scope::new(&text(row, 3)?).unwrap_or_else(|_| Scope::global()),
            sender: Sender::new(&text(row, 4)?).unwrap_or_else(|_| Sender::system()),
            recipient: Recipient::parse(&text(row, 6)?).unwrap_or(Recipient::Default),
            title: optional_text(row, 7)?,
            subtitle: optional_text(row, 8)?,
            body: text(row, 9)?,
            category: optional_text(row, 10)?,
            question_id: optional_text(row, 11)?.and_then(|id| QuestionId::parse(&id).ok()),
            key: optional_text(row, 12)?,
            ttl: ttl.map(|ttl| Duration::from_millis(ttl.try_into().unwrap_or(0))),
            origin: optional_text(row, 14)?
                .and_then(|origin| serde_json::from_str(&origin).ok())
                .unwrap_or_default(),
            about: optional_text(row, 16)?.and_then(|about| serde_json::from_str(&about).ok()),
        },
        machine: optional_text(row, 15)?,
    }))
}

/// Returns true if a row of [`COLUMNS`] has a valid id.
fn has_id(row: &Row<'_>) -> rusqlite::Result<bool> {
    Ok(MessageId::parse(&text(row, 1)?).is_ok())
}

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
                match read_message(row)? {
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
                messages.extend(read_message(row)?);
            }
            Ok(messages)
        })
    }
}

/// A position in a journal file: every message up to it has been processed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Generation of the journal file: a random word written when the file was created. `None` if unknown.
    pub generation: Option<String>,
    /// Sequence number of the last processed message; 0 before the first.
    pub seq: i64,
    /// Id of that message.
    pub id: Option<String>,
}

/// How far a reader has read that stores its position outside the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadPosition {
    /// The position.
    pub cursor: Cursor,
    /// Set while the reader re-reads a journal that was replaced.
    pub catch_up: Option<CatchUp>,
}

/// A re-read from the beginning, because the journal file was replaced by another one or an older copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatchUp {
    /// Id of the newest message processed before. Ids begin with the time, so a message with a lower id was sent earlier. Empty
    /// if unknown.
    pub newest: String,
    /// Highest sequence number when the replacement was noticed. Messages after it are new.
    pub until: i64,
}

/// What a reader knows about a message after its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// Never processed.
    New,
    /// Possibly processed: the reader has to compare ids.
    MaybeSeen,
    /// Sent before the newest processed message. A reader that does not know its id missed it.
    Old,
}

impl ReadPosition {
    /// Moves past a processed message.
    pub fn advance(&mut self, seq: i64, id: &MessageId) {
        self.cursor.seq = seq;
        self.cursor.id = Some(id.to_string());
        self.catch_up.take_if(|catch_up| catch_up.until <= seq);
    }

    /// Classifies a message after this position.
    pub fn age(&self, message: &Message) -> Age {
        match &self.catch_up {
            Some(catch_up) if message.seq <= catch_up.until => {
                if *message.id.as_str() <= *catch_up.newest {
                    Age::Old
                } else {
                    Age::MaybeSeen
                }
            }
            _ => Age::New,
        }
    }

    /// Id of the newest processed message.
    pub(crate) fn newest(&self) -> Option<String> {
        let before = self.catch_up.as_ref().map(|catch_up| catch_up.newest.clone());
        before.max(self.cursor.id.clone())
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
