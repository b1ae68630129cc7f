//! `ringer why`.

use ringer_core::message::{Agent, IdMatch};
use ringer_hub::{Clock, explain, monotonic};
use ringer_ipc::{HubClient, HubClientError};
use ringer_journal::HubStore;
use ringer_term::sanitise_line;
use serde_json::{Value, json};

use crate::failure::{Exit, Failure, Outcome};
use crate::output::{print_json, print_line, print_text};
use crate::{context, hub_client, notifications};

/// Explain how a notification was delivered, or why it was not
///
/// Examples:
///   ringer why
///   ringer why k3fx
///   ringer why --agent claude-6be1e699
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Agent, repository or message id, as `ringer list` shows them [default: the newest notification]
    #[arg(value_name = "WHO")]
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
        (None, id) => explain_message(id.as_deref().unwrap_or("last"), arguments.json),
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
    let state = state.replace("blocked on a ", "waiting for a ");
    print_line(&format!("{id}: {state} for {} s (reported by {by})", since.as_secs()))
}

pub(super) fn explain_message(text: &str, as_json: bool) -> Outcome {
    match explained(text)? {
        Some(answer) if as_json => print_json(&answer),
        Some(answer) => print_text(&format_text(&answer)),
        None => Err(unknown(text)),
    }
}

/// Returns the lines of the explanation, for the UI.
pub(crate) fn explained_lines(id: &str) -> Result<Vec<String>, Failure> {
    let answer = explained(id)?.ok_or_else(|| unknown(id))?;
    Ok(format_text(&answer).lines().map(str::to_owned).collect())
}

fn unknown(text: &str) -> Failure {
    if text == "last" {
        return Failure::new(Exit::Data, "there are no notifications").hint("ringer log");
    }
    let what = format!("unknown message {}", sanitise_line(text));
    Failure::new(Exit::Data, what).hint("ringer list --all")
}

fn explained(text: &str) -> Result<Option<Value>, Failure> {
    // A running hub may know more than has been written yet; starting one would change nothing.
    let answer = match HubClient::connect(&context::home()?) {
        Ok(mut client) => match client.call("notification.why", &json!({ "id": text })) {
            Ok(answer) => {
                hub_client::warn_if_behind(&client);
                Some(answer)
            }
            Err(HubClientError::Refused(refusal)) if refusal.code == "not_found" => None,
            Err(error) => return Err(hub_client::failure(error)),
        },
        Err(_) => None,
    };
    match answer {
        Some(answer) => Ok(Some(answer)),
        None => explain_without_hub(text),
    }
}

/// Also finds messages that a hub does not list: those between agents, and old ones.
fn explain_without_hub(text: &str) -> Result<Option<Value>, Failure> {
    let clock = Clock::local();
    let Some(mut journal) = context::existing_journal()? else { return Ok(None) };
    let list = notifications::read()?;
    let id = match notifications::named(&list, text, &clock)? {
        Some(id) => Some(id),
        None if text == "last" => None,
        None => match IdMatch::among(text, journal.message_ids()?.iter()) {
            IdMatch::One(id) => Some(id),
            IdMatch::Unknown => None,
            IdMatch::Several(ids) => {
                let ids: String = ids.iter().take(10).map(|id| format!("\n  {id}")).collect();
                let what = format!("{} fits several messages:{ids}", sanitise_line(text));
                return Err(Failure::usage(what).hint("type more of the id"));
            }
        },
    };
    let Some(id) = id else { return Ok(None) };
    let mut hub_store = HubStore::open_to_read(&context::home()?)?;
    let short_id = list.short_id(&id);
    Ok(explain(&mut journal, hub_store.as_mut(), id.as_str(), short_id.as_deref(), &clock)?)
}

fn format_text(answer: &Value) -> String {
    let sent = answer["sent"].as_str().unwrap_or_default();
    // A time on the day of sending needs no date.
    let time = |stamp: &Value| {
        let stamp = stamp.as_str().unwrap_or_default();
        let from = if stamp.get(..10) == sent.get(..10) { 11 } else { 0 };
        stamp.get(from..19).unwrap_or(stamp).replace('T', " ")
    };
    let mut lines = vec![heading(answer)];
    if let (Some(from), Some(to)) = (answer["from"].as_str(), answer["to"].as_str()) {
        let sent = sent.get(..19).unwrap_or(sent).replace('T', " ");
        lines.push(format!("  sent {sent} by {from} to {}", recipient(to)));
    }
    let steps = answer["trail"].as_array().into_iter().flatten();
    lines.extend(
        steps.map(|step| format!("  {}  {}", time(&step["ts"]), step["text"].as_str().unwrap_or_default())),
    );
    for receipt in answer["receipts"].as_array().into_iter().flatten() {
        let agent = receipt["agent"].as_str().unwrap_or_default();
        lines.push(match (receipt["seen"].is_string(), receipt["delivered"].is_string()) {
            (true, _) => format!("  {}  seen by {agent}", time(&receipt["seen"])),
            (false, true) => format!("  {}  delivered to {agent}, not seen yet", time(&receipt["delivered"])),
            (false, false) => {
                format!("  {}  queued for {agent}, not delivered yet", time(&receipt["queued"]))
            }
        });
        if receipt["known"].as_bool() == Some(false) {
            lines.push(format!("  no agent named {agent} is known"));
        }
    }
    if answer["taken"].as_bool() == Some(false) {
        lines.push("  not processed by the hub yet; start it with: ringer hub start".to_owned());
    }
    let is_open = answer["notification"]["is_open"] == true;
    lines.extend(answer["notification"]["is_read"].as_bool().map(|is_read| {
        let state = match (is_read, is_open) {
            (false, _) => "unread",
            (true, true) => "read, and still open",
            (true, false) => "read",
        };
        format!("  {state}")
    }));
    lines.iter().map(|line| sanitise_line(line) + "\n").collect()
}

/// Formats the notification as it was shown: hooks may have changed it since it was sent.
fn heading(answer: &Value) -> String {
    let shown = if answer["notification"].is_null() { answer } else { &answer["notification"] };
    let body = shown["body"].as_str().unwrap_or_default();
    let short_id = shown["short_id"].as_str().map(|id| format!("{id}  ")).unwrap_or_default();
    match shown["title"].as_str() {
        Some(title) => format!("{short_id}{title}: {body}"),
        None => format!("{short_id}{body}"),
    }
}

fn recipient(to: &str) -> String {
    match to {
        "default" => "you and the lead agent".to_owned(),
        "lead" => "the lead agent".to_owned(),
        "person" => "you".to_owned(),
        "all" => "you and all agents".to_owned(),
        other => other.strip_prefix("agent:").unwrap_or(other).to_owned(),
    }
}
