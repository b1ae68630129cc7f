//! Who is told of an agent, and in which words.
//!
//! Three tiers: a worker has a manager, which is an agent; a scope has a lead, the session that the person talks to.

use crate::address::{Agent, Recipient};
use crate::agent::Notice;
use crate::kind::Kind;

/// What an agent is to the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tier {
    /// It works for another agent.
    Worker {
        /// For this one.
        manager: Agent,
    },
    /// It has workers, or could have.
    Manager {
        /// How many of its workers have not finished.
        unfinished: usize,
    },
}

/// A message that tells of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telling {
    /// Whom it is for.
    pub recipient: Recipient,
    /// The words.
    pub text: String,
}

/// What to tell of a notice, and whom. Empty where nothing is: a manager whose workers still work has not completed.
///
/// A worker's notice goes to its manager and to the lead (and the person); nobody is told of himself.
///
/// ```
/// use std::time::Duration;
/// use ringer_core::{tell, Agent, AgentMachine, AgentState, Authority, Patience, Signal, Tier};
///
/// let mut machine = AgentMachine::new(Duration::ZERO, Patience::default());
/// machine.apply(Duration::ZERO, &Signal::state(Authority::Hook, AgentState::Working));
/// let notice = machine.apply(Duration::from_secs(9), &Signal::state(Authority::Hook, AgentState::Done)).remove(0);
///
/// let (worker, manager) = (Agent::new("w1")?, Agent::new("m1")?);
/// let tellings = tell(&worker, &Tier::Worker { manager }, None, &notice);
/// assert_eq!(tellings[0].text, "Agent w1 completed (worker of m1)");
/// assert_eq!(tellings.len(), 2);
/// # Ok::<(), ringer_core::InvalidWord>(())
/// ```
pub fn tell(agent: &Agent, tier: &Tier, lead: Option<&Agent>, notice: &Notice) -> Vec<Telling> {
    if notice.kind == Kind::Complete && matches!(tier, Tier::Manager { unfinished } if *unfinished > 0) {
        return Vec::new();
    }
    let text = words(agent.as_str(), tier, notice);
    let mut recipients = Vec::new();
    if let Tier::Worker { manager } = tier
        && manager != agent
        && Some(manager) != lead
    {
        recipients.push(Recipient::Agent(manager.clone()));
    }
    // The lead's own news are for the person alone.
    recipients.push(if lead == Some(agent) { Recipient::Person } else { Recipient::Default });
    recipients.into_iter().map(|recipient| Telling { recipient, text: text.clone() }).collect()
}

fn words(agent: &str, tier: &Tier, notice: &Notice) -> String {
    let detail = notice.text.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
    match (notice.kind, tier) {
        (Kind::Complete, Tier::Worker { manager }) => {
            format!("Agent {agent} completed (worker of {}){detail}", manager.as_str())
        }
        (Kind::Complete, Tier::Manager { .. }) => format!("Manager {agent} completed its goal{detail}"),
        (Kind::Waiting, _) if notice.category == Some("permission_prompt") => {
            format!("Agent {agent} needs permission{detail}")
        }
        (Kind::Waiting, _) if notice.category == Some("auth_prompt") => {
            format!("Agent {agent} needs somebody to log in{detail}")
        }
        (Kind::Waiting, Tier::Worker { .. }) => format!("Agent {agent} is waiting for input{detail}"),
        (Kind::Waiting, Tier::Manager { .. }) => format!("Manager {agent} is waiting{detail}"),
        (Kind::Question, _) => {
            format!("Agent {agent} asks: {}", notice.text.as_deref().unwrap_or("(see its terminal)"))
        }
        (Kind::Stuck, _) => format!("Agent {agent} has shown no sign of life for a while{detail}"),
        (Kind::Error, _) if notice.category == Some("abnormal_stop") => {
            format!("Agent {agent} ended in the middle of a turn{detail}")
        }
        (Kind::Error, _) => format!("Agent {agent} failed{detail}"),
        (Kind::Status, _) => format!("Agent {agent}{detail}"),
    }
}

