//! The receipt: how far one injection has come on its way to one agent.
//!
//! `pending → leased → handed over → confirmed`, and back to pending wherever the way breaks off. It is a value with no
//! inbox around it, so that whoever keeps receipts elsewhere (a row in the journal) goes by the same rules.

use std::time::Duration;

use crate::call::{CallId, Turn, TurnEvent};

/// How long a claim may take to hand over what it claimed: a hook call takes milliseconds, or was killed.
pub const LEASE: Duration = Duration::from_secs(10);
/// How long after the hand-over the client may take to show that it goes on. A model may think for minutes.
pub const CONFIRM_WITHIN: Duration = Duration::from_mins(15);

/// The name of one claim. Two claims never share one, not even for the same tool call: a second hook for the call must
/// not vouch for what the first took and never wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseId(pub u64);

/// What takes an injection into the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Carrier {
    /// The result of a tool call.
    ToolResult {
        /// The call.
        call: CallId,
        /// The turn it was made in.
        turn: Turn,
    },
    /// A message of its own, which begins a new turn.
    Message {
        /// A name for the message, where the client has none.
        id: CallId,
        /// The last turn before it.
        after: Turn,
    },
}

/// What an event says about something that was handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// The client went on with the turn: the model has read it.
    Seen,
    /// The turn is over, and never showed it.
    Missed,
    /// Nothing.
    None,
}

impl Carrier {
    fn proof(&self, event: &TurnEvent) -> Proof {
        match self {
            // The call that carried it may be told of again (Claude Code: PostToolUse, then PostToolBatch). That is not
            // later than itself.
            Self::ToolResult { call, turn } if event.turn == *turn => {
                if event.call.as_ref() == Some(call) {
                    Proof::None
                } else {
                    Proof::Seen
                }
            }
            Self::ToolResult { turn, .. } if event.turn > *turn => Proof::Missed,
            Self::Message { after, .. } if event.turn > *after => Proof::Seen,
            // A straggler of an older turn.
            Self::ToolResult { .. } | Self::Message { .. } => Proof::None,
        }
    }
}

/// How far it has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// Waiting to be claimed.
    Pending,
    /// Claimed, not yet written.
    Leased {
        /// By which claim.
        lease: LeaseId,
        /// For what.
        carrier: Carrier,
        /// From then on it is pending again.
        until: Duration,
    },
    /// Written into the conversation, as far as we can tell.
    HandedOver {
        /// In what.
        carrier: Carrier,
        /// From then on it is pending again.
        until: Duration,
    },
    /// The model has read it.
    Confirmed,
}

/// One injection's way to one agent, with its times (on the caller's monotonic clock).
///
/// ```
/// use std::time::Duration;
/// use ringer_turn::{CallId, Carrier, LeaseId, Receipt, Turn, TurnEvent, LEASE, CONFIRM_WITHIN};
///
/// let at = Duration::from_secs;
/// let mut receipt = Receipt::queued(at(0));
/// let carrier = Carrier::ToolResult { call: CallId::new("edit_1")?, turn: Turn(1) };
/// assert!(receipt.lease(at(1), LeaseId(1), carrier, LEASE));
/// assert!(receipt.hand_over(at(2), LeaseId(1), CONFIRM_WITHIN)); // written and flushed
/// assert!(receipt.observe(at(9), &TurnEvent::of(Turn(1)))); // a later event of the same turn
/// assert_eq!((receipt.delivered(), receipt.seen()), (Some(at(2)), Some(at(9))));
/// # Ok::<(), ringer_turn::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    stage: Stage,
    queued: Duration,
    delivered: Option<Duration>,
    seen: Option<Duration>,
}

impl Receipt {
    /// The receipt of something that has just been accepted.
    pub fn queued(now: Duration) -> Self {
        Self { stage: Stage::Pending, queued: now, delivered: None, seen: None }
    }

    /// A receipt as somebody kept it: its stage, and when it was queued, delivered and seen.
    pub fn kept(stage: Stage, queued: Duration, delivered: Option<Duration>, seen: Option<Duration>) -> Self {
        Self { stage, queued, delivered, seen }
    }

    /// How far it has come. What is leased or handed over may have run out since: ask [`Self::is_pending`].
    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// When it was accepted.
    pub fn queued_at(&self) -> Duration {
        self.queued
    }

    /// When it was last handed over.
    pub fn delivered(&self) -> Option<Duration> {
        self.delivered
    }

    /// When that was confirmed.
    pub fn seen(&self) -> Option<Duration> {
        self.seen
    }

    /// Whether it can be claimed: never claimed, or the claim came to nothing.
    pub fn is_pending(&self, now: Duration) -> bool {
        match &self.stage {
            Stage::Pending => true,
            Stage::Leased { until, .. } | Stage::HandedOver { until, .. } => now >= *until,
            Stage::Confirmed => false,
        }
    }

    /// When it will be pending again by itself.
    pub fn deadline(&self) -> Option<Duration> {
        match &self.stage {
            Stage::Leased { until, .. } | Stage::HandedOver { until, .. } => Some(*until),
            Stage::Pending | Stage::Confirmed => None,
        }
    }

    /// Claims it, if it is pending.
    pub fn lease(&mut self, now: Duration, lease: LeaseId, carrier: Carrier, length: Duration) -> bool {
        let pending = self.is_pending(now);
        if pending {
            self.stage = Stage::Leased { lease, carrier, until: now.saturating_add(length) };
        }
        pending
    }

