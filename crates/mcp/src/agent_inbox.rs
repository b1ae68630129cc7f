//! What waits for the agent behind a client.

use std::time::{Duration, Instant};

use ringer_core::message::{Agent, MessagePart, SessionNonce};
use ringer_journal::{ClaimedParts, EnteredPart, Error, Home, IdSource, InboxUpdate, Journal, LockTimeout};
use ringer_turn::{InjectionBudget, MAX_RATE, Rate, RateTracker, render};

use crate::proxy::PendingNotifications;

/// Finds the agent that the client is, as far as that is known. It may become known later, and be another one later.
pub type FindAgent = Box<dyn FnMut(&mut Journal) -> Option<Agent> + Send>;

/// The inbox of an agent in the journal. Whatever goes wrong with it, the tools work on, and the notifications wait.
pub struct AgentInbox {
    home: Home,
    find_agent: FindAgent,
    /// The agent that was found last.
    found: Option<Agent>,
    clock: fn() -> Duration,
    /// The nonce that this process has told the client. Otherwise it is the one that the agent's hooks told.
    told: Option<SessionNonce>,
    journal: Option<Journal>,
    taken: Option<(Agent, ClaimedParts)>,
    /// Something was handed over, and the agent has not gone on since.
    unconfirmed: Option<HandedOver>,
}

/// What was written into a result. A call that was made before shows nothing; the next one shows that the agent read it.
#[derive(Debug, Clone)]
struct HandedOver {
    /// The claim under which it was handed over.
    claim: String,
    /// How many calls had been made.
    calls: u64,
}

/// The limits of a result that carries nothing else: as many messages as the journal looks at, and about 10,000 words of a
/// model, of which Claude Code takes 25,000 from one tool. An agent that asks for its messages is not limited by their rate.
const EVERYTHING: InjectionBudget = InjectionBudget {
    max_pending: 512,
    max_bytes: 40_000,
    rate: Rate { count: MAX_RATE, per: Duration::from_secs(1) },
};

/// How long to wait for another process that reads what is for the lead. It takes milliseconds.
const LEAD_LOCK_TIMEOUT: Duration = Duration::from_millis(20);

/// What was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TakenMessages {
    /// The messages, as the agent reads them.
    pub(crate) text: String,
    /// Whether others wait on.
    pub(crate) has_more: bool,
}

impl AgentInbox {
    /// The inbox of the agent that is found when it is asked for. The clock counts the uptime.
    pub fn new(home: Home, clock: fn() -> Duration, find_agent: FindAgent) -> Self {
        let (found, told, journal, taken, unconfirmed) = (None, None, None, None, None);
        Self { home, find_agent, found, clock, told, journal, taken, unconfirmed }
    }

    /// The nonce for a client that is told it now: that of the agent's session, or else a new one of these random bytes.
    pub(crate) fn tell_nonce(&mut self, random: [u8; 16]) -> SessionNonce {
        let known = Journal::open_existing(&self.home).ok().flatten().and_then(|mut journal| {
            let agent = (self.find_agent)(&mut journal)?;
            journal.session_nonce(&agent).ok().flatten()
        });
        let nonce = known.unwrap_or_else(|| SessionNonce::new(random));
        self.told = Some(nonce.clone());
        nonce
    }

    /// The agent that was found last.
    pub(crate) fn agent(&self) -> Option<&Agent> {
        self.found.as_ref()
    }

    /// Takes everything that waits, for a result that carries nothing else. So many calls have been made until now.
    pub(crate) fn take_everything(&mut self, calls: u64) -> Result<Option<TakenMessages>, Error> {
        let taken = self.try_take(calls, EVERYTHING);
        if taken.is_err() {
            self.journal = None;
        }
        let Some(text) = taken? else { return Ok(None) };
        let has_more = match (&mut self.journal, &self.taken) {
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
        self.found = (self.find_agent)(journal);
        let Some(agent) = self.found.clone() else { return Ok(None) };
        take_in_for_lead(journal, &agent);
        let stamp = IdSource::now();
        let is_confirmed = self.unconfirmed.as_ref().is_some_and(|handed_over| calls > handed_over.calls);
        // Without a write where there is nothing to write.
        if !is_confirmed && journal.pending_for(&agent, stamp.unix_ms)?.is_empty() {
            return Ok(None);
        }
        let now = (self.clock)();
        let choose = |pending: &[MessagePart], entered: &[EnteredPart]| {
            let entered = entered.iter().map(|entered| (&entered.part, entered.age(stamp.unix_ms)));
            let mut rates = RateTracker::of_entered(now, &agent, entered);
            budget.select_parts(now, pending, &agent, &mut rates)
        };
        // Under another claim than before, what was handed over is confirmed.
        let earlier =
            self.unconfirmed.as_ref().filter(|_| !is_confirmed).map(|earlier| earlier.claim.clone());
        let call = earlier.unwrap_or_else(|| stamp.message_id().to_string());
        let update = InboxUpdate { call_id: Some(&call), choose: Some(&choose), ..InboxUpdate::default() };
        let claimed = journal.claim_for(&agent, &update, &stamp)?;
        if is_confirmed {
            self.unconfirmed = None;
        }
        let Some(claimed) = claimed else { return Ok(None) };
        self.unconfirmed = Some(HandedOver { claim: call, calls });
        let blocks = budget.blocks_of(now, &claimed.parts, &agent, &mut RateTracker::default());
        let nonce = match &self.told {
            Some(told) => Some(told.clone()),
            None => journal.session_nonce(&agent)?,
        };
        self.taken = Some((agent, claimed));
        Ok(Some(render(&blocks, nonce.as_ref())))
    }
}

/// If the agent is the lead, puts what is for the lead into its inbox, as its hooks do. What cannot be moved now stays for the
/// next time, or for the lead's listener.
pub(crate) fn take_in_for_lead(journal: &mut Journal, agent: &Agent) {
    let Ok(Some(info)) = journal.agent_info(agent) else { return };
    let deadline = Some(Instant::now() + LEAD_LOCK_TIMEOUT);
    let _ = journal.move_to_inbox(&info.scope, agent, info.name.as_deref(), deadline);
}

impl PendingNotifications for AgentInbox {
    fn take(&mut self, calls: u64) -> Option<String> {
        let taken = self.try_take(calls, InjectionBudget::default());
        if taken.is_err() {
            // It may have been replaced, or be gone for a while.
            self.journal = None;
        }
        taken.ok().flatten()
    }

    fn written(&mut self, is_written: bool) {
        let (Some((agent, claimed)), Some(journal)) = (self.taken.take(), &mut self.journal) else { return };
        // What cannot be noted is pending again when its lease is over.
        let _ = if is_written {
            journal.mark_delivered(&agent, &claimed, IdSource::now().unix_ms)
        } else {
            journal.release(&agent, &claimed)
        };
    }
}
