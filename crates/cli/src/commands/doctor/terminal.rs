//! Checks this terminal, and the multiplexer around it.

use std::fs::OpenOptions;

use ringer_config::Config;
use ringer_core::message::SurfaceId;
use ringer_core::policy::PopupMode;
use ringer_term::{
    Detection, Method, MethodChoice, Multiplexer, OutgoingNotification, Passthrough, Urgency, choose_method,
};
use ringer_windows::inspect;

use super::row::{Row, reason};
use crate::origin::plain_surface;
use crate::probe::detect_here;
use crate::terminal::{apple_bell, random_id, terminal_name, write_to_terminal};

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

const PART: &str = "window";

/// A row if this terminal has a window; none over SSH, in a pane of tmux or on a console.
pub(super) fn window_rows() -> Vec<Row> {
    let surface = plain_surface().map(|(surface, _)| SurfaceId::new(&surface));
    let Some(report) = surface.as_ref().and_then(inspect) else { return Vec::new() };
    let can = match (report.can_see, report.can_focus) {
        (true, _) => "Ringer sees when you look at it and can bring it to the front",
        (false, true) => "Ringer can bring it to the front, but does not see when you look at it",
        (false, false) => "Ringer does not see when you look at it and cannot bring it to the front",
    };
    let why = report.why.map(|why| format!(": {why}")).unwrap_or_default();
    let what = format!("{}; {can}{why}", report.name);
    // Without a fix, this is the best that the terminal can do.
    vec![match report.fix {
        Some(fix) => Row::warn(PART, what).fix(fix),
        None => Row::ok(PART, what),
    }]
}
