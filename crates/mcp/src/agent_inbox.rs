//! The pending messages of the agent behind a client.

use std::time::{Duration, Instant};

use ringer_core::conversation::{InjectionBudget, MAX_RATE, Rate, RateTracker, render};
use ringer_core::message::{Agent, MessagePart, SessionNonce};
use ringer_journal::{ClaimedParts, EnteredPart, Error, Home, IdSource, InboxUpdate, Journal, LockTimeout};

use crate::proxy::PendingNotifications;

/// Finds the client's agent. It may be unknown at first, and may change later.
pub type FindAgent = Box<dyn FnMut(&mut Journal) -> Option<Agent> + Send>;

/// The agent's inbox in the journal. If the journal fails, tools still work and notifications stay pending.
pub struct AgentInbox {
    home: Home,
    find_agent: FindAgent,
    /// The agent that was found last.
    last_agent: Option<Agent>,
    clock: fn() -> Duration,
    /// The nonce that this process gave the client. If `None`, the nonce given by the agent's hooks is used.
    nonce: Option<SessionNonce>,
    journal: Option<Journal>,
    claimed: Option<(Agent, ClaimedParts)>,
    /// Messages in a written result that no later call has confirmed.
    unconfirmed: Option<UnconfirmedDelivery>,
}

/// Messages written into a result. The next call made after that shows that the agent has read them; earlier calls do not.
#[derive(Debug, Clone)]
struct UnconfirmedDelivery {
    /// The claim of these messages.
    claim: String,
    /// The number of calls made until then.
    calls: u64,
}

/// The limits of a result with nothing else in it: as many messages as the journal returns, and about 10,000 tokens, while
/// Claude Code accepts 25,000 from one tool. The rate limit does not apply to an agent that asks for its messages.
const INBOX_BUDGET: InjectionBudget = InjectionBudget {
    max_pending: 512,
    max_bytes: 40_000,
    rate: Rate { count: MAX_RATE, per: Duration::from_secs(1) },
};

/// How long to wait for another process that is moving the lead's messages, which takes milliseconds.
const LEAD_LOCK_TIMEOUT: Duration = Duration::from_millis(20);

/// Messages taken for a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TakenMessages {
    /// The messages as the agent reads them.
    pub(crate) text: String,
    /// True if more messages are pending.
    pub(crate) has_more: bool,
}

impl AgentInbox {
    /// Opens no file yet: `find_agent` is called for each result. The clock must count the uptime.
    pub fn new(home: Home, clock: fn() -> Duration, find_agent: FindAgent) -> Self {
        let (last_agent, nonce, journal, claimed, unconfirmed) = (None, None, None, None, None);
        Self { home, find_agent, last_agent, clock, nonce, journal, claimed, unconfirmed }
    }

    /// Returns the nonce to give to the client: the nonce of the agent's session, or else a new one from these random bytes.
    pub(crate) fn choose_nonce(&mut self, random: [u8; 16]) -> SessionNonce {
        let known = Journal::open_existing(&self.home).ok().flatten().and_then(|mut journal| {
            let agent = (self.find_agent)(&mut journal)?;
            journal.session_nonce(&agent).ok().flatten()
        });
        let nonce = known.unwrap_or_else(|| SessionNonce::new(random));
        self.nonce = Some(nonce.clone());
        nonce
    }

    /// The agent that was found last.
    pub(crate) fn agent(&self) -> Option<&Agent> {
        self.last_agent.as_ref()
    }

    /// Takes everything that is pending, for a result with nothing else in it. `calls` is the number of calls made so far.
    pub(crate) fn take_all(&mut self, calls: u64) -> Result<Option<TakenMessages>, Error> {
        let taken = self.try_take(calls, INBOX_BUDGET);
        if taken.is_err() {
            self.journal = None;
        }
        let Some(text) = taken? else { return Ok(None) };
        let has_more = match (&mut self.journal, &self.claimed) {
            (Some(journal), Some((agent, _))) => {
                !journal.pending_for(agent, IdSource::now().unix_ms)?.is_empty()
            }
            _ => false,
        };
        Ok(Some(TakenMessages { text, has_more }))
    }

    fn try_take(&mut self, calls: u64, budget: InjectionBudget) -> Result<Option<String>, Error> {
        if self.journal.is_none() {
            self.journal = Some(Journal::open_without_repair(&self.home, LockTimeout::HOOK)?);
        }
        let Some(journal) = &mut self.journal else { return Ok(None) };
        self.last_agent = (self.find_agent)(journal);
        let Some(agent) = self.last_agent.clone() else { return Ok(None) };
        move_lead_messages(journal, &agent);
        let stamp = IdSource::now();
        let is_confirmed = self.unconfirmed.as_ref().is_some_and(|delivery| calls > delivery.calls);
        // Avoid a write transaction if there is nothing to do.
        if !is_confirmed && journal.pending_for(&agent, stamp.unix_ms)?.is_empty() {
            return Ok(None);
        }
        let now = (self.clock)();
        let choose = |pending: &[MessagePart], entered: &[EnteredPart]| {
            let entered = entered.iter().map(|entered| (&entered.part, entered.age(stamp.unix_ms)));
            let mut rates = RateTracker::of_entered(now, &agent, entered);
            budget.select_parts(now, pending, &agent, &mut rates)
        };
        // Claiming under a new id confirms the messages of the earlier one.
        let earlier =
            self.unconfirmed.as_ref().filter(|_| !is_confirmed).map(|earlier| earlier.claim.clone());
        let call = earlier.unwrap_or_else(|| stamp.message_id().to_string());
        let update = InboxUpdate { call_id: Some(&call), choose: Some(&choose), ..InboxUpdate::default() };
        let claimed = journal.claim_for(&agent, &update, &stamp)?;
        if is_confirmed {
            self.unconfirmed = None;
        }
        let Some(claimed) = claimed else { return Ok(None) };
        self.unconfirmed = Some(UnconfirmedDelivery { claim: call, calls });
        let blocks = budget.blocks_of(now, &claimed.parts, &agent, &mut RateTracker::default());
        let nonce = match &self.nonce {
            Some(nonce) => Some(nonce.clone()),
            None => journal.session_nonce(&agent)?,
        };
        self.claimed = Some((agent, claimed));
        Ok(Some(render(&blocks, nonce.as_ref())))
    }
}

/// If the agent is the lead, moves the lead's messages into its inbox, as its hooks do. If that fails, they stay for the next
/// call or for the lead's listener.
pub(crate) fn move_lead_messages(journal: &mut Journal, agent: &Agent) {
    let Ok(Some(info)) = journal.agent_info(agent) else { return };
    let deadline = Some(Instant::now() + LEAD_LOCK_TIMEOUT);
    let _ = journal.move_to_inbox(&info.scope, agent, info.name.as_deref(), deadline);
}

impl PendingNotifications for AgentInbox {
    fn take(&mut self, calls: u64) -> Option<String> {
        let taken = self.try_take(calls, InjectionBudget::default());
        if taken.is_err() {
            // The file may have been replaced, or be missing for a while.
            self.journal = None;
        }
        taken.ok().flatten()
    }

    fn written(&mut self, is_written: bool) {
        let (Some((agent, claimed)), Some(journal)) = (self.claimed.take(), &mut self.journal) else {
            return;
        };
        // If this fails, the messages become pending again when their lease expires.
        let _ = if is_written {
            journal.mark_delivered(&agent, &claimed, IdSource::now().unix_ms)
        } else {
            journal.release(&agent, &claimed)
        };
    }
}