    /// Notes that it was written and flushed. A claim that is late still counts while nobody else has claimed it:
    /// written is written.
    pub fn hand_over(&mut self, now: Duration, by: LeaseId, confirm_within: Duration) -> bool {
        let Stage::Leased { lease, carrier, .. } = &self.stage else { return false };
        if *lease != by {
            return false;
        }
        self.stage =
            Stage::HandedOver { carrier: carrier.clone(), until: now.saturating_add(confirm_within) };
        self.delivered = Some(now);
        true
    }

    /// Takes note of what the client shows. Gives whether that confirms it; a turn that ended without having shown it
    /// makes it pending again.
    pub fn observe(&mut self, now: Duration, event: &TurnEvent) -> bool {
        let Stage::HandedOver { carrier, .. } = &self.stage else { return false };
        match carrier.proof(event) {
            Proof::Seen => {
                self.stage = Stage::Confirmed;
                self.seen = Some(now);
                true
            }
            Proof::Missed => {
                self.stage = Stage::Pending;
                false
            }
            Proof::None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn call(id: &str) -> CallId {
        CallId::new(id).unwrap()
    }

    fn result() -> Carrier {
        Carrier::ToolResult { call: call("c1"), turn: Turn(5) }
    }

    fn handed_over(carrier: Carrier) -> Receipt {
        let mut receipt = Receipt::queued(at(0));
        assert!(receipt.lease(at(1), LeaseId(1), carrier, LEASE));
        assert!(receipt.hand_over(at(2), LeaseId(1), CONFIRM_WITHIN));
        receipt
    }

    #[test]
    fn an_expired_lease_is_pending_again() {
        let mut receipt = Receipt::queued(at(0));
        assert!(receipt.lease(at(0), LeaseId(1), result(), at(10)));
        assert!(!receipt.is_pending(at(9)) && receipt.is_pending(at(10)));
        assert_eq!(receipt.deadline(), Some(at(10)));
        assert!(!receipt.lease(at(9), LeaseId(2), result(), at(10)), "it belongs to the first");
        assert!(receipt.lease(at(10), LeaseId(2), result(), at(10)));
        assert!(!receipt.hand_over(at(11), LeaseId(1), CONFIRM_WITHIN), "the first is too late");
        assert!(receipt.hand_over(at(12), LeaseId(2), CONFIRM_WITHIN));
    }

    #[test]
    fn written_late_is_written_while_nobody_else_claimed_it() {
        let mut receipt = Receipt::queued(at(0));
        receipt.lease(at(0), LeaseId(1), result(), at(10));
        assert!(receipt.hand_over(at(60), LeaseId(1), CONFIRM_WITHIN));
        assert!(!receipt.is_pending(at(61)));
    }

    #[test]
    fn a_later_event_of_the_same_turn_confirms() {
        let check = |carrier: Carrier, event: TurnEvent, confirmed: bool, pending: bool| {
            let mut receipt = handed_over(carrier);
            assert_eq!(receipt.observe(at(3), &event), confirmed, "{event:?}");
            assert_eq!(
                (receipt.is_pending(at(3)), receipt.seen().is_some()),
                (pending, confirmed),
                "{event:?}"
            );
        };
        check(result(), TurnEvent::of(Turn(5)), true, false);
        check(result(), TurnEvent::about(Turn(5), call("c2")), true, false);
        // The same call again is not later than itself.
        check(result(), TurnEvent::about(Turn(5), call("c1")), false, false);
        // The turn was cut short: it may not have been read.
        check(result(), TurnEvent::of(Turn(6)), false, true);
        // A straggler.
        check(result(), TurnEvent::of(Turn(4)), false, false);
        let message = || Carrier::Message { id: call("n1"), after: Turn(5) };
        check(message(), TurnEvent::of(Turn(6)), true, false);
        check(message(), TurnEvent::of(Turn(5)), false, false);
    }

    #[test]
    fn a_client_that_shows_nothing_more_gets_it_again() {
        let receipt = handed_over(result());
        assert!(!receipt.is_pending(at(1) + CONFIRM_WITHIN));
        assert!(receipt.is_pending(at(2) + CONFIRM_WITHIN));
    }

    #[test]
    fn what_was_not_handed_over_cannot_be_confirmed() {
        let mut receipt = Receipt::queued(at(0));
        assert!(!receipt.observe(at(1), &TurnEvent::of(Turn(5))));
        receipt.lease(at(1), LeaseId(1), result(), LEASE);
        assert!(!receipt.observe(at(2), &TurnEvent::of(Turn(5))), "a hook killed half-way leaves it pending");
        assert!(receipt.is_pending(at(11)));
    }

    #[test]
    fn confirmed_is_the_end() {
        let mut receipt = handed_over(result());
        receipt.observe(at(3), &TurnEvent::of(Turn(5)));
        assert!(!receipt.is_pending(Duration::MAX));
        assert!(!receipt.lease(Duration::MAX, LeaseId(2), result(), LEASE));
        assert!(!receipt.observe(at(4), &TurnEvent::of(Turn(6))));
        assert_eq!(receipt.stage(), &Stage::Confirmed);
        assert_eq!(
            (receipt.queued_at(), receipt.delivered(), receipt.seen()),
            (at(0), Some(at(2)), Some(at(3))),
            "queued, delivered, seen, with times"
        );
    }
}
