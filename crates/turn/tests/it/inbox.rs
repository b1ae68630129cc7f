//! The inbox under faults: claims that expire, late hand-overs, interrupted turns, too much at once.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use proptest::prelude::*;
use ringer_core::MessageId;
use ringer_core::message::Agent;
use ringer_turn::{
    Accepted, Activity, CallId, Carrier, EntryPoint, Inbox, InboxClaim, InboxSettings, Injection,
    InjectionBudget, InjectionSource, Rate, Stage, TurnEvent, TurnNumber,
};

/// One thing that happens.
#[derive(Debug, Clone, Copy)]
enum Step {
    Accept {
        id: u16,
        source: u8,
        text: u8,
    },
    /// A tool result of the current turn, or a message.
    InboxClaim {
        message: bool,
    },
    /// Of the claims made so far, any one reports; some never do.
    HandOver {
        which: usize,
    },
    /// The client shows something: in this turn, or the next one begins.
    Event {
        next_turn: bool,
        call: Option<u8>,
    },
    /// Something from an older turn comes late.
    Straggler,
    Wait {
        seconds: u64,
    },
    Activity {
        working: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u16..60, 0u8..3, 0u8..3).prop_map(|(id, source, text)| Step::Accept { id, source, text }),
        3 => any::<bool>().prop_map(|message| Step::InboxClaim { message }),
        3 => (0usize..8).prop_map(|which| Step::HandOver { which }),
        2 => (any::<bool>(), prop::option::of(0u8..8)).prop_map(|(next_turn, call)| Step::Event { next_turn, call }),
        1 => Just(Step::Straggler),
        2 => (0u64..1_200).prop_map(|seconds| Step::Wait { seconds }),
        1 => any::<bool>().prop_map(|working| Step::Activity { working }),
    ]
}

fn settings() -> impl Strategy<Value = InboxSettings> {
    (0usize..30, 0usize..400, 1usize..20).prop_map(|(pending, budget, count)| InboxSettings {
        budget: InjectionBudget {
            max_pending: pending,
            max_bytes: budget,
            rate: Rate::new(count, Duration::from_mins(1)),
        },
        ..InboxSettings::default()
    })
}

/// An inbox, and beside it what we know must be true of it.
struct World {
    inbox: Inbox,
    now: Duration,
    turn: TurnNumber,
    calls: u64,
    claims: Vec<InboxClaim>,
    accepted: HashMap<MessageId, Injection>,
    confirmed: HashSet<MessageId>,
    handed_over: HashSet<MessageId>,
}

impl World {
    fn new(settings: InboxSettings) -> Self {
        Self {
            inbox: Inbox::new(agent(), settings),
            now: Duration::ZERO,
            turn: TurnNumber(1),
            calls: 0,
            claims: Vec::new(),
            accepted: HashMap::new(),
            confirmed: HashSet::new(),
            handed_over: HashSet::new(),
        }
    }

    fn carrier(&mut self, message: bool) -> Carrier {
        self.calls += 1;
        let id = CallId::new(&format!("c{}", self.calls % 8)).unwrap();
        if message {
            Carrier::Message { id, after: self.turn }
        } else {
            Carrier::ToolResult { call: id, turn: self.turn }
        }
    }

    fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Accept { id, source, text } => {
                let source = ["user", "file_watcher", "agent:a2"][usize::from(source)].parse().unwrap();
                let injection = injection(u64::from(id), source, ["a", "b", "c"][usize::from(text)]);
                let known = self.accepted.contains_key(&injection.id);
                let accepted = self.inbox.accept(self.now, injection.clone()).unwrap();
                prop_assert_eq!(accepted == Accepted::Known, known, "one id is one event");
                self.accepted.entry(injection.id.clone()).or_insert(injection);
            }
            Step::InboxClaim { message } => {
                let carrier = self.carrier(message);
                let pending: Vec<MessageId> =
                    self.inbox.pending(self.now).iter().map(|injection| injection.id.clone()).collect();
                if let Some(claim) = self.inbox.claim(self.now, &carrier) {
                    prop_assert!(claim.ids.iter().all(|id| pending.contains(id)), "only what was pending");
                    prop_assert!(
                        claim.ids.iter().all(|id| !self.confirmed.contains(id)),
                        "nothing confirmed again"
                    );
                    let times: usize = claim.injections.iter().map(Injection::times).sum();
                    prop_assert_eq!(times, claim.ids.len(), "a folded one says for how many it stands");
                    self.claims.push(claim);
                }
            }
            Step::HandOver { which } => {
                if let Some(claim) = self.claims.get(which).cloned() {
                    let count = self.inbox.hand_over(self.now, claim.lease).unwrap_or(0);
                    prop_assert!(count <= claim.ids.len());
                    if count > 0 {
                        self.handed_over.extend(claim.ids);
                    }
                }
            }
            Step::Event { next_turn, call } => {
                self.turn.0 += u64::from(next_turn);
                let call = call.map(|call| CallId::new(&format!("c{call}")).unwrap());
                self.show(&TurnEvent { turn: self.turn, call })?;
            }
            Step::Straggler => self.show(&TurnEvent::of(TurnNumber(self.turn.0 - 1)))?,
            Step::Wait { seconds } => self.now += Duration::from_secs(seconds),
            Step::Activity { working } => {
                let activity = if working { Activity::Working } else { Activity::Idle };
                let entry = self.inbox.set_activity(self.now, activity);
                prop_assert!(entry.is_none_or(|entry| entry == EntryPoint::of(activity)));
            }
        }
        self.check()
    }

    fn show(&mut self, event: &TurnEvent) -> Result<(), TestCaseError> {
        for id in self.inbox.observe(self.now, event) {
            prop_assert!(self.handed_over.contains(&id), "confirmed is what was handed over");
            prop_assert!(self.confirmed.insert(id), "and once");
        }
        Ok(())
    }

    /// Nothing is lost: every accepted injection is pending, leased (or handed over), or confirmed, and only one of it.
    fn check(&self) -> Result<(), TestCaseError> {
        let pending: HashSet<&MessageId> =
            self.inbox.pending(self.now).iter().map(|injection| &injection.id).collect();
        for id in self.accepted.keys() {
            let receipt = self.inbox.receipt(id);
            let Some(receipt) = receipt else {
                return Err(TestCaseError::fail(format!("{id} is lost")));
            };
            let is_confirmed = *receipt.stage() == Stage::Confirmed;
            prop_assert_eq!(is_confirmed, self.confirmed.contains(id));
            prop_assert_eq!(receipt.is_pending(self.now), pending.contains(id));
            prop_assert!(!(is_confirmed && pending.contains(id)));
        }
        Ok(())
    }

    /// A client that works gets everything in the end.
    fn drain(&mut self) -> Result<Vec<Injection>, TestCaseError> {
        let mut told = Vec::new();
        self.turn.0 += 1;
        self.show(&TurnEvent::of(self.turn))?;
        for _ in 0..200 {
            let carrier = self.carrier(false);
            if let Some(claim) = self.inbox.claim(self.now, &carrier) {
                prop_assert!(self.inbox.hand_over(self.now, claim.lease).is_ok());
                self.handed_over.extend(claim.ids);
                told.extend(claim.injections);
                self.show(&TurnEvent::of(self.turn))?;
            }
            match self.inbox.next_deadline(self.now) {
                Some(deadline) => self.now = deadline,
                None if self.inbox.pending(self.now).is_empty() => break,
                None => {}
            }
        }
        Ok(told)
    }
}

fn agent() -> Agent {
    Agent::new("a1").unwrap()
}

fn injection(id: u64, source: InjectionSource, text: &str) -> Injection {
    Injection::new(MessageId::new(id, [0; 10]), agent(), source, text).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn nothing_accepted_is_lost_and_nothing_confirmed_is_handed_over_again(
        settings in settings(),
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut world = World::new(settings);
        for step in steps {
            world.take(step)?;
        }
        world.drain()?;
        prop_assert_eq!(world.confirmed.len(), world.accepted.len(), "in the end all of it was read");
    }

    #[test]
    fn without_faults_everything_goes_once_and_in_the_order_of_its_source(
        settings in settings(),
        texts in prop::collection::vec((0u8..3, 0u8..3), 0..80),
    ) {
        let mut world = World::new(settings);
        let mut sent: HashMap<String, Vec<String>> = HashMap::new();
        for (id, (source, text)) in (0u16..).zip(texts) {
            world.take(Step::Accept { id, source, text })?;
            let source = ["user", "file_watcher", "agent:a2"][usize::from(source)];
            sent.entry(source.to_owned()).or_default().push(["a", "b", "c"][usize::from(text)].to_owned());
        }
        let mut told: HashMap<String, Vec<String>> = HashMap::new();
        for injection in world.drain()? {
            let of_source = told.entry(injection.source.to_string()).or_default();
            of_source.extend(std::iter::repeat_n(injection.text().to_owned(), injection.times()));
        }
        prop_assert_eq!(told, sent);
    }
}
