//! Checks the links to other machines.

use std::time::{Duration, Instant};

use ringer_config::RelayEntry;
use ringer_hub::Clock;
use ringer_journal::{Home, Journal};
use ringer_relay::{LinkState, Purpose, RemoteRequest, TeamSetup, join_team, round_trip};

use super::row::Row;
use crate::commands::relay::{set_machines, state_text};

/// Time limit for the other machine's answer: a slow SSH connection.
const ANSWERS_WITHIN: Duration = Duration::from_secs(12);

/// The state of a link. With `send`, doctor also connects to the machine itself, and sends a message through the link.
pub(super) fn rows(home: &Home, relay: &RelayEntry, send: bool) -> Vec<Row> {
    let kind = if relay.nats.is_some() { "team" } else { "machine" };
    let part = format!("{kind} {}", relay.machine());
    let found =
        set_machines(home, std::slice::from_ref(relay)).ok().and_then(|(mut machines, _)| machines.pop());
    let state = found.as_ref().map(|machine| state_text(machine, &Clock::local())).unwrap_or_default();
    if let Some(team) = TeamSetup::of(home, &relay.link()).filter(|_| send) {
        let begun = Instant::now();
        return vec![match join_team(&team) {
            Ok(server) => {
                let millis = begun.elapsed().as_millis();
                Row::ok(part, format!("{state}; nats-server {server} answers within {millis} ms"))
            }
            Err(error) => Row::broken(part, error.to_string()).fix(fix(relay)),
        }];
    }
    let status = found.and_then(|machine| machine.status);
    if send && let Err(why) = connect(home, relay) {
        return vec![Row::broken(part, why).fix(fix(relay))];
    }
    vec![match status.map(|status| status.state) {
        Some(LinkState::Failed) => Row::broken(part, state).fix(fix(relay)),
        Some(LinkState::Connected) if send => match round_trip(home, relay.machine(), ANSWERS_WITHIN) {
            Ok(took) => {
                let millis = took.as_millis();
                Row::ok(part, format!("{state}; a message was stored there and confirmed within {millis} ms"))
            }
            Err(error) => Row::broken(part, format!("{state}; {error}")).fix("ringer relay status"),
        },
        Some(LinkState::Connected | LinkState::Connecting) => Row::ok(part, state),
        None => Row::warn(part, state).fix("ringer hub start"),
    }]
}

/// Connects to the machine without using the link.
fn connect(home: &Home, relay: &RelayEntry) -> Result<(), String> {
    let mut journal = Journal::open(home).map_err(|error| error.to_string())?;
    let program = env!("CARGO_PKG_VERSION");
    let question = RemoteRequest::begin(home, &relay.argv(), program, Purpose::Answer, ANSWERS_WITHIN);
    let question = question.and_then(|question| question.is_from(&mut journal, relay.machine()));
    question.map(drop).map_err(|error| error.to_string())
}

fn fix(relay: &RelayEntry) -> String {
    match &relay.ssh {
        Some(host) => format!("ssh {host} true   # has to work without a question"),
        None => "ringer relay status".to_owned(),
    }
}
