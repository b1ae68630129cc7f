//! The receipt: the state of one injection's delivery to one agent.
//!
//! `pending → leased → handed over → confirmed`, and back to pending after a failure at any step. It does not depend on
//! an inbox, so that code which keeps receipts elsewhere (a row in the journal) can follow the same rules.

use std::time::Duration;

use crate::call::{CallId, TurnEvent, TurnNumber};

/// How long a claim may take to hand over what it claimed. A hook takes milliseconds; after ten seconds it was killed.
pub const LEASE: Duration = Duration::from_secs(10);
/// How long after the hand-over the client may take to send its next event. A model may think for minutes; fifteen is a
/// choice, not a measurement.
pub const CONFIRM_WITHIN: Duration = Duration::from_mins(15);

/// The id of one claim. Two claims never share one, not even for the same tool call: otherwise a second hook for the call
/// could confirm what the first claimed and never wrote.
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
        turn: TurnNumber,
    },
    /// A separate message, which begins a new turn.
    Message {
        /// A name for the message, where the client has none.
        id: CallId,
        /// The last turn before it.
        after: TurnNumber,
    },
}

/// What an event proves about an injection that was handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// The client continued the turn: the model has read it.
    Seen,
    /// The turn ended without a later event: the model has not read it.
    Missed,
    /// Nothing.
    None,
}

impl Carrier {
    fn proof(&self, event: &TurnEvent) -> Proof {
        match self {
            // The call that carried it may be reported again (Claude Code: PostToolUse, then PostToolBatch). That proves
            // nothing about what came after it.
            Self::ToolResult { call, turn } if event.turn == *turn => {
                if event.call.as_ref() == Some(call) {
                    Proof::None
                } else {
                    Proof::Seen
                }
            }
            Self::ToolResult { turn, .. } if event.turn > *turn => Proof::Missed,
            Self::Message { after, .. } if event.turn > *after => Proof::Seen,
            // A late event of an older turn.
            Self::ToolResult { .. } | Self::Message { .. } => Proof::None,
        }
    }
}

/// The state of a delivery.
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
    /// Written into the conversation, not yet confirmed.
    HandedOver {
        /// In what.
        carrier: Carrier,
        /// From then on it is pending again.
        until: Duration,
    },
    /// The model has read it.
    Confirmed,
}

/// The delivery of one injection to one agent, with its times (on the caller's monotonic clock).
///
/// ```
/// use std::time::Duration;
/// use ringer_turn::{CallId, Carrier, LeaseId, Receipt, TurnNumber, TurnEvent, LEASE, CONFIRM_WITHIN};
///
/// let at = Duration::from_secs;
/// let mut receipt = Receipt::queued(at(0));
/// let carrier = Carrier::ToolResult { call: CallId::new("edit_1")?, turn: TurnNumber(1) };
/// assert!(receipt.lease(at(1), LeaseId(1), carrier, LEASE));
/// assert!(receipt.hand_over(at(2), LeaseId(1), CONFIRM_WITHIN)); // written and flushed
/// assert!(receipt.observe(at(9), &TurnEvent::of(TurnNumber(1)))); // a later event of the same turn
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
    /// The receipt of an injection that has just been accepted.
    pub fn queued(now: Duration) -> Self {
        Self { stage: Stage::Pending, queued: now, delivered: None, seen: None }
    }

    /// A receipt from saved values: its stage, and when it was queued, delivered and seen.
    pub fn from_saved(
        stage: Stage,
        queued: Duration,
        delivered: Option<Duration>,
        seen: Option<Duration>,
    ) -> Self {
        Self { stage, queued, delivered, seen }
    }

    /// Its stage. A lease or a hand-over may have expired since: see [`Self::is_pending`].
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

    /// Whether it can be claimed: it never was, or the claim expired.
    pub fn is_pending(&self, now: Duration) -> bool {
        match &self.stage {
            Stage::Pending => true,
            Stage::Leased { until, .. } | Stage::HandedOver { until, .. } => now >= *until,
            Stage::Confirmed => false,
        }
    }

    /// When it expires and is pending again.
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

    /// Records that it was written and flushed. An expired claim still counts if no other claim was made since, because
    /// the text is in the conversation.
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

    /// Takes an event of the client. Returns whether that confirms it; a turn that ended without a later event makes it
    /// pending again.
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
        Carrier::ToolResult { call: call("c1"), turn: TurnNumber(5) }
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
    fn an_expired_claim_counts_if_no_other_was_made() {
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
        check(result(), TurnEvent::of(TurnNumber(5)), true, false);
        check(result(), TurnEvent::about(TurnNumber(5), call("c2")), true, false);
        // The same call again is not later than itself.
        check(result(), TurnEvent::about(TurnNumber(5), call("c1")), false, false);
        // The turn was cut short: it may not have been read.
        check(result(), TurnEvent::of(TurnNumber(6)), false, true);
        // A straggler.
        check(result(), TurnEvent::of(TurnNumber(4)), false, false);
        let message = || Carrier::Message { id: call("n1"), after: TurnNumber(5) };
        check(message(), TurnEvent::of(TurnNumber(6)), true, false);
        check(message(), TurnEvent::of(TurnNumber(5)), false, false);
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
        assert!(!receipt.observe(at(1), &TurnEvent::of(TurnNumber(5))));
        receipt.lease(at(1), LeaseId(1), result(), LEASE);
        assert!(
            !receipt.observe(at(2), &TurnEvent::of(TurnNumber(5))),
            "a hook killed half-way leaves it pending"
        );
        assert!(receipt.is_pending(at(11)));
    }

    #[test]
    fn confirmed_is_the_end() {
        let mut receipt = handed_over(result());
        receipt.observe(at(3), &TurnEvent::of(TurnNumber(5)));
        assert!(!receipt.is_pending(Duration::MAX));
        assert!(!receipt.lease(Duration::MAX, LeaseId(2), result(), LEASE));
        assert!(!receipt.observe(at(4), &TurnEvent::of(TurnNumber(6))));
        assert_eq!(receipt.stage(), &Stage::Confirmed);
        assert_eq!(
            (receipt.queued_at(), receipt.delivered(), receipt.seen()),
            (at(0), Some(at(2)), Some(at(3))),
            "queued, delivered, seen, with times"
        );
    }
}
