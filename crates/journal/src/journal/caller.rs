//! Which agent is above a process.

use std::collections::HashMap;

use ringer_core::message::Agent;

use crate::error::Error;
use crate::journal::schema::Journal;
use crate::process::ProcessStat;

/// How far up is looked. Far more processes than lie between an agent and a command that it runs.
const MAX_ANCESTORS: usize = 256;

/// Who calls a command, as far as its processes tell.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Caller {
    /// No agent is above the process. That alone does not make it the person's: see `ringer-guard`.
    Person,
    /// The process runs below this agent.
    Agent(Agent),
    /// The processes above it cannot be read.
    Unknown,
}

impl Journal {
    /// Who calls with a process. A server of tmux is a child of the first process, so what runs in a pane is not below the agent
    /// that started the server.
    pub fn caller(&mut self, pid: u32) -> Result<Caller, Error> {
        let agents = self.agent_processes()?;
        Ok(above(pid, &ProcessStat::of, &agents))
    }
}

fn above(pid: u32, stat: &dyn Fn(u32) -> Option<ProcessStat>, agents: &HashMap<(u32, u64), Agent>) -> Caller {
    let mut pid = pid;
    for depth in 0..MAX_ANCESTORS {
        let Some(found) = stat(pid) else {
            return if depth <= 1 { Caller::Unknown } else { Caller::Person };
        };
        if let Some(agent) = agents.get(&(pid, found.started)) {
            return Caller::Agent(agent.clone());
        }
        if found.parent <= 1 {
            return Caller::Person;
        }
        pid = found.parent;
    }
    Caller::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Process N is the child of N - 1, and was started at 10 N.
    #[expect(clippy::unnecessary_wraps, reason = "as the kernel's is read")]
    fn stat(pid: u32) -> Option<ProcessStat> {
        Some(ProcessStat {
            parent: pid - 1,
            group: pid,
            session: pid,
            tty: 0,
            foreground_group: -1,
            started: u64::from(pid) * 10,
        })
    }

    #[test]
    fn an_agent_above_is_found_however_far() {
        let agent = Agent::new("claude-1").unwrap();
        let agents = HashMap::from([((5, 50), agent.clone())]);
        let of = |pid| above(pid, &stat, &agents);
        assert_eq!(of(30), Caller::Agent(agent.clone()));
        assert_eq!(of(5), Caller::Agent(agent), "the agent itself");
        assert_eq!(of(4), Caller::Person, "beside it");
        assert_eq!(of(1000), Caller::Unknown, "too far to tell");
    }

    #[test]
    fn another_process_with_the_number_of_an_agent_is_not_the_agent() {
        let agents = HashMap::from([((5, 49), Agent::new("claude-1").unwrap())]);
        assert_eq!(above(9, &stat, &agents), Caller::Person);
    }

    #[test]
    fn processes_that_cannot_be_read_tell_nothing() {
        let agents = HashMap::new();
        assert_eq!(above(9, &|_| None, &agents), Caller::Unknown);
        let own = |pid: u32| stat(pid).filter(|_| pid == 9);
        assert_eq!(above(9, &own, &agents), Caller::Unknown);
    }
}
