//! The inbox: the injections that wait to enter one agent's conversation.
//!
//! Every event takes the same path: a working agent gets it in its next tool result, an idle one as its next message and
//! is woken. Each event is handed over at least once and never lost; it keeps its id, so that a reader can recognise a
//! repetition.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use ringer_core::MessageId;
use ringer_core::message::Agent;

use crate::call::TurnEvent;
use crate::entry_point::{Activity, EntryPoint};
use crate::error::Error;
use crate::injection::Injection;
use crate::injection_budget::InjectionBudget;
use crate::rate::RateTracker;
use crate::receipt::{CONFIRM_WITHIN, Carrier, LEASE, LeaseId, Receipt, Stage};

/// How many injections may be accepted and not yet confirmed. Further ones are refused, not dropped: they stay in the
/// journal and can be offered again.
pub const MAX_UNCONFIRMED: usize = 10_000;
/// How many confirmed ids are remembered, to recognise a message that is offered again. At the limit the oldest is
/// forgotten.
pub const MAX_CONFIRMED_IDS: usize = 1024;

/// The result of offering an injection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// It was accepted, and will enter the conversation here.
    New(EntryPoint),
    /// An injection with this id was accepted before.
    Known,
}

/// The settings of an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InboxSettings {
    /// How much enters one tool result.
    pub budget: InjectionBudget,
    /// How long a claim is valid; see [`LEASE`].
    pub lease: Duration,
    /// How long to wait for the confirmation of a hand-over; see [`CONFIRM_WITHIN`].
    pub confirm_within: Duration,
}

impl Default for InboxSettings {
    fn default() -> Self {
        Self { budget: InjectionBudget::default(), lease: LEASE, confirm_within: CONFIRM_WITHIN }
    }
}

/// Injections that are claimed in order to hand them over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxClaim {
    /// To be given back to [`Inbox::hand_over`] once the output is written and flushed.
    pub lease: LeaseId,
    /// When the claim expires and they are pending again.
    pub until: Duration,
    /// What to write, in order.
    pub injections: Vec<Injection>,
    /// The ids of all messages they stand for; more than `injections` where identical ones were merged.
    pub ids: Vec<MessageId>,
}

#[derive(Debug, Clone)]
struct InboxItem {
    injection: Injection,
    receipt: Receipt,
}

/// The inbox of one agent.
#[derive(Debug, Clone)]
pub struct Inbox {
    agent: Agent,
    settings: InboxSettings,
    activity: Activity,
    /// In the order in which they were accepted, which is the order in which they are handed over.
    items: Vec<InboxItem>,
    confirmed: VecDeque<(MessageId, Receipt)>,
    known: HashSet<MessageId>,
    rates: RateTracker,
    next_lease: u64,
}

impl Inbox {
    /// An empty inbox. The agent counts as idle until [`Self::set_activity`].
    pub fn new(agent: Agent, settings: InboxSettings) -> Self {
        Self {
            agent,
            settings,
            activity: Activity::Idle,
            items: Vec::new(),
            confirmed: VecDeque::new(),
            known: HashSet::new(),
            rates: RateTracker::default(),
            next_lease: 0,
        }
    }

    /// Whose inbox it is.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Accepts an injection, if it is for this agent and the inbox is not full. From then on it is pending, claimed or
    /// confirmed, and never lost.
    pub fn accept(&mut self, now: Duration, injection: Injection) -> Result<Accepted, Error> {
        self.insert(injection, Receipt::queued(now))
    }

    /// Restores a saved injection with its receipt.
    pub fn restore(&mut self, injection: Injection, receipt: Receipt) -> Result<Accepted, Error> {
        if let Stage::Leased { lease, .. } = receipt.stage() {
            self.next_lease = self.next_lease.max(lease.0.saturating_add(1));
        }
        self.insert(injection, receipt)
    }

    fn insert(&mut self, injection: Injection, receipt: Receipt) -> Result<Accepted, Error> {
        if injection.to != self.agent {
            return Err(Error::WrongInbox {
                id: injection.id.to_string(),
                to: injection.to.as_str().to_owned(),
                inbox: self.agent.as_str().to_owned(),
            });
        }
        if self.known.contains(&injection.id) {
            return Ok(Accepted::Known);
        }
        if self.items.len() >= MAX_UNCONFIRMED {
            return Err(Error::InboxFull { agent: self.agent.as_str().to_owned(), most: MAX_UNCONFIRMED });
        }
        self.known.insert(injection.id.clone());
        if *receipt.stage() == Stage::Confirmed {
            self.remember_confirmed(injection.id, receipt);
        } else {
            self.items.push(InboxItem { injection, receipt });
        }
        Ok(Accepted::New(EntryPoint::of(self.activity)))
    }

