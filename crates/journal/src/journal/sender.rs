//! Determines the sender of a message from the process tree, not from the command line or the environment.
//!
//! Below an agent, the sender is that agent, which may name a worker of its own. In the person's shell it is the person.
//! Anything else (cron, a service, a script without a terminal, a process that left the agent that started it) is a program. It
//! may have a name, but neither the person's nor that of a running agent.

use std::collections::HashMap;

use ringer_core::Sender;
use ringer_core::message::Agent;
use rusqlite::OptionalExtension;
use serde::{Deserialize, Serialize};

use crate::error::{Error, SenderError};
use crate::journal::agent::AgentInfo;
use crate::journal::schema::Journal;
use crate::process::{ProcessStat, started};

/// How many ancestors of a process are checked: far more than there are between a command and its agent or session leader.
const MAX_ANCESTORS: usize = 256;

/// Who a process speaks for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
enum Speaker {
    /// The person, who typed the command into their shell.
    Person,
    /// An agent above the process.
    Agent(AgentInfo),
    /// Neither.
    Program,
}

/// What a command claims about its sender.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderClaim {
    /// The name given for this message (`--from`). An error if it is not permitted.
    pub from: Option<String>,
    /// The name in the environment (`RINGER_AGENT`), possibly inherited from another agent. Ignored if it is not permitted.
    pub inherited: Option<String>,
    /// The command knows that the person did not type it.
    pub is_program: bool,
}

impl Journal {
    /// The sender of a message of a process. `pid` is `None` if it is unknown, as in a container.
    pub fn sender(&mut self, pid: Option<u32>, claim: &SenderClaim) -> Result<Sender, Error> {
        let speaker = pid.map(|pid| self.speaker(pid)).transpose()?.unwrap_or(Speaker::Program);
        let speaker = if claim.is_program && speaker == Speaker::Person { Speaker::Program } else { speaker };
        // Looked up only if a name is used. The person may use any.
        let is_agent = match claim.from.as_ref().or(claim.inherited.as_ref()) {
            Some(name) if speaker != Speaker::Person => self.is_running_agent(name)?,
            _ => false,
        };
        Ok(sender(&speaker, claim, is_agent)?)
    }

    /// Who a process speaks for. The only place that decides this.
    fn speaker(&mut self, pid: u32) -> Result<Speaker, Error> {
        Ok(match self.caller(pid)? {
            Caller::Agent(agent) => self.agent_info(&agent)?.map_or(Speaker::Program, Speaker::Agent),
            Caller::Person if is_in_terminal_session(pid, &ProcessStat::of) => Speaker::Person,
            Caller::Person | Caller::Unknown => Speaker::Program,
        })
    }

    /// Returns true if a running agent has this name or id.
    fn is_running_agent(&mut self, name: &str) -> Result<bool, Error> {
        let process: Option<(Option<u32>, Option<i64>)> = self.read(|connection| {
            connection
                .prepare(
                    "SELECT pid, started FROM agent WHERE ?1 IN (id, session_id, name) AND state <> 'exited'",
                )?
                .query_row([name], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })?;
        let runs = |pid: u32, since: i64| started(pid).and_then(|now| i64::try_from(now).ok()) == Some(since);
        Ok(matches!(process, Some((Some(pid), Some(since))) if runs(pid, since)))
    }
}

/// The sender for a claim. `is_agent`: the claimed name is that of a running agent.
fn sender(speaker: &Speaker, claim: &SenderClaim, is_agent: bool) -> Result<Sender, SenderError> {
    let own = match speaker {
        Speaker::Person => Sender::person(),
        Speaker::Agent(agent) => agent.sender(),
        Speaker::Program => Sender::system(),
    };
    let Some(name) = claim.from.as_deref().or(claim.inherited.as_deref()) else { return Ok(own) };
    let is_own = match speaker {
        Speaker::Agent(agent) => [Some(agent.id.as_str()), agent.name.as_deref()].contains(&Some(name)),
        Speaker::Person => [Sender::person(), Sender::system()].iter().any(|own| own.as_str() == name),
        Speaker::Program => name == own.as_str(),
    };
    let is_inherited = claim.from.is_none();
    let is_refused =
        Sender::is_reserved(name) || (is_agent && (is_inherited || *speaker == Speaker::Program));
    match speaker {
        Speaker::Agent(_) if is_own => Ok(own),
        _ if is_refused && !is_own && is_inherited => Ok(own),
        _ if is_refused && !is_own && Sender::is_reserved(name) => {
            Err(SenderError::Reserved { name: name.to_owned() })
        }
        _ if is_refused && !is_own => Err(SenderError::OtherAgent { name: name.to_owned() }),
        Speaker::Agent(_) => Ok(Sender::worker(&own, name)?),
        Speaker::Person | Speaker::Program => Ok(Sender::new(name)?),
    }
}

/// Returns true if a process has a terminal and runs below the leader of its session. An orphaned process does not.
fn is_in_terminal_session(pid: u32, stat: &dyn Fn(u32) -> Option<ProcessStat>) -> bool {
    let Some(own) = stat(pid).filter(|own| own.tty != 0) else { return false };
    let mut above = pid;
    for _ in 0..MAX_ANCESTORS {
        if above == own.session {
            return true;
        }
        match stat(above) {
            Some(found) if found.parent > 1 => above = found.parent,
            _ => return false,
        }
    }
    false
}

/// Who calls a command, according to its ancestors.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Caller {
    /// No agent is above the process. That alone does not prove that it is the person's: see `ringer-guard`.
    Person,
    /// The process runs below this agent.
    Agent(Agent),
    /// The processes above it cannot be read.
    Unknown,
}

