//! The list of its agents that a machine tells the other machines of its team: a message beside the stream, which no server
//! keeps.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::agents::{MAX_AGENTS, WireAgent};

/// The most bytes of a list. A server takes twice as much, else no connection is made.
pub(crate) const MAX_BYTES: usize = 256 * 1024;

/// A list. Every field is what another machine says, and is checked before it counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AgentList {
    /// The clock of the machine, in milliseconds since 1970.
    pub(crate) sent_ms: i64,
    /// How long the list holds, in seconds, if the machine says nothing else. 0: the machine leaves, and nothing else counts.
    pub(crate) holds_s: u64,
    /// The machine has just connected, and wants the lists of the others.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ask: bool,
    /// How many agents the machine has beside these.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) unlisted: usize,
    /// The agents.
    pub(crate) agents: Vec<WireAgent>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl AgentList {
    /// The list as it is published. Agents that do not fit are only counted.
    pub(crate) fn encode(mut self) -> Vec<u8> {
        let mut room = MAX_AGENTS;
        loop {
            let cut = self.agents.len().saturating_sub(room);
            self.agents.truncate(room);
            self.unlisted = self.unlisted.saturating_add(cut);
            // Plain data: it cannot fail to be written.
            let bytes = serde_json::to_vec(&self).unwrap_or_default();
            if bytes.len() <= MAX_BYTES || self.agents.is_empty() {
                return bytes;
            }
            room = self.agents.len() / 2;
        }
    }

    /// Reads one. `None` if it is none.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        (bytes.len() <= MAX_BYTES).then(|| serde_json::from_slice(bytes).ok())?
    }

    pub(crate) fn holds(&self) -> Duration {
        Duration::from_secs(self.holds_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(agents: usize, name: &str) -> AgentList {
        let agent = |number| WireAgent {
            id: format!("claude-{number}"),
            name: Some(name.to_owned()),
            ..WireAgent::default()
        };
        AgentList { holds_s: 50, agents: (0..agents).map(agent).collect(), ..AgentList::default() }
    }

    #[test]
    fn a_list_that_is_too_long_is_cut_and_says_so() {
        let check = |agents: usize, name: &str, listed: usize| {
            let read = AgentList::read(&list(agents, name).encode()).unwrap();
            assert_eq!((read.agents.len(), read.unlisted), (listed, agents - listed));
        };
        check(3, "worker", 3);
        check(1_000, "worker", MAX_AGENTS);
        check(256, &"x".repeat(3_000), 64);
        check(1, &"x".repeat(MAX_BYTES), 0);
    }

    #[test]
    fn what_another_version_says_beside_it_is_ignored() {
        let read =
            AgentList::read(br#"{"holds_s":5,"agents":[{"id":"a","dances":true}],"more":[1]}"#).unwrap();
        assert_eq!((read.holds(), read.agents[0].id.as_str()), (Duration::from_secs(5), "a"));
        assert_eq!(AgentList::read(&vec![b' '; MAX_BYTES + 1]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = AgentList::read(&bytes);
        }
    }
}
