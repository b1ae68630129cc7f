//! The inbox: what waits to enter one agent's conversation.
//!
//! One flow for every event: an agent that works finds it in its next tool result, an idle one gets it as its next
//! message and is woken. An inbox is handed over at least once and never loses what it accepted; each event keeps one
//! id, so that a reader can tell a repetition from news.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use ringer_core::{Agent, MessageId};

use crate::call::TurnEvent;
use crate::entry::{Activity, Entry};
use crate::error::Error;
use crate::injection::Injection;
use crate::rate::Rates;
use crate::receipt::{CONFIRM_WITHIN, Carrier, LEASE, LeaseId, Receipt, Stage};
use crate::storm::Storm;

/// The most injections that are accepted and not confirmed. One more is refused, never dropped: it is still in the
/// journal, and can be offered again.
pub const MAX_HELD: usize = 10_000;
/// Confirmed ids that are remembered, so that the same message offered again is known. One more forgets the oldest.
pub const MAX_REMEMBERED: usize = 1024;

/// What became of an injection that was offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// It is in, and this is how it will go on.
    New(Entry),
    /// It was in already: one id is one event.
    Known,
}

/// How an inbox goes about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// When it is a storm, and what goes then.
    pub storm: Storm,
    /// How long a claim holds; see [`LEASE`].
    pub lease: Duration,
    /// How long a hand-over waits for its confirmation; see [`CONFIRM_WITHIN`].
    pub confirm_within: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { storm: Storm::default(), lease: LEASE, confirm_within: CONFIRM_WITHIN }
    }
}

/// What somebody took out of an inbox in order to hand it over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// To be given back to [`Inbox::hand_over`] once the output is written and flushed.
    pub lease: LeaseId,
    /// From then on it is pending again.
    pub until: Duration,
    /// What to write, in order.
    pub injections: Vec<Injection>,
    /// Everything those stand for; more than they are only where a storm folded some.
    pub ids: Vec<MessageId>,
}

#[derive(Debug, Clone)]
struct Held {
    injection: Injection,
    receipt: Receipt,
}

/// What waits for one agent.
#[derive(Debug, Clone)]
pub struct Inbox {
    agent: Agent,
    settings: Settings,
    activity: Activity,
    /// In the order in which they were accepted, which is the order in which they go.
    held: Vec<Held>,
    confirmed: VecDeque<(MessageId, Receipt)>,
    known: HashSet<MessageId>,
    rates: Rates,
    next_lease: u64,
}

impl Inbox {
    /// An empty inbox. The agent is taken to be idle until somebody says otherwise.
    pub fn new(agent: Agent, settings: Settings) -> Self {
        Self {
            agent,
            settings,
            activity: Activity::Idle,
            held: Vec::new(),
            confirmed: VecDeque::new(),
            known: HashSet::new(),
            rates: Rates::default(),
            next_lease: 0,
        }
    }

    /// Whose inbox it is.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Takes an injection, if it is for this agent and there is room. Once taken it is pending, claimed or confirmed,
    /// and never gone.
    pub fn accept(&mut self, now: Duration, injection: Injection) -> Result<Accepted, Error> {
        self.take(injection, Receipt::queued(now))
    }

    /// Takes an injection back as somebody kept it, with how far it had come.
    pub fn restore(&mut self, injection: Injection, receipt: Receipt) -> Result<Accepted, Error> {
        if let Stage::Leased { lease, .. } = receipt.stage() {
            self.next_lease = self.next_lease.max(lease.0.saturating_add(1));
        }
        self.take(injection, receipt)
    }

    fn take(&mut self, injection: Injection, receipt: Receipt) -> Result<Accepted, Error> {
        if injection.to != self.agent {
            return Err(Error::NotMine {
                id: injection.id.to_string(),
                to: injection.to.as_str().to_owned(),
                inbox: self.agent.as_str().to_owned(),
            });
        }
        if self.known.contains(&injection.id) {
            return Ok(Accepted::Known);
        }
        if self.held.len() >= MAX_HELD {
            return Err(Error::InboxFull { agent: self.agent.as_str().to_owned(), most: MAX_HELD });
        }
        self.known.insert(injection.id.clone());
        if *receipt.stage() == Stage::Confirmed {
            self.remember(injection.id, receipt);
        } else {
            self.held.push(Held { injection, receipt });
        }
        Ok(Accepted::New(Entry::of(self.activity)))
    }

    /// Takes note of what the agent does, and gives the way in for what is pending. A turn that ends without another
    /// tool result leaves its notifications for the next message.
    pub fn set_activity(&mut self, now: Duration, activity: Activity) -> Option<Entry> {
        self.activity = activity;
        self.entry(now)
    }

