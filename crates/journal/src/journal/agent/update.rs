//! Updates and queries of agents.

use std::collections::HashMap;
use std::time::Duration;

use ringer_core::agent::{AgentMachine, AgentState, AgentTimeouts};
use ringer_core::message::{Agent, SessionNonce};
use rusqlite::{Connection, OptionalExtension};

use super::apply::{apply_signals, row, save_machine};
use super::{AGENT_INFO, AgentChange, AgentInfo, AgentUpdate, agent_info};
use crate::db::tables::{optional_text, text};
use crate::error::Error;
use crate::ids::IdSource;
use crate::journal::inbox::{self, InboxUpdate};
use crate::journal::schema::{self, Journal};
use crate::running_tools::RunningTools;

/// How often a signal is written that only updates the time of the last signal. Much shorter than the time after which an agent
/// counts as stuck.
const ALIVE_EVERY: Duration = Duration::from_mins(1);

/// The live agents.
#[derive(Debug)]
pub struct LiveAgents {
    /// Each agent with its state.
    pub agents: Vec<(AgentInfo, AgentState)>,
    /// When a timeout may next change one of them, on the monotonic clock.
    pub deadline: Option<Duration>,
}

impl Journal {
    /// Applies signals to an agent's state machine. The row, the messages and the claim on the inbox are written in one
    /// transaction. Writes nothing if nothing changes.
    pub fn update_agent(
        &mut self,
        update: &AgentUpdate<'_>,
        claim: Option<&InboxUpdate<'_>>,
        stamp: &IdSource,
    ) -> Result<AgentChange, Error> {
        if self.read(|connection| nothing_changes(connection, update, claim, stamp))? {
            return Ok(AgentChange::default());
        }
        let (change, bells) = self.write(|transaction| {
            let (messages_sent, bells) = apply_signals(transaction, update, &mut { *stamp }, None)?;
            let agent = update.agent.id.as_str();
            let claimed =
                claim.map(|claim| inbox::claim(transaction, agent, claim, stamp)).transpose()?.flatten();
            Ok((AgentChange { written: true, messages_sent, claimed }, bells))
        })?;
        self.wake(&bells);
        Ok(change)
    }

    /// Applies timeouts to agents whose deadline has passed. Returns the number of messages sent.
    pub fn tick_agents(
        &mut self,
        mono: Duration,
        timeouts: AgentTimeouts,
        stamp: &IdSource,
    ) -> Result<usize, Error> {
        let tools = RunningTools::of(&self.home);
        let (messages_sent, bells) = self.write(|transaction| {
            let (mut messages_sent, mut bells) = (0, Vec::new());
            let live = live(transaction)?.into_iter();
            let resumed = live.map(|(of, machine)| (of, machine.resume(mono, timeouts)));
            let due = resumed
                .filter(|(_, machine)| machine.next_deadline().is_some_and(|deadline| deadline <= mono));
            let mut stamp = *stamp;
            for (of, mut machine) in due {
                if machine.is_silent(mono) && tools.has_any(&of.id) {
                    machine.tool_runs(mono);
                    save_machine(transaction, &of.id, &machine)?;
                }
                let update = AgentUpdate { agent: &of, signals: &[], mono, timeouts, notify: true };
                let (more, rung) = apply_signals(transaction, &update, &mut stamp, None)?;
                messages_sent += more;
                bells.extend(rung);
            }
            Ok((messages_sent, bells))
        })?;
        self.wake(&bells);
        Ok(messages_sent)
    }

    /// The state of an agent.
    pub fn agent_state(&mut self, agent: &Agent) -> Result<Option<AgentState>, Error> {
        Ok(self.agent_machine(agent)?.map(|machine| machine.state()))
    }

    /// The state of an agent and since when it lasts, in milliseconds since 1970.
    pub fn agent_state_since(&mut self, agent: &Agent) -> Result<Option<(AgentState, i64)>, Error> {
        let row = self.read(|connection| {
            let query = "SELECT machine, since FROM agent WHERE id = ?1";
            connection.query_row(query, [agent.as_str()], |row| Ok((text(row, 0)?, row.get(1)?))).optional()
        })?;
        Ok(row.and_then(|(machine, since_ms)| {
            Some((serde_json::from_str::<AgentMachine>(&machine).ok()?.state(), since_ms))
        }))
    }

