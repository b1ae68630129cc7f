//! Reads and writes rows of the table `message`.

use std::time::Duration;

use ringer_core::message::{QuestionId, Tag};
use ringer_core::{Draft, Kind, Message, MessageId, Recipient, Scope, Sender};
use rusqlite::{Row, Transaction, params};

use crate::db::column::{optional_text, text};

/// The columns of a message, in the order that [`read`] expects.
pub(crate) const COLUMNS: &str = "seq, id, ts, scope, sender, kind, recipient, title, subtitle, body, category, \
                                  question_id, key, ttl, origin, machine, about";

/// Inserts a message, with its machine unless that is this one. Returns its sequence number, or `None` if the id exists already.
pub(crate) fn insert(
    transaction: &Transaction<'_>,
    draft: &Draft,
    id: &MessageId,
    unix_ms: i64,
    machine: Option<&str>,
) -> rusqlite::Result<Option<i64>> {
    let ttl = draft.ttl.map(|ttl| i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
    // Plain data: it cannot fail to be written.
    let origin = serde_json::to_string(&draft.origin).ok().filter(|origin| origin != "{}");
    let about = draft.about.as_ref().and_then(|about| serde_json::to_string(about).ok());
    let inserted = transaction
        .prepare_cached(
            "INSERT INTO message (id, ts, scope, sender, kind, recipient, title, subtitle, body, category,
                                  question_id, key, ttl, origin, about, machine)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
             ON CONFLICT (id) DO NOTHING",
        )?
        .execute(params![
            id.as_str(),
            unix_ms,
            draft.scope.as_str(),
            draft.sender.as_str(),
            draft.tag.as_str(),
            draft.recipient.to_string(),
            draft.title,
            draft.subtitle,
            draft.body,
            draft.category,
            draft.question_id.as_ref().map(QuestionId::as_str),
            draft.key,
            ttl,
            origin,
            about,
            machine,
        ])?;
    Ok((inserted == 1).then(|| transaction.last_insert_rowid()))
}

/// Reads a row of [`COLUMNS`]. `None` if its id is damaged, and for a mark that this version does not know.
///
/// Other damaged columns are replaced by defaults: a message with a wrong sender is better than none.
pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Option<Message>> {
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
pub(crate) fn has_id(row: &Row<'_>) -> rusqlite::Result<bool> {
    Ok(MessageId::parse(&text(row, 1)?).is_ok())
}

/// Prefix of the kinds of marks. Unknown marks are of a newer version and are ignored.
const MARKS: &str = "mark-";
