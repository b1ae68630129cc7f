//! Agents' inboxes: messages that wait to enter an agent's turn. Each has a receipt per agent. A cursor would not do, because
//! budgets and leases complete out of order.
//!
//! A claim leases a message. It is delivered when the output was written and flushed, and seen when the client continues. Without
//! confirmation in time it is pending again: delivery is at least once, with a stable id.

use std::fmt;
use std::time::Duration;

use ringer_core::message::{Agent, MessagePart};
use rusqlite::{Connection, OptionalExtension, Row, Rows, ToSql, Transaction, params};

use crate::db::tables::text;
use crate::error::Error;
use crate::ids::IdSource;
use crate::journal::read::{COLUMNS, read_message};
use crate::journal::schema::Journal;
use crate::journal::stats::AGENT_NAMED;

/// How long a claim lasts until its output is written. A hook takes milliseconds, so after ten seconds it must have been
/// killed, and the messages are pending again.
pub const LEASE: Duration = Duration::from_secs(10);
/// How long after delivery the client may take to send its next event. A model may think for minutes; fifteen is a choice, not a
/// measurement.
pub const CONFIRM_WITHIN: Duration = Duration::from_mins(15);
/// How many message parts one claim considers: far more than fit into a turn (10,000 characters).
const MAX_LOOKED_AT: u32 = 512;
/// How many of them may be from one sender while messages of others wait.
const MAX_OF_ONE: u32 = 256;

/// Period of rate limits: how far back entered messages are considered.
const RECENT: Duration = Duration::from_mins(1);

/// Selects the parts that enter a turn now: gets the pending parts and those that entered within the last minute, and returns
/// indexes of pending parts.
pub type SelectParts<'a> = &'a dyn Fn(&[MessagePart], &[EnteredPart]) -> Vec<usize>;

/// The effect of an agent's event on its inbox: it confirms earlier deliveries, and may claim more messages.
#[derive(Default)]
pub struct InboxUpdate<'a> {
    /// The tool call of this event. Messages delivered with this call are not confirmed yet.
    pub call_id: Option<&'a str>,
    /// Selects the pending parts that enter now; `None` if none can.
    pub choose: Option<SelectParts<'a>>,
    /// Ids of the messages that this event contains. Only this confirms messages delivered with [`CLIENT_INBOX_PREFIX`].
    pub confirmed_ids: &'a [String],
}

/// Prefix of call ids for deliveries to a client's own inbox. The client may drop such a message, so only an event that
/// contains the message confirms it, and not that the client continues.
pub const CLIENT_INBOX_PREFIX: &str = "inbox-";

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

/// Claimed message parts. Pass them to [`Journal::mark_delivered`] after they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedParts {
    /// The parts that enter now, in order.
    pub parts: Vec<MessagePart>,
    /// The call that claimed them. If it takes too long, another call may claim them.
    pub call_id: Option<String>,
}

/// The state of a message's delivery to an agent. For a message in parts, that of the last part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptRow {
    /// The agent.
    pub agent: String,
    /// `queued`, `leased`, `delivered` or `seen`.
    pub state: String,
    /// When it was queued, in milliseconds since 1970.
    pub queued_ms: i64,
    /// When it was delivered.
    pub delivered_ms: Option<i64>,
    /// When the client continued after it.
    pub seen_ms: Option<i64>,
}

/// A message part that entered an agent's turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnteredPart {
    /// The part.
    pub part: MessagePart,
    /// When it was delivered, in milliseconds since 1970.
    pub delivered_ms: i64,
    /// When the client continued after it.
    pub seen_ms: Option<i64>,
}

impl EnteredPart {
    /// Time since delivery.
    pub fn age(&self, unix_ms: i64) -> Duration {
        Duration::from_millis(u64::try_from(unix_ms.saturating_sub(self.delivered_ms)).unwrap_or(0))
    }
}

/// SQL condition for pending receipts: never claimed, or not confirmed in time.
const PENDING: &str = "(receipt.state = 'queued' OR (receipt.state <> 'seen' AND receipt.leased_until < ?2))";
/// SQL condition for receipts that an event confirms: delivered with another call, and the client continues or the event
/// contains the message.
const CONFIRMED: &str = "(receipt.state = 'delivered' AND receipt.call_id IS NOT ?3
     AND (receipt.call_id IS NULL OR receipt.call_id NOT LIKE 'inbox-%'
          OR (SELECT id FROM message WHERE message.seq = receipt.seq) IN (SELECT value FROM json_each(?4))))";
