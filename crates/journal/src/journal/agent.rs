//! Agents: identity and location, and updates to their state.

pub(crate) mod apply;
pub(crate) mod update;

use std::time::Duration;

use ringer_core::agent::{AgentTimeouts, Signal};
use ringer_core::message::Agent;
use ringer_core::{Scope, Sender};
use rusqlite::Row;
use serde::{Deserialize, Serialize};

use crate::db::tables::{optional_text, text};
use crate::journal::inbox::ClaimedParts;

pub(crate) const AGENT_INFO: &str =
    "id, client, session_id, scope, worktree, cwd, surface, manager, name, pid, started, by_hooks";

/// Client name of an agent without hooks, which is only known from its terminal.
pub const TERMINAL_CLIENT: &str = "terminal";

/// Identity and location of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentInfo {
    /// The agent's id.
    #[serde(rename = "agent")]
    pub id: Agent,
    /// The client program.
    pub client: String,
    /// The client's session.
    pub session_id: String,
    /// Id of the repository it works in.
    pub scope: Scope,
    /// Its worktree.
    pub worktree: Option<String>,
    /// Name of the repository. Only its hooks know it; not stored in the table.
    #[serde(default)]
    pub repository: Option<String>,
    /// The branch. Only its hooks know it; not stored in the table.
    #[serde(default)]
    pub branch: Option<String>,
    /// Its current directory.
    pub cwd: Option<String>,
    /// The surface it is on.
    pub surface: Option<String>,
    /// Terminal device of that surface.
    pub tty: Option<String>,
    /// The agent that manages it.
    pub manager: Option<Agent>,
    /// Its display name.
    pub name: Option<String>,
    /// PID and start time of its process.
    pub process: Option<(u32, u64)>,
    /// It reports by hooks.
    pub by_hooks: bool,
    /// It replaces the other sessions of its process. Only its hooks know it; not stored in the table.
    #[serde(default)]
    pub replaces_others: bool,
}

impl AgentInfo {
    /// An agent without hooks, of which nothing else is known.
    pub fn new(id: Agent, client: impl Into<String>, session_id: impl Into<String>, scope: Scope) -> Self {
        Self {
            id,
            client: client.into(),
            session_id: session_id.into(),
            scope,
            worktree: None,
            repository: None,
            branch: None,
            cwd: None,
            surface: None,
            tty: None,
            manager: None,
            name: None,
            process: None,
            by_hooks: false,
            replaces_others: false,
        }
    }
}

impl AgentInfo {
    /// The sender of its messages: its name if it has one that is not reserved, else its id.
    pub(crate) fn sender(&self) -> Sender {
        let name = self.name.as_deref().filter(|name| !Sender::is_reserved(name));
        let name = name.and_then(|name| Sender::new(name).ok());
        name.or_else(|| Sender::new(self.id.as_str()).ok()).unwrap_or_else(Sender::system)
    }
}

/// Signals about an agent that are applied together.
#[derive(Debug)]
pub struct AgentUpdate<'a> {
    /// The agent.
    pub agent: &'a AgentInfo,
    /// The signals, in order.
    pub signals: &'a [Signal],
    /// Time of the signals, on the monotonic clock.
    pub mono: Duration,
    /// How long without a signal an agent counts as stuck or idle.
    pub timeouts: AgentTimeouts,
    /// The update may send messages. Subagents send none.
    pub notify: bool,
}

/// The result of an update.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentChange {
    /// Something was written.
    pub written: bool,
    /// Number of messages sent.
    pub messages_sent: usize,
    /// Messages that enter the agent's turn now, if they were requested.
    pub claimed: Option<ClaimedParts>,
}

/// Reads a row of [`AGENT_INFO`]. `None` if its id is damaged.
pub(crate) fn agent_info(row: &Row<'_>) -> rusqlite::Result<Option<AgentInfo>> {
    let Ok(id) = Agent::new(&text(row, 0)?) else { return Ok(None) };
    let (pid, started): (Option<i64>, Option<i64>) = (row.get(9)?, row.get(10)?);
    let pid = pid.and_then(|pid| pid.try_into().ok());
    Ok(Some(AgentInfo {
        id,
        client: text(row, 1)?,
        session_id: text(row, 2)?,
        scope: Scope::new(&text(row, 3)?).unwrap_or_else(|_| Scope::global()),
        worktree: optional_text(row, 4)?,
        repository: None,
        branch: None,
        cwd: optional_text(row, 5)?,
        surface: optional_text(row, 6)?,
        tty: None,
        manager: optional_text(row, 7)?.and_then(|id| Agent::new(&id).ok()),
        name: optional_text(row, 8)?,
        process: pid.zip(started.and_then(|started| started.try_into().ok())),
        by_hooks: row.get(11)?,
        replaces_others: false,
    }))
}
