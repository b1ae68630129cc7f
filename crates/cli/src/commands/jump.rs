//! `ringer jump`.

use ringer_platform::shell_word;
use ringer_relay::SURFACE_PREFIX;
use ringer_term::sanitise_line;
use serde_json::{Value, json};

use super::relay;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::hub_client;
use crate::output::{print_json, print_line};

/// Jump to the session that needs you and mark its notification read
///
/// Goes to the most urgent unread notification, and of several to the oldest. Panes of
/// tmux, windows of X11 and kitty, and what a host on the socket goes to can be reached
/// (docs/windows.md, docs/protocol.md). If the session cannot be reached, the notification stays
/// unread and the exit code is 69.
///
/// Examples:
///   ringer jump
///   ringer jump k3fx
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Notification id [default: the most urgent unread]
    id: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let answer = match &arguments.id {
        Some(id) => hub_client::call("notification.open", &json!({ "id": id }))?,
        None => hub_client::call("notification.jump_to_unread", &Value::Null)?,
    };
    if answer.is_null() {
        return if arguments.json { print_json(&answer) } else { print_line("No unread notifications.") };
    }
    let text = |name: &str| answer["notification"][name].as_str().unwrap_or_default().to_owned();
    if arguments.json {
        print_json(&answer)?;
    } else {
        print_line(&sanitise_line(&format!("{}  {}", text("from"), text("body"))))?;
    }
    let focus = &answer["focus"];
    if focus["focused"].as_bool() == Some(true) {
        return Ok(());
    }
    if let Some(machine) = text("workspace").strip_prefix(SURFACE_PREFIX) {
        return Err(elsewhere(machine));
    }
    let why = focus["why"].as_str().unwrap_or("its window cannot be focused");
    let hint =
        focus["hint"].as_str().map_or_else(|| format!("ringer read {}", text("short_id")), str::to_owned);
    let what = format!("cannot jump, the notification stays unread: {}", sanitise_line(why));
    Err(Failure::new(Exit::Unavailable, what).hint(sanitise_line(&hint)))
}

/// A session of another machine: its terminal is there.
fn elsewhere(machine: &str) -> Failure {
    let what = format!("the session is on {}; the notification stays unread", sanitise_line(machine));
    let host =
        relay::machines().iter().find(|relay| relay.machine() == machine).and_then(|relay| relay.ssh.clone());
    let hint = match host {
        Some(host) => format!("ssh -t {} tmux attach", shell_word(&host)),
        None => "ringer relay list".to_owned(),
    };
    Failure::new(Exit::Unavailable, what).hint(sanitise_line(&hint))
}
