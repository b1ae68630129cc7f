//! What is known about an agent, and updates of it.

use std::time::Duration;

use ringer_core::agent::{AgentTimeouts, Signal};
use ringer_core::message::Agent;
use ringer_core::{Scope, Sender};
use rusqlite::Row;
use serde::{Deserialize, Serialize};

use crate::db::column::{optional_text, text};
use crate::journal::inbox::Claimed;

pub(super) const AGENT_INFO: &str =
    "id, client, session_id, scope, worktree, cwd, surface, manager, name, pid, started, by_hooks";

/// The client of an agent without hooks, of which only the terminal is known.
pub const TERMINAL_CLIENT: &str = "terminal";

/// What is known about an agent: who it is and where it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentInfo {
    /// Its id.
    #[serde(rename = "agent")]
    pub id: Agent,
    /// The client program.
    pub client: String,
    /// The client's session.
    pub session_id: String,
    /// The repository it works in.
    pub scope: Scope,
    /// Its worktree.
    pub worktree: Option<String>,
    /// The name of the repository. Known to its hooks only, and not stored with the agent.
    #[serde(default)]
    pub repository: Option<String>,
    /// The branch; as the repository's name.
    #[serde(default)]
    pub branch: Option<String>,
    /// Its current directory.
    pub cwd: Option<String>,
    /// The surface it is on.
    pub surface: Option<String>,
    /// The terminal of that surface.
    pub tty: Option<String>,
    /// The agent it works for.
    pub manager: Option<Agent>,
    /// What people call it.
    pub name: Option<String>,
    /// Its process, and when that started.
    pub process: Option<(u32, u64)>,
    /// Whether it reports by hooks.
    pub by_hooks: bool,
    /// Whether the other sessions of its process have been left for it. Known to its hooks only, and not stored with the agent.
    #[serde(default)]
    pub replaces_others: bool,
}

impl AgentInfo {
    /// An agent of which nothing else is known, and which does not report by hooks.
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
    /// Whom its messages are from: its name, if it was given one that is free to use, or else its id.
    pub(crate) fn sender(&self) -> Sender {
        let name = self.name.as_deref().filter(|name| !Sender::is_reserved(name));
        let name = name.and_then(|name| Sender::new(name).ok());
        name.or_else(|| Sender::new(self.id.as_str()).ok()).unwrap_or_else(Sender::system)
    }
}

/// Signals of one agent, applied together at one moment.
#[derive(Debug)]
pub struct AgentUpdate<'a> {
    /// The agent.
    pub agent: &'a AgentInfo,
    /// What they say, in order.
    pub signals: &'a [Signal],
    /// When, on the monotonic clock.
    pub mono: Duration,
    /// After which times without a signal the agent counts as stuck or idle.
    pub timeouts: AgentTimeouts,
    /// Whether messages are sent about it. Subagents send none.
    pub notify: bool,
}

/// What became of signals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentChange {
    /// Whether something was written.
    pub written: bool,
    /// How many messages it made.
    pub messages_sent: usize,
    /// What enters the agent's turn now, if it was asked for.
    pub claimed: Option<Claimed>,
}

/// `None` for a row whose id is none any more.
pub(super) fn agent_info(row: &Row<'_>) -> rusqlite::Result<Option<AgentInfo>> {
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
