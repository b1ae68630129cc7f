//! Appends messages. A message exists once its transaction is on disk.

use ringer_core::{Draft, MessageId};
use rusqlite::{Transaction, params};

use crate::error::Error;
use crate::ids::IdSource;
use crate::journal::row;
use crate::journal::schema::Journal;
use crate::journal::stats::AGENT_NAMED;
use crate::wake::subscription;

impl Journal {
    /// Appends a message and wakes the processes that wait for it. When this returns, the message is on disk.
    pub fn append(&mut self, draft: &Draft, stamp: &IdSource) -> Result<MessageId, Error> {
        let id = stamp.message_id();
        self.append_as(draft, &id, stamp.unix_ms)?;
        Ok(id)
    }

    /// Appends a message that has an id already. Appending the same id twice is one message.
    pub fn append_as(&mut self, draft: &Draft, id: &MessageId, unix_ms: i64) -> Result<(), Error> {
        let bells = self.write(|transaction| put(transaction, draft, id, unix_ms))?;
        self.wake(&bells);
        Ok(())
    }
}

/// Puts a message, and the receipt of the agent it is for, into a transaction. Gives the doorbells to wake once that is
/// on disk, and not before.
pub(crate) fn put(
    transaction: &Transaction<'_>,
    draft: &Draft,
    id: &MessageId,
    unix_ms: i64,
) -> rusqlite::Result<Vec<String>> {
    let Some(seq) = row::insert(transaction, draft, id, unix_ms)? else {
        return Ok(Vec::new());
    };
    if let Some(agent) = draft.recipient.agent() {
        transaction
            // A damaged journal may have kept the receipt of a message that it lost.
            .prepare(&format!(
                "INSERT OR REPLACE INTO receipt (agent, seq, state, queued)
                     VALUES (coalesce(({AGENT_NAMED}), ?1), ?2, 'queued', ?3)"
            ))?
            .execute(params![agent.as_str(), seq, unix_ms])?;
    }
    subscription::doorbells_to_wake(transaction, draft)
}
