//! Looks once a second at what clients write about the sessions of agents in a turn, for the hub.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use ringer_agents::sessions::SessionWatch;
use ringer_core::message::Agent;
use ringer_hub::{Log, monotonic};
use ringer_journal::Home;
use ringer_platform::path_variable;

use crate::agent_thread::AgentThread;
use crate::client_paths::client_paths;

/// How often sessions are looked at.
const EVERY: Duration = Duration::from_secs(1);

/// Starts the thread. Without it, an interrupted agent counts as working until its next prompt.
pub(crate) fn start(home: Home) -> AgentThread {
    AgentThread::start("sessions", move |changed| run(home, changed))
}

fn run(home: Home, changed: &Receiver<Agent>) {
    let log = Log::open(home.path().join("hub.log"), false);
    let user = path_variable("HOME").unwrap_or_default();
    let mut watch = SessionWatch::new(home, client_paths(user, None));
    let mut next_look = Instant::now();
    loop {
        // While no agent is in a turn, nothing wakes this thread.
        let next = if watch.is_empty() {
            changed.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            changed.recv_timeout(next_look.saturating_duration_since(Instant::now()))
        };
        let result = match next {
            Ok(agent) => watch.agent_changed(&agent),
            Err(RecvTimeoutError::Timeout) => {
                next_look = Instant::now() + EVERY;
                watch.look(&monotonic).map(|agents| {
                    for agent in agents {
                        log.line(format!("{} went on or was interrupted, says its client", agent.as_str()));
                    }
                })
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if let Err(error) = result {
            log.line(format!("cannot look at the agents' sessions: {error}"));
        }
    }
}