    /// The state machine of an agent.
    pub fn agent_machine(&mut self, agent: &Agent) -> Result<Option<AgentMachine>, Error> {
        let machine = self.read(|connection| {
            connection
                .query_row("SELECT machine FROM agent WHERE id = ?1", [agent.as_str()], |row| text(row, 0))
                .optional()
        })?;
        Ok(machine.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Identity and location of an agent.
    pub fn agent_info(&mut self, agent: &Agent) -> Result<Option<AgentInfo>, Error> {
        self.read(|connection| {
            let mut statement =
                connection.prepare(&format!("SELECT {AGENT_INFO} FROM agent WHERE id = ?1"))?;
            Ok(statement.query_row([agent.as_str()], agent_info).optional()?.flatten())
        })
    }

    /// The processes registered for agents, by PID and start time, including exited ones. A process stays registered when its
    /// session reports that it has ended or has another process, because its tools could report that, too.
    pub fn agent_processes(&mut self) -> Result<HashMap<(u32, u64), Agent>, Error> {
        self.read(|connection| {
            let mut statement = connection.prepare("SELECT pid, started, agent FROM agent_process")?;
            let mut rows = statement.query([])?;
            let mut processes = HashMap::new();
            while let Some(row) = rows.next()? {
                let started: i64 = row.get(1)?;
                if let (Ok(started), Ok(agent)) = (u64::try_from(started), Agent::new(&text(row, 2)?)) {
                    processes.insert((row.get(0)?, started), agent);
                }
            }
            Ok(processes)
        })
    }

    /// The live agent that was last seen on a surface.
    pub fn agent_on(&mut self, surface: &str) -> Result<Option<AgentInfo>, Error> {
        self.read(|connection| {
            let found = connection.query_row(
                &format!(
                    "SELECT {AGENT_INFO} FROM agent WHERE surface = ?1 AND state <> 'exited' ORDER BY seen DESC LIMIT 1"
                ),
                [surface],
                agent_info,
            );
            Ok(found.optional()?.flatten())
        })
    }

    /// Returns true if an agent with hooks ended on a surface within a duration before or after a time.
    pub fn agent_ended_on(&mut self, surface: &str, unix_ms: i64, within: Duration) -> Result<bool, Error> {
        let within = i64::try_from(within.as_millis()).unwrap_or(i64::MAX);
        self.read(|connection| {
            connection.query_row(
                "SELECT EXISTS (SELECT 1 FROM agent WHERE surface = ?1 AND state = 'exited' AND by_hooks
                     AND seen BETWEEN ?2 AND ?3)",
                (surface, unix_ms.saturating_sub(within), unix_ms.saturating_add(within)),
                |row| row.get(0),
            )
        })
    }

    /// All live agents, and when a timeout may next change one of them.
    pub fn live_agents(&mut self, mono: Duration, timeouts: AgentTimeouts) -> Result<LiveAgents, Error> {
        let live = self.read(live)?;
        let mut deadline = None;
        let agents = live.into_iter().map(|(agent_info, machine)| {
            let state = machine.state();
            deadline = [deadline, machine.resume(mono, timeouts).next_deadline()].into_iter().flatten().min();
            (agent_info, state)
        });
        Ok(LiveAgents { agents: agents.collect(), deadline })
    }

    /// The nonce that marks an agent's notifications as genuine to its session; `None` if the session has none.
    pub fn session_nonce(&mut self, agent: &Agent) -> Result<Option<SessionNonce>, Error> {
        let text: Option<String> = self.read(|connection| {
            let query = "SELECT nonce FROM agent WHERE id = ?1";
            let nonce = connection.prepare(query)?.query_row([agent.as_str()], |row| optional_text(row, 0));
            nonce.optional().map(Option::flatten)
        })?;
        Ok(text.and_then(|text| text.parse().ok()))
    }

    /// Removes a nonce that did not reach the session.
    pub fn forget_nonce(&mut self, agent: &Agent, nonce: &SessionNonce) -> Result<(), Error> {
        self.write(|transaction| {
            transaction
                .prepare("UPDATE agent SET nonce = NULL WHERE id = ?1 AND nonce = ?2")?
                .execute([agent.as_str(), &nonce.to_string()])
                .map(drop)
        })
    }

    /// The note about an agent: a value that a process stores for the next one. It is deleted with its agent.
    pub fn agent_note(&mut self, agent: &Agent) -> Result<Option<String>, Error> {
        self.read(|connection| schema::note(connection, &note_name(agent)))
    }

    /// Stores a note about an agent in place of the one before.
    pub fn set_agent_note(&mut self, agent: &Agent, value: &str) -> Result<(), Error> {
        self.write(|transaction| schema::set_note(transaction, &note_name(agent), value))
    }

    /// How often in a row the agent's stop was blocked.
    pub fn blocks(&mut self, agent: &Agent) -> Result<i64, Error> {
        self.read(|connection| {
            let query = "SELECT blocks FROM agent WHERE id = ?1";
            let blocks = connection.query_row(query, [agent.as_str()], |row| row.get(0));
            blocks.optional().map(Option::unwrap_or_default)
        })
    }
}

/// Returns true if an update need not be written: the state does not change, the inbox has nothing to deliver or confirm, and the
/// last signal was written less than [`ALIVE_EVERY`] ago.
pub(crate) fn nothing_changes(
    connection: &Connection,
    update: &AgentUpdate<'_>,
    claim: Option<&InboxUpdate<'_>>,
    stamp: &IdSource,
) -> rusqlite::Result<bool> {
    let Some(row) = row(connection, update)? else { return Ok(false) };
    let mut machine = row.machine.clone();
    let changes = update.signals.iter().any(|signal| !machine.apply(update.mono, signal).is_empty());
    let same = !changes && machine.is_unchanged(&row.machine, ALIVE_EVERY);
    if !same || row.moved {
        return Ok(false);
    }
    Ok(!inbox::would_change(connection, update.agent.id.as_str(), claim, stamp)?)
}

fn note_name(agent: &Agent) -> String {
    format!("agent:{}", agent.as_str())
}

/// The live agents with their state machines.
fn live(connection: &Connection) -> rusqlite::Result<Vec<(AgentInfo, AgentMachine)>> {
    let mut statement = connection
        .prepare(&format!("SELECT {AGENT_INFO}, machine FROM agent WHERE state <> 'exited' ORDER BY seen"))?;
    let mut rows = statement.query([])?;
    let mut live = Vec::new();
    while let Some(row) = rows.next()? {
        // Skips a damaged row. The agent's next event rewrites it.
        live.extend(agent_info(row)?.zip(serde_json::from_str(&text(row, 12)?).ok()));
    }
    Ok(live)
}
