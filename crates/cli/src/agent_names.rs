//! Resolves the agent that a person names on the command line.

use std::path::Path;

use ringer_core::message::About;
use ringer_journal::{AgentSummary, Journal, Repository};
use ringer_term::sanitise_line;
use ringer_ui::state_word;

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