    /// The way in for what is pending now, if something is and may go.
    pub fn entry(&self, now: Duration) -> Option<Entry> {
        let free_at = self.settings.storm.free_at(&self.pending(now), &self.rates)?;
        (free_at <= now).then(|| Entry::of(self.activity))
    }

    /// What is pending, in order.
    pub fn pending(&self, now: Duration) -> Vec<&Injection> {
        let pending = self.held.iter().filter(|held| held.receipt.is_pending(now));
        pending.map(|held| &held.injection).collect()
    }

    /// Claims what is pending: all of it, or in a storm what may go now. Nobody else gets it until the lease is over.
    pub fn claim(&mut self, now: Duration, carrier: &Carrier) -> Option<Claim> {
        let Self { held, rates, settings, .. } = self;
        let places: Vec<usize> =
            (0..held.len()).filter(|place| held[*place].receipt.is_pending(now)).collect();
        let pending: Vec<&Injection> = places.iter().map(|place| &held[*place].injection).collect();
        let chosen = settings.storm.choose(now, &pending, rates);
        if chosen.is_empty() {
            return None;
        }
        let lease = LeaseId(self.next_lease);
        self.next_lease = self.next_lease.wrapping_add(1);
        let mut ids = Vec::new();
        for place in chosen.iter().flat_map(|one| &places[one.of.clone()]) {
            let held = &mut held[*place];
            held.receipt.lease(now, lease, carrier.clone(), settings.lease);
            ids.push(held.injection.id.clone());
        }
        let injections = chosen.into_iter().map(|one| one.injection).collect();
        Some(Claim { lease, until: now.saturating_add(settings.lease), injections, ids })
    }

    /// Notes that a claim was written and flushed. Gives how many that were; an error where the lease ran out and
    /// others have claimed all of it since.
    pub fn hand_over(&mut self, now: Duration, lease: LeaseId) -> Result<usize, Error> {
        let within = self.settings.confirm_within;
        let handed_over = self
            .held
            .iter_mut()
            .filter_map(|held| held.receipt.hand_over(now, lease, within).then_some(()))
            .count();
        if handed_over == 0 { Err(Error::LeaseOver(lease.0)) } else { Ok(handed_over) }
    }

    /// Takes note of what the client shows. Gives what that confirms.
    pub fn observe(&mut self, now: Duration, event: &TurnEvent) -> Vec<MessageId> {
        let confirms = |held: &mut Held| held.receipt.observe(now, event);
        let confirmed: Vec<Held> = self.held.extract_if(.., confirms).collect();
        let ids = confirmed.iter().map(|held| held.injection.id.clone()).collect();
        for held in confirmed {
            self.remember(held.injection.id, held.receipt);
        }
        ids
    }

    /// How far one injection has come. `None` for what was never accepted, or confirmed long ago.
    pub fn receipt(&self, id: &MessageId) -> Option<&Receipt> {
        let held = self.held.iter().find(|held| held.injection.id == *id).map(|held| &held.receipt);
        held.or_else(|| self.confirmed.iter().find(|(own, _)| own == id).map(|(_, receipt)| receipt))
    }

    /// When to look again: the next moment at which something becomes claimable that is not so now.
    pub fn next_deadline(&self, now: Duration) -> Option<Duration> {
        let leases = self.held.iter().filter_map(|held| held.receipt.deadline());
        let rates = self.settings.storm.free_at(&self.pending(now), &self.rates);
        leases.chain(rates).filter(|deadline| *deadline > now).min()
    }

