//! Publishes this machine's agents to the team, and stores the lists of the other machines.
//!
//! The lists are state, not records: they bypass the stream, the server stores none of them, and a connection works without them
//! if the server forbids them.

use std::future::pending;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use async_nats::{Client, Message, Subscriber};
use ringer_journal::{IdSource, Journal};
use serde::{Deserialize, Serialize};

use crate::agents::{MAX_AGENTS, WireAgent, import_agents, own_agents};
use crate::error::Error;
use crate::import::ImportRules;
use crate::team_agents::{ReceivedList, TeamAgents, TeamLock};
use crate::team_setup::TeamSetup;

use super::agent_timing::{AgentTiming, Jitter};
use super::connection::failed;
use super::next::next;
use super::subject::{agents_from, agents_of_team, machine_of_agents};

/// Time limit for the message that this machine leaves. The hub's exit waits for it.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(200);

pub(crate) enum AgentEvent {
    /// A list of another machine arrived.
    List(Message),
    /// A timer expired.
    Timer,
}

/// The lists of agents on one connection.
pub(crate) struct AgentService<'a> {
    setup: &'a TeamSetup,
    client: Client,
    lists: Subscriber,
    timing: AgentTiming,
    /// The last list that was sent. `None` until then: that first list also asks the others for theirs.
    last_list: Option<Vec<WireAgent>>,
    /// The server does not allow this machine to publish its agents.
    is_refused: bool,
    team: TeamAgents,
    /// `None` if a command inspected the lock for too long. It is then taken with the next list.
    lock: Option<TeamLock>,
}

impl<'a> AgentService<'a> {
    /// Starts in a team of about `machines` machines.
    pub(crate) async fn begin(setup: &'a TeamSetup, client: &Client, machines: usize) -> Result<Self, Error> {
        let team = TeamAgents::before_connection(&setup.home, &setup.team);
        // The file is written before the lock is taken, so that it lists only machines of this connection as current.
        team.write(&setup.home);
        let lock = TeamLock::take(&setup.home, &setup.team);
        let lists = client.subscribe(agents_of_team(&setup.team)).await;
        let lists = lists.map_err(|error| failed("lists of agents cannot be asked for", &error))?;
        Ok(Self {
            setup,
            client: client.clone(),
            lists,
            timing: AgentTiming::begin(Instant::now(), machines, random_jitter()),
            last_list: None,
            is_refused: false,
            team,
            lock,
        })
    }

    /// The journal has changed.
    pub(crate) fn changed(&mut self) {
        self.timing.changed(Instant::now());
    }

    /// The server does not allow this machine to publish its agents, or to receive those of others.
    pub(crate) fn refused(&mut self, why: &str) {
        self.is_refused |= why.to_lowercase().contains("publish to");
    }

    /// Waits for the next event.
    pub(crate) async fn next(&mut self) -> AgentEvent {
        let planned = self.timing.next();
        let due = self.team.next_expiry().map_or(planned, |expiry| expiry.min(planned));
        tokio::select! {
            list = next(&mut self.lists) => match list {
                Some(list) => AgentEvent::List(list),
                // The connection has ended, which is handled elsewhere.
                None => pending().await,
            },
            () = tokio::time::sleep_until(due.into()) => AgentEvent::Timer,
        }
    }

    pub(crate) async fn handle(&mut self, journal: &mut Journal, event: AgentEvent) -> Result<(), Error> {
        match event {
            AgentEvent::List(list) => self.store_list(journal, &list),
            AgentEvent::Timer => {
                let now = Instant::now();
                if self.team.expire(now) {
                    self.timing.lists_changed(now, self.machines(now));
                }
                if self.timing.take_write(now) {
                    // Nothing is written for a team that was removed.
                    self.setup.check_known(journal)?;
                    self.team.write(&self.setup.home);
                    self.lock =
                        self.lock.take().or_else(|| TeamLock::take(&self.setup.home, &self.setup.team));
                }
                self.publish_list(journal, now).await
            }
        }
    }

    /// Stores the list of another machine. The server identifies the machine.
    fn store_list(&mut self, journal: &mut Journal, list: &Message) -> Result<(), Error> {
        let Some(machine) = machine_of_agents(&list.subject, &self.setup.team) else { return Ok(()) };
        let Some(name) = self.setup.name_of(machine).filter(|_| machine != self.setup.machine) else {
            return Ok(());
        };
        let Some(list) = AgentList::read(&list.payload) else { return Ok(()) };
        // A name that belongs to a machine of another link is not used.
        if !self.team.is_current(name.as_str()) {
            let id = journal.machine_id_of(name.as_str())?;
            if id.is_some_and(|id| id != self.setup.import_key(machine)) {
                return Ok(());
            }
        }
        let (now, unix_ms) = (Instant::now(), IdSource::now().unix_ms);
        if list.ask {
            self.timing.asked(now, self.machines(now), random_jitter());
        }
        if list.holds_s == 0 {
            if self.team.mark_left(name.as_str()) {
                self.timing.lists_changed(now, self.machines(now));
            }
            return Ok(());
        }
        let rules = ImportRules::new(name, false, unix_ms, list.sent_ms);
        let validity = list.validity();
        let unlisted = list.unlisted.saturating_add(list.agents.len().saturating_sub(MAX_AGENTS));
        let agents = import_agents(&rules, list.agents);
        let sent = ReceivedList { agents, unlisted, validity };
        if self.team.update(now, unix_ms, rules.machine.as_str(), sent) {
            self.timing.lists_changed(now, self.machines(now));
        } else {
            self.timing.list_repeated(now);
        }
        Ok(())
    }

