//! Appends messages. A message exists once its transaction is committed to disk.

use ringer_core::message::{QuestionId, Tag, part_count};
use ringer_core::{Draft, MessageId, Recipient};
use rusqlite::{Transaction, params};
use serde::{Deserialize, Serialize};

use crate::db::tables::text;
use crate::error::Error;
use crate::ids::IdSource;
use crate::journal::inbox;
use crate::journal::schema::Journal;
use crate::journal::sender::SenderClaim;
use crate::wake::subscription;

/// A complete message to append. It is the same message whichever process appends it, and however often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppendRequest {
    /// Its id.
    pub id: MessageId,
    /// When it is sent, in milliseconds since 1970.
    pub unix_ms: i64,
    /// Its content. The sender in it is ignored.
    pub draft: Draft,
    /// What the sending process claims about the sender.
    pub claim: SenderClaim,
}

impl Journal {
    /// Appends a message and wakes the processes waiting for it. When this returns, the message is on disk.
    pub fn append(&mut self, draft: &Draft, stamp: &IdSource) -> Result<MessageId, Error> {
        let id = stamp.message_id();
        self.append_as(draft, &id, stamp.unix_ms)?;
        Ok(id)
    }

    /// Appends the message of a request of this process. Idempotent.
    pub fn append_request(&mut self, request: &AppendRequest) -> Result<(), Error> {
        let bells = self.put_request(request, std::process::id())?;
        self.wake(&bells);
        Ok(())
    }

    fn put_request(&mut self, request: &AppendRequest, pid: u32) -> Result<Vec<String>, Error> {
        let draft = Draft { sender: self.sender(Some(pid), &request.claim)?, ..request.draft.clone() };
        self.write(|transaction| {
            let put = put_with_machine(transaction, &draft, &request.id, request.unix_ms, None)?;
            // If it exists already, the process that appended it may have been killed before it woke the waiting processes.
            put.map_or_else(|| subscription::doorbells_to_wake(transaction, &draft), Ok)
        })
    }

    /// Appends a message with a given id. Idempotent.
    pub fn append_as(&mut self, draft: &Draft, id: &MessageId, unix_ms: i64) -> Result<(), Error> {
        let bells = self.write(|transaction| put(transaction, draft, id, unix_ms))?;
        self.wake(&bells);
        Ok(())
    }
}

/// Inserts a message and the receipts of its recipients. Returns the doorbells to wake after the commit, not before.
pub(crate) fn put(
    transaction: &Transaction<'_>,
    draft: &Draft,
    id: &MessageId,
    unix_ms: i64,
) -> rusqlite::Result<Vec<String>> {
    Ok(put_with_machine(transaction, draft, id, unix_ms, None)?.unwrap_or_default())
}

