//! `ringer statusline`.

use std::io::{self, IsTerminal, Read};

use ringer_agents::client::{Client, StatusLine, agent_id};
use ringer_ipc::tell;
use ringer_journal::{HubStore, IdSource, Journal, LockTimeout, StatusSummary};
use ringer_term::tmux_text;
use serde_json::{Value, json};

use crate::context;
use crate::failure::Outcome;
use crate::output::{print_json, print_line};

/// The most that is read of a client's status.
const MAX_INPUT: u64 = 256 * 1024;

/// Print one line for a status bar: unread count and agent states
///
/// Examples:
///   ringer statusline claude     # Claude Code: "statusLine": {"type": "command", "command": "ringer statusline claude"}
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
    let home = context::home()?;
    let summary = match Journal::open_to_read_with(&home, LockTimeout::HOOK)? {
        Some(mut journal) => {
            if arguments.form == "claude" {
                forward_status(&mut journal);
            }
            journal.status_summary(HubStore::open_to_read(&home)?.as_mut(), IdSource::now().unix_ms)?
        }
        None => StatusSummary::default(),
    };
    if arguments.json {
        return print_json(&json!({ "unread": summary.unread, "agents": states(&summary) }));
    }
    let line = format_text(&summary);
    match arguments.form.as_str() {
        "waybar" => print_json(&json!({
            "text": line,
            "tooltip": format!("{} unread notifications", summary.unread),
            "class": if summary.unread > 0 { "unread" } else { "quiet" },
        })),
        // Prompts and bars show nothing if there are no unread messages and no agents.
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

fn format_text(summary: &StatusSummary) -> String {
    let unread = (summary.unread > 0).then(|| format!("* {} unread", summary.unread));
    let shown = ["blocked", "stuck", "error", "working"];
    let agents = shown.iter().filter_map(|state| {
        let (_, count) = summary.agents.iter().find(|(own, _)| own == state)?;
        Some(format!("{count} {state}"))
    });
    unread.into_iter().chain(agents).collect::<Vec<_>>().join("  ")
}

/// Sends changes of Claude Code's model and limits to a running hub, which shows them as observations.
fn forward_status(journal: &mut Journal) -> Option<()> {
    if io::stdin().is_terminal() {
        return None;
    }
    let mut input = String::new();
    io::stdin().lock().take(MAX_INPUT).read_to_string(&mut input).ok()?;
    let input: Value = serde_json::from_str(&input).ok()?;
    let agent = agent_id(Client::Claude, input["session_id"].as_str()?)?;
    let before = journal.agent_note(&agent).ok()?.and_then(|note| serde_json::from_str(&note).ok());
    let status = StatusLine::read(&input);
    if before.as_ref() == Some(&status) {
        return None;
    }
    let changes = status.changes_since(before.as_ref(), agent.as_str());
    if !changes.is_empty() {
        tell(journal.home(), "observe", &json!({ "observations": changes })).ok()?;
    }
    // Stored only after it was sent, so that a failed status is sent next time.
    journal.set_agent_note(&agent, &json!(status).to_string()).ok()
}