    /// Publishes this machine's agents, if it is time.
    async fn publish_list(&mut self, journal: &mut Journal, now: Instant) -> Result<(), Error> {
        if self.timing.take_check(now)
            && self.last_list.as_ref().is_some_and(|last| !is_unchanged(last, journal))
        {
            self.timing.list_outdated(now, self.machines(now));
        }
        if !self.timing.take_send(now, self.machines(now), random_jitter()) || self.is_refused {
            return Ok(());
        }
        let agents = own_agents(journal)?;
        let list = AgentList {
            sent_ms: IdSource::now().unix_ms,
            holds_s: AgentTiming::validity(self.machines(now)).as_secs(),
            ask: self.last_list.is_none(),
            unlisted: 0,
            agents: agents.clone(),
        };
        self.last_list = Some(agents);
        let subject = agents_from(&self.setup.team, &self.setup.machine);
        let sent = self.client.publish(subject, list.encode().into()).await;
        sent.map_err(|error| failed("the list of agents cannot be published", &error))
    }

    /// Returns the number of machines in the team, including this one.
    fn machines(&self, now: Instant) -> usize {
        self.timing.machines(now, self.team.current() + 1)
    }
}

/// Announces to the other machines that this one leaves. Without this message they would notice it a minute later.
pub(crate) async fn leave(setup: &TeamSetup, client: &Client) {
    let sent_ms = IdSource::now().unix_ms;
    let list = AgentList { sent_ms, ..AgentList::default() };
    let left = async {
        client.publish(agents_from(&setup.team, &setup.machine), list.encode().into()).await.ok()?;
        client.flush().await.ok()
    };
    let _ = tokio::time::timeout(LEAVE_TIMEOUT, left).await;
}

/// Returns true if the agents are the same as in the last list. If they cannot be read now, the next list reads them again.
fn is_unchanged(last: &[WireAgent], journal: &mut Journal) -> bool {
    own_agents(journal).map_or(true, |agents| agents == last)
}

fn random_jitter() -> Jitter {
    Jitter(RandomState::new().hash_one(0).to_le_bytes()[0])
}

/// The most bytes in a list. A connection requires a server that accepts twice as much.
const MAX_BYTES: usize = 256 * 1024;

/// A list on the wire. Every field is untrusted, and is checked before use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct AgentList {
    /// The clock of the machine, in milliseconds since 1970.
    sent_ms: i64,
    /// How long the list is valid, in seconds, unless a newer one arrives. 0: the machine leaves, and the other fields are
    /// ignored.
    holds_s: u64,
    /// The machine has just connected, and requests the lists of the others.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    ask: bool,
    /// The number of agents that are not in the list.
    #[serde(skip_serializing_if = "is_zero")]
    unlisted: usize,
    agents: Vec<WireAgent>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl AgentList {
    /// Encodes the list. Agents that do not fit are only counted.
    fn encode(mut self) -> Vec<u8> {
        let mut room = MAX_AGENTS;
        loop {
            let cut = self.agents.len().saturating_sub(room);
            self.agents.truncate(room);
            self.unlisted = self.unlisted.saturating_add(cut);
            // Plain data cannot fail to encode.
            let bytes = serde_json::to_vec(&self).unwrap_or_default();
            if bytes.len() <= MAX_BYTES || self.agents.is_empty() {
                return bytes;
            }
            room = self.agents.len() / 2;
        }
    }

    /// Parses a list. Returns `None` if it is invalid.
    fn read(bytes: &[u8]) -> Option<Self> {
        (bytes.len() <= MAX_BYTES).then(|| serde_json::from_slice(bytes).ok())?
    }

    fn validity(&self) -> Duration {
        Duration::from_secs(self.holds_s)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(agents: usize, name: &str) -> AgentList {
        let agent = |number| WireAgent {
            id: format!("claude-{number}"),
            name: Some(name.to_owned()),
            ..WireAgent::default()
        };
        AgentList { holds_s: 50, agents: (0..agents).map(agent).collect(), ..AgentList::default() }
    }

    #[test]
    fn a_long_list_is_truncated_and_counts_the_rest() {
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
    fn unknown_fields_are_ignored() {
        let read =
            AgentList::read(br#"{"holds_s":5,"agents":[{"id":"a","dances":true}],"more":[1]}"#).unwrap();
        assert_eq!((read.validity(), read.agents[0].id.as_str()), (Duration::from_secs(5), "a"));
        assert_eq!(AgentList::read(&vec![b' '; MAX_BYTES + 1]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = AgentList::read(&bytes);
        }
    }
}