    /// Sets what the agent does. Returns the entry point for what is pending: after a turn that ends without another tool
    /// result, that is the next message.
    pub fn set_activity(&mut self, now: Duration, activity: Activity) -> Option<EntryPoint> {
        self.activity = activity;
        self.entry_point(now)
    }

    /// The entry point for what is pending, if the rates allow any of it now.
    pub fn entry_point(&self, now: Duration) -> Option<EntryPoint> {
        let free_at = self.settings.budget.free_at(&self.pending(now), &self.rates)?;
        (free_at <= now).then(|| EntryPoint::of(self.activity))
    }

    /// What is pending, in order.
    pub fn pending(&self, now: Duration) -> Vec<&Injection> {
        let pending = self.items.iter().filter(|item| item.receipt.is_pending(now));
        pending.map(|item| &item.injection).collect()
    }

    /// Claims what is pending, as much as the budget allows. No other claim gets it until the lease expires.
    pub fn claim(&mut self, now: Duration, carrier: &Carrier) -> Option<InboxClaim> {
        let Self { items, rates, settings, .. } = self;
        let indexes: Vec<usize> =
            (0..items.len()).filter(|index| items[*index].receipt.is_pending(now)).collect();
        let pending: Vec<&Injection> = indexes.iter().map(|index| &items[*index].injection).collect();
        let chosen = settings.budget.select(now, &pending, rates);
        if chosen.is_empty() {
            return None;
        }
        let lease = LeaseId(self.next_lease);
        self.next_lease = self.next_lease.wrapping_add(1);
        let mut ids = Vec::new();
        for index in chosen.iter().flat_map(|one| &indexes[one.pending_range.clone()]) {
            let item = &mut items[*index];
            item.receipt.lease(now, lease, carrier.clone(), settings.lease);
            ids.push(item.injection.id.clone());
        }
        let injections = chosen.into_iter().map(|one| one.injection).collect();
        Some(InboxClaim { lease, until: now.saturating_add(settings.lease), injections, ids })
    }

    /// Records that a claim was written and flushed. Returns how many injections it had; an error if the lease expired and
    /// others have claimed all of them since.
    pub fn hand_over(&mut self, now: Duration, lease: LeaseId) -> Result<usize, Error> {
        let within = self.settings.confirm_within;
        let handed_over = self
            .items
            .iter_mut()
            .filter_map(|item| item.receipt.hand_over(now, lease, within).then_some(()))
            .count();
        if handed_over == 0 { Err(Error::LeaseExpired(lease.0)) } else { Ok(handed_over) }
    }

    /// Takes an event of the client. Returns the ids that it confirms.
    pub fn observe(&mut self, now: Duration, event: &TurnEvent) -> Vec<MessageId> {
        let confirms = |item: &mut InboxItem| item.receipt.observe(now, event);
        let confirmed: Vec<InboxItem> = self.items.extract_if(.., confirms).collect();
        let ids = confirmed.iter().map(|item| item.injection.id.clone()).collect();
        for item in confirmed {
            self.remember_confirmed(item.injection.id, item.receipt);
        }
        ids
    }

    /// The receipt of an injection. `None` if it was never accepted, or its confirmation is no longer remembered.
    pub fn receipt(&self, id: &MessageId) -> Option<&Receipt> {
        let item = self.items.iter().find(|item| item.injection.id == *id).map(|item| &item.receipt);
        item.or_else(|| self.confirmed.iter().find(|(own, _)| own == id).map(|(_, receipt)| receipt))
    }

    /// When something becomes claimable next that is not claimable now.
    pub fn next_deadline(&self, now: Duration) -> Option<Duration> {
        let leases = self.items.iter().filter_map(|item| item.receipt.deadline());
        let rates = self.settings.budget.free_at(&self.pending(now), &self.rates);
        leases.chain(rates).filter(|deadline| *deadline > now).min()
    }

