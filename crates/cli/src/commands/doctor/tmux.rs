//! Checks Ringer's settings in each tmux server.

use ringer_core::message::SurfaceId;
use ringer_journal::Home;
use ringer_tmux::{Inspection, TmuxServer, inspect};
use serde_json::Value;

use super::row::Row;
use crate::client_setup::own_path;
use crate::hub_client;
use crate::output::short_path;
use crate::tmux_setup::{ConfigChange, KEY, UNSET_TMUX, installed_servers, server_around};

const PART: &str = "tmux";
const SETUP: &str = "ringer setup tmux";

/// One row for the server around this process, and for each server in which Ringer is set up.
pub(super) fn rows(home: &Home) -> Vec<Row> {
    let around = server_around();
    let mut servers = installed_servers(home);
    if let Some(around) = &around {
        servers.retain(|server| server != around);
        servers.insert(0, around.clone());
    }
    if servers.is_empty() {
        return Vec::new();
    }
    let line = own_path().ok().and_then(|program| ConfigChange::add(&program, Some(KEY)).ok());
    let attached = attached_servers(home);
    let mut rows = Vec::new();
    for server in servers {
        let place = match &around {
            Some(around) if *around == server => String::new(),
            _ => format!(" at {}", short_path(server.socket())),
        };
        match inspect(&server, home) {
            Ok(found) => {
                rows.extend(server_rows(&server, &place, &found, line.as_ref(), attached.as_deref()));
            }
            Err(error) if error.refusal().is_some() => {
                rows.push(Row::warn(PART, format!("not used: {error}")).fix(UNSET_TMUX));
            }
            // The multiplexer's row already reports a server that has gone.
            Err(_) if place.is_empty() => {}
            Err(error) => rows.push(Row::warn(PART, format!("{error}{place}")).fix("tmux list-sessions")),
        }
    }
    rows
}

fn server_rows(
    server: &TmuxServer,
    place: &str,
    found: &Inspection,
    line: Option<&ConfigChange>,
    attached: Option<&[String]>,
) -> Vec<Row> {
    let name = format!("{}{place}", found.version);
    let has_line = line.is_some_and(ConfigChange::is_there);
    if !found.is_installed {
        return vec![if found.is_too_old {
            Row::ok(PART, format!("{name}; rings and badges need 3.2 or newer"))
        } else if has_line {
            let what = format!("{name}: the line in tmux.conf has not set Ringer up in it");
            Row::warn(PART, what).fix(SETUP)
        } else {
            Row::ok(PART, format!("{name}; Ringer is not set up in it (rings and badges: {SETUP})"))
        }];
    }
    let mut rows = Vec::new();
    let mut warn = |what: String, fix: &str| rows.push(Row::warn(PART, format!("{name}: {what}")).fix(fix));
    if let [first, ..] = found.missing_hooks[..] {
        let names = found.missing_hooks.join(", ");
        let fix = format!("{SETUP}   # and give your own hook a place: set-hook -g '{first}[0]' …");
        warn(format!("hooks are missing: {names}"), &fix);
    }
    if !found.missing_badges.is_empty() {
        warn(format!("no badge in {}", found.missing_badges.join(", ")), SETUP);
    }
    if !found.has_focus_events {
        warn(
            "focus-events is off, so what you look at is only known while you type".to_owned(),
            "tmux set -g focus-events on   # and remove the line in tmux.conf that turns it off",
        );
    }
    match line {
        Some(line) if !has_line => {
            warn(format!("{} does not start Ringer in the next server", short_path(&line.path)), SETUP);
        }
        Some(line) if line.is_change() => {
            warn(format!("{} starts another ringer program", short_path(&line.path)), SETUP);
        }
        _ => {}
    }
    let socket = server.socket().to_string_lossy();
    let hub = match attached {
        Some(sockets) if sockets.iter().any(|attached| *attached == socket) => "the hub draws in it",
        Some(_) => {
            warn("the hub is not attached to it, so nothing rings".to_owned(), SETUP);
            ""
        }
        None => "the hub draws in it as soon as it runs",
    };
    if rows.is_empty() {
        rows.push(Row::ok(PART, format!("{name}: Ringer is set up, focus-events on; {hub}")));
    }
    rows
}

/// The sockets of the servers that the hub is attached to as a host; `None` if no hub runs.
fn attached_servers(home: &Home) -> Option<Vec<String>> {
    let surfaces = hub_client::call_running(home, "surface.list", &Value::Null).ok()?;
    let surfaces = surfaces.as_array()?.iter().filter(|surface| surface["host"] == "tmux");
    let ids = surfaces.filter_map(|surface| surface["surface"].as_str().map(SurfaceId::new));
    Some(ids.filter_map(|id| Some(id.tmux()?.socket.to_owned())).collect())
}
