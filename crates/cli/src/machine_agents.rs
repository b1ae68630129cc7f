//! The agents of other machines, for lists.

use ringer_hub::Clock;
use ringer_journal::Home;
use ringer_relay::{MachineAgents, WireAgent};
use serde::Serialize;
use serde_json::{Value, json};

/// The number of agents that a machine has but does not list.
#[derive(Debug, Serialize)]
pub(crate) struct UnlistedAgents {
    pub(crate) machine: String,
    pub(crate) count: usize,
}

/// Returns the agents of all machines in the form of the hub's list, with their machine. Agents of a machine that is not
/// connected have no state, because it is unknown.
pub(crate) fn views(home: &Home, clock: &Clock) -> (Vec<Value>, Vec<UnlistedAgents>) {
    let machines = MachineAgents::all(home);
    let views = machines
        .iter()
        .flat_map(|machine| machine.agents.iter().map(move |agent| view(machine, agent, clock)))
        .collect();
    let has_more = machines.into_iter().filter(|machine| machine.is_connected && machine.unlisted > 0);
    let unlisted =
        has_more.map(|MachineAgents { machine, unlisted: count, .. }| UnlistedAgents { machine, count });
    (views, unlisted.collect())
}

fn view(machine: &MachineAgents, agent: &WireAgent, clock: &Clock) -> Value {
    json!({
        "id": agent.id,
        "client": agent.client,
        "session_id": null,
        "state": machine.is_connected.then_some(&agent.state),
        "since": clock.stamp(agent.since_ms),
        "cwd": agent.directory,
        "surface": agent.surface,
        "lead": false,
        "name": agent.name,
        "scope": null,
        "last_seen": clock.stamp(machine.told_ms),
        "machine": machine.machine,
        "connected": machine.is_connected,
    })
}

/// Calls `changed` whenever a machine reports its agents, connects or disconnects. Returns if the system cannot watch for it.
#[cfg(target_os = "linux")]
pub(crate) fn follow(home: &Home, changed: &dyn Fn()) {
    let Ok(directory) = ringer_platform::DirectoryChanges::begin([home.path()].into_iter()) else { return };
    while let Ok(paths) = directory.wait() {
        if paths.iter().any(|path| MachineAgents::depend_on(path)) {
            changed();
        }
    }
}

/// Not watched on this system: the agents are read together with everything else.
#[cfg(not(target_os = "linux"))]
pub(crate) fn follow(_home: &Home, _changed: &dyn Fn()) {}