    fn remember(&mut self, id: MessageId, receipt: Receipt) {
        if self.confirmed.len() == MAX_REMEMBERED
            && let Some((oldest, _)) = self.confirmed.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.confirmed.push_back((id, receipt));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{CallId, Turn};
    use crate::injection::injection;
    use crate::rate::Rate;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn inbox() -> Inbox {
        Inbox::new(Agent::new("a1").unwrap(), Settings::default())
    }

    fn result(call: &str) -> Carrier {
        Carrier::ToolResult { call: CallId::new(call).unwrap(), turn: Turn(1) }
    }

    fn texts(claim: Option<&Claim>) -> Vec<&str> {
        claim.map(|claim| claim.injections.iter().map(Injection::text).collect()).unwrap_or_default()
    }

    #[test]
    fn agent_working_into_the_next_tool_result_agent_idle_next_message_and_woken() {
        let mut inbox = inbox();
        for (activity, entry, wakes) in
            [(Activity::Working, Entry::NextToolResult, false), (Activity::Idle, Entry::NextMessage, true)]
        {
            let before = inbox.set_activity(at(0), activity);
            let accepted = inbox.accept(at(0), injection(inbox.held.len(), "user", "x"));
            assert_eq!(accepted, Ok(Accepted::New(entry)));
            assert_eq!((inbox.entry(at(0)), entry.wakes()), (Some(entry), wakes));
            // The turn ended before another tool result came: what is left wakes the agent.
            assert_eq!(before, (activity == Activity::Idle).then_some(Entry::NextMessage));
        }
    }

    #[test]
    fn one_flow_whatever_the_source() {
        let mut inbox = inbox();
        inbox.set_activity(at(0), Activity::Working);
        let sources =
            ["user", "file_watcher", "background_task", "ide_diagnostics", "agent:a2", "channel:slack"];
        for (id, source) in sources.into_iter().enumerate() {
            let accepted = inbox.accept(at(0), injection(id, source, source)).unwrap();
            assert_eq!(accepted, Accepted::New(Entry::NextToolResult));
        }
        assert_eq!(texts(inbox.claim(at(0), &result("c")).as_ref()), sources);
    }

    #[test]
    fn routing_is_strictly_by_recipient() {
        let mut other = Inbox::new(Agent::new("a2").unwrap(), Settings::default());
        let error = other.accept(at(0), injection(1, "user", "x")).unwrap_err();
        assert_eq!(error.to_string(), "m1 is for a1, and this is the inbox of a2");
        assert_eq!((other.pending(at(0)).len(), other.entry(at(0))), (0, None));
    }

    #[test]
    fn the_same_id_is_accepted_once() {
        let mut inbox = inbox();
        assert!(matches!(inbox.accept(at(0), injection(1, "user", "x")), Ok(Accepted::New(_))));
        assert_eq!(inbox.accept(at(0), injection(1, "user", "x")), Ok(Accepted::Known));
        let claim = inbox.claim(at(0), &result("c")).unwrap();
        inbox.hand_over(at(0), claim.lease).unwrap();
        inbox.observe(at(0), &TurnEvent::of(Turn(1)));
        assert_eq!(inbox.accept(at(1), injection(1, "user", "x")), Ok(Accepted::Known), "confirmed, too");
    }

    #[test]
    fn in_a_storm_the_rest_waits_and_is_looked_at_again() {
        let storm = Storm { pending: 1, rate: Rate::new(2, at(60)), ..Storm::default() };
        let mut inbox = Inbox::new(Agent::new("a1").unwrap(), Settings { storm, ..Settings::default() });
        for (id, text) in ["a", "a", "b", "c", "d"].into_iter().enumerate() {
            inbox.accept(at(0), injection(id, "file_watcher", text)).unwrap();
        }
        let claim = inbox.claim(at(0), &result("c1")).unwrap();
        assert_eq!(
            (texts(Some(&claim)), claim.ids.len()),
            (vec!["a", "b"], 3),
            "a folded one stands for all its ids"
        );
        inbox.hand_over(at(0), claim.lease).unwrap();
        assert_eq!(inbox.observe(at(1), &TurnEvent::of(Turn(1))).len(), 3);
        assert_eq!((inbox.claim(at(1), &result("c2")), inbox.entry(at(1))), (None, None));
        assert_eq!(inbox.next_deadline(at(1)), Some(at(60)));
        assert_eq!(inbox.entry(at(60)), Some(Entry::NextMessage));
        assert_eq!(texts(inbox.claim(at(60), &result("c3")).as_ref()), ["c", "d"]);
    }

    #[test]
    fn a_full_inbox_refuses_and_loses_nothing() {
        let mut inbox = inbox();
        for id in 0..MAX_HELD {
            inbox.accept(at(0), injection(id, "user", "x")).unwrap();
        }
        let error = inbox.accept(at(0), injection(MAX_HELD, "user", "x")).unwrap_err();
        assert_eq!(error.to_string(), "the inbox of a1 is full: 10000 are waiting");
        assert_eq!(inbox.accept(at(0), injection(0, "user", "x")), Ok(Accepted::Known));
        let claim = inbox.claim(at(0), &result("c")).unwrap();
        inbox.hand_over(at(0), claim.lease).unwrap();
        inbox.observe(at(0), &TurnEvent::of(Turn(1)));
        assert!(inbox.accept(at(0), injection(MAX_HELD, "user", "x")).is_ok());
        assert_eq!((inbox.confirmed.len(), inbox.known.len()), (MAX_REMEMBERED, MAX_REMEMBERED + 1));
    }
}
