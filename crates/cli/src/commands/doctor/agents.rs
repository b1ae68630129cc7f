//! How agents are connected.

use ringer_agents::setup::{Action, Client, Receipts, Scope, SetupError, find, plan, survey};

use super::row::Row;
use crate::commands::setup::{TAKEN, places, program};
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
        Ok(Look::Elsewhere) => Row::warn(part, "its hooks do not call this ringer").fix(setup),
        // Somebody wants it otherwise, and nothing is broken by that.
        Ok(Look::Taken(what)) => Row::warn(part, what).fix(TAKEN),
        Ok(Look::SetUp(notes)) if client == Client::Codex => {
            let what = format!("set up{notes}; Codex runs hooks only once they are trusted");
            Row::ok(part, what).fix("type /hooks in codex")
        }
        Ok(Look::SetUp(notes)) if !client.is_tested() => {
            Row::ok(part, format!("set up{notes}; untested, made from its documents"))
        }
        Ok(Look::SetUp(notes)) => Row::ok(part, format!("set up{notes}")),
        Err(why) => Row::broken(part, why).fix(setup),
    }
}

/// How an agent's settings are.
enum Look {
    /// A setup would change something.
    Elsewhere,
    /// It would change nothing, and note this.
    SetUp(String),
    /// The person has set something else, in these words.
    Taken(String),
}

fn looked_at(client: Client) -> Result<Look, String> {
    let words = |failure: crate::failure::Failure| failure.to_string();
    let places = places(false).map_err(words)?;
    let home = place::home().map_err(words)?;
    let action = Action::Setup(program(false).map_err(words)?);
    let receipts = Receipts::load(home.path()).map_err(|error| error.to_string())?;
    let files = survey(client, Scope::User, &places, &receipts).map_err(|error| error.to_string())?;
    let plan = match plan(client, &action, files) {
        Ok(plan) => plan,
        Err(error @ SetupError::Taken { .. }) => return Ok(Look::Taken(error.to_string())),
        Err(error) => return Err(error.to_string()),
    };
    if !plan.is_empty() {
        return Ok(Look::Elsewhere);
    }
    let notes = plan.changes.iter().flat_map(|change| &change.notes);
    Ok(Look::SetUp(notes.map(|note| format!("; {}", note.what)).collect()))
}