impl Journal {
    /// Finds the agent above a process. A tmux server is a child of init, so a process in a pane is not below the agent that
    /// started the server.
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
    use ringer_core::Scope;
    use ringer_core::message::Agent;

    use super::*;

    fn agent(name: Option<&str>) -> Speaker {
        let info = AgentInfo::new(Agent::new("claude-1").unwrap(), "claude", "1", Scope::global());
        Speaker::Agent(AgentInfo { name: name.map(str::to_owned), ..info })
    }

    /// The sender, or `refused: ` and the reason.
    fn of(speaker: &Speaker, from: Option<&str>, inherited: Option<&str>, is_agent: bool) -> String {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let claim = SenderClaim { from: text(from), inherited: text(inherited), is_program: false };
        sender(speaker, &claim, is_agent)
            .map_or_else(|error| format!("refused: {error}"), |sender| sender.to_string())
    }

    #[test]
    fn without_a_name_the_sender_is_the_speaker() {
        assert_eq!(of(&Speaker::Person, None, None, false), "person");
        assert_eq!(of(&agent(None), None, None, false), "claude-1");
        assert_eq!(of(&agent(Some("painter")), None, None, false), "painter");
        assert_eq!(of(&Speaker::Program, None, None, false), "system");
    }

    #[test]
    fn an_agent_names_its_workers_and_nobody_else() {
        let painter = agent(Some("painter"));
        assert_eq!(of(&painter, Some("w1"), None, false), "painter/w1");
        assert_eq!(of(&painter, Some("claude-1"), None, false), "painter", "itself");
        assert_eq!(of(&painter, Some("painter"), None, true), "painter", "itself");
        assert_eq!(of(&painter, Some("other"), None, true), "painter/other", "its worker of that name");
        for name in ["person", "Person", "user", "system", "other/w1"] {
            assert!(of(&painter, Some(name), None, false).starts_with("refused: "), "{name}");
        }
    }

    #[test]
    fn a_name_in_the_environment_is_left_out_where_it_is_that_of_another() {
        let nameless = agent(None);
        assert_eq!(of(&nameless, None, Some("w1"), false), "claude-1/w1");
        assert_eq!(
            of(&nameless, None, Some("boss"), true),
            "claude-1",
            "inherited from the agent that started it"
        );
        assert_eq!(of(&nameless, None, Some("person"), false), "claude-1");
        assert_eq!(of(&Speaker::Program, None, Some("w1"), false), "w1");
        assert_eq!(of(&Speaker::Program, None, Some("w1"), true), "system", "left by that agent");
        assert_eq!(of(&Speaker::Program, None, Some("person"), false), "system");
        assert_eq!(of(&Speaker::Person, None, Some("w1"), false), "w1");
        assert_eq!(of(&Speaker::Person, Some("w2"), Some("w1"), false), "w2");
    }

    #[test]
    fn a_program_is_neither_the_person_nor_an_agent_that_runs() {
        assert_eq!(of(&Speaker::Program, Some("ci"), None, false), "ci");
        assert_eq!(of(&Speaker::Program, Some("system"), None, false), "system");
        for (name, is_agent) in [("person", false), ("user", false), ("ci/w1", false), ("claude-1", true)] {
            assert!(of(&Speaker::Program, Some(name), None, is_agent).starts_with("refused: "), "{name}");
        }
    }

    #[test]
    fn the_person_may_use_any_name_but_not_that_of_a_worker() {
        for name in ["person", "system", "ci"] {
            assert_eq!(of(&Speaker::Person, Some(name), None, false), name);
        }
        assert!(of(&Speaker::Person, Some("claude-1/w1"), None, false).starts_with("refused: "));
    }

    #[test]
    fn a_process_that_was_left_behind_is_not_in_its_terminal() {
        /// A shell (PID 10) leads the session; 20 and 30 are its descendants.
        fn stat(tty: u32, orphan: u32) -> impl Fn(u32) -> Option<ProcessStat> {
            move |pid| {
                let parent = if pid == orphan { 1 } else { pid - 10 };
                let foreground_group = -1;
                Some(ProcessStat { parent, group: pid, session: 10, tty, foreground_group, started: 1 })
            }
        }
        assert!(is_in_terminal_session(30, &stat(7, 0)));
        assert!(is_in_terminal_session(10, &stat(7, 0)), "the shell itself");
        assert!(!is_in_terminal_session(30, &stat(0, 0)), "no terminal");
        assert!(!is_in_terminal_session(30, &stat(7, 20)), "its parent has left it");
        assert!(!is_in_terminal_session(30, &|_| None));
    }

    /// Process N is the child of N - 1 and started at time 10 N.
    #[expect(clippy::unnecessary_wraps, reason = "as the kernel's is read")]
    fn numbered(pid: u32) -> Option<ProcessStat> {
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
        let of = |pid| above(pid, &numbered, &agents);
        assert_eq!(of(30), Caller::Agent(agent.clone()));
        assert_eq!(of(5), Caller::Agent(agent), "the agent itself");
        assert_eq!(of(4), Caller::Person, "beside it");
        assert_eq!(of(1000), Caller::Unknown, "too far to tell");
    }

    #[test]
    fn another_process_with_the_number_of_an_agent_is_not_the_agent() {
        let agents = HashMap::from([((5, 49), Agent::new("claude-1").unwrap())]);
        assert_eq!(above(9, &numbered, &agents), Caller::Person);
    }

    #[test]
    fn processes_that_cannot_be_read_tell_nothing() {
        let agents = HashMap::new();
        assert_eq!(above(9, &|_| None, &agents), Caller::Unknown);
        let own = |pid: u32| numbered(pid).filter(|_| pid == 9);
        assert_eq!(above(9, &own, &agents), Caller::Unknown);
    }
}