/// Whether the last line of an agent's last message says that it waits rather than that it is done.
pub fn says_waiting(message: &str, marker: &str) -> bool {
    message.trim_end().lines().next_back().is_some_and(|line| line.trim() == marker)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Episode;

    fn agent(id: &str) -> Agent {
        Agent::new(id).unwrap()
    }

    fn notice(kind: Kind, category: Option<&'static str>, text: Option<&str>) -> Notice {
        Notice { episode: Episode::default(), upgrade: false, kind, category, text: text.map(str::to_owned) }
    }

    fn worker() -> Tier {
        Tier::Worker { manager: agent("m") }
    }

    const MANAGER: Tier = Tier::Manager { unfinished: 0 };

    #[test]
    fn the_words_of_each_transition() {
        let check = |tier: &Tier, kind, category, text, expected: &str| {
            let tellings = tell(&agent("a"), tier, None, &notice(kind, category, text));
            assert_eq!(tellings[0].text, expected);
        };
        check(&worker(), Kind::Complete, None, None, "Agent a completed (worker of m)");
        check(&MANAGER, Kind::Complete, None, None, "Manager a completed its goal");
        check(&worker(), Kind::Waiting, None, None, "Agent a is waiting for input");
        check(&MANAGER, Kind::Waiting, None, None, "Manager a is waiting");
        check(&worker(), Kind::Question, None, Some("Which?"), "Agent a asks: Which?");
        check(
            &worker(),
            Kind::Waiting,
            Some("permission_prompt"),
            Some("rm x"),
            "Agent a needs permission: rm x",
        );
        check(&worker(), Kind::Error, None, Some("API error"), "Agent a failed: API error");
        check(&worker(), Kind::Error, Some("abnormal_stop"), None, "Agent a ended in the middle of a turn");
        check(&worker(), Kind::Stuck, None, None, "Agent a has shown no sign of life for a while");
    }

    #[test]
    fn a_worker_tells_its_manager_and_the_lead() {
        let tellings =
            tell(&agent("a"), &worker(), Some(&agent("lead")), &notice(Kind::Complete, None, None));
        let recipients: Vec<String> = tellings.iter().map(|telling| telling.recipient.to_string()).collect();
        assert_eq!(recipients, ["agent:m", "default"]);
    }

    #[test]
    fn a_manager_that_is_the_lead_is_told_once() {
        let tellings = tell(&agent("a"), &worker(), Some(&agent("m")), &notice(Kind::Complete, None, None));
        assert_eq!(tellings.len(), 1);
    }

    #[test]
    fn nobody_is_told_of_himself() {
        let tellings =
            tell(&agent("lead"), &MANAGER, Some(&agent("lead")), &notice(Kind::Complete, None, None));
        assert_eq!(tellings[0].recipient, Recipient::Person);
        let own = Tier::Worker { manager: agent("a") };
        let tellings = tell(&agent("a"), &own, None, &notice(Kind::Complete, None, None));
        assert!(tellings.iter().all(|telling| telling.recipient.agent().is_none()));
    }

    #[test]
    fn a_manager_with_unfinished_workers_has_not_completed() {
        let busy = Tier::Manager { unfinished: 2 };
        assert_eq!(tell(&agent("m"), &busy, None, &notice(Kind::Complete, None, None)), []);
        assert_eq!(tell(&agent("m"), &busy, None, &notice(Kind::Error, None, None)).len(), 1);
    }

    #[test]
    fn a_waiting_marker_stands_on_the_last_line() {
        assert!(says_waiting("I need the key.\nWAITING\n", "WAITING"));
        assert!(!says_waiting("WAITING for tests\ndone", "WAITING") && !says_waiting("", "WAITING"));
    }
}
