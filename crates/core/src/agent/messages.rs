//! The messages about an agent: their recipients and texts.
//!
//! Three tiers: a worker has a manager, which is an agent; a scope has a lead, the session that the person talks to.

use crate::agent::notice::running_tasks_text;
use crate::agent::{AgentNotice, Episode};
use crate::message::{Agent, EPISODE_KEY_PREFIX, Kind, PERMISSION_REFUSED, Recipient};

/// The role of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tier {
    /// Works for another agent.
    Worker {
        /// The agent it works for.
        manager: Agent,
        /// The manager's name, if it has one.
        manager_name: Option<String>,
    },
    /// Has workers, or could have.
    Manager {
        /// Number of workers that have not finished.
        unfinished: usize,
    },
}

/// A message about an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentMessage {
    /// Who receives the message.
    pub recipient: Recipient,
    /// The text of the message.
    pub text: String,
}

/// Returns the messages for a notice. There are none for the completion of a manager whose workers have not finished.
///
/// Agents are called by their names, if they have one (`RINGER_AGENT`). A worker's notice goes to its manager and to the
/// lead (and the person). An agent gets no message about itself.
///
/// ```
/// use std::time::Duration;
/// use ringer_core::agent::{agent_messages, AgentMachine, AgentState, Authority, AgentTimeouts, Signal, Tier};
/// use ringer_core::message::Agent;
///
/// let mut machine = AgentMachine::new(Duration::ZERO, AgentTimeouts::default());
/// machine.apply(Duration::ZERO, &Signal::state(Authority::Hook, AgentState::Working));
/// let changes = machine.apply(Duration::from_secs(9), &Signal::state(Authority::Hook, AgentState::Done));
///
/// let (worker, manager) = (Agent::new("w1")?, Agent::new("m1")?);
/// let tier = Tier::Worker { manager, manager_name: Some("boss".to_owned()) };
/// let messages = agent_messages(&worker, None, &tier, None, &changes.notices[0]);
/// assert_eq!(messages[0].text, "Agent w1 completed (worker of boss)");
/// assert_eq!(messages.len(), 2);
/// # Ok::<(), ringer_core::message::InvalidName>(())
/// ```
pub fn agent_messages(
    agent: &Agent,
    name: Option<&str>,
    tier: &Tier,
    lead: Option<&Agent>,
    notice: &AgentNotice,
) -> Vec<AgentMessage> {
    if notice.kind == Kind::Complete && matches!(tier, Tier::Manager { unfinished } if *unfinished > 0) {
        return Vec::new();
    }
    let text = text_of(name.unwrap_or(agent.as_str()), tier, notice);
    let mut recipients = Vec::new();
    if let Tier::Worker { manager, .. } = tier
        && manager != agent
        && Some(manager) != lead
    {
        recipients.push(Recipient::Agent(manager.clone()));
    }
    // A notice about the lead is for the person alone.
    recipients.push(if lead == Some(agent) { Recipient::Person } else { Recipient::Default });
    recipients.into_iter().map(|recipient| AgentMessage { recipient, text: text.clone() }).collect()
}

