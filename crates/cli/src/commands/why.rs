//! `ringer why`.

use ringer_core::message::Agent;
use ringer_hub::{Clock, explain, monotonic};
use ringer_ipc::Client;
use ringer_journal::HubStore;
use ringer_term::sanitise_line;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::{print_json, print_line, print_text};
use crate::{context, hub_client};

/// Explain how a notification was delivered, or why it was not
///
/// Examples:
///   ringer why 01997a3e-0a1b-7c2d-8e3f-0123456789ab
///   ringer why $(ringer list --json | jq -r 'first.id')
///   ringer why --agent claude-6be1e699
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Message id; `ringer list --all` shows them
    #[arg(required_unless_present = "agent")]
    id: Option<String>,
    /// Show this agent's state and the signal that decided it
    #[arg(long, value_name = "AGENT", conflicts_with = "id")]
    agent: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    match (&arguments.agent, &arguments.id) {
        (Some(agent), _) => explain_agent(agent, arguments.json),
        (None, Some(id)) => explain_message(id, arguments.json),
        (None, None) => Err(Failure::usage("no message given").hint("ringer list")),
    }
}

fn explain_agent(name: &str, as_json: bool) -> Outcome {
    let unknown = || {
        let what = format!("unknown agent {}", sanitise_line(name));
        Failure::new(Exit::Data, what).hint("ringer status")
    };
    let mut journal = context::existing_journal()?.ok_or_else(unknown)?;
    let id = journal.agent_named(name)?.ok_or_else(unknown)?;
    let agent = Agent::new(&id)?;
    let machine = journal.agent_machine(&agent)?.ok_or_else(unknown)?;
    let since = monotonic().saturating_sub(machine.since());
    let (state, by) = (machine.state().as_str(), machine.decided_by().as_str());
    if as_json {
        let seconds = since.as_secs();
        return print_json(&json!({ "agent": id, "state": state, "for_seconds": seconds, "decided_by": by }));
    }
    print_line(&format!("{id}: {state} for {} s (decided by {by})", since.as_secs()))
}

fn explain_message(id: &str, as_json: bool) -> Outcome {
    let home = context::home()?;
    // A hub that runs may know more than is written down yet; starting one would change nothing.
    let answer = match Client::connect(&home) {
        Ok(mut client) => Some(hub_client::ask(&mut client, "notification.why", &json!({ "id": id }))?),
        Err(_) => match context::existing_journal()? {
            Some(mut journal) => {
                let mut hub_store = HubStore::open_existing(&home)?;
                explain(&mut journal, hub_store.as_mut(), id, &Clock::local())?
            }
            None => None,
        },
    };
    let Some(answer) = answer else {
        let what = format!("unknown message {}", sanitise_line(id));
        return Err(Failure::new(Exit::Data, what).hint("ringer list --all"));
    };
    if as_json { print_json(&answer) } else { print_text(&format_text(&answer)) }
}

fn format_text(answer: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let mut lines = vec![format!(
        "{}  sent by {} to {}",
        text(&answer["sent"]),
        text(&answer["from"]),
        text(&answer["to"])
    )];
    let steps = answer["trail"].as_array().into_iter().flatten();
    lines.extend(steps.map(|step| format!("{}  {}", text(&step["ts"]), text(&step["text"]))));
    let receipts = answer["receipts"].as_array().into_iter().flatten();
    lines.extend(receipts.map(|receipt| {
        format!(
            "to {}: {} (queued {}, delivered {}, seen {})",
            text(&receipt["agent"]),
            text(&receipt["state"]),
            text(&receipt["queued"]),
            receipt["delivered"].as_str().unwrap_or("never"),
            receipt["seen"].as_str().unwrap_or("never")
        )
    }));
    if answer["taken"].as_bool() == Some(false) {
        lines.push("not processed by the hub yet; start it with: ringer hub start".to_owned());
    }
    lines.iter().map(|line| sanitise_line(line) + "\n").collect()
}
