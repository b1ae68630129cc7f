//! Inboxes: what waits to enter an agent's turn. Receipts, not a cursor: budgets and leases finish out of order.
//!
//! A message is leased by a claim, delivered once the output was written and flushed, and seen when the client goes on.
//! What is not confirmed in time is pending again: delivered at least once, under one id.

use std::fmt;
use std::time::Duration;

use ringer_core::message::Agent;
use ringer_core::{Message, MessageId};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::db::text::text;
use crate::error::Error;
use crate::ids::IdSource;
use crate::journal::row::{COLUMNS, read};
use crate::journal::schema::Journal;

/// How long a claim holds until its output is written. A hook takes milliseconds, so after ten seconds it was killed
/// and the messages are free again.
pub const LEASE: Duration = Duration::from_secs(10);
/// How long after the hand-over the client may take to send its next event. A model may think for minutes; fifteen is a
/// choice, not a measurement.
pub const CONFIRM_WITHIN: Duration = Duration::from_mins(15);
/// Messages that one claim may look at. More wait for the next. Far more than fit into a turn (10,000 characters).
const MAX_LOOKED_AT: i64 = 512;

/// Selects which of the pending messages enter a turn now.
pub type Choose<'a> = &'a dyn Fn(&[Message]) -> Vec<MessageId>;

/// What an event of an agent's turn does to its inbox: it confirms what was delivered before, and may claim more.
#[derive(Default)]
pub struct InboxUpdate<'a> {
    /// The tool call of this event. What was delivered with it is not confirmed by it.
    pub call_id: Option<&'a str>,
    /// Which of the pending ones enter now; `None` where nothing can.
    pub choose: Option<Choose<'a>>,
    /// The ids of the messages that this event shows. Only this confirms what was put [`INTO_INBOX`].
    pub confirmed_ids: &'a [String],
}

/// How the call id of what was put into a client's own inbox begins. The client may have dropped it, so that it goes on says
/// nothing; that it shows the message does.
pub const INTO_INBOX: &str = "inbox-";

impl InboxUpdate<'_> {
    fn confirmed_ids_json(&self) -> String {
        // Plain data: it cannot fail to be written.
        serde_json::to_string(self.confirmed_ids).unwrap_or_default()
    }
}

impl fmt::Debug for InboxUpdate<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("InboxUpdate").field("call_id", &self.call_id).finish_non_exhaustive()
    }
}

/// What was claimed. To be passed to [`Journal::mark_delivered`] once it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// The call under which they were claimed. Another call may have claimed them since, if this took too long.
    pub call_id: Option<String>,
}

/// How far a message has come on its way to one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptRow {
    /// The agent.
    pub agent: String,
    /// `queued`, `leased`, `delivered` or `seen`.
    pub state: String,
    /// When it was sent, in milliseconds since 1970.
    pub queued_ms: i64,
    /// When it was delivered.
    pub delivered_ms: Option<i64>,
    /// When the client went on.
    pub seen_ms: Option<i64>,
}

/// Pending: never claimed, or claimed and not confirmed in time.
const PENDING: &str = "(receipt.state = 'queued' OR (receipt.state <> 'seen' AND receipt.leased_until < ?2))";
/// Delivered with another call, and confirmed by this event: because the client goes on, or because it shows it.
const CONFIRMED: &str = "(receipt.state = 'delivered' AND receipt.call_id IS NOT ?3
     AND (receipt.call_id IS NULL OR receipt.call_id NOT LIKE 'inbox-%'
          OR (SELECT id FROM message WHERE message.seq = receipt.seq) IN (SELECT value FROM json_each(?4))))";
/// Still worth showing.
const CURRENT: &str = "(message.ttl IS NULL OR message.ts + message.ttl > ?2)";

impl Journal {
    /// What waits for an agent, in order.
    pub fn pending_for(&mut self, agent: &Agent, unix_ms: i64) -> Result<Vec<Message>, Error> {
        self.read(|connection| pending(connection, agent.as_str(), unix_ms))
    }

    /// Claims everything that waits for an agent, to deliver it by another channel than its hooks.
    pub fn claim_for(
        &mut self,
        agent: &Agent,
        claim: &InboxUpdate<'_>,
        stamp: &IdSource,
    ) -> Result<Option<Claimed>, Error> {
        self.write(|transaction| self::claim(transaction, agent.as_str(), claim, stamp))
    }

    /// Claimed messages were written and flushed.
    pub fn mark_delivered(&mut self, agent: &Agent, claimed: &Claimed, unix_ms: i64) -> Result<(), Error> {
        self.write(|transaction| {
            let mut update = transaction.prepare(
                "UPDATE receipt SET state = 'delivered', delivered = ?3, leased_until = ?4
                 WHERE agent = ?1 AND seq = ?2 AND state = 'leased' AND call_id IS ?5",
            )?;
            for message in &claimed.messages {
                let until = unix_ms.saturating_add(millis(CONFIRM_WITHIN));
                update.execute(params![agent.as_str(), message.seq, unix_ms, until, claimed.call_id])?;
            }
            Ok(())
        })
    }

