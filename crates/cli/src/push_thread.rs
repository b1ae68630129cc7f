//! Pushes messages to idle agents for the hub, on one thread, because a client may be slow.

use std::sync::mpsc::Receiver;

use ringer_agents::push::{ClientEndpoints, PushResult, push};
use ringer_core::message::Agent;
use ringer_hub::Log;
use ringer_journal::Home;
use ringer_platform::{path_variable, variable};

use crate::agent_thread::AgentThread;
use crate::client_paths::client_paths;

/// Starts the thread. Without it, everything enters the agents' next turns.
pub(crate) fn start(home: Home) -> AgentThread {
    AgentThread::start("push", move |waiting| run(&home, waiting))
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
