//! Appends messages. A message exists once its transaction is on disk.

use ringer_core::message::{Tag, part_count};
use ringer_core::{Draft, MessageId, Recipient};
use rusqlite::Transaction;

use crate::db::text::text;
use crate::error::Error;
use crate::ids::IdSource;
use crate::journal::inbox;
use crate::journal::row;
use crate::journal::schema::Journal;
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

/// Puts a message, and the receipts of the agents it is for, into a transaction. Gives the doorbells to wake once that is
/// on disk, and not before.
pub(crate) fn put(
    transaction: &Transaction<'_>,
    draft: &Draft,
    id: &MessageId,
    unix_ms: i64,
) -> rusqlite::Result<Vec<String>> {
    Ok(put_of_machine(transaction, draft, id, unix_ms, None)?.unwrap_or_default())
}

/// The same for a message that came from another machine. `None` if it was there already.
pub(crate) fn put_of_machine(
    transaction: &Transaction<'_>,
    draft: &Draft,
    id: &MessageId,
    unix_ms: i64,
    machine: Option<&str>,
) -> rusqlite::Result<Option<Vec<String>>> {
    let Some(seq) = row::insert(transaction, draft, id, unix_ms, machine)? else {
        return Ok(None);
    };
    // A mark is applied, and never read by an agent.
    let is_notice = matches!(draft.tag, Tag::Notice(_));
    if draft.recipient == Recipient::All && is_notice {
        let parts = part_count(draft);
        for agent in everyone_else(transaction, draft)? {
            inbox::queue(transaction, &agent, (seq, parts), unix_ms)?;
        }
    } else if let Some(agent) = draft.recipient.agent() {
        let parts = part_count(draft);
        inbox::queue(transaction, agent.as_str(), (seq, parts), unix_ms)?;
    }
    subscription::doorbells_to_wake(transaction, draft).map(Some)
}

/// The agents that a message to all is for: those of its scope that have not ended. Without its sender, and without the lead,
/// which reads what is for all by its cursor.
fn everyone_else(transaction: &Transaction<'_>, draft: &Draft) -> rusqlite::Result<Vec<String>> {
    transaction
        .prepare(
            "SELECT id FROM agent WHERE scope = ?1 AND state <> 'exited' AND id <> ?2 AND name IS NOT ?2
             AND id NOT IN (SELECT agent FROM lead WHERE scope = ?1 AND agent IS NOT NULL)",
        )?
        .query_map([draft.scope.as_str(), draft.sender.as_str()], |row| text(row, 0))?
        .collect()
}