    /// Claimed messages could not be written: they are pending again at once.
    pub fn release(&mut self, agent: &Agent, claimed: &Claimed) -> Result<(), Error> {
        self.write(|transaction| {
            let mut update = transaction.prepare(
                "UPDATE receipt SET state = 'queued', leased_until = NULL, call_id = NULL
                 WHERE agent = ?1 AND seq = ?2 AND state = 'leased' AND call_id IS ?3",
            )?;
            for message in &claimed.messages {
                update.execute(params![agent.as_str(), message.seq, claimed.call_id])?;
            }
            Ok(())
        })
    }

    /// How far a message has come on its way to agents.
    pub fn receipts(&mut self, id: &str) -> Result<Vec<ReceiptRow>, Error> {
        self.read(|connection| {
            connection
                .prepare(
                    "SELECT agent, state, queued, delivered, seen FROM receipt
                     WHERE seq = (SELECT seq FROM message WHERE id = ?1) ORDER BY agent",
                )?
                .query_map([id], |row| {
                    Ok(ReceiptRow {
                        agent: text(row, 0)?,
                        state: text(row, 1)?,
                        queued_ms: row.get(2)?,
                        delivered_ms: row.get(3)?,
                        seen_ms: row.get(4)?,
                    })
                })?
                .collect()
        })
    }
}

/// Whether an event of that agent would change its inbox.
pub(crate) fn waits(
    connection: &Connection,
    agent: &str,
    claim: Option<&InboxUpdate<'_>>,
    stamp: &IdSource,
) -> rusqlite::Result<bool> {
    let Some(claim) = claim else { return Ok(false) };
    let takes = claim.choose.is_some();
    connection
        .prepare(&format!(
            "SELECT 1 FROM receipt WHERE agent = ?1
             AND ({CONFIRMED} OR (?5 AND {PENDING} AND EXISTS (
                 SELECT 1 FROM message WHERE message.seq = receipt.seq AND {CURRENT}))) LIMIT 1"
        ))?
        .query_row(
            params![agent, stamp.unix_ms, claim.call_id, claim.confirmed_ids_json(), takes],
            |_| Ok(()),
        )
        .optional()
        .map(|found| found.is_some())
}

/// What was sent to the name of an agent before that agent was known is for this agent now.
pub(crate) fn adopt(transaction: &Transaction<'_>, agent: &str, name: &str) -> rusqlite::Result<()> {
    transaction
        .prepare(
            "UPDATE OR IGNORE receipt SET agent = ?1 WHERE agent = ?2 AND state = 'queued'
             AND NOT EXISTS (SELECT 1 FROM agent WHERE id = ?2)",
        )?
        .execute([agent, name])
        .map(drop)
}

/// Confirms what was delivered before, and claims what may enter now.
pub(crate) fn claim(
    transaction: &Transaction<'_>,
    agent: &str,
    claim: &InboxUpdate<'_>,
    stamp: &IdSource,
) -> rusqlite::Result<Option<Claimed>> {
    transaction
        .prepare(&format!(
            "UPDATE receipt SET state = 'seen', seen = ?2, leased_until = NULL WHERE agent = ?1 AND {CONFIRMED}"
        ))?
        .execute(params![agent, stamp.unix_ms, claim.call_id, claim.confirmed_ids_json()])?;
    let Some(choose) = claim.choose else { return Ok(None) };
    let pending = pending(transaction, agent, stamp.unix_ms)?;
    let chosen = if pending.is_empty() { Vec::new() } else { choose(&pending) };
    let messages: Vec<Message> = pending.into_iter().filter(|message| chosen.contains(&message.id)).collect();
    if messages.is_empty() {
        return Ok(None);
    }
    let mut lease = transaction.prepare(
        "UPDATE receipt SET state = 'leased', leased_until = ?3, call_id = ?4 WHERE agent = ?1 AND seq = ?2",
    )?;
    for message in &messages {
        let until = stamp.unix_ms.saturating_add(millis(LEASE));
        lease.execute(params![agent, message.seq, until, claim.call_id])?;
    }
    Ok(Some(Claimed { messages, call_id: claim.call_id.map(str::to_owned) }))
}

fn pending(connection: &Connection, agent: &str, unix_ms: i64) -> rusqlite::Result<Vec<Message>> {
    let mut statement = connection.prepare(&format!(
        "SELECT {COLUMNS} FROM receipt JOIN message USING (seq)
         WHERE agent = ?1 AND {PENDING} AND {CURRENT} ORDER BY seq LIMIT ?3"
    ))?;
    let mut rows = statement.query(params![agent, unix_ms, MAX_LOOKED_AT])?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        // A damaged row is skipped: it must not block the messages after it.
        messages.extend(read(row)?);
    }
    Ok(messages)
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
