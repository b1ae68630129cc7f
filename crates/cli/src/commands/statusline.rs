//! `ringer statusline`.

use std::io::{self, IsTerminal, Read};

use ringer_agents::client::{Client, Status, agent_id};
use ringer_ipc::tell;
use ringer_journal::{HubStore, IdSource, Journal, LockTimeout, StatusSummary};
use ringer_term::tmux_text;
use serde_json::{Value, json};

use crate::failure::Outcome;
use crate::output::{print_json, print_line};
use crate::place;

/// How much of a client's status is read.
const MAX_INPUT: u64 = 256 * 1024;

/// Print one line for a status bar: unread count and agent states
///
/// Examples:
///   ringer statusline            # Claude Code: "statusLine": {"type": "command", "command": "ringer statusline claude"}
///   ringer statusline tmux       # tmux: set -g status-right '#(ringer statusline tmux)'
///   ringer statusline waybar     # waybar: "return-type": "json"
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Format: plain, claude, tmux, starship or waybar
    #[arg(default_value = "plain", value_parser = ["plain", "claude", "tmux", "starship", "waybar"])]
    form: String,
    /// Print the counts as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let home = place::home()?;
    let summary = match Journal::open_existing_with(&home, LockTimeout::HOOK)? {
        Some(mut journal) => {
            if arguments.form == "claude" {
                pass_on(&mut journal);
            }
            journal.status_summary(HubStore::open_existing(&home)?.as_mut(), IdSource::now().unix_ms)?
        }
        None => StatusSummary::default(),
    };
    if arguments.json {
        return print_json(&json!({ "unread": summary.unread, "agents": states(&summary) }));
    }
    let line = words(&summary);
    match arguments.form.as_str() {
        "waybar" => print_json(&json!({
            "text": line,
            "tooltip": format!("{} unread notifications", summary.unread),
            "class": if summary.unread > 0 { "unread" } else { "quiet" },
        })),
        // A prompt or a bar with nothing to say shows nothing.
        "tmux" | "starship" if line.is_empty() => Ok(()),
        "tmux" => print_line(&tmux_text(&line)),
        _ => print_line(&line),
    }
}

fn states(summary: &StatusSummary) -> Value {
    summary
        .agents
        .iter()
        .map(|(state, count)| (state.clone(), json!(count)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn words(summary: &StatusSummary) -> String {
    let unread = (summary.unread > 0).then(|| format!("* {} unread", summary.unread));
    let told = ["blocked", "stuck", "error", "working"];
    let agents = told.iter().filter_map(|state| {
        let (_, count) = summary.agents.iter().find(|(own, _)| own == state)?;
        Some(format!("{count} {state}"))
    });
    unread.into_iter().chain(agents).collect::<Vec<_>>().join("  ")
}

/// What Claude Code says of its model and its limits goes to the sources, where it changed and a hub is there to show it.
fn pass_on(journal: &mut Journal) -> Option<()> {
    if io::stdin().is_terminal() {
        return None;
    }
    let mut input = String::new();
    io::stdin().lock().take(MAX_INPUT).read_to_string(&mut input).ok()?;
    let said: Value = serde_json::from_str(&input).ok()?;
    let agent = agent_id(Client::Claude, said["session_id"].as_str()?)?;
    let before = journal.agent_note(&agent).ok()?.and_then(|note| serde_json::from_str(&note).ok());
    let status = Status::read(&said);
    if before.as_ref() == Some(&status) {
        return None;
    }
    let told = status.since(before.as_ref(), agent.as_str());
    if !told.is_empty() {
        tell(journal.home(), "observe", &json!({ "observations": told })).ok()?;
    }
    // Only what was told, or was nothing to tell, is not worth telling again.
    journal.set_agent_note(&agent, &json!(status).to_string()).ok()
}
