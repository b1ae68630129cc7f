//! Pushes messages to idle agents for the hub, on one thread, because a client may be slow.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use ringer_agents::push::{ClientEndpoints, PushResult, push};
use ringer_core::message::Agent;
use ringer_hub::Log;
use ringer_ipc::host::Extension;
use ringer_journal::Home;
use ringer_platform::{path_variable, variable};

use crate::client_paths::client_paths;

/// Agents that may be queued. Beyond that, the messages enter the agent's next turn. 256 is more agents than run on one
/// machine.
const MAX_WAITING: usize = 256;

/// Wakes agents that are idle.
pub(crate) struct PushThread {
    agents: SyncSender<Agent>,
}

impl PushThread {
    /// Starts the thread. It ends with the hub.
    pub(crate) fn start(home: Home) -> Self {
        let (agents, waiting) = sync_channel(MAX_WAITING);
        // Without the thread nothing is pushed, and everything enters the next turn.
        let _ = thread::Builder::new().name("push".to_owned()).spawn(move || run(&home, &waiting));
        Self { agents }
    }
}

impl Extension for PushThread {
    fn wake(&mut self, agent: &Agent) {
        let _ = self.agents.try_send(agent.clone());
    }
}

fn run(home: &Home, waiting: &Receiver<Agent>) {
    let log = Log::open(home.path().join("hub.log"), false);
    let user = path_variable("HOME").unwrap_or_default();
    let endpoints = ClientEndpoints {
        paths: client_paths(user, None),
        search_path: variable("PATH").unwrap_or_default(),
    };
    while let Ok(agent) = waiting.recv() {
        match push(home, &endpoints, &agent) {
            Ok(PushResult::Nothing) => {}
            Ok(PushResult::Sent(count)) => log.line(format!("pushed {count} to {}", agent.as_str())),
            Ok(PushResult::Unreachable(why)) => log.line(format!("cannot push to {}: {why}", agent.as_str())),
            Err(error) => log.line(format!("cannot push to {}: {error}", agent.as_str())),
        }
    }
}
