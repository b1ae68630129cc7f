//! Agents on the command line: the one that a person names, and those of other machines.

use std::path::Path;

use ringer_core::message::About;
use ringer_hub::Clock;
use ringer_journal::{AgentSummary, Home, Journal, Repository};
use ringer_relay::{MachineAgents, WireAgent};
use ringer_term::sanitise_line;
use ringer_ui::state_word;
use serde::Serialize;
use serde_json::{Value, json};

use crate::context;
use crate::failure::{Exit, Failure};

/// The most agents that an error lists.
const MAX_LISTED: usize = 12;

/// Finds an agent by id, session, name, or part of its id, name or label. Without `words`, returns the only agent that runs in
/// this repository.
pub(crate) fn find(words: Option<&str>) -> Result<(AgentSummary, Journal), Failure> {
    let none = || Failure::new(Exit::Data, "no agent has reported yet").hint("ringer setup");
    let mut journal = context::existing_journal()?.ok_or_else(none)?;
    let agents = journal.agent_summaries()?;
    if agents.is_empty() {
        return Err(none());
    }
    let agent = match words {
        Some(words) => named(words, &agents, &mut journal)?,
        None => only_one_here(&agents)?,
    };
    Ok((agent, journal))
}

fn named(words: &str, agents: &[AgentSummary], journal: &mut Journal) -> Result<AgentSummary, Failure> {
    let id = journal.agent_named(words)?;
    if let Some(agent) = agents.iter().find(|agent| id.as_deref() == Some(&agent.id)) {
        return Ok(agent.clone());
    }
    let has = |text: &str| text.to_lowercase().contains(&words.to_lowercase());
    let is_meant = |agent: &&AgentSummary| {
        has(&agent.id)
            || agent.name.as_deref().is_some_and(has)
            || label(agent).is_some_and(|label| has(&label))
    };
    let meant: Vec<&AgentSummary> = agents.iter().filter(is_meant).collect();
    let running: Vec<&AgentSummary> = meant.iter().copied().filter(|agent| runs(agent)).collect();
    // A running agent takes precedence over those that have ended.
    match (running.as_slice(), meant.as_slice()) {
        ([one], _) | ([], [one]) => Ok((*one).clone()),
        ([], []) => {
            let what = format!("unknown agent {words:?}; known are:{}", listed(agents));
            Err(Failure::new(Exit::Data, what).hint("ringer status"))
        }
        ([], several) | (several, _) => {
            let several: Vec<AgentSummary> = several.iter().map(|agent| (*agent).clone()).collect();
            Err(several_fit(&format!("{words:?} fits {} agents", several.len()), &several))
        }
    }
}

fn only_one_here(agents: &[AgentSummary]) -> Result<AgentSummary, Failure> {
    let scope = context::scope(context::repository().as_ref());
    let is_here = |agent: &&AgentSummary| agent.scope == scope.as_str() && runs(agent);
    let here: Vec<&AgentSummary> = agents.iter().filter(is_here).collect();
    match here.as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(several_fit("no agent runs in this repository; others are", agents)),
        here => {
            let here: Vec<AgentSummary> = here.iter().map(|agent| (*agent).clone()).collect();
            Err(several_fit(&format!("{} agents run in this repository", here.len()), &here))
        }
    }
}

fn several_fit(what: &str, agents: &[AgentSummary]) -> Failure {
    let first = agents.iter().find(|agent| runs(agent)).or(agents.first());
    let first = first.map(|agent| agent.name.clone().unwrap_or_else(|| agent.id.clone())).unwrap_or_default();
    Failure::usage(format!("{what}:{}", listed(agents)))
        .hint(format!("ringer show {}", sanitise_line(&first)))
}

