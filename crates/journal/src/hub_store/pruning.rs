//! Removes from the hub store what is older than the journal.
//!
//! In pieces: the hub does it on its loop, and has something else to do between two of them.

use ringer_core::MessageId;
use rusqlite::OptionalExtension;

use super::store::HubStore;
use crate::db::text::text;
use crate::error::Error;

/// Steps of trails that are looked at in one transaction: a few milliseconds.
const PIECE: i64 = 500;

/// What is left of a pruning of the hub store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubPruning {
    /// Ids from this one on are not looked at yet.
    from: String,
    /// Those from this one on stay.
    before: String,
}

impl HubPruning {
    /// Everything that is older than the oldest message of the journal.
    pub fn of(oldest: &MessageId) -> Self {
        // Ids begin with the time, in 13 characters; what follows is chance.
        let before = oldest.as_str().get(..13).unwrap_or_default().to_owned();
        Self { from: String::new(), before }
    }
}

impl HubStore {
    /// Forgets a piece of what is read and resolved, and of what became of messages. What is unread or open stays on the list.
    /// Gives what is left to be done.
    pub fn prune(&mut self, pruning: HubPruning) -> Result<Option<HubPruning>, Error> {
        let HubPruning { from, before } = pruning;
        let end = self.write(|transaction| {
            let end: Option<String> = transaction
                .query_row(
                    "SELECT id FROM trail WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT 1 OFFSET ?3",
                    (&from, &before, PIECE),
                    |row| text(row, 0),
                )
                .optional()?
                // All steps of more than one piece may be those of one message.
                .filter(|end| *end > from);
            let to = end.as_ref().unwrap_or(&before);
            for query in [
                // By id, and not by the index of those that are read, which are nearly all.
                "DELETE FROM notification WHERE +is_read = 1 AND +is_open = 0 AND id >= ?1 AND id < ?2",
                "DELETE FROM trail WHERE id >= ?1 AND id < ?2 AND id NOT IN (SELECT id FROM notification)",
            ] {
                transaction.prepare(query)?.execute((&from, to))?;
            }
            if end.is_none() {
                transaction.execute("DELETE FROM undo WHERE id < ?1 AND id <> ''", [&before])?;
            }
            Ok(end)
        })?;
        Ok(end.map(|from| HubPruning { from, before }))
    }
}
