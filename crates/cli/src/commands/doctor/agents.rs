//! Checks how agents are connected, and the MCP servers that push messages to them.

use ringer_agents::sessions::running_sessions;
use ringer_agents::setup::{
    Client, ClientPaths, Entries, Obstacle, ObstacleKind, SetupRecords, SetupScope, find, has_mcp_server,
    obstacles,
};
use ringer_config::Config;
use ringer_hub::Clock;
use ringer_journal::{Home, Journal};
use ringer_mcp::channels::ChannelState;
use ringer_ui::age;

use super::channels::find_command;
use super::row::Row;
use crate::client_setup::{entries, entries_in_short, setup_paths, user_plan};
use crate::commands::mcp_channels::{ConfiguredChannel, configured_channels, state_text};
use crate::context;

/// One row for each installed agent: whether its hooks call Ringer, and otherwise the `ringer setup` that fixes it.
pub(super) fn rows() -> Vec<Row> {
    let Ok(places) = setup_paths(false) else { return Vec::new() };
    let found = find(&std::env::var_os("PATH").unwrap_or_default(), &places);
    let last_calls = last_calls();
    let mut rows = Vec::new();
    for client in found.iter().filter(|found| found.is_installed()).map(|found| found.client) {
        if client.takes(Entries::Hooks) {
            rows.push(row(client, last_calls.iter().find(|(name, _)| name == client.as_str())));
        }
        rows.extend(mcp_row(client, &places));
    }
    rows
}

/// A row for the MCP server in an agent's settings, if a setup registered it there.
fn mcp_row(client: Client, places: &ClientPaths) -> Option<Row> {
    let is_there = has_mcp_server(client, places);
    let part = format!("{client} mcp");
    let setup = format!("ringer setup {client} --mcp");
    match user_plan(client, Entries::McpServer).ok()? {
        Ok(plan) if is_there && plan.is_empty() => Some(Row::ok(part, entries(&plan))),
        Ok(_) if is_there => Some(Row::warn(part, "the MCP server runs another ringer binary").fix(setup)),
        Ok(_) => None,
        // The server was never set up there, or the row of the hooks already reports that file.
        Err(_) if !was_registered(client, places) => None,
        Err(error) => Some(Row::broken(part, error.to_string()).fix(setup)),
    }
}

/// Returns true if a setup has written the client's file that has only MCP servers.
fn was_registered(client: Client, places: &ClientPaths) -> bool {
    let records = context::home().ok().and_then(|home| SetupRecords::load(home.path()).ok());
    let targets = places.targets(client, SetupScope::User).unwrap_or_default();
    let mut targets = targets.iter().filter(|target| target.is_for_mcp_only());
    records.is_some_and(|records| targets.any(|target| records.contains(&target.path)))
}

/// Returns the time of each client's last call, from the journal.
fn last_calls() -> Vec<(String, i64)> {
    let journal = context::home().ok().and_then(|home| Journal::open_to_read(&home).ok().flatten());
    journal.and_then(|mut journal| journal.clients_last_seen().ok()).unwrap_or_default()
}

fn row(client: Client, last_call: Option<&(String, i64)>) -> Row {
    let part = client.as_str();
    let setup = format!("ringer setup {client}");
    let called = last_call.map(|(_, unix_ms)| match age(Clock::local().now().wall_ms - unix_ms) {
        now if now == "now" => "called just now".to_owned(),
        age => format!("called {age} ago"),
    });
    match hook_state(client) {
        Ok(HookState::Outdated) => {
            Row::warn(part, "hooks are missing, outdated, or call another ringer binary").fix(setup)
        }
        Ok(HookState::SetUp { what, obstacle: Some(Obstacle { kind, note }) }) => {
            let called = called.map(|called| format!("; {called}")).unwrap_or_default();
            let what = format!("{what}, but {}{called}", note.what);
            match kind {
                ObstacleKind::Unread => Row::broken(part, what).fix(note.hint),
                // The person wants it so, or Codex at least runs its notify program when a turn ends.
                _ => Row::warn(part, what).fix(note.hint),
            }
        }
        Ok(HookState::SetUp { what, obstacle: None }) => match (called, silent_sessions(client)) {
            (_, 1..) => Row::warn(part, format!("{what}, but a session that runs has never called"))
                .fix("end that session and start it again: a session reads its hooks when it starts"),
            (Some(called), _) => Row::ok(part, format!("{what}; {called}")),
            (None, _) => Row::warn(part, format!("{what}; it has not called yet"))
                .fix(format!("start {client} once, then run ringer doctor again")),
        },
        Err(why) => Row::broken(part, why).fix(setup),
    }
}

/// Counts the running sessions of a client that the journal does not know.
fn silent_sessions(client: Client) -> usize {
    let (Ok(paths), Ok(home)) = (setup_paths(false), context::home()) else { return 0 };
    let Ok(mut journal) = Journal::open_to_read(&home) else { return 0 };
    let mut is_known = |session: &String| match &mut journal {
        Some(journal) => !matches!(journal.agent_named(session), Ok(None)),
        None => false,
    };
    running_sessions(client, &paths).iter().filter(|session| !is_known(session)).count()
}

/// The state of an agent's settings.
enum HookState {
    /// A setup would change something.
    Outdated,
    /// A setup would change nothing; `what` describes the entries. The client may still not run them.
    SetUp { what: String, obstacle: Option<Obstacle> },
}

fn hook_state(client: Client) -> Result<HookState, String> {
    let words = |failure: crate::failure::Failure| failure.to_string();
    let places = setup_paths(false).map_err(words)?;
    let plan = user_plan(client, Entries::Hooks).map_err(words)?.map_err(|error| error.to_string())?;
    if !plan.is_empty() {
        return Ok(HookState::Outdated);
    }
    let notes = plan.changes.iter().flat_map(|change| &change.notes);
    let notes: String = notes.map(|note| format!("; {}", note.what)).collect();
    let what = entries_in_short(&plan) + &notes;
    // The obstacles for the repository in which doctor runs, because its settings apply there.
    let repository = context::repository().map(|repository| repository.worktree);
    let obstacle = obstacles(client, SetupScope::User, &places, repository.as_deref()).into_iter().next();
    Ok(HookState::SetUp { what, obstacle })
}

/// The gate that stays closed until the person opens it.
const SWITCH: u8 = 2;

pub(super) fn channel_rows(home: &Home, config: &Config) -> Vec<Row> {
    let (set, _) = configured_channels(home, config);
    let row = |(channel, command): (_, &Vec<String>)| {
        let (part, text) = (part(&channel), state_text(&channel, config));
        let Some(status) = &channel.status else {
            let found = find_command(command).err().filter(|_| config.channels.enabled);
            return match found {
                Some(why) => Row::broken(part, why).fix("install it, or correct its command"),
                None => Row::ok(part, text),
            };
        };
        let row = match status.state {
            ChannelState::Failed => Row::broken(part, text),
            ChannelState::Refused if status.gate != Some(SWITCH) => Row::warn(part, text),
            _ => return Row::ok(part, text),
        };
        row.fix(status.remedy.clone().unwrap_or_else(|| "ringer mcp status".to_owned()))
    };
    let commands = config.channel_servers.iter().map(|entry| &entry.command);
    set.into_iter().zip(commands).map(row).collect()
}

fn part(channel: &ConfiguredChannel) -> String {
    format!("channel {}", channel.name)
}
