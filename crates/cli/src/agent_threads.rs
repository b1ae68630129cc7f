//! Threads of the hub that follow agents: one checks several times a second what clients write about their sessions, and one pushes
//! messages to idle agents, because a client may be slow.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ringer_agents::push::{ClientEndpoints, PushResult, push};
use ringer_agents::sessions::SessionWatch;
use ringer_agents::unhooked::UnhookedSessions;
use ringer_core::message::Agent;
use ringer_hub::{Log, monotonic};
use ringer_ipc::part::{Part, PartEvent};
use ringer_journal::{Error, Home};
use ringer_platform::{path_variable, variable};

use crate::client_setup::client_paths;

/// The interval between checks: an agent that was interrupted becomes idle within a second.
const EVERY: Duration = Duration::from_millis(200);

/// The delay before the next try if the journal could not be written.
#[cfg(target_os = "linux")]
const UNTOLD_AGAIN: Duration = Duration::from_secs(1);

/// Starts the thread. Without it, an interrupted agent counts as working until its next prompt.
pub(crate) fn start_sessions(home: Home, log: Log) -> AgentThread {
    AgentThread::start("sessions", move |changed| watch_sessions(home, &log, changed))
}

fn watch_sessions(home: Home, log: &Log, changed: &Receiver<Agent>) {
    let paths = client_paths(path_variable("HOME").unwrap_or_default(), None);
    let mut unhooked = HooklessSessions::new(UnhookedSessions::new(home.clone(), paths.clone()));
    let mut watch = SessionWatch::new(home, paths);
    let mut next_look = Instant::now();
    loop {
        // While no agent is in a turn, nothing wakes this thread.
        let next = if watch.is_empty() && !unhooked.is_searching() {
            changed.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            changed.recv_timeout(next_look.saturating_duration_since(Instant::now()))
        };
        let result = match next {
            Ok(agent) => watch.agent_changed(&agent).and_then(|()| unhooked.agent_changed(&agent)),
            Err(RecvTimeoutError::Timeout) => {
                next_look = Instant::now() + EVERY;
                let looked = watch.poll(&monotonic).map(|agents| {
                    for agent in agents {
                        log.line(format!("{} went on or was interrupted, says its client", agent.as_str()));
                    }
                });
                looked.and_then(|()| unhooked.search())
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if let Err(error) = result {
            log.line(format!("cannot look at the agents' sessions: {error}"));
        }
    }
}

/// The sessions without hooks. They are checked when their files change, whatever their agents do.
struct HooklessSessions {
    sessions: Arc<Mutex<UnhookedSessions>>,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux reports changes"))]
    follower: Option<thread::JoinHandle<()>>,
}

impl HooklessSessions {
    fn new(sessions: UnhookedSessions) -> Self {
        Self { sessions: Arc::new(Mutex::new(sessions)), follower: None }
    }

    fn is_searching(&self) -> bool {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).is_searching()
    }

    fn agent_changed(&mut self, agent: &Agent) -> Result<(), Error> {
        let result = {
            let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            sessions.agent_changed(agent, &monotonic)
        };
        self.follow();
        result
    }

    fn search(&mut self) -> Result<(), Error> {
        if !self.is_searching() {
            return Ok(());
        }
        let result = self.sessions.lock().unwrap_or_else(PoisonError::into_inner).poll(&monotonic);
        self.follow();
        result
    }

    /// Follows the files on systems that report changes. Elsewhere files are checked when their agents change.
    #[cfg(target_os = "linux")]
    fn follow(&mut self) {
        use std::path::PathBuf;

        use ringer_platform::DirectoryChanges;

        if self.follower.as_ref().is_some_and(|follower| !follower.is_finished()) {
            return;
        }
        let sessions = Arc::clone(&self.sessions);
        let look = move || {
            let mut sessions = sessions.lock().unwrap_or_else(PoisonError::into_inner);
            let is_stored = sessions.poll(&monotonic).is_ok();
            (!sessions.is_empty(), is_stored)
        };
        let directories = self.sessions.lock().unwrap_or_else(PoisonError::into_inner).directories();
        if directories.is_empty() {
            return;
        }
        let Ok(changes) = DirectoryChanges::begin(directories.iter().map(PathBuf::as_path)) else { return };
        let follower = thread::Builder::new().name("session files".to_owned());
        let follow = move || loop {
            match look() {
                (false, _) => return,
                (true, true) if changes.wait().is_err() => return,
                (true, true) => {}
                // The file does not change while a dialog is open, so nothing else would trigger a retry.
                (true, false) => thread::sleep(UNTOLD_AGAIN),
            }
        };
        self.follower = follower.spawn(follow).ok();
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "only Linux reports changes")]
    fn follow(&mut self) {}
}

/// The most agents in the queue; more than run on one machine.
const MAX_WAITING: usize = 256;

/// Passes the thread every agent that changed, or for which a message waits.
pub(crate) struct AgentThread {
    agents: SyncSender<Agent>,
}

impl AgentThread {
    /// Starts the thread. It ends with the hub. A hub also works without it, though less well.
    pub(crate) fn start(name: &str, run: impl FnOnce(&Receiver<Agent>) + Send + 'static) -> Self {
        let (agents, waiting) = sync_channel(MAX_WAITING);
        let _ = thread::Builder::new().name(name.to_owned()).spawn(move || run(&waiting));
        Self { agents }
    }
}

impl Part for AgentThread {
    fn on_event(&mut self, event: &PartEvent<'_>) {
        if let PartEvent::AgentActive(agent) = event {
            let _ = self.agents.try_send((*agent).clone());
        }
    }
}

/// Delays before each retry of an agent that could not be reached (its client may only just have started), or that has not begun
/// the turn of the last push.
const TRY_AGAIN: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(16),
];

/// Starts the thread. Without it, all messages wait for the agents' next turns.
pub(crate) fn start_push(home: Home, log: Log) -> AgentThread {
    AgentThread::start("push", move |waiting| push_messages(&home, &log, waiting))
}

fn push_messages(home: &Home, log: &Log, waiting: &Receiver<Agent>) {
    let user = path_variable("HOME").unwrap_or_default();
    let endpoints = ClientEndpoints {
        paths: client_paths(user, None),
        search_path: variable("PATH").unwrap_or_default(),
    };
    let mut retries = Retries::default();
    while let Ok((agent, tries)) = retries.next(waiting) {
        let name = agent.as_str();
        match push(home, &endpoints, &agent) {
            Ok(PushResult::Nothing) => {}
            Ok(PushResult::Later) => retries.try_again(agent, tries),
            Ok(PushResult::Sent(count)) => log.line(format!("pushed {count} to {name}")),
            Ok(PushResult::Unsupported(why)) => log.line(format!("cannot push to {name}: {why}")),
            Ok(PushResult::Unreachable(why)) => {
                if tries == 0 {
                    log.line(format!("cannot push to {name}: {why}"));
                }
                retries.try_again(agent, tries);
            }
            Err(error) => log.line(format!("cannot push to {name}: {error}")),
        }
    }
}

/// The agents that are tried again.
#[derive(Default)]
struct Retries {
    /// The time of the next retry of each agent, and the number of retries so far.
    agents: HashMap<Agent, (Instant, usize)>,
}

impl Retries {
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