/// Lists the running agents, one per line, or all if none runs.
fn listed(agents: &[AgentSummary]) -> String {
    let running: Vec<&AgentSummary> = agents.iter().filter(|agent| runs(agent)).collect();
    let shown = if running.is_empty() { agents.iter().collect() } else { running };
    let line = |agent: &&AgentSummary| {
        let name = agent.name.as_deref().map(|name| format!("  {name}")).unwrap_or_default();
        let label = label(agent).map(|label| format!("  {label}")).unwrap_or_default();
        let state = agent.state.as_deref().map(|state| state_word(state, None)).unwrap_or_default();
        format!("\n  {}", sanitise_line(&format!("{}{name}{label}  {state}", agent.id)))
    };
    let lines: String = shown.iter().take(MAX_LISTED).map(line).collect();
    match shown.len().saturating_sub(MAX_LISTED) {
        0 => lines,
        more => format!("{lines}\n  and {more} more"),
    }
}

fn runs(agent: &AgentSummary) -> bool {
    agent.state.as_deref() != Some("exited")
}

fn label(agent: &AgentSummary) -> Option<String> {
    agent.cwd.as_deref().and_then(|cwd| label_of(Path::new(cwd)))
}

/// Returns an agent's name as lists show it: its given name, `repository/branch`, or its id.
pub(crate) fn shown_name(agent: &AgentSummary) -> String {
    agent.name.clone().or_else(|| label(agent)).unwrap_or_else(|| agent.id.clone())
}

/// Returns the repository and branch around a directory: `api/auth`.
pub(crate) fn label_of(cwd: &Path) -> Option<String> {
    let repository = Repository::around(cwd);
    let directory = || cwd.file_name().map(|name| name.to_string_lossy().into_owned());
    let about = About {
        repository: repository.as_ref().and_then(Repository::name).or_else(directory),
        branch: repository.as_ref().and_then(Repository::branch),
        ..About::default()
    };
    about.label()
}

/// The number of agents that a machine has but does not list.
#[derive(Debug, Serialize)]
pub(crate) struct UnlistedAgents {
    pub(crate) machine: String,
    pub(crate) count: usize,
}

/// Returns the agents of all machines in the form of the hub's list, with their machine. Agents of a machine that is not
/// connected have no state, because it is unknown.
pub(crate) fn remote_agents(home: &Home, clock: &Clock) -> (Vec<Value>, Vec<UnlistedAgents>) {
    let machines = MachineAgents::all(home);
    let views = machines
        .iter()
        .flat_map(|machine| machine.agents.iter().map(move |agent| remote_agent(machine, agent, clock)))
        .collect();
    let has_more = machines.into_iter().filter(|machine| machine.is_connected && machine.unlisted > 0);
    let unlisted =
        has_more.map(|MachineAgents { machine, unlisted: count, .. }| UnlistedAgents { machine, count });
    (views, unlisted.collect())
}

fn remote_agent(machine: &MachineAgents, agent: &WireAgent, clock: &Clock) -> Value {
    json!({
        "id": agent.id,
        "client": agent.client,
        "session_id": null,
        "state": machine.is_connected.then_some(&agent.state),
        "since": clock.stamp(agent.since_ms),
        "cwd": agent.directory,
        "surface": agent.surface,
        "lead": false,
        "name": agent.name,
        "scope": null,
        "last_seen": clock.stamp(machine.told_ms),
        "machine": machine.machine,
        "connected": machine.is_connected,
    })
}

/// Calls `changed` whenever a machine reports its agents, connects or disconnects. Returns if the system cannot watch for it.
#[cfg(target_os = "linux")]
pub(crate) fn follow_remote_agents(home: &Home, changed: &dyn Fn()) {
    let Ok(directory) = ringer_platform::DirectoryChanges::begin([home.path()].into_iter()) else { return };
    while let Ok(paths) = directory.wait() {
        if paths.iter().any(|path| MachineAgents::depend_on(path)) {
            changed();
        }
    }
}

/// Not watched on this system: the agents are read together with everything else.
#[cfg(not(target_os = "linux"))]
pub(crate) fn follow_remote_agents(_home: &Home, _changed: &dyn Fn()) {}
