//! A thread of the hub that does something for agents, because a client may be slow.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use ringer_core::message::Agent;
use ringer_ipc::host::Extension;

/// Agents that may be queued; more than run on one machine.
const MAX_WAITING: usize = 256;

/// Hands the thread every agent that changed, or that a message waits for.
pub(crate) struct AgentThread {
    agents: SyncSender<Agent>,
}

impl AgentThread {
    /// Starts the thread. It ends with the hub. A hub without it is worse, and works.
    pub(crate) fn start(name: &str, run: impl FnOnce(&Receiver<Agent>) + Send + 'static) -> Self {
        let (agents, waiting) = sync_channel(MAX_WAITING);
        let _ = thread::Builder::new().name(name.to_owned()).spawn(move || run(&waiting));
        Self { agents }
    }
}

impl Extension for AgentThread {
    fn wake(&mut self, agent: &Agent) {
        let _ = self.agents.try_send(agent.clone());
    }
}
