//! One injection's way through an inbox: pending, claimed, handed over, confirmed.

use std::time::Duration;

use ringer_core::MessageId;
use ringer_core::message::Agent;
use ringer_turn::{
    Accepted, Activity, CallId, Carrier, EntryPoint, Error, Inbox, InboxClaim, InboxSettings, Injection,
    InjectionSource, LEASE, LeaseId, Receipt, Stage, TurnEvent, TurnNumber,
};

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn inbox() -> Inbox {
    Inbox::new(Agent::new("a1").unwrap(), InboxSettings::default())
}

fn injection(id: u64, text: &str) -> Injection {
    Injection::new(MessageId::new(id, [0; 10]), Agent::new("a1").unwrap(), InjectionSource::User, text)
        .unwrap()
}

fn result(call: &str) -> Carrier {
    Carrier::ToolResult { call: CallId::new(call).unwrap(), turn: TurnNumber(1) }
}

fn texts(claim: &InboxClaim) -> Vec<&str> {
    claim.injections.iter().map(Injection::text).collect()
}

#[test]
fn pending_handed_over_confirmed() {
    let mut inbox = inbox();
    inbox.accept(at(0), injection(1, "x")).unwrap();
    let claim = inbox.claim(at(1), &result("c1")).unwrap();
    assert_eq!((texts(&claim), claim.until), (vec!["x"], at(1) + LEASE));
    assert_eq!(inbox.claim(at(1), &result("c2")), None, "claimed is claimed");
    assert_eq!(inbox.hand_over(at(2), claim.lease), Ok(1));
    assert_eq!(inbox.observe(at(3), &TurnEvent::of(TurnNumber(1))), claim.ids);
    assert_eq!(inbox.receipt(&claim.ids[0]).unwrap().seen(), Some(at(3)));
    assert_eq!(inbox.claim(at(100_000), &result("c3")), None, "nothing confirmed is handed over again");
}

#[test]
fn a_hook_killed_half_way_leaves_it_pending() {
    let mut inbox = inbox();
    inbox.accept(at(0), injection(1, "x")).unwrap();
    let killed = inbox.claim(at(0), &result("c1")).unwrap();
    assert_eq!(inbox.next_deadline(at(0)), Some(killed.until));
    // A later event proves nothing about what was never written.
    assert!(inbox.observe(at(1), &TurnEvent::of(TurnNumber(1))).is_empty());
    let second = inbox.claim(killed.until, &result("c2")).unwrap();
    assert_eq!(second.ids, killed.ids, "at least once, one id");
    assert_eq!(inbox.hand_over(killed.until, killed.lease), Err(Error::LeaseExpired(killed.lease.0)));
    assert_eq!(inbox.hand_over(killed.until, second.lease), Ok(1));
}

#[test]
fn a_second_claim_for_the_same_call_does_not_vouch_for_the_first() {
    let mut inbox = inbox();
    inbox.accept(at(0), injection(1, "first")).unwrap();
    let killed = inbox.claim(at(0), &result("c1")).unwrap();
    inbox.accept(at(1), injection(2, "second")).unwrap();
    let second = inbox.claim(at(1), &result("c1")).unwrap();
    inbox.hand_over(at(1), second.lease).unwrap();
    assert_eq!(inbox.observe(at(2), &TurnEvent::of(TurnNumber(1))), second.ids);
    assert_eq!(inbox.pending(killed.until)[0].text(), "first");
}

#[test]
fn a_message_is_confirmed_by_the_turn_it_begins() {
    let mut inbox = inbox();
    inbox.accept(at(0), injection(1, "x")).unwrap();
    let carrier = Carrier::Message { id: CallId::new("n1").unwrap(), after: TurnNumber(1) };
    let claim = inbox.claim(at(0), &carrier).unwrap();
    inbox.hand_over(at(0), claim.lease).unwrap();
    assert!(inbox.observe(at(1), &TurnEvent::of(TurnNumber(1))).is_empty());
    assert_eq!(inbox.observe(at(2), &TurnEvent::of(TurnNumber(2))), claim.ids);
}

#[test]
fn receipts_kept_elsewhere_are_taken_back() {
    let mut inbox = inbox();
    let stage = Stage::Leased { lease: LeaseId(7), carrier: result("c1"), until: at(10) };
    inbox.restore(injection(1, "x"), Receipt::from_saved(stage, at(0), None, None)).unwrap();
    let seen = Receipt::from_saved(Stage::Confirmed, at(0), Some(at(1)), Some(at(2)));
    inbox.restore(injection(2, "y"), seen).unwrap();
    assert_eq!(inbox.claim(at(9), &result("c2")), None);
    let claim = inbox.claim(at(10), &result("c2")).unwrap();
    assert_eq!((texts(&claim), claim.lease), (vec!["x"], LeaseId(8)), "no lease is given twice");
}

/// The whole way of one message, as a harness walks it.
#[test]
fn from_working_to_idle_to_woken() {
    let mut inbox = inbox();
    inbox.set_activity(at(0), Activity::Working);
    let told = inbox.accept(at(1), injection(1, "use port 8080")).unwrap();
    assert_eq!(told, Accepted::New(EntryPoint::NextToolResult));
    // The turn ends without another tool call.
    assert!(inbox.observe(at(2), &TurnEvent::of(TurnNumber(1))).is_empty());
    let entry = inbox.set_activity(at(2), Activity::Idle).unwrap();
    assert!(entry.needs_wake());
    let id = CallId::new("prompt_1").unwrap();
    let claim = inbox.claim(at(2), &Carrier::Message { id, after: TurnNumber(1) }).unwrap();
    let prompt = ringer_turn::render(&claim.injections);
    assert_eq!(prompt, "<notification source=\"user\">\nuse port 8080\n</notification>");
    inbox.hand_over(at(3), claim.lease).unwrap();
    assert_eq!(inbox.observe(at(4), &TurnEvent::of(TurnNumber(2))), claim.ids);
}
