//! How agents are connected.

use ringer_agents::setup::{
    Client, Obstacle, ObstacleKind, SetupAction, SetupError, SetupRecords, SetupScope, find, obstacles, plan,
    read_files,
};
use ringer_hub::Clock;
use ringer_journal::Journal;

use super::row::Row;
use crate::commands::setup::{TAKEN, program, setup_paths};
use crate::context;

/// One row for each agent that is installed: whether its hooks call us, and the `ringer setup` that makes them.
pub(super) fn rows() -> Vec<Row> {
    let Ok(places) = setup_paths(false) else { return Vec::new() };
    let found = find(&std::env::var_os("PATH").unwrap_or_default(), &places);
    let heard = heard();
    found
        .iter()
        .filter(|found| found.is_installed())
        .map(|found| row(found.client, heard.iter().find(|(client, _)| client == found.client.as_str())))
        .collect()
}

/// When each client last called, as far as the journal knows.
fn heard() -> Vec<(String, i64)> {
    let journal = context::home().ok().and_then(|home| Journal::open_existing(&home).ok().flatten());
    journal.and_then(|mut journal| journal.clients_last_seen().ok()).unwrap_or_default()
}

fn row(client: Client, heard: Option<&(String, i64)>) -> Row {
    let part = format!("agent {client}");
    let setup = format!("ringer setup {client}");
    let called = heard.map(|(_, unix_ms)| format!("last event {}", Clock::local().short(*unix_ms)));
    match looked_at(client) {
        Ok(Look::Elsewhere) => Row::warn(part, "hooks are missing or call another ringer binary").fix(setup),
        // The user chose another setting; nothing is broken, and nothing is broken by that.
        Ok(Look::Taken(what)) => Row::warn(part, what).fix(TAKEN),
        Ok(Look::SetUp { notes, obstacle: Some(Obstacle { kind, note }) }) => {
            let called = called.map(|called| format!("; {called}")).unwrap_or_default();
            let what = format!("set up{notes}, but {}{called}", note.what);
            match kind {
                ObstacleKind::Unread => Row::broken(part, what).fix(note.hint),
                // The person wants it so, or Codex tells at least by its notify program when a turn ends.
                _ => Row::warn(part, what).fix(note.hint),
            }
        }
        Ok(Look::SetUp { notes, obstacle: None }) => {
            let untested =
                if client.is_tested() { "" } else { "; experimental (written from its docs, not tested)" };
            match called {
                Some(called) => Row::ok(part, format!("set up{notes}{untested}; {called}")),
                None if !client.reports_events() => Row::ok(part, format!("set up{notes}{untested}")),
                None => Row::ok(part, format!("set up{notes}{untested}; no event received yet"))
                    .fix(format!("start {client} once, then run ringer doctor again")),
            }
        }
        Err(why) => Row::broken(part, why).fix(setup),
    }
}

/// How an agent's settings are.
enum Look {
    /// A setup would change something.
    Elsewhere,
    /// It would change nothing, and note this; the client may still not run it.
    SetUp { notes: String, obstacle: Option<Obstacle> },
    /// The person has set something else, in these words.
    Taken(String),
}

fn looked_at(client: Client) -> Result<Look, String> {
    let words = |failure: crate::failure::Failure| failure.to_string();
    let places = setup_paths(false).map_err(words)?;
    let home = context::home().map_err(words)?;
    let action = SetupAction::Setup(program(false).map_err(words)?);
    let records = SetupRecords::load(home.path()).map_err(|error| error.to_string())?;
    let files = read_files(client, SetupScope::User, &places, &records).map_err(|error| error.to_string())?;
    let plan = match plan(client, &action, files) {
        Ok(plan) => plan,
        Err(error @ SetupError::Taken { .. }) => return Ok(Look::Taken(error.to_string())),
        Err(error) => return Err(error.to_string()),
    };
    if !plan.is_empty() {
        return Ok(Look::Elsewhere);
    }
    let notes = plan.changes.iter().flat_map(|change| &change.notes);
    let notes = notes.map(|note| format!("; {}", note.what)).collect();
    // Of the repository in which doctor runs, because its settings count there.
    let repository = context::repository().map(|repository| repository.worktree);
    let obstacle = obstacles(client, SetupScope::User, &places, repository.as_deref()).into_iter().next();
    Ok(Look::SetUp { notes, obstacle })
}