/// Like [`put`], for a message of any machine. `None` if the message exists already.
pub(crate) fn put_with_machine(
    transaction: &Transaction<'_>,
    draft: &Draft,
    id: &MessageId,
    unix_ms: i64,
    machine: Option<&str>,
) -> rusqlite::Result<Option<Vec<String>>> {
    let Some(seq) = insert(transaction, draft, id, unix_ms, machine)? else {
        return Ok(None);
    };
    // Agents do not read marks.
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

/// Inserts a message, with its machine unless that is this one. Returns its sequence number, or `None` if the id exists already.
fn insert(
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

/// The recipients of a message to all: the live agents of its scope, except the sender and the lead, which reads such messages
/// by its cursor.
fn everyone_else(transaction: &Transaction<'_>, draft: &Draft) -> rusqlite::Result<Vec<String>> {
    transaction
        .prepare(
            "SELECT id FROM agent WHERE scope = ?1 AND state <> 'exited' AND id <> ?2 AND name IS NOT ?2
             AND id NOT IN (SELECT agent FROM lead WHERE scope = ?1 AND agent IS NOT NULL)",
        )?
        .query_map([draft.scope.as_str(), draft.sender.as_str()], |row| text(row, 0))?
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ringer_core::agent::{AgentMachine, AgentTimeouts};
    use ringer_core::{Scope, Sender};

    use super::*;
    use crate::journal::test_journal::{draft, journal};
    use crate::process::ProcessStat;
    use crate::wake::subscription::Topic;

    fn add_agent(journal: &mut Journal, id: &str, worktree: &str, state: &str) {
        let columns =
            "id, client, session_id, scope, worktree, by_hooks, state, since, seen, machine, blocks";
        let insert = format!(
            "INSERT INTO agent ({columns}) VALUES (?1, 'claude', ?1, 'global', ?2, 1, ?3, 0, 0, '{{}}', 0)"
        );
        journal.write(|transaction| transaction.execute(&insert, [id, worktree, state])).unwrap();
    }

    /// The first process may have been killed before it woke the listener.
    #[test]
    fn the_same_request_again_wakes_those_who_wait_again_and_queues_nothing_twice() {
        let (_directory, mut journal) = journal();
        add_agent(&mut journal, "one", "/w", "working");
        let ids = IdSource::now();
        let draft = Draft { recipient: Recipient::parse("agent:one").unwrap(), ..draft("hello") };
        let request = AppendRequest {
            id: ids.message_id(),
            unix_ms: ids.unix_ms,
            draft,
            claim: SenderClaim::default(),
        };
        let topic = Topic::Everything;
        let register = |transaction: &Transaction<'_>| {
            subscription::register(transaction, "bell", &topic, &Scope::global())
        };
        journal.write(register).unwrap();
        for _ in 0..2 {
            assert_eq!(journal.put_request(&request, std::process::id()).unwrap(), ["bell"]);
        }
        let count = |connection: &rusqlite::Connection| {
            connection.query_row("SELECT count(*) FROM receipt", [], |row| row.get::<_, i64>(0))
        };
        assert_eq!(journal.read(count).unwrap(), 1);
    }

    /// Neither the draft nor the worktree determines the sender.
    #[test]
    fn the_sender_is_the_process_that_appends() {
        let (_directory, mut journal) = journal();
        add_agent(&mut journal, "one", "/w", "working");
        let sender = |journal: &mut Journal, claim: SenderClaim| {
            let ids = IdSource::now();
            let draft = Draft { sender: Sender::person(), ..draft("hello") };
            let request = AppendRequest { id: ids.message_id(), unix_ms: ids.unix_ms, draft, claim };
            journal.append_request(&request)?;
            journal.append_request(&request)?;
            let mut stored = journal.messages_after(0, usize::MAX)?;
            stored.retain(|message| message.id == request.id);
            assert_eq!(stored.len(), 1, "the same request twice is one message");
            Ok::<_, Error>(stored.remove(0).draft.sender.to_string())
        };
        let program = SenderClaim { is_program: true, ..SenderClaim::default() };
        assert_eq!(sender(&mut journal, program.clone()).unwrap(), "system");
        let started = ProcessStat::of("self").unwrap().started;
        let update = "UPDATE agent SET pid = ?1, started = ?2, machine = ?3 WHERE id = 'one'";
        let machine = AgentMachine::new(Duration::ZERO, AgentTimeouts::default());
        let machine = serde_json::to_string(&machine).unwrap();
        let of_agent = (std::process::id(), i64::try_from(started).unwrap(), machine);
        let register = "INSERT INTO agent_process (pid, started, agent) VALUES (?1, ?2, 'one')";
        journal
            .write(|transaction| {
                transaction.execute(update, (of_agent.0, of_agent.1, &of_agent.2))?;
                transaction.execute(register, (of_agent.0, of_agent.1))
            })
            .unwrap();
        assert_eq!(sender(&mut journal, program.clone()).unwrap(), "one");
        let person = SenderClaim { from: Some("person".to_owned()), ..program };
        assert!(matches!(sender(&mut journal, person), Err(Error::Sender(_))));
    }
}
