//! How agents are connected.

use ringer_agents::setup::{Action, Client, Receipts, Scope, find, plan, survey};

use super::row::Row;
use crate::commands::setup::{places, program};
use crate::place;

/// One row for each agent that is installed: whether its hooks call us, and the `ringer setup` that makes them.
pub(super) fn rows() -> Vec<Row> {
    let Ok(places) = places(false) else { return Vec::new() };
    let found = find(&std::env::var_os("PATH").unwrap_or_default(), &places);
    found.iter().filter(|found| found.is_installed()).map(|found| row(found.client)).collect()
}

fn row(client: Client) -> Row {
    let part = format!("agent {client}");
    let setup = format!("ringer setup {client}");
    match looked_at(client) {
        Ok((true, _)) => Row::warn(part, "its hooks do not call this ringer").fix(setup),
        Ok((false, notes)) if client == Client::Codex => {
            let what = format!("set up{notes}; Codex runs hooks only once they are trusted");
            Row::ok(part, what).fix("type /hooks in codex")
        }
        Ok((false, notes)) => Row::ok(part, format!("set up{notes}")),
        Err(why) => Row::broken(part, why).fix(setup),
    }
}

/// Whether a setup would change something, and what it would note.
fn looked_at(client: Client) -> Result<(bool, String), String> {
    let words = |failure: crate::failure::Failure| failure.to_string();
    let places = places(false).map_err(words)?;
    let home = place::home().map_err(words)?;
    let action = Action::Setup(program(false).map_err(words)?);
    let receipts = Receipts::load(home.path()).map_err(|error| error.to_string())?;
    let files = survey(client, Scope::User, &places, &receipts).map_err(|error| error.to_string())?;
    let plan = plan(client, &action, files).map_err(|error| error.to_string())?;
    let notes: String =
        plan.changes.iter().flat_map(|change| &change.notes).map(|note| format!("; {}", note.what)).collect();
    Ok((!plan.is_empty(), notes))
}
