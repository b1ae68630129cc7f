//! Checks this terminal, the multiplexer around it, and Ringer's settings in each tmux server.

use std::fs::OpenOptions;

use ringer_config::Config;
use ringer_core::message::SurfaceId;
use ringer_core::policy::PopupMode;
use ringer_journal::Home;
use ringer_term::{
    Detection, Method, MethodChoice, Multiplexer, OutgoingNotification, Passthrough, Urgency, choose_method,
};
use ringer_tmux::{Inspection, TmuxServer};
use serde_json::Value;

use super::row::{Row, reason};
use crate::client_setup::own_path;
use crate::hub_client;
use crate::origin::plain_surface;
use crate::output::short_path;
use crate::probe::detect_here;
use crate::terminal::{apple_bell, random_id, terminal_name, write_to_terminal};
use crate::tmux_setup::{ConfigChange, KEY, UNSET_TMUX, installed_servers, server_around};

/// Checks both. With `send`, shows something in this terminal.
pub(super) fn rows(config: &Config, send: bool) -> Vec<Row> {
    let detection = detect_here();
    let choice = choose_method(config.preferred_channel, &detection, apple_bell(&detection));
    let mut rows = vec![terminal(&detection, &choice), multiplexer(&detection, &choice)];
    if send {
        rows.push(show(&detection, &choice));
    } else if config.notify.popup == PopupMode::Desktop {
        rows.push(Row::ok("terminal", "not used: notify.popup = \"desktop\""));
    }
    rows
}

fn terminal(detection: &Detection, choice: &MethodChoice) -> Row {
    let name = terminal_name(detection);
    let what = format!("{name}; notified through {}: {}", choice.method.as_str(), choice.reason);
    if OpenOptions::new().write(true).open("/dev/tty").is_err() {
        let what = "no terminal to show notifications in: /dev/tty cannot be opened";
        return Row::warn("terminal", what).fix("run ringer doctor in a terminal");
    }
    match choice.method {
        Method::Disabled => Row::ok("terminal", format!("{name}, notifications off: {}", choice.reason)),
        Method::NoMethodAvailable => Row::warn("terminal", what).fix("set preferred_channel = \"auto\""),
        // A bell does not say what happened. tmux has its own row for the bell.
        Method::TerminalBell if detection.multiplexers.is_empty() => Row::warn("terminal", what).fix(
            "if ringer term notify --channel kitty hello (or iterm2, ghostty) shows something, set \
             preferred_channel to that",
        ),
        _ => Row::ok("terminal", what),
    }
}

fn multiplexer(detection: &Detection, choice: &MethodChoice) -> Row {
    let part = "multiplexer";
    let names: Vec<&str> = detection.multiplexers.iter().map(|layer| layer.as_str()).collect();
    let names = names.join(", inside ");
    match (detection.multiplexers.first(), &detection.outer) {
        (None, _) => Row::unused(part, "none"),
        (Some(Multiplexer::Tmux), Some(outer)) => match outer.passthrough {
            Passthrough::Off => Row::warn(
                part,
                format!("{names}, and allow-passthrough is off: only a bell reaches the terminal"),
            )
            .fix("tmux set -g allow-passthrough on"),
            Passthrough::Visible => Row::ok(
                part,
                format!("{names}, allow-passthrough on: visible windows only (all: every window)"),
            ),
            Passthrough::All => Row::ok(part, format!("{names}, allow-passthrough all")),
        },
        (Some(Multiplexer::Tmux), None) => {
            Row::warn(part, format!("{names}, but tmux does not answer; TMUX may be stale"))
                .fix("tmux display-message -p hello")
        }
        (Some(_), _) if choice.method == Method::TerminalBell => {
            Row::warn(part, format!("{names}, which hides the outer terminal: only a bell reaches it"))
                .fix("set preferred_channel to what that terminal supports: kitty, iterm2, ghostty")
        }
        (Some(_), _) => Row::ok(part, names),
    }
}

fn show(detection: &Detection, choice: &MethodChoice) -> Row {
    let part = "terminal sent";
    let id = random_id();
    let notice = OutgoingNotification {
        id: &id,
        title: Some("Ringer"),
        body: "ringer doctor: this terminal shows notifications",
        urgency: Urgency::Normal,
        icon: None,
    };
    let bytes = notice.encode(choice.method, &detection.multiplexers);
    if bytes.is_empty() {
        return Row::ok(part, format!("nothing: {}", choice.reason));
    }
    match write_to_terminal(&bytes) {
        Ok(()) => Row::ok(part, format!("{} bytes through {}", bytes.len(), choice.method.as_str())),
        Err(failure) => Row::warn(part, reason(&failure)).fix("run ringer doctor --send in a terminal"),
    }
}

const WINDOW: &str = "window";

/// A row if this terminal has a window; none over SSH, in a pane of tmux or on a console.
pub(super) fn window_rows() -> Vec<Row> {
    let surface = plain_surface().map(|(surface, _)| SurfaceId::new(&surface));
    let Some(report) = surface.as_ref().and_then(ringer_windows::inspect) else { return Vec::new() };
    let can = match (report.can_see, report.can_focus) {
        (true, _) => "Ringer sees when you look at it and can bring it to the front",
        (false, true) => "Ringer can bring it to the front, but does not see when you look at it",
        (false, false) => "Ringer does not see when you look at it and cannot bring it to the front",
    };
    let why = report.why.map(|why| format!(": {why}")).unwrap_or_default();
    let what = format!("{}; {can}{why}", report.name);
    // Without a fix, this is the best that the terminal can do.
    vec![match report.fix {
        Some(fix) => Row::warn(WINDOW, what).fix(fix),
        None => Row::ok(WINDOW, what),
    }]
}

const TMUX: &str = "tmux";
const SETUP: &str = "ringer setup tmux";

/// One row for the server around this process, and for each server in which Ringer is set up.
pub(super) fn tmux_rows(home: &Home) -> Vec<Row> {
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
        match ringer_tmux::inspect(&server, home) {
            Ok(found) => {
                rows.extend(server_rows(&server, &place, &found, line.as_ref(), attached.as_deref()));
            }
            Err(error) if error.refusal().is_some() => {
                rows.push(Row::warn(TMUX, format!("not used: {error}")).fix(UNSET_TMUX));
            }
            // The multiplexer's row already reports a server that has gone.
            Err(_) if place.is_empty() => {}
            Err(error) => rows.push(Row::warn(TMUX, format!("{error}{place}")).fix("tmux list-sessions")),
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
            Row::ok(TMUX, format!("{name}; rings and badges need 3.2 or newer"))
        } else if has_line {
            let what = format!("{name}: the line in tmux.conf has not set Ringer up in it");
            Row::warn(TMUX, what).fix(SETUP)
        } else {
            Row::ok(TMUX, format!("{name}; Ringer is not set up in it (rings and badges: {SETUP})"))
        }];
    }
    let mut rows = Vec::new();
    let mut warn = |what: String, fix: &str| rows.push(Row::warn(TMUX, format!("{name}: {what}")).fix(fix));
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
        rows.push(Row::ok(TMUX, format!("{name}: Ringer is set up, focus-events on; {hub}")));
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
