//! `ringer tell`.

use ringer_agents::client::Client;
use ringer_core::agent::AgentState;
use ringer_core::message::{Agent, ShownKind};
use ringer_journal::{AgentSummary, Journal};
use ringer_term::sanitise_line;
use serde_json::json;

use super::notify::{self, Notice};
use crate::agents;
use crate::context;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{eprint_line, print_json, print_line};

/// Write to an agent
///
/// An agent that works reads the text with its next tool result. One that is idle gets it as
/// its next prompt. While a prompt is open, the text waits until it is answered. Exits with 0
/// when the text is stored, and with 69 if the agent has ended.
///
/// Examples:
///   ringer tell api/auth "use the staging database"
///   git diff | ringer tell infra -
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The agent: its name, `repository/branch`, or id
    who: String,
    /// The text; `-` reads it from standard input
    #[arg(required = true)]
    text: Vec<String>,
    /// Print one JSON object with the id of the message
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let body = notify::body(&arguments.text.join(" "))?;
    // Its machine decides who is meant, and whether it takes messages.
    let is_elsewhere = arguments.who.contains('@');
    let found = if is_elsewhere { None } else { Some(agents::find(Some(&arguments.who))?) };
    let (to, reads_it) = match found {
        Some((agent, mut journal)) => {
            let reads_it = when_read(&agent, &mut journal)?;
            (format!("agent:{}", agent.id), reads_it)
        }
        None => (arguments.who.clone(), format!("{}: sent", arguments.who)),
    };
    let sent = notify::send(&Notice {
        body: &body,
        claim: &context::claim(None),
        kind: ShownKind::Status,
        question_id: None,
        title: None,
        subtitle: None,
        to: Some(&to),
        source: None,
        key: None,
        ttl: None,
    })?;
    // What it says of an idle agent is in the line below.
    for warning in sent.warnings.iter().filter(|warning| !warning.starts_with("note: ")) {
        eprint_line(warning);
    }
    if arguments.json {
        return print_json(&json!({ "id": sent.id.as_str(), "to": to }));
    }
    print_line(&sanitise_line(&reads_it))
}

/// Says when the agent reads a message. Fails if it never will.
fn when_read(agent: &AgentSummary, journal: &mut Journal) -> Result<String, Failure> {
    let who = agents::shown_name(agent);
    let state = journal.agent_state(&Agent::new(&agent.id)?)?;
    Ok(match state {
        Some(AgentState::Exited) => {
            let what = format!("{} has ended", sanitise_line(&who));
            return Err(Failure::new(Exit::Unavailable, what).hint("ringer status"));
        }
        Some(AgentState::Blocked(_)) => format!("{who}: reads it after your answer to its prompt"),
        Some(state) if state.is_busy() => format!("{who}: reads it with its next tool result"),
        _ => match agent.client.as_deref().and_then(|client| client.parse::<Client>().ok()) {
            Some(client) if !client.is_woken_by_messages() => {
                format!("{who}: reads it with your next prompt; {} cannot be woken", client.display_name())
            }
            _ => format!("{who}: idle, and gets it as its next prompt"),
        },
    })
}