    fn remember_confirmed(&mut self, id: MessageId, receipt: Receipt) {
        if self.confirmed.len() == MAX_CONFIRMED_IDS
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
    use crate::call::{CallId, TurnNumber};
    use crate::injection::injection;
    use crate::rate::Rate;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn inbox() -> Inbox {
        Inbox::new(Agent::new("a1").unwrap(), InboxSettings::default())
    }

    fn result(call: &str) -> Carrier {
        Carrier::ToolResult { call: CallId::new(call).unwrap(), turn: TurnNumber(1) }
    }

    fn texts(claim: Option<&InboxClaim>) -> Vec<&str> {
        claim.map(|claim| claim.injections.iter().map(Injection::text).collect()).unwrap_or_default()
    }

    #[test]
    fn agent_working_into_the_next_tool_result_agent_idle_next_message_and_woken() {
        let mut inbox = inbox();
        for (activity, entry, wakes) in [
            (Activity::Working, EntryPoint::NextToolResult, false),
            (Activity::Idle, EntryPoint::NextMessage, true),
        ] {
            let before = inbox.set_activity(at(0), activity);
            let accepted = inbox.accept(at(0), injection(inbox.items.len(), "user", "x"));
            assert_eq!(accepted, Ok(Accepted::New(entry)));
            assert_eq!((inbox.entry_point(at(0)), entry.needs_wake()), (Some(entry), wakes));
            // The turn ended before another tool result came: what is left wakes the agent.
            assert_eq!(before, (activity == Activity::Idle).then_some(EntryPoint::NextMessage));
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
            assert_eq!(accepted, Accepted::New(EntryPoint::NextToolResult));
        }
        assert_eq!(texts(inbox.claim(at(0), &result("c")).as_ref()), sources);
    }

    #[test]
    fn routing_is_strictly_by_recipient() {
        let mut other = Inbox::new(Agent::new("a2").unwrap(), InboxSettings::default());
        let error = other.accept(at(0), injection(1, "user", "x")).unwrap_err();
        assert_eq!(error.to_string(), "m1 is for a1, and this is the inbox of a2");
        assert_eq!((other.pending(at(0)).len(), other.entry_point(at(0))), (0, None));
    }

    #[test]
    fn the_same_id_is_accepted_once() {
        let mut inbox = inbox();
        assert!(matches!(inbox.accept(at(0), injection(1, "user", "x")), Ok(Accepted::New(_))));
        assert_eq!(inbox.accept(at(0), injection(1, "user", "x")), Ok(Accepted::Known));
        let claim = inbox.claim(at(0), &result("c")).unwrap();
        inbox.hand_over(at(0), claim.lease).unwrap();
        inbox.observe(at(0), &TurnEvent::of(TurnNumber(1)));
        assert_eq!(inbox.accept(at(1), injection(1, "user", "x")), Ok(Accepted::Known), "confirmed, too");
    }

    #[test]
    fn over_the_budget_the_rest_waits_and_has_a_deadline() {
        let budget =
            InjectionBudget { max_pending: 1, rate: Rate::new(2, at(60)), ..InjectionBudget::default() };
        let mut inbox =
            Inbox::new(Agent::new("a1").unwrap(), InboxSettings { budget, ..InboxSettings::default() });
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
        assert_eq!(inbox.observe(at(1), &TurnEvent::of(TurnNumber(1))).len(), 3);
        assert_eq!((inbox.claim(at(1), &result("c2")), inbox.entry_point(at(1))), (None, None));
        assert_eq!(inbox.next_deadline(at(1)), Some(at(60)));
        assert_eq!(inbox.entry_point(at(60)), Some(EntryPoint::NextMessage));
        assert_eq!(texts(inbox.claim(at(60), &result("c3")).as_ref()), ["c", "d"]);
    }

    #[test]
    fn a_full_inbox_refuses_and_loses_nothing() {
        let mut inbox = inbox();
        for id in 0..MAX_UNCONFIRMED {
            inbox.accept(at(0), injection(id, "user", "x")).unwrap();
        }
        let error = inbox.accept(at(0), injection(MAX_UNCONFIRMED, "user", "x")).unwrap_err();
        assert_eq!(error.to_string(), "the inbox of a1 is full: 10000 are waiting");
        assert_eq!(inbox.accept(at(0), injection(0, "user", "x")), Ok(Accepted::Known));
        let claim = inbox.claim(at(0), &result("c")).unwrap();
        inbox.hand_over(at(0), claim.lease).unwrap();
        inbox.observe(at(0), &TurnEvent::of(TurnNumber(1)));
        assert!(inbox.accept(at(0), injection(MAX_UNCONFIRMED, "user", "x")).is_ok());
        assert_eq!((inbox.confirmed.len(), inbox.known.len()), (MAX_CONFIRMED_IDS, MAX_CONFIRMED_IDS + 1));
    }
}
