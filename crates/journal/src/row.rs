//! Messages as rows.

use std::time::Duration;

use ringer_core::{Draft, Message, MessageId, QuestionId, Recipient, Scope, Sender, Tag};
use rusqlite::types::Type;
use rusqlite::{Row, Transaction, params};

/// The columns of a message, in the order in which [`read`] takes them.
pub(crate) const COLUMNS: &str = "seq, id, ts, scope, sender, kind, recipient, title, subtitle, body, category, \
                                  question_id, key, ttl, origin, machine";

/// Puts a message in. Gives its number, or `None` if that id is there already.
pub(crate) fn insert(
    transaction: &Transaction<'_>,
    draft: &Draft,
    id: &MessageId,
    unix_ms: i64,
) -> rusqlite::Result<Option<i64>> {
    let ttl = draft.ttl.map(|ttl| i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
    // Plain data: it cannot fail to be written.
    let origin = serde_json::to_string(&draft.origin).ok().filter(|origin| origin != "{}");
    let inserted = transaction
        .prepare(
            "INSERT INTO message (id, ts, scope, sender, kind, recipient, title, subtitle, body, category,
                                  question_id, key, ttl, origin)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
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
        ])?;
    Ok((inserted == 1).then(|| transaction.last_insert_rowid()))
}

/// Reads a row of [`COLUMNS`].
pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Message> {
    let kind: String = row.get(5)?;
    let ttl: Option<i64> = row.get(13)?;
    let origin: Option<String> = row.get(14)?;
    Ok(Message {
        seq: row.get(0)?,
        id: word(row, 1, MessageId::parse)?,
        unix_ms: row.get(2)?,
        draft: Draft {
            tag: Tag::named(&kind).ok_or_else(|| unreadable(5, format!("unknown kind {kind:?}")))?,
            scope: word(row, 3, Scope::new)?,
            sender: word(row, 4, Sender::new)?,
            recipient: word(row, 6, Recipient::parse)?,
            title: row.get(7)?,
            subtitle: row.get(8)?,
            body: row.get(9)?,
            category: row.get(10)?,
            question_id: row.get::<_, Option<String>>(11)?.and_then(|id| QuestionId::parse(&id).ok()),
            key: row.get(12)?,
            ttl: ttl.map(|ttl| Duration::from_millis(ttl.try_into().unwrap_or(0))),
            origin: origin.and_then(|origin| serde_json::from_str(&origin).ok()).unwrap_or_default(),
        },
        machine: row.get(15)?,
    })
}

fn word<T>(
    row: &Row<'_>,
    column: usize,
    parse: impl Fn(&str) -> Result<T, ringer_core::InvalidWord>,
) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    parse(&text).map_err(|error| unreadable(column, error.to_string()))
}

fn unreadable(column: usize, why: String) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, why.into())
}
