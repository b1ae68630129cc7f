//! Inboxes under faults: claims that are never written, late deliveries, events in any order.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use proptest::prelude::*;
use ringer_core::message::{Agent, MessagePart};
use ringer_core::{MessageId, Recipient};
use ringer_journal::{CONFIRM_WITHIN, ClaimedParts, EnteredPart, InboxUpdate, Journal, LEASE};

use crate::home::{TestHome, at, draft};

/// A step of a run.
#[derive(Debug, Clone, Copy)]
enum Step {
    Send,
    /// A hook claims at most this many messages for a call.
    InboxUpdate {
        call: u8,
        most: usize,
    },
    /// The output of an earlier claim was written.
    Delivered {
        which: usize,
    },
    /// The output of an earlier claim could not be written.
    Released {
        which: usize,
    },
    /// The client continues with a call.
    Event {
        call: u8,
    },
    Wait {
        seconds: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Send),
        3 => (0u8..6, 0usize..4).prop_map(|(call, most)| Step::InboxUpdate { call, most }),
        3 => (0usize..8).prop_map(|which| Step::Delivered { which }),
        1 => (0usize..8).prop_map(|which| Step::Released { which }),
        2 => (0u8..6).prop_map(|call| Step::Event { call }),
        2 => (0u64..1_200).prop_map(|seconds| Step::Wait { seconds }),
    ]
}

/// An inbox and a model of it.
struct InboxModel<'a> {
    journal: &'a mut Journal,
    agent: Agent,
    now: i64,
    sent: Vec<MessageId>,
    claims: Vec<ClaimedParts>,
    written: HashSet<MessageId>,
    seen: HashSet<MessageId>,
}

impl InboxModel<'_> {
    fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        self.now += 1;
        match step {
            Step::Send => {
                let mut draft = draft(&format!("message {}", self.sent.len()));
                draft.recipient = Recipient::Agent(self.agent.clone());
                self.sent.push(self.journal.append(&draft, &at(self.now)).expect("appended"));
            }
            Step::InboxUpdate { call, most } => {
                let before = self.pending();
                let choose = |parts: &[MessagePart], _: &[EnteredPart]| (0..parts.len().min(most)).collect();
                let claimed = self.event(call, Some(&choose))?;
                if let Some(claimed) = claimed {
                    let ids: Vec<&MessageId> = claimed.parts.iter().map(|part| &part.message.id).collect();
                    prop_assert!(ids.iter().all(|id| !self.seen.contains(*id)), "nothing seen comes again");
                    // A late event still confirms, and then claims the rest.
                    let rest = before.iter().filter(|id| !self.seen.contains(*id));
                    prop_assert!(ids.iter().copied().eq(rest.take(most)), "the oldest, in order");
                    self.claims.push(claimed);
                }
            }
            Step::Delivered { which } => {
                if let Some(claimed) = self.claims.get(which) {
                    self.journal.mark_delivered(&self.agent, claimed, self.now).expect("written");
                    self.written.extend(claimed.parts.iter().map(|part| part.message.id.clone()));
                }
            }
            Step::Released { which } => {
                if let Some(claimed) = self.claims.get(which) {
                    self.journal.release(&self.agent, claimed).expect("released");
                }
            }
            Step::Event { call } => drop(self.event(call, None)?),
            Step::Wait { seconds } => self.now += millis(Duration::from_secs(seconds)),
        }
        self.check()
    }

    /// An event of the client with a call, which may claim messages.
    fn event(
        &mut self,
        call: u8,
        choose: Option<ringer_journal::SelectParts<'_>>,
    ) -> Result<Option<ClaimedParts>, TestCaseError> {
        let call = format!("c{call}");
        let claim = InboxUpdate { call_id: Some(&call), choose, ..InboxUpdate::default() };
        let claimed = self.journal.claim_for(&self.agent, &claim, &at(self.now)).expect("claimed");
        for (id, state) in self.states() {
            if state == "seen" {
                prop_assert!(self.written.contains(&id), "seen is only what was written");
                self.seen.insert(id);
            }
        }
        Ok(claimed)
    }

    fn pending(&mut self) -> Vec<MessageId> {
        let pending = self.journal.pending_for(&self.agent, self.now).expect("readable");
        pending.into_iter().map(|part| part.message.id).collect()
    }

    fn states(&mut self) -> HashMap<MessageId, String> {
        let journal = &mut *self.journal;
        let state = |id: &MessageId| journal.receipts(id.as_str()).expect("readable").remove(0).state;
        self.sent.iter().cloned().zip(self.sent.iter().map(state)).collect()
    }

    /// Seen messages stay seen and are not pending. Messages that are neither seen nor in flight are pending, in order of
    /// sending.
    fn check(&mut self) -> Result<(), TestCaseError> {
        let (states, pending) = (self.states(), self.pending());
        for (id, state) in &states {
            prop_assert_eq!(state == "seen", self.seen.contains(id));
            prop_assert!(state != "queued" || pending.contains(id), "{} is lost", id);
            prop_assert!(state != "seen" || !pending.contains(id));
        }
        let in_order: Vec<&MessageId> = self.sent.iter().filter(|id| pending.contains(id)).collect();
        prop_assert!(pending.iter().eq(in_order));
        Ok(())
    }

    /// A working client eventually gets every message.
    fn drain(&mut self) -> Result<(), TestCaseError> {
        self.now += millis(LEASE + CONFIRM_WITHIN) + 1;
        self.claims.clear();
        self.take(Step::InboxUpdate { call: 100, most: usize::MAX })?;
        self.take(Step::Delivered { which: 0 })?;
        self.take(Step::Event { call: 101 })?;
        prop_assert_eq!(self.seen.len(), self.sent.len(), "in the end all of it was read");
        Ok(())
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).expect("short")
}

#[test]
fn nothing_sent_is_lost_and_nothing_seen_is_delivered_again() {
    let test = TestHome::new();
    // One journal for all cases, with one agent per case.
    let (journal, cases) = (RefCell::new(test.open()), RefCell::new(0));
    proptest!(ProptestConfig::with_cases(48), |(steps in prop::collection::vec(step(), 0..60))| {
        *cases.borrow_mut() += 1;
        let mut model = InboxModel {
            journal: &mut journal.borrow_mut(),
            agent: Agent::new(&format!("a{}", cases.borrow())).expect("a name"),
            now: 1,
            sent: Vec::new(),
            claims: Vec::new(),
            written: HashSet::new(),
            seen: HashSet::new(),
        };
        for step in steps {
            model.take(step)?;
        }
        model.drain()?;
    });
}
