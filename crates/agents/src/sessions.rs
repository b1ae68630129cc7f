//! What clients write down about their sessions. It tells what no hook tells: that the person interrupted the agent, or gave a
//! permission to a tool that runs for long.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use ringer_core::agent::{AgentState, Authority, Signal, SignalContent};
use ringer_core::message::Agent;
use ringer_journal::{AgentEvent, AgentInfo, Error as JournalError, Home, IdSource, InboxRequest, Journal};

use crate::client::{Client, ClientPaths, SessionFile, SessionStatus};

/// How many files are read at most. Far more than sessions run at once.
const MAX_SESSIONS: usize = 1024;
/// The longest file that is read. They have a few hundred bytes.
const MAX_BYTES: u64 = 64 * 1024;
/// How long a session must have been in a status before that counts. A hook that says the same is on its way for less.
const SETTLED_MS: i64 = 700;

/// What a client wrote about a session.
pub(crate) fn find_session(client: Client, paths: &ClientPaths, session_id: &str) -> Option<SessionFile> {
    let adapter = client.adapter();
    let files = adapter.sessions.as_ref()?;
    let directory = (adapter.settings.user_directory)(paths).join(files.directory);
    let entries = fs::read_dir(directory).ok()?.flatten().take(MAX_SESSIONS);
    let mut sessions = entries.filter_map(|entry| {
        let is_small_file = entry.metadata().is_ok_and(|data| data.is_file() && data.len() <= MAX_BYTES);
        is_small_file.then(|| (files.read)(&fs::read(entry.path()).ok()?)).flatten()
    });
    sessions.find(|session| session.session_id == session_id)
}

/// The agents in a turn whose clients say what their sessions do.
#[derive(Debug)]
pub struct SessionWatch {
    home: Home,
    paths: ClientPaths,
    watched: HashMap<Agent, (Client, AgentInfo)>,
}

impl SessionWatch {
    /// Watches no agent yet.
    pub fn new(home: Home, paths: ClientPaths) -> Self {
        Self { home, paths, watched: HashMap::new() }
    }

    /// Whether there is nothing to look at.
    pub fn is_empty(&self) -> bool {
        self.watched.is_empty()
    }

    /// The state of an agent may have changed: watches it while it is in a turn.
    pub fn agent_changed(&mut self, agent: &Agent) -> Result<(), JournalError> {
        self.watched.remove(agent);
        let mut journal = Journal::open(&self.home)?;
        let in_turn = journal.agent_state(agent)?.is_some_and(is_in_turn);
        let Some(info) = journal.agent_info(agent)?.filter(|_| in_turn) else { return Ok(()) };
        if let Ok(client) = info.client.parse::<Client>()
            && client.adapter().sessions.is_some()
        {
            self.watched.insert(agent.clone(), (client, info));
        }
        Ok(())
    }

    /// Looks at the sessions, and writes down what their hooks did not say. Gives which agents that changed.
    pub fn look(&mut self, clock: &dyn Fn() -> Duration) -> Result<Vec<Agent>, JournalError> {
        let mut changed = Vec::new();
        let mut ended = Vec::new();
        for (agent, (client, info)) in &self.watched {
            // Before the file is read: a hook that comes after this is newer than what the file says.
            let mono = clock();
            let Some(session) = find_session(*client, &self.paths, &info.session_id) else { continue };
            let mut journal = Journal::open(&self.home)?;
            let Some((state, since_ms)) =
                journal.agent_state_since(agent)?.filter(|(state, _)| is_in_turn(*state))
            else {
                ended.push(agent.clone());
                continue;
            };
            let stamp = IdSource::now();
            let signal = session.status.and_then(|status| signal_of(status, state, since_ms, stamp.unix_ms));
            let Some(signal) = signal else { continue };
            let event = AgentEvent {
                agent: info.clone(),
                signals: vec![signal],
                notify: true,
                mono,
                stamp,
                session_starts: false,
                turn_changes: false,
                confirms: None,
            };
            journal.record_event(&event, InboxRequest::default(), clock)?;
            changed.push(agent.clone());
        }
        for agent in ended {
            self.watched.remove(&agent);
        }
        Ok(changed)
    }
}

fn is_in_turn(state: AgentState) -> bool {
    state.is_busy() || matches!(state, AgentState::Blocked(_))
}

/// What the status of a session says that its agent's state does not. A status from before that state says nothing: the
/// client writes it up to two seconds after its hooks.
fn signal_of(
    (status, status_since_ms): (SessionStatus, i64),
    state: AgentState,
    state_since_ms: i64,
    now_ms: i64,
) -> Option<Signal> {
    if status_since_ms <= state_since_ms || now_ms < status_since_ms.saturating_add(SETTLED_MS) {
        return None;
    }
    match (status, state) {
        (SessionStatus::Idle, _) => Some(Signal::new(Authority::Hook, SignalContent::Interrupted)),
        // The prompt was answered, and a tool runs.
        (SessionStatus::Busy, AgentState::Blocked(_)) => {
            Some(Signal::state(Authority::Hook, AgentState::Working))
        }
        (SessionStatus::Busy | SessionStatus::Waiting, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringer_core::agent::BlockedOn;

    #[test]
    fn what_a_status_says_that_no_hook_said() {
        use AgentState::{Blocked, Working};
        use SessionStatus::{Busy, Idle, Waiting};
        let permission = Blocked(BlockedOn::Permission);
        let check = |status, state, age_ms: i64, expected: Option<SignalContent>| {
            let signal = signal_of(status, state, 1000, status.1 + age_ms);
            assert_eq!(signal.map(|signal| signal.content), expected, "{status:?} {state:?} {age_ms}");
        };
        check((Idle, 2000), Working, 700, Some(SignalContent::Interrupted));
        check((Idle, 2000), permission, 700, Some(SignalContent::Interrupted));
        check((Busy, 2000), permission, 700, Some(SignalContent::State(Working)));
        check((Busy, 2000), Working, 700, None);
        check((Waiting, 2000), permission, 700, None);
        // It was idle before the prompt, and the file does not say yet that it works.
        check((Idle, 900), Working, 700, None);
        check((Idle, 1000), Working, 700, None);
        // The hook that ends the turn may be on its way.
        check((Idle, 2000), Working, 699, None);
    }
}
