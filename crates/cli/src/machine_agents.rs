//! The agents of other machines, as lists show them.

use ringer_hub::Clock;
use ringer_journal::Home;
use ringer_relay::{MachineAgents, WireAgent};
use serde_json::{Value, json};

/// Agents of machines that are connected, in the form of the hub's list, with their machine. What the agents of a machine do
/// that is not connected is not known: those are listed without a state.
pub(crate) fn views(home: &Home, clock: &Clock) -> Vec<Value> {
    let of_machine = |machine: &MachineAgents| {
        let is_connected = machine.is_connected(home);
        let views = machine.agents.iter().map(|agent| view(machine, agent, is_connected, clock));
        views.collect::<Vec<_>>()
    };
    MachineAgents::all(home).iter().flat_map(of_machine).collect()
}

fn view(machine: &MachineAgents, agent: &WireAgent, is_connected: bool, clock: &Clock) -> Value {
    json!({
        "id": agent.id,
        "client": agent.client,
        "session_id": null,
        "state": is_connected.then_some(&agent.state),
        "since": clock.stamp(agent.since_ms),
        "cwd": agent.directory,
        "surface": agent.surface,
        "lead": false,
        "name": agent.name,
        "scope": null,
        "last_seen": clock.stamp(machine.told_ms),
        "machine": machine.machine,
        "connected": is_connected,
    })
}
