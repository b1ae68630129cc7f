//! Questions that an agent asks in its own terminal: they are questions like others while they are open there, and closed
//! when the agent goes on.

use ringer_core::Draft;
use ringer_core::message::{EPISODE_KEY_PREFIX, Mark, QuestionId, Tag};
use rusqlite::{Transaction, params};

use crate::db::text::text;
use crate::ids::IdSource;
use crate::journal::agent::info::AgentInfo;
use crate::journal::append::put;

/// Stores the question that a notice asks. Gives the id for its message.
pub(crate) fn open(
    transaction: &Transaction<'_>,
    draft: &Draft,
    stamp: &IdSource,
) -> rusqlite::Result<QuestionId> {
    let id = stamp.question_id();
    transaction
        .prepare(
            "INSERT OR IGNORE INTO question (id, scope, asker, asked, question, options) VALUES (?1, ?2, ?3, ?4, ?5, '[]')",
        )?
        .execute(params![id.as_str(), draft.scope.as_str(), draft.sender.as_str(), stamp.unix_ms, draft.body])?;
    Ok(id)
}

/// Closes what an agent asked in its terminal, with that key or at all: it was answered there, or the agent no longer waits.
/// What it asked with `ringer ask` stays open. Gives the doorbells to wake.
pub(crate) fn close(
    transaction: &Transaction<'_>,
    of: &AgentInfo,
    key: Option<&str>,
    stamp: &mut IdSource,
) -> rusqlite::Result<Vec<String>> {
    // Earlier versions wrote the key as AGENT-NUMBER.
    let open: Vec<String> = transaction
        .prepare(
            "SELECT DISTINCT question.id FROM question JOIN message ON message.question_id = question.id
             WHERE question.answered IS NULL AND message.kind = 'question'
                 AND (message.key = ?1 OR ?1 IS NULL AND (
                     substr(message.key, 1, length(?2)) = ?2 OR substr(message.key, 1, length(?3)) = ?3))",
        )?
        .query_map(
            params![key, format!("{EPISODE_KEY_PREFIX}{}:", of.id.as_str()), format!("{}-", of.id.as_str())],
            |row| text(row, 0),
        )?
        .collect::<rusqlite::Result<_>>()?;
    let mut bells = Vec::new();
    for id in open {
        let stamp = stamp.next();
        transaction
            .prepare("UPDATE question SET answered = ?2, answerer = ?3 WHERE id = ?1")?
            .execute(params![id, stamp.unix_ms, of.sender().as_str()])?;
        let mut mark = Draft::tagged(of.scope.clone(), of.sender(), Tag::Mark(Mark::Answer), "");
        mark.question_id = QuestionId::parse(&id).ok();
        bells.extend(put(transaction, &mark, &stamp.message_id(), stamp.unix_ms)?);
    }
    Ok(bells)
}
