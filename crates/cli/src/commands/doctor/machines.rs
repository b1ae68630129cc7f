//! Links to other machines.

use std::time::{Duration, Instant};

use ringer_config::RelayEntry;
use ringer_hub::Clock;
use ringer_journal::Home;
use ringer_relay::{LinkState, OneQuestion, Purpose};

use super::row::Row;
use crate::commands::relay::{set_machines, state_text};

/// How long the other machine may take to answer: a slow connection of ssh.
const ANSWERS_WITHIN: Duration = Duration::from_secs(12);

/// How a link is. With `send`, the machine is asked over a connection of its own.
pub(super) fn rows(home: &Home, relay: &RelayEntry, send: bool) -> Vec<Row> {
    let part = format!("machine {}", relay.machine());
    let found =
        set_machines(home, std::slice::from_ref(relay)).ok().and_then(|(mut machines, _)| machines.pop());
    let state = found.as_ref().map(|machine| state_text(machine, &Clock::local())).unwrap_or_default();
    if send {
        let begun = Instant::now();
        let program = env!("CARGO_PKG_VERSION");
        return vec![
            match OneQuestion::begin(home, &relay.argv(), program, Purpose::Answer, ANSWERS_WITHIN) {
                Ok(_) => {
                    let millis = begun.elapsed().as_millis();
                    Row::ok(part, format!("{state}; it answers a new connection within {millis} ms"))
                }
                Err(error) => Row::broken(part, error.to_string()).fix(fix(relay)),
            },
        ];
    }
    let status = found.and_then(|machine| machine.status);
    vec![match status.map(|status| status.state) {
        Some(LinkState::Failed) => Row::broken(part, state).fix(fix(relay)),
        Some(LinkState::Connected | LinkState::Connecting) => Row::ok(part, state),
        None => Row::warn(part, state).fix("ringer hub start"),
    }]
}

fn fix(relay: &RelayEntry) -> String {
    match &relay.ssh {
        Some(host) => format!("ssh {host} true   # has to work without a question"),
        None => "ringer relay status".to_owned(),
    }
}
