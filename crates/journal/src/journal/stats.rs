//! Statistics of the journal: listeners, unread messages, agents, open questions. And the removal of a scope.

use std::path::PathBuf;

use ringer_core::{Message, MessageId, Recipient, Scope};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::db::tables::{self, optional_text, text};
use crate::error::Error;
use crate::hub_store::HubStore;
use crate::journal::read::COLUMNS;
use crate::journal::schema::{Journal, POSITION};
use crate::wake::doorbell::{self, LockOwner};

/// A running listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningListener {
    /// Path of its doorbell.
    pub bell: PathBuf,
    /// The process.
    pub owner: LockOwner,
}

/// The unread messages of a consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadCount {
    /// Name of the consumer.
    pub consumer: String,
    /// Its scope.
    pub scope: String,
    /// Number of unread messages.
    pub messages: i64,
    /// When it last read, in milliseconds since 1970.
    pub touched_ms: i64,
}

/// An agent in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSummary {
    /// Its id.
    pub id: String,
    /// The client program, if known.
    pub client: Option<String>,
    /// The client's session.
    pub session_id: Option<String>,
    /// Its state, if known.
    pub state: Option<String>,
    /// Its scope.
    pub scope: String,
    /// Time of its last signal or message, in milliseconds since 1970.
    pub seen_ms: i64,
    /// Since when it is in that state, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Its current directory.
    pub cwd: Option<String>,
    /// The surface it is on.
    pub surface: Option<String>,
    /// Its display name.
    pub name: Option<String>,
    /// It is the lead of its scope.
    pub lead: bool,
    /// Background tasks that run on after its turn has ended.
    pub running_tasks: usize,
}

/// Selects the agent with an id, session id or name (`?1`). Prefers an exact id, then live agents.
pub(crate) const AGENT_NAMED: &str = "SELECT id FROM agent WHERE ?1 IN (id, session_id, name)
     ORDER BY id <> ?1, state = 'exited', seen DESC LIMIT 1";

/// Statistics of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalStats {
    /// Schema version.
    pub schema: i64,
    /// Number of messages.
    pub messages: i64,
    /// Running listeners.
    pub listeners: Vec<RunningListener>,
    /// Unread messages of each consumer.
    pub unread: Vec<UnreadCount>,
    /// Agents, latest first.
    pub agents: Vec<AgentSummary>,
    /// Number of open questions.
    pub open_questions: i64,
}

/// Selects names that sent messages but are not registered agents.
const SENDERS: &str = "UNION ALL
    SELECT sender, NULL, NULL, NULL, scope, max(ts), NULL, NULL, NULL, NULL, 0, 0 FROM message
    WHERE sender NOT IN ('system', 'person') AND sender NOT LIKE 'channel:%' AND machine IS NULL AND (?1 IS NULL OR scope = ?1) AND sender NOT IN (SELECT id FROM agent)
        AND sender NOT IN (SELECT name FROM agent WHERE name IS NOT NULL)
    GROUP BY sender, scope";

fn agent_summaries(
    connection: &Connection,
    scope: Option<&str>,
    others: &str,
) -> rusqlite::Result<Vec<AgentSummary>> {
    connection
        .prepare(&format!(
            "SELECT id, client, session_id, state, scope, seen, since, cwd, surface, name,
                    id IS (SELECT lead.agent FROM lead WHERE lead.scope = agent.scope),
                    coalesce(json_extract(iif(json_valid(machine), machine, '{{}}'), '$.running'), 0)
             FROM agent WHERE (?1 IS NULL OR scope = ?1) {others} ORDER BY 6 DESC, 1"
        ))?
        .query_map([scope], agent)?
        .collect()
}

impl Journal {
    /// Time of the last hook call of each client, in milliseconds since 1970. Clients without a call are left out.
    pub fn clients_last_seen(&mut self) -> Result<Vec<(String, i64)>, Error> {
        self.read(|connection| {
            let query = "SELECT client, max(seen) FROM agent WHERE by_hooks GROUP BY client";
            let mut statement = connection.prepare(query)?;
            statement.query_map([], |row| Ok((text(row, 0)?, row.get(1)?)))?.collect()
        })
    }

