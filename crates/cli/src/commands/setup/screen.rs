//! What `ringer setup` shows: what was found, a line for each client, the question and how it went.

use ringer_agents::setup::{ApplyResult, DetectedClient, Entries, Plan, SetupAction};
use ringer_term::{Detection, sanitise_line};

use crate::client_setup::entries;
use crate::client_version::client_version;
use crate::commands::doctor;
use crate::failure::Outcome;
use crate::output::{print_line, print_text, short_path};
use crate::terminal::terminal_name;

/// Prints which clients, which notification server and which terminal are here.
pub(super) fn print_found(plans: &[Plan], found: &[DetectedClient], detection: &Detection) -> Outcome {
    let installed = found
        .iter()
        .filter(|found| found.is_installed() && plans.iter().any(|plan| plan.client == found.client));
    let names: Vec<String> = installed
        .map(|found| {
            let version = found.program.as_deref().and_then(client_version);
            let version = version.map(|version| format!(" {version}")).unwrap_or_default();
            format!("{}{version}", found.client.display_name())
        })
        .collect();
    let clients = if names.is_empty() { "no installed agent".to_owned() } else { names.join(", ") };
    let desktop = doctor::desktop_server().unwrap_or_else(|| "no desktop notifications".to_owned());
    print_line(&format!("Found {clients}; {}; {}.", sanitise_line(&desktop), terminal_name(detection)))
}

/// Prints what is written for each client, or removed.
pub(super) fn print_plans(plans: &[Plan]) -> Outcome {
    let rows: Vec<(&str, String)> =
        plans.iter().filter_map(|plan| Some((plan.client.as_str(), words(plan)?))).collect();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    print_text(&rows.iter().map(|(name, words)| format!("  {name:<width$}  {words}\n")).collect::<String>())
}

fn words(plan: &Plan) -> Option<String> {
    match plan.action {
        SetupAction::Setup(_, Entries::McpServer) if plan.is_empty() => {
            let is_taken = plan.changes.iter().any(|change| !change.notes.is_empty());
            Some(if is_taken { "not registered: the name is taken" } else { "registered already" }.to_owned())
        }
        SetupAction::Setup(..) if plan.is_empty() => Some("connected already".to_owned()),
        SetupAction::Setup(..) => Some(entries(plan)),
        SetupAction::Remove(_) => {
            let changing = plan.changes.iter().filter(|change| change.is_change());
            let paths: Vec<String> = changing.map(|change| short_path(change.path())).collect();
            (!paths.is_empty()).then(|| paths.join(", "))
        }
    }
}

/// The question about so many clients.
pub(super) fn question(clients: usize, remove: bool, mcp: bool) -> String {
    let verb = match (mcp, remove) {
        (true, true) => "Remove the MCP server from",
        (true, false) => "Register the MCP server with",
        (false, true) => "Disconnect",
        (false, false) => "Connect",
    };
    match clients {
        1 => format!("{verb} it?"),
        2 => format!("{verb} both?"),
        3 => format!("{verb} all three?"),
        many => format!("{verb} all {many}?"),
    }
}

/// Prints how it went and how to undo it.
pub(super) fn print_done(applied: &ApplyResult, undo: Option<&str>) -> Outcome {
    let backups: Vec<String> = applied.backups.iter().map(|path| short_path(path)).collect();
    let backups =
        if backups.is_empty() { String::new() } else { format!(" Backups: {}.", backups.join(", ")) };
    let undo = undo.map(|command| format!(" Undo: {command}")).unwrap_or_default();
    print_line(&format!("Done.{backups}{undo}"))
}
