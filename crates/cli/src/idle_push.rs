//! Pushes messages to idle agents for the hub. It has its own thread, because a client may be slow.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use ringer_agents::push::{ClientEndpoints, PushResult, push};
use ringer_core::message::Agent;
use ringer_hub::Log;
use ringer_journal::Home;
use ringer_platform::{path_variable, variable};

use crate::client_setup::client_paths;
use crate::session_thread::AgentThread;

/// Delays before each retry of an agent that could not be reached: its client may only just have started.
const TRY_AGAIN: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(16),
];

/// Starts the thread. Without it, all messages wait for the agents' next turns.
pub(crate) fn start(home: Home, log: Log) -> AgentThread {
    AgentThread::start("push", move |waiting| run(&home, &log, waiting))
}

fn run(home: &Home, log: &Log, waiting: &Receiver<Agent>) {
    let user = path_variable("HOME").unwrap_or_default();
    let endpoints = ClientEndpoints {
        paths: client_paths(user, None),
        search_path: variable("PATH").unwrap_or_default(),
    };
    let mut unreachable = Unreachable::default();
    while let Ok((agent, tries)) = unreachable.next(waiting) {
        let name = agent.as_str();
        match push(home, &endpoints, &agent) {
            Ok(PushResult::Nothing) => {}
            Ok(PushResult::Sent(count)) => log.line(format!("pushed {count} to {name}")),
            Ok(PushResult::Unsupported(why)) => log.line(format!("cannot push to {name}: {why}")),
            Ok(PushResult::Unreachable(why)) => {
                if tries == 0 {
                    log.line(format!("cannot push to {name}: {why}"));
                }
                unreachable.try_again(agent, tries);
            }
            Err(error) => log.line(format!("cannot push to {name}: {error}")),
        }
    }
}

#[derive(Default)]
struct Unreachable {
    /// The time of the next retry of each agent, and the number of retries so far.
    agents: HashMap<Agent, (Instant, usize)>,
}

impl Unreachable {
    /// Waits for the next agent to try. Returns how often it was tried since its last event.
    fn next(&mut self, waiting: &Receiver<Agent>) -> Result<(Agent, usize), RecvTimeoutError> {
        let next = self.agents.iter().min_by_key(|(_, (at, _))| *at);
        let Some((agent, (at, tries))) = next.map(|(agent, due)| (agent.clone(), *due)) else {
            return Ok((waiting.recv()?, 0));
        };
        let (agent, tries) = match waiting.recv_timeout(at.saturating_duration_since(Instant::now())) {
            Ok(changed) => (changed, 0),
            Err(RecvTimeoutError::Timeout) => (agent, tries),
            Err(gone @ RecvTimeoutError::Disconnected) => return Err(gone),
        };
        self.agents.remove(&agent);
        Ok((agent, tries))
    }

    fn try_again(&mut self, agent: Agent, tries: usize) {
        if let Some(wait) = TRY_AGAIN.get(tries) {
            self.agents.insert(agent, (Instant::now() + *wait, tries + 1));
        }
    }
}
