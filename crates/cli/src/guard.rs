//! An agent must not answer in place of the person. This is a guard against agents that try, and no wall against programs of
//! the same user.

use std::env;

use ringer_core::message::{Agent, Recipient, Tag};
use ringer_core::{Draft, Kind, Scope, Sender};
use ringer_journal::{Caller, IdSource, Journal, StoredPrompt};
use ringer_term::sanitise_line;

use crate::exit::Exit;
use crate::failure::Failure;

/// Variables that agents set for what they run. They count only where the processes above cannot be read.
const OF_AGENTS: [&str; 4] = ["RINGER_AGENT", "CLAUDECODE", "CODEX_THREAD_ID", "GEMINI_CLI"];

/// The category of the notification that an agent tried to do what only a person may do.
const REFUSED: &str = "agent_refused";

/// Who decides on a prompt: the person, or the lead of its scope if the person allows that.
pub(crate) fn decider(journal: &mut Journal, prompt: &StoredPrompt) -> Result<Sender, Failure> {
    let Some(agent) = calling_agent(journal)? else { return Ok(Sender::person()) };
    if journal.lead(&prompt.scope)?.may_answer(&agent, &prompt.agent) {
        return Ok(Sender::new(agent.as_str())?);
    }
    let what = format!("answer what {} asks", prompt.agent.as_str());
    let failure = refuse(journal, &agent, &prompt.scope, &what);
    Err(failure
        .hint("only a person may do that; they can allow it to the lead agent: ringer lead --may-decide"))
}

/// Refuses what only a person may do, if an agent calls.
pub(crate) fn only_a_person(journal: &mut Journal, scope: &Scope, what: &str) -> Result<(), Failure> {
    match calling_agent(journal)? {
        None => Ok(()),
        Some(agent) => Err(refuse(journal, &agent, scope, what)
            .hint("only a person may do that, in a terminal of their own")),
    }
}

/// Returns true if a variable says that a client started this process, also one whose hooks are not set up.
pub(crate) fn is_in_environment_of_agent() -> bool {
    OF_AGENTS.iter().any(|name| env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// Whether an agent calls this command.
pub(crate) fn is_agent(journal: &mut Journal) -> Result<bool, Failure> {
    Ok(calling_agent(journal)?.is_some())
}

/// The agent that calls this command, if one does.
fn calling_agent(journal: &mut Journal) -> Result<Option<Agent>, Failure> {
    Ok(match journal.caller(std::process::id())? {
        Caller::Agent(agent) => Some(agent),
        Caller::Unknown => {
            let named =
                OF_AGENTS.iter().find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()));
            named.map(|name| Agent::new(&name).or_else(|_| Agent::new("agent"))).transpose()?
        }
        _ => None,
    })
}

/// Tells the person, and gives the error for the agent.
fn refuse(journal: &mut Journal, agent: &Agent, scope: &Scope, what: &str) -> Failure {
    let agent = agent.as_str();
    let text = format!("{agent} tried to {what}, which only a person may do. It was refused.");
    let sender = Sender::new(agent).unwrap_or_else(|_| Sender::system());
    let mut draft = Draft::tagged(scope.clone(), sender, Tag::Notice(Kind::Error), &text);
    draft.recipient = Recipient::Person;
    draft.category = Some(REFUSED.to_owned());
    // An agent that tries again and again is told of once.
    draft.key = Some(REFUSED.to_owned());
    // The refusal holds also where it cannot be told.
    let _ = journal.append(&draft, &IdSource::now());
    Failure::new(Exit::NoPermission, format!("an agent ({}) must not {what}", sanitise_line(agent)))
}