fn text_of(agent: &str, tier: &Tier, notice: &AgentNotice) -> String {
    let detail = notice.text.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
    let detail = match running_tasks_text(notice.running) {
        Some(running) => format!(" ({running}){detail}"),
        None => detail,
    };
    match (notice.kind, tier) {
        (Kind::Complete, Tier::Worker { manager, manager_name }) => {
            let manager = manager_name.as_deref().unwrap_or(manager.as_str());
            format!("Agent {agent} completed (worker of {manager}){detail}")
        }
        (Kind::Complete, Tier::Manager { .. }) => format!("Manager {agent} completed its goal{detail}"),
        (Kind::Waiting, _) if notice.category == Some("permission_prompt") => {
            format!("Agent {agent} needs permission{detail}")
        }
        (Kind::Waiting, _) if notice.category == Some("auth_prompt") => {
            format!("Agent {agent} needs a login{detail}")
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
        (Kind::Status, _) if notice.category == Some(PERMISSION_REFUSED) => {
            format!("Agent {agent} was refused permission{detail}")
        }
        (Kind::Status, _) => format!("Agent {agent}{detail}"),
    }
}

/// The key of the messages that report an episode of an agent.
pub fn episode_key(agent: &Agent, episode: Episode) -> String {
    format!("{EPISODE_KEY_PREFIX}{}:{}", agent.as_str(), episode.number())
}

/// Returns true if the last line of an agent's last message is the marker that it waits for input.
pub fn ends_with_waiting_marker(message: &str, marker: &str) -> bool {
    message.trim_end().lines().next_back().is_some_and(|line| line.trim() == marker)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Episode;

    fn agent(id: &str) -> Agent {
        Agent::new(id).unwrap()
    }

    fn notice(kind: Kind, category: Option<&'static str>, text: Option<&str>) -> AgentNotice {
        AgentNotice {
            episode: Episode::default(),
            upgrade: false,
            kind,
            category,
            text: text.map(str::to_owned),
            running: 0,
            turn: None,
        }
    }

    fn worker() -> Tier {
        Tier::Worker { manager: agent("m"), manager_name: None }
    }

    const MANAGER: Tier = Tier::Manager { unfinished: 0 };

    #[test]
    fn the_words_of_each_transition() {
        let check = |tier: &Tier, kind, category, text, expected: &str| {
            let messages = agent_messages(&agent("a"), None, tier, None, &notice(kind, category, text));
            assert_eq!(messages[0].text, expected);
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
    fn an_agent_is_called_by_its_name() {
        let complete = notice(Kind::Complete, None, None);
        let tier = Tier::Worker { manager: agent("m"), manager_name: Some("boss".to_owned()) };
        let messages = agent_messages(&agent("a"), Some("worker-2"), &tier, None, &complete);
        assert_eq!(messages[0].text, "Agent worker-2 completed (worker of boss)");
        assert_eq!(messages[0].recipient.to_string(), "agent:m", "ids are addresses");
    }

    #[test]
    fn a_workers_notice_goes_to_its_manager_and_the_lead() {
        let messages = agent_messages(
            &agent("a"),
            None,
            &worker(),
            Some(&agent("lead")),
            &notice(Kind::Complete, None, None),
        );
        let recipients: Vec<String> = messages.iter().map(|message| message.recipient.to_string()).collect();
        assert_eq!(recipients, ["agent:m", "default"]);
    }

    #[test]
    fn a_manager_that_is_the_lead_gets_one_message() {
        let messages = agent_messages(
            &agent("a"),
            None,
            &worker(),
            Some(&agent("m")),
            &notice(Kind::Complete, None, None),
        );
        assert_eq!(messages.len(), 1);
    }

    #[test]
    fn an_agent_gets_no_message_about_itself() {
        let messages = agent_messages(
            &agent("lead"),
            None,
            &MANAGER,
            Some(&agent("lead")),
            &notice(Kind::Complete, None, None),
        );
        assert_eq!(messages[0].recipient, Recipient::Person);
        let own = Tier::Worker { manager: agent("a"), manager_name: None };
        let messages = agent_messages(&agent("a"), None, &own, None, &notice(Kind::Complete, None, None));
        assert!(messages.iter().all(|message| message.recipient.agent().is_none()));
    }

    #[test]
    fn a_manager_with_unfinished_workers_has_not_completed() {
        let busy = Tier::Manager { unfinished: 2 };
        assert_eq!(agent_messages(&agent("m"), None, &busy, None, &notice(Kind::Complete, None, None)), []);
        assert_eq!(agent_messages(&agent("m"), None, &busy, None, &notice(Kind::Error, None, None)).len(), 1);
    }

    #[test]
    fn a_waiting_marker_stands_on_the_last_line() {
        assert!(ends_with_waiting_marker("I need the key.\nWAITING\n", "WAITING"));
        assert!(
            !ends_with_waiting_marker("WAITING for tests\ndone", "WAITING")
                && !ends_with_waiting_marker("", "WAITING")
        );
    }
}
