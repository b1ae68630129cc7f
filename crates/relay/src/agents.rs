//! The list of a machine's agents for other machines. It is sent whole whenever it changes.

use std::path::Path;

use ringer_core::message::validate_name;
use ringer_journal::{AgentSummary, Error, Journal};
use serde::{Deserialize, Serialize};

use crate::import::ImportRules;

/// The most agents in a list; more than run on one machine.
pub(crate) const MAX_AGENTS: usize = 256;

/// An agent that runs on a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WireAgent {
    /// The id of the agent.
    pub id: String,
    /// The name that people use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The client program.
    pub client: String,
    /// The state of the agent.
    pub state: String,
    /// When the state began, in milliseconds since 1970.
    pub since_ms: i64,
    /// The name of its working directory, without the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The surface of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
}

/// Returns all agents that run on this machine.
pub(crate) fn own_agents(journal: &mut Journal) -> Result<Vec<WireAgent>, Error> {
    let wire = |agent: AgentSummary| {
        let state = agent.state.filter(|state| state != "exited")?;
        let directory =
            agent.cwd.as_deref().and_then(|cwd| Path::new(cwd).file_name()?.to_str().map(str::to_owned));
        Some(WireAgent {
            id: agent.id,
            name: agent.name,
            client: agent.client.unwrap_or_default(),
            state,
            since_ms: agent.since_ms.unwrap_or(agent.seen_ms),
            directory,
            surface: agent.surface,
        })
    };
    Ok(journal.agent_summaries()?.into_iter().filter_map(wire).collect())
}

/// Converts the agents of another machine to their names here. Agents with an invalid name are left out.
pub(crate) fn import_agents(rules: &ImportRules, agents: Vec<WireAgent>) -> Vec<WireAgent> {
    let own = |agent: WireAgent| {
        let name = agent.name.as_deref().map(|name| rules.named(name));
        let id = rules.named(&agent.id);
        // The names are also checked without the machine: an empty one would pass with it.
        let texts = [Some(&agent.id), Some(&id), agent.name.as_ref(), name.as_ref()];
        let texts = texts.into_iter().chain([Some(&agent.state), agent.directory.as_ref()]);
        let is_allowed = |text: &String| validate_name("agent", text).is_ok();
        if !texts.flatten().all(is_allowed) {
            return None;
        }
        Some(WireAgent {
            id,
            name,
            client: agent.client.chars().take(40).collect(),
            state: agent.state,
            since_ms: agent.since_ms.saturating_add(rules.clock_ahead_ms),
            directory: agent.directory.map(|directory| format!("{}:{directory}", rules.machine)),
            surface: agent.surface.map(|surface| rules.surface(&surface)),
        })
    };
    agents.into_iter().take(MAX_AGENTS).filter_map(own).collect()
}
