//! Inboxes: what waits to enter an agent's turn. Receipts, not a cursor: budgets and leases finish out of order.
//!
//! A message is leased by a claim, delivered once the output was written and flushed, and seen when the client goes on.
//! What is not confirmed in time is pending again: delivered at least once, under one id.

use std::fmt;
use std::time::Duration;

use ringer_core::message::{Agent, MessagePart};
use rusqlite::{Connection, OptionalExtension, Row, Rows, ToSql, Transaction, params};

use crate::db::column::text;
use crate::error::Error;
use crate::ids::IdSource;
use crate::journal::row::{COLUMNS, read};
use crate::journal::schema::Journal;
use crate::journal::stats::AGENT_NAMED;

/// How long a claim holds until its output is written. A hook takes milliseconds, so after ten seconds it was killed
/// and the messages are free again.
pub const LEASE: Duration = Duration::from_secs(10);
/// How long after the hand-over the client may take to send its next event. A model may think for minutes; fifteen is a
/// choice, not a measurement.
pub const CONFIRM_WITHIN: Duration = Duration::from_mins(15);
/// Messages, or parts of them, that one claim may look at. More wait for the next. Far more than fit into a turn (10,000 characters).
const MAX_LOOKED_AT: u32 = 512;
/// Of those, from one sender, while others wait behind it.
const MAX_OF_ONE: u32 = 256;

/// How far back it is looked at what entered before: the time of a rate.
const RECENT: Duration = Duration::from_mins(1);

/// Selects which of the pending messages and parts enter a turn now, by their indexes. It is given those that are pending, and
/// those that entered in the last minute.
pub type Choose<'a> = &'a dyn Fn(&[MessagePart], &[EnteredPart]) -> Vec<usize>;

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
    /// The messages, in order; of a long one, the parts that enter now.
    pub parts: Vec<MessagePart>,
    /// The call under which they were claimed. Another call may have claimed them since, if this took too long.
    pub call_id: Option<String>,
}

/// How far a message has come on its way to one agent; of one in parts, its last part.
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

/// A message, or one part of it, that entered an agent's turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnteredPart {
    /// What entered.
    pub part: MessagePart,
    /// When it was delivered, in milliseconds since 1970.
    pub delivered_ms: i64,
    /// When the client went on.
    pub seen_ms: Option<i64>,
}

impl EnteredPart {
    /// How long ago it was delivered.
    pub fn age(&self, unix_ms: i64) -> Duration {
        Duration::from_millis(u64::try_from(unix_ms.saturating_sub(self.delivered_ms)).unwrap_or(0))
    }
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
    pub fn pending_for(&mut self, agent: &Agent, unix_ms: i64) -> Result<Vec<MessagePart>, Error> {
        self.read(|connection| pending(connection, agent.as_str(), unix_ms))
    }

    /// The newest messages that entered an agent's turns, in the order in which they were delivered. What was not confirmed in
    /// time is not among them: it is pending again.
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

    /// Claimed messages could not be written: they are pending again at once.
    pub fn release(&mut self, agent: &Agent, claimed: &Claimed) -> Result<(), Error> {
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

    /// The agent has read these messages by other means than a claim. Gives the ids of those that are or were in its inbox.
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

    /// How far a message has come on its way to agents.
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

/// Puts a message into an agent's inbox, in as many parts as it has.
pub(crate) fn queue(
    transaction: &Transaction<'_>,
    agent: &str,
    (seq, parts): (i64, usize),
    unix_ms: i64,
) -> rusqlite::Result<()> {
    // A damaged journal may have kept the receipt of a message that it lost.
    let mut insert = transaction.prepare(&format!(
        "INSERT OR REPLACE INTO receipt (agent, seq, part, parts, state, queued)
         VALUES (coalesce(({AGENT_NAMED}), ?1), ?2, ?3, ?4, 'queued', ?5)"
    ))?;
    for part in 0..parts {
        insert.execute(params![agent, seq, count(part), count(parts), unix_ms])?;
    }
    Ok(())
}

/// What was sent to the name of an agent before that agent was known is for this agent now.
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
    Ok(Some(Claimed { parts, call_id: claim.call_id.map(str::to_owned) }))
}

fn pending(connection: &Connection, agent: &str, unix_ms: i64) -> rusqlite::Result<Vec<MessagePart>> {
    let from = format!("FROM receipt JOIN message USING (seq) WHERE agent = ?1 AND {PENDING} AND {CURRENT}");
    let oldest = format!("SELECT {COLUMNS}, part, parts {from} ORDER BY seq, part LIMIT ?3");
    let parts = read_parts(connection, &oldest, params![agent, unix_ms, MAX_LOOKED_AT])?;
    if parts.len() < MAX_LOOKED_AT as usize {
        return Ok(parts);
    }
    // One sender may have sent all of them, and must not keep back what others sent after it.
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

/// What entered in the last minute, in order, and what another call is about to hand over.
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

/// Reads what entered, with its part from that column on.
fn read_entered(mut rows: Rows<'_>, after: usize) -> rusqlite::Result<Vec<EnteredPart>> {
    let mut entered = Vec::new();
    while let Some(row) = rows.next()? {
        let Some(part) = read_part(row, after)? else { continue };
        let (delivered_ms, seen_ms) = (row.get(after + 2)?, row.get(after + 3)?);
        entered.push(EnteredPart { part, delivered_ms, seen_ms });
    }
    Ok(entered)
}

/// A message and which part of it, from that column on. A damaged row is skipped: it must not block the messages after it.
fn read_part(row: &Row<'_>, from: usize) -> rusqlite::Result<Option<MessagePart>> {
    let part = |column: usize| row.get(column).map(|number: u32| number as usize);
    let Some(message) = read(row)? else { return Ok(None) };
    Ok(Some(MessagePart { message, number: part(from)?, of: part(from + 1)? }))
}

/// A number of parts as SQLite has it. A body has a limit, so there are few.
fn count(parts: usize) -> u32 {
    u32::try_from(parts).unwrap_or(u32::MAX)
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