/// SQL condition for messages that have not expired.
const CURRENT: &str = "(message.ttl IS NULL OR message.ts + message.ttl > ?2)";

impl Journal {
    /// The pending messages of an agent, in order.
    pub fn pending_for(&mut self, agent: &Agent, unix_ms: i64) -> Result<Vec<MessagePart>, Error> {
        self.read(|connection| pending(connection, agent.as_str(), unix_ms))
    }

    /// The newest messages that entered an agent's turns, in order of delivery. Unconfirmed ones are pending again and not
    /// included.
    pub fn entered(&mut self, agent: &Agent, unix_ms: i64, most: usize) -> Result<Vec<EnteredPart>, Error> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let mut entered = self.read(|connection| {
            let mut statement = connection.prepare(&format!(
                "SELECT {COLUMNS}, part, parts, delivered, seen FROM receipt JOIN message USING (seq)
                 WHERE agent = ?1 AND delivered IS NOT NULL AND NOT {PENDING} ORDER BY seq DESC, part DESC LIMIT ?3"
            ))?;
            let after = statement.column_count() - 4;
            read_entered(statement.query(params![agent.as_str(), unix_ms, most])?, after)
        })?;
        entered.reverse();
        // Budgets and leases finish out of order.
        entered.sort_by_key(|entered| entered.delivered_ms);
        Ok(entered)
    }

    /// Claims pending messages of an agent to deliver them by another channel than its hooks.
    pub fn claim_for(
        &mut self,
        agent: &Agent,
        claim: &InboxUpdate<'_>,
        stamp: &IdSource,
    ) -> Result<Option<ClaimedParts>, Error> {
        self.write(|transaction| self::claim(transaction, agent.as_str(), claim, stamp))
    }

    /// Marks claimed messages as delivered, after they were written and flushed.
    pub fn mark_delivered(
        &mut self,
        agent: &Agent,
        claimed: &ClaimedParts,
        unix_ms: i64,
    ) -> Result<(), Error> {
        self.write(|transaction| {
            let mut update = transaction.prepare(
                "UPDATE receipt SET state = 'delivered', delivered = ?3, leased_until = ?4
                 WHERE agent = ?1 AND seq = ?2 AND part = ?6 AND state = 'leased' AND call_id IS ?5",
            )?;
            for part in &claimed.parts {
                let until = unix_ms.saturating_add(millis(CONFIRM_WITHIN));
                let (seq, number) = (part.message.seq, count(part.number));
                update.execute(params![agent.as_str(), seq, unix_ms, until, claimed.call_id, number])?;
            }
            Ok(())
        })
    }

    /// Returns true if a message was written to the client's own inbox after a time, and no event has contained it yet.
    pub fn has_unconfirmed_push(&mut self, agent: &Agent, after_ms: i64) -> Result<bool, Error> {
        self.read(|connection| {
            connection.query_row(
                "SELECT EXISTS (SELECT 1 FROM receipt WHERE agent = ?1 AND state = 'delivered'
                 AND call_id LIKE 'inbox-%' AND delivered > ?2)",
                params![agent.as_str(), after_ms],
                |row| row.get(0),
            )
        })
    }

    /// Makes claimed messages pending again that could not be written.
    pub fn release(&mut self, agent: &Agent, claimed: &ClaimedParts) -> Result<(), Error> {
        self.write(|transaction| {
            let mut update = transaction.prepare(
                "UPDATE receipt SET state = 'queued', leased_until = NULL, call_id = NULL
                 WHERE agent = ?1 AND seq = ?2 AND part = ?4 AND state = 'leased' AND call_id IS ?3",
            )?;
            for part in &claimed.parts {
                let (seq, number) = (part.message.seq, count(part.number));
                update.execute(params![agent.as_str(), seq, claimed.call_id, number])?;
            }
            Ok(())
        })
    }

    /// Marks messages as seen that the agent has read by other means than a claim. Returns the ids of those that have a receipt.
    pub fn mark_seen(&mut self, agent: &Agent, ids: &[String], unix_ms: i64) -> Result<Vec<String>, Error> {
        // Plain data: it cannot fail to be written.
        let ids = serde_json::to_string(ids).unwrap_or_default();
        self.write(|transaction| {
            transaction
                .prepare(
                    "UPDATE receipt SET state = 'seen', seen = ?3, delivered = coalesce(delivered, ?3), leased_until = NULL
                     WHERE agent = ?1 AND state <> 'seen'
                     AND seq IN (SELECT seq FROM message WHERE id IN (SELECT value FROM json_each(?2)))",
                )?
                .execute(params![agent.as_str(), ids, unix_ms])?;
            transaction
                .prepare(
                    "SELECT DISTINCT message.id FROM message JOIN receipt USING (seq)
                     WHERE agent = ?1 AND message.id IN (SELECT value FROM json_each(?2))",
                )?
                .query_map(params![agent.as_str(), ids], |row| text(row, 0))?
                .collect()
        })
    }

    /// The delivery state of a message for each recipient.
    pub fn receipts(&mut self, id: &str) -> Result<Vec<ReceiptRow>, Error> {
        self.read(|connection| {
            connection
                .prepare(
                    "SELECT agent, state, queued, delivered, seen FROM receipt
                     WHERE seq = (SELECT seq FROM message WHERE id = ?1) AND part = parts - 1 ORDER BY agent",
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

/// Returns true if an event of the agent would change its inbox.
pub(crate) fn would_change(
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

/// Queues all parts of a message in an agent's inbox.
pub(crate) fn queue(
    transaction: &Transaction<'_>,
    agent: &str,
    (seq, parts): (i64, usize),
    unix_ms: i64,
) -> rusqlite::Result<()> {
    // `OR REPLACE`: a damaged journal may contain the receipt of a lost message with the same number.
    let mut insert = transaction.prepare(&format!(
        "INSERT OR REPLACE INTO receipt (agent, seq, part, parts, state, queued)
         VALUES (coalesce(({AGENT_NAMED}), ?1), ?2, ?3, ?4, 'queued', ?5)"
    ))?;
    for part in 0..parts {
        insert.execute(params![agent, seq, count(part), count(parts), unix_ms])?;
    }
    Ok(())
}

/// Moves messages to an agent that were sent to its name before the agent was known.
pub(crate) fn adopt(transaction: &Transaction<'_>, agent: &str, name: &str) -> rusqlite::Result<()> {
    transaction
        .prepare(
            "UPDATE OR IGNORE receipt SET agent = ?1 WHERE agent = ?2 AND state = 'queued'
             AND NOT EXISTS (SELECT 1 FROM agent WHERE id = ?2)
             AND EXISTS (SELECT 1 FROM agent WHERE id = ?1 AND name = ?2)",
        )?
        .execute([agent, name])
        .map(drop)
}

/// Confirms earlier deliveries and claims the messages that may enter now.
pub(crate) fn claim(
    transaction: &Transaction<'_>,
    agent: &str,
    claim: &InboxUpdate<'_>,
    stamp: &IdSource,
) -> rusqlite::Result<Option<ClaimedParts>> {
    transaction
        .prepare(&format!(
            "UPDATE receipt SET state = 'seen', seen = ?2, leased_until = NULL WHERE agent = ?1 AND {CONFIRMED}"
        ))?
        .execute(params![agent, stamp.unix_ms, claim.call_id, claim.confirmed_ids_json()])?;
    let Some(choose) = claim.choose else { return Ok(None) };
    let pending = pending(transaction, agent, stamp.unix_ms)?;
    let chosen = if pending.is_empty() {
        Vec::new()
    } else {
        choose(&pending, &entered_recently(transaction, agent, stamp.unix_ms)?)
    };
    let pending = pending.into_iter().enumerate();
    let parts: Vec<MessagePart> =
        pending.filter(|(index, _)| chosen.contains(index)).map(|(_, part)| part).collect();
    if parts.is_empty() {
        return Ok(None);
    }
    let mut lease = transaction.prepare(
        "UPDATE receipt SET state = 'leased', leased_until = ?3, call_id = ?4
         WHERE agent = ?1 AND seq = ?2 AND part = ?5",
    )?;
    for part in &parts {
        let until = stamp.unix_ms.saturating_add(millis(LEASE));
        lease.execute(params![agent, part.message.seq, until, claim.call_id, count(part.number)])?;
    }
    Ok(Some(ClaimedParts { parts, call_id: claim.call_id.map(str::to_owned) }))
}

fn pending(connection: &Connection, agent: &str, unix_ms: i64) -> rusqlite::Result<Vec<MessagePart>> {
    let from = format!("FROM receipt JOIN message USING (seq) WHERE agent = ?1 AND {PENDING} AND {CURRENT}");
    let oldest = format!("SELECT {COLUMNS}, part, parts {from} ORDER BY seq, part LIMIT ?3");
    let parts = read_parts(connection, &oldest, params![agent, unix_ms, MAX_LOOKED_AT])?;
    if parts.len() < MAX_LOOKED_AT as usize {
        return Ok(parts);
    }
    // All of them may be from one sender, which must not delay the messages of others.
    let of_each = format!(
        "WITH waiting AS (
             SELECT seq, part, row_number() OVER (PARTITION BY sender, category ORDER BY seq, part) AS place {from})
         SELECT {COLUMNS}, part, parts FROM waiting JOIN receipt USING (seq, part) JOIN message USING (seq)
         WHERE agent = ?1 ORDER BY place > ?4, seq, part LIMIT ?3"
    );
    let mut parts = read_parts(connection, &of_each, params![agent, unix_ms, MAX_LOOKED_AT, MAX_OF_ONE])?;
    parts.sort_by_key(|part| (part.message.seq, part.number));
    Ok(parts)
}

fn read_parts(
    connection: &Connection,
    query: &str,
    parameters: &[&dyn ToSql],
) -> rusqlite::Result<Vec<MessagePart>> {
    let mut statement = connection.prepare(query)?;
    let after = statement.column_count() - 2;
    let mut rows = statement.query(parameters)?;
    let mut parts = Vec::new();
    while let Some(row) = rows.next()? {
        parts.extend(read_part(row, after)?);
    }
    Ok(parts)
}

/// Parts that entered within the last minute, in order, and parts that another call is about to deliver.
fn entered_recently(
    connection: &Connection,
    agent: &str,
    unix_ms: i64,
) -> rusqlite::Result<Vec<EnteredPart>> {
    let mut statement = connection.prepare(&format!(
        "SELECT {COLUMNS}, part, parts, coalesce(delivered, ?2) AS entered, seen FROM receipt JOIN message USING (seq)
         WHERE agent = ?1 AND (delivered BETWEEN ?3 AND ?2 OR (state = 'leased' AND leased_until >= ?2))
         ORDER BY entered DESC, seq DESC, part DESC LIMIT ?4"
    ))?;
    let (after, since) = (statement.column_count() - 4, unix_ms.saturating_sub(millis(RECENT)));
    let mut entered = read_entered(statement.query(params![agent, unix_ms, since, MAX_LOOKED_AT])?, after)?;
    entered.reverse();
    Ok(entered)
}

/// Reads entered parts. The columns of the part start at `after`.
fn read_entered(mut rows: Rows<'_>, after: usize) -> rusqlite::Result<Vec<EnteredPart>> {
    let mut entered = Vec::new();
    while let Some(row) = rows.next()? {
        let Some(part) = read_part(row, after)? else { continue };
        let (delivered_ms, seen_ms) = (row.get(after + 2)?, row.get(after + 3)?);
        entered.push(EnteredPart { part, delivered_ms, seen_ms });
    }
    Ok(entered)
}

/// Reads a message part. The columns of the part start at `from`. `None` for a damaged row, which must not block the messages
/// after it.
fn read_part(row: &Row<'_>, from: usize) -> rusqlite::Result<Option<MessagePart>> {
    let part = |column: usize| row.get(column).map(|number: u32| number as usize);
    let Some(message) = read_message(row)? else { return Ok(None) };
    Ok(Some(MessagePart { message, number: part(from)?, of: part(from + 1)? }))
}

/// Converts a number of parts for SQLite. There are few, because message bodies have a size limit.
fn count(parts: usize) -> u32 {
    u32::try_from(parts).unwrap_or(u32::MAX)
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
