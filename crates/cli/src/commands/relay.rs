//! `ringer relay`, with `list` and `status`.

mod add;
mod serve;
mod settings_file;

use ringer_config::RelayEntry;
use ringer_hub::Clock;
use ringer_journal::{Home, Journal};
use ringer_relay::{LinkState, LinkStatus, RelayStatus};
use ringer_term::sanitise_line;
use serde_json::{Value, json};

use crate::context;
use crate::failure::{Failure, Outcome};
use crate::output::{count, print_json, print_line};

pub(crate) use serve::give_answer;
pub(crate) use settings_file::{machines, settings};

/// See agents of other machines in one inbox
///
/// A link connects this machine with another one over ssh, or over any program
/// that connects two pipes. What is written on one comes to the other, once and
/// in order, also after days without a connection. The hub keeps links connected.
///
/// Examples:
///   ringer relay add ssh box
///   ringer relay add command --name dev -- docker exec -i dev ringer relay serve --stdio
///   ringer relay status
///   ringer relay remove box
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Connect another machine to this one
    Add(add::Args),
    /// List the machines that are set
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show whether the machines are connected, and what waits
    Status {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Disconnect a machine; messages that came from it stay
    Remove {
        /// Name of the machine, as `list` shows it
        name: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Serve another machine on standard input and output; links run this
    Serve(serve::Args),
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    match &arguments.command {
        Command::Add(arguments) => add::run(arguments),
        Command::List { json } => list(*json),
        Command::Status { json } => status(*json),
        Command::Remove { name, yes } => add::remove(name, *yes),
        Command::Serve(arguments) => serve::run(arguments),
    }
}

const NONE: &str = "no machines are set; ringer relay add ssh HOST adds one";

fn list(as_json: bool) -> Outcome {
    let relays = settings()?.relays;
    if as_json {
        let machines: Vec<Value> = relays.iter().map(machine_json).collect();
        return print_json(&json!({ "machines": machines }));
    }
    if relays.is_empty() {
        return print_line(NONE);
    }
    for relay in &relays {
        let answers = match (&relay.nats, relay.may_answer) {
            (None, true) => "answers from here",
            (None, false) => "no answers from here",
            (Some(_), true) => "answers from the team",
            (Some(_), false) => "no answers from the team",
        };
        print_line(&sanitise_line(&format!("{}: {}, {answers}", relay.machine(), connection_text(relay))))?;
    }
    Ok(())
}

fn connection_text(relay: &RelayEntry) -> String {
    match (&relay.ssh, &relay.nats) {
        (Some(host), _) => format!("ssh {host}"),
        (None, Some(url)) => format!("team over {url}"),
        (None, None) => relay.command.join(" "),
    }
}

fn machine_json(relay: &RelayEntry) -> Value {
    json!({
        "name": relay.machine(),
        "ssh": relay.ssh,
        "command": relay.argv(),
        "nats": relay.nats,
        "may_answer": relay.may_answer,
        "may_reach_lead": relay.may_reach_lead,
    })
}

/// A configured machine, with its status from the hub.
pub(crate) struct ConfiguredMachine {
    pub(crate) name: String,
    pub(crate) status: Option<LinkStatus>,
    /// Messages from here that the machine has not stored yet.
    pub(crate) waiting: Option<i64>,
    /// The program at the other end: `ringer`, or the server of a team.
    pub(crate) program: &'static str,
}

/// Returns every configured machine. The second value is true if a hub runs.
pub(crate) fn configured_machines(
    home: &Home,
    relays: &[RelayEntry],
) -> Result<(Vec<ConfiguredMachine>, bool), Failure> {
    let running = RelayStatus::read(home);
    let last = running.clone().or_else(|| RelayStatus::read_last(home));
    let mut journal = Journal::open_to_read(home)?;
    let mut machines = Vec::new();
    for relay in relays {
        let name = relay.machine().to_owned();
        let program = if relay.nats.is_some() { "nats-server" } else { "ringer" };
        let known = last.as_ref().and_then(|status| status.link(&name)).and_then(|link| link.machine.clone());
        let waiting = match (&mut journal, known) {
            (Some(journal), Some(team)) if relay.nats.is_some() => journal.export_lag(&team)?,
            (Some(journal), Some(machine)) => journal.export_lag_of(&machine, &name)?,
            _ => None,
        };
        let status = running.as_ref().and_then(|status| status.link(&name)).cloned();
        machines.push(ConfiguredMachine { name, status, waiting, program });
    }
    Ok((machines, running.is_some()))
}

fn status(as_json: bool) -> Outcome {
    let (home, relays) = (context::home()?, settings()?.relays);
    let (machines, hub) = configured_machines(&home, &relays)?;
    if as_json {
        let machines: Vec<Value> = machines.iter().map(status_json).collect();
        return print_json(&json!({ "hub": hub, "machines": machines }));
    }
    if machines.is_empty() {
        return print_line(NONE);
    }
    for machine in &machines {
        print_line(&sanitise_line(&format!("{}: {}", machine.name, state_text(machine, &Clock::local()))))?;
    }
    Ok(())
}

fn status_json(machine: &ConfiguredMachine) -> Value {
    json!({ "name": machine.name, "link": machine.status, "waiting": machine.waiting })
}

/// Describes the state of a link.
pub(crate) fn state_text(machine: &ConfiguredMachine, clock: &Clock) -> String {
    let waiting = machine.waiting.and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0);
    let waiting = waiting.map(|waiting| format!(", {} not sent yet", count(waiting, "message")));
    let waiting = waiting.unwrap_or_default();
    let Some(status) = &machine.status else {
        return format!("not connected: the hub is not running{waiting}");
    };
    let since = clock.short(status.since_ms);
    let messages = usize::try_from(status.messages).unwrap_or(usize::MAX);
    let received = (messages > 0).then(|| format!(", {} received", count(messages, "message")));
    let there = (status.waiting_there > 0).then(|| {
        let waiting = usize::try_from(status.waiting_there).unwrap_or(usize::MAX);
        format!(", about {} to come", count(waiting, "message"))
    });
    let refused = (status.refused > 0).then(|| {
        let why = status.refused_why.as_deref().unwrap_or_default();
        format!(", {} refused ({why})", status.refused)
    });
    let state = match status.state {
        LinkState::Connected => {
            let version = status.program.as_deref().unwrap_or_default();
            let address = status.address.as_deref().map(|address| format!(" at {address}"));
            format!("connected since {since}, {} {version}{}", machine.program, address.unwrap_or_default())
        }
        LinkState::Connecting => format!("connecting since {since}"),
        LinkState::Failed => {
            let why = status.why.as_deref().unwrap_or("no reason is known");
            let again = status.again_ms.map(|again| format!("; next try at {}", clock.short(again)));
            format!("not connected since {since}: {why}{}", again.unwrap_or_default())
        }
    };
    let agents = status.agents_refused.as_deref().filter(|_| status.state == LinkState::Connected);
    let agents = agents.map(|why| format!(", agents are not listed ({why})"));
    let parts = [Some(state), received, there, refused, agents, Some(waiting)];
    parts.into_iter().flatten().collect()
}