    /// Collects the statistics of one scope, or of all.
    pub fn stats(&mut self, scope: Option<&Scope>, unix_ms: i64) -> Result<JournalStats, Error> {
        let name = scope.map(Scope::as_str);
        let [default, lead, all] = Recipient::FOR_LEAD;
        let listeners = self.listeners(scope);
        self.read(|connection| {
            Ok(JournalStats {
                schema: tables::version(connection)?,
                messages: connection.query_row(
                    "SELECT count(*) FROM message WHERE (?1 IS NULL OR scope = ?1) AND kind NOT LIKE 'mark-%'",
                    [name],
                    |row| row.get(0),
                )?,
                listeners: listeners.clone(),
                unread: connection
                    .prepare(
                        &format!("SELECT consumer, cursor.scope, touched,
                                (SELECT count(*) FROM message WHERE message.scope = cursor.scope
                                 AND message.seq > {POSITION} AND recipient IN (?2, ?3, ?4)
                                 AND kind NOT LIKE 'mark-%' AND (ttl IS NULL OR ts + ttl > ?5))
                         FROM cursor WHERE scope <> '*' AND (?1 IS NULL OR scope = ?1) ORDER BY consumer, cursor.scope"),
                    )?
                    .query_map(params![name, default, lead, all, unix_ms], unread)?
                    .collect::<rusqlite::Result<_>>()?,
                agents: agent_summaries(connection, name, SENDERS)?,
                open_questions: connection.query_row(
                    "SELECT count(*) FROM question WHERE answered IS NULL AND (?1 IS NULL OR scope = ?1)",
                    [name],
                    |row| row.get(0),
                )?,
            })
        })
    }

    /// The registered agents of all scopes, latest first. Names that only sent messages are left out: finding them requires
    /// reading every message.
    pub fn agent_summaries(&mut self) -> Result<Vec<AgentSummary>, Error> {
        self.read(|connection| agent_summaries(connection, None, ""))
    }

    /// The running listeners of a scope, or of all: their locks are held.
    pub fn listeners(&self, scope: Option<&Scope>) -> Vec<RunningListener> {
        doorbell::all(&self.home)
            .into_iter()
            .filter(|bell| doorbell::is_alive(bell))
            .filter_map(|bell| Some(RunningListener { owner: doorbell::owner(&bell)?, bell }))
            .filter(|listening| scope.is_none_or(|scope| listening.owner.scope == scope.as_str()))
            .collect()
    }

    /// The agent in a worktree, if there is exactly one live agent.
    pub fn agent_of_worktree(&mut self, worktree: &str) -> Result<Option<String>, Error> {
        self.read(|connection| agent_of_worktree(connection, worktree))
    }

    /// The agent with an id, a session id or a name.
    pub fn agent_named(&mut self, name: &str) -> Result<Option<String>, Error> {
        self.read(|connection| {
            connection.prepare(AGENT_NAMED)?.query_row([name], |row| text(row, 0)).optional()
        })
    }

    /// The messages of a scope that no consumer has read.
    pub fn never_read(&mut self, scope: &Scope) -> Result<Vec<Message>, Error> {
        self.select(
            &format!(
                "SELECT {COLUMNS} FROM message WHERE scope = ?1 AND kind NOT LIKE 'mark-%'
                 AND seq > coalesce((SELECT max({POSITION}) FROM cursor WHERE scope = ?1), 0) ORDER BY seq"
            ),
            &[&scope.as_str()],
            usize::MAX,
        )
    }

    /// Deletes a scope: its messages, cursors, questions, receipts and agents. Returns the ids of the messages, which the
    /// caller has to delete from the hub store.
    pub fn remove_scope(&mut self, scope: &Scope) -> Result<Vec<MessageId>, Error> {
        self.write(|transaction| {
            let name = [scope.as_str()];
            let mut select = transaction.prepare("SELECT id FROM message WHERE scope = ?1")?;
            let ids: Vec<String> = select.query_map(name, |row| text(row, 0))?.collect::<Result<_, _>>()?;
            transaction
                .prepare("DELETE FROM receipt WHERE seq IN (SELECT seq FROM message WHERE scope = ?1)")?
                .execute(name)?;
            for table in ["cursor", "question", "agent", "waiter", "lead"] {
                transaction.prepare(&format!("DELETE FROM {table} WHERE scope = ?1"))?.execute(name)?;
            }
            transaction.prepare("DELETE FROM message WHERE scope = ?1")?.execute(name)?;
            Ok(ids.iter().filter_map(|id| MessageId::parse(id).ok()).collect())
        })
    }
}

pub(crate) fn agent_of_worktree(connection: &Connection, worktree: &str) -> rusqlite::Result<Option<String>> {
    let mut agents: Vec<String> = connection
        .prepare_cached("SELECT id FROM agent WHERE worktree = ?1 AND state <> 'exited' LIMIT 2")?
        .query_map([worktree], |row| text(row, 0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(if agents.len() == 1 { agents.pop() } else { None })
}

fn unread(row: &Row<'_>) -> rusqlite::Result<UnreadCount> {
    Ok(UnreadCount {
        consumer: text(row, 0)?,
        scope: text(row, 1)?,
        touched_ms: row.get(2)?,
        messages: row.get(3)?,
    })
}

fn agent(row: &Row<'_>) -> rusqlite::Result<AgentSummary> {
    Ok(AgentSummary {
        id: text(row, 0)?,
        client: optional_text(row, 1)?,
        session_id: optional_text(row, 2)?,
        state: optional_text(row, 3)?,
        scope: text(row, 4)?,
        seen_ms: row.get(5)?,
        since_ms: row.get(6)?,
        cwd: optional_text(row, 7)?,
        surface: optional_text(row, 8)?,
        name: optional_text(row, 9)?,
        lead: row.get(10)?,
        running_tasks: row.get::<_, u32>(11)? as usize,
    })
}

impl Journal {
    /// Every directory from which a stored message was sent or in which a stored agent worked.
    pub fn working_directories(&mut self) -> Result<Vec<String>, Error> {
        self.read(|connection| {
            let query = "SELECT json_extract(origin, '$.cwd') AS directory FROM message
                         WHERE json_valid(origin) AND directory IS NOT NULL
                         UNION SELECT worktree FROM agent WHERE worktree IS NOT NULL
                         UNION SELECT cwd FROM agent WHERE cwd IS NOT NULL";
            connection.prepare(query)?.query_map([], |row| text(row, 0))?.collect()
        })
    }
}

/// The numbers in a status bar, which reads them many times a minute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusSummary {
    /// Number of unread notifications.
    pub unread: i64,
    /// Number of live agents in each state.
    pub agents: Vec<(String, i64)>,
}

impl Journal {
    /// Counts unread notifications and agents. Messages that no hub has read yet count as unread.
    pub fn status_summary(
        &mut self,
        mut hub_store: Option<&mut HubStore>,
        unix_ms: i64,
    ) -> Result<StatusSummary, Error> {
        let position = self.hub_position(hub_store.as_deref_mut())?;
        let (newest, until) = position.catch_up.map(|catch_up| (catch_up.newest, catch_up.until)).unzip();
        let until = until.unwrap_or_default();
        let stored = hub_store.map(HubStore::unread).transpose()?.unwrap_or_default();
        self.read(|connection| {
            let waiting: i64 = connection.query_row(
                "SELECT count(*) FROM message
                 WHERE seq > ?1 AND kind NOT LIKE 'mark-%' AND recipient IN (?2, ?3, ?4)
                   AND (ttl IS NULL OR ts + ttl > ?5) AND (seq > ?6 OR id > ?7)",
                params![
                    position.cursor.seq,
                    Recipient::Default.to_string(),
                    Recipient::Person.to_string(),
                    Recipient::All.to_string(),
                    unix_ms,
                    until,
                    newest
                ],
                |row| row.get(0),
            )?;
            let agents = connection
                .prepare(
                    "SELECT state, count(*) FROM agent WHERE state <> 'exited' GROUP BY state ORDER BY state",
                )?
                .query_map([], |row| Ok((text(row, 0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<_>>()?;
            Ok(StatusSummary { unread: stored + waiting, agents })
        })
    }
}
