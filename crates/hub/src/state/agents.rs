//! The live agents as of the last refresh.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use ringer_core::agent::{AgentState, AgentTimeouts};
use ringer_core::message::Agent;
use ringer_journal::AgentInfo;

/// The live agents.
pub(super) struct AgentTracker {
    tracked: HashMap<Agent, TrackedAgent>,
    /// When an agent may become stuck, or will have waited for its person too long.
    next_deadline: Option<Duration>,
    timeouts: AgentTimeouts,
    /// True if the agents may have changed in the journal.
    is_stale: bool,
}

#[derive(Debug)]
struct TrackedAgent {
    state: AgentState,
    /// The process, if it is watched.
    pid: Option<u32>,
}

/// The changes since the last refresh.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct AgentChanges {
    /// The agents whose state changed.
    pub(super) changed: Vec<(AgentInfo, AgentState)>,
    /// The processes to watch, with their start times.
    pub(super) watch: Vec<(Agent, u32, u64)>,
    /// The agents that have ended.
    pub(super) unwatch: Vec<Agent>,
}

impl AgentTracker {
    pub(super) fn new(timeouts: AgentTimeouts) -> Self {
        Self { tracked: HashMap::new(), next_deadline: None, timeouts, is_stale: true }
    }

    pub(super) fn timeouts(&self) -> AgentTimeouts {
        self.timeouts
    }

    pub(super) fn set_timeouts(&mut self, timeouts: AgentTimeouts) {
        self.timeouts = timeouts;
        self.is_stale = true;
    }

    /// Records that an agent may have changed in the journal.
    pub(super) fn mark_stale(&mut self) {
        self.is_stale = true;
    }

    pub(super) fn is_stale(&self) -> bool {
        self.is_stale
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.next_deadline
    }

    pub(super) fn set_next_deadline(&mut self, deadline: Option<Duration>) {
        self.next_deadline = deadline;
    }

    pub(super) fn is_due(&self, now: Duration) -> bool {
        self.next_deadline.is_some_and(|due| due <= now)
    }

    /// Returns all live agents.
    pub(super) fn ids(&self) -> impl Iterator<Item = &Agent> {
        self.tracked.keys()
    }

    pub(super) fn has_any(&self) -> bool {
        !self.tracked.is_empty()
    }

    /// Forgets an agent whose process ended.
    pub(super) fn remove(&mut self, agent: &Agent) {
        self.tracked.remove(agent);
    }

    /// Replaces the live agents. Returns the changes.
    pub(super) fn update(&mut self, live: Vec<(AgentInfo, AgentState)>) -> AgentChanges {
        let mut changes = AgentChanges::default();
        self.is_stale = false;
        let ids: HashSet<&Agent> = live.iter().map(|(info, _)| &info.id).collect();
        self.tracked.retain(|agent, _| {
            let lives = ids.contains(agent);
            if !lives {
                changes.unwatch.push(agent.clone());
            }
            lives
        });
        for (info, state) in live {
            let known = self.tracked.get(&info.id);
            let is_new_state = known.is_none_or(|known| known.state != state);
            let watched = known.and_then(|known| known.pid);
            let to_watch = info.process.filter(|(pid, _)| watched != Some(*pid));
            if let Some((pid, started)) = to_watch {
                changes.watch.push((info.id.clone(), pid, started));
            }
            let pid = to_watch.map(|(pid, _)| pid).or(watched);
            self.tracked.insert(info.id.clone(), TrackedAgent { state, pid });
            if is_new_state {
                changes.changed.push((info, state));
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringer_core::Scope;

    fn info(id: &str, process: Option<(u32, u64)>) -> AgentInfo {
        AgentInfo {
            process,
            by_hooks: true,
            ..AgentInfo::new(Agent::new(id).unwrap(), "claude", id, Scope::global())
        }
    }

    #[test]
    fn a_state_is_told_once_and_a_process_watched_once() {
        let mut agents = AgentTracker::new(AgentTimeouts::default());
        let live = |state| vec![(info("a", Some((7, 70))), state), (info("b", None), AgentState::Done)];
        let first = agents.update(live(AgentState::Working));
        assert_eq!((first.changed.len(), first.watch.len()), (2, 1));
        assert_eq!(agents.update(live(AgentState::Working)), AgentChanges::default());
        let changes = agents.update(live(AgentState::Done));
        assert_eq!((changes.changed.len(), changes.watch.len()), (1, 0));
        let restarted = vec![(info("a", Some((8, 80))), AgentState::Done)];
        let changes = agents.update(restarted);
        assert_eq!(changes.watch, [(Agent::new("a").unwrap(), 8, 80)]);
        assert_eq!(changes.unwatch, [Agent::new("b").unwrap()]);
    }
}
