//! Inboxes: messages are leased, delivered, and seen when the client continues; at least once, with a stable id.

use std::time::Duration;

use ringer_core::message::{Agent, MessagePart, Tag};
use ringer_core::{Kind, MessageId, Recipient, Scope, Sender};
use ringer_journal::{
    CLIENT_INBOX_PREFIX, CONFIRM_WITHIN, ClaimedParts, EnteredPart, InboxUpdate, Journal, LEASE, SelectParts,
};

use crate::home::{TestHome, at, draft};

fn agent(id: &str) -> Agent {
    Agent::new(id).expect("a name")
}

fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).expect("short")
}

/// Sends a message to an agent at a time.
fn send_to(journal: &mut Journal, to: &str, body: &str, unix_ms: i64) -> MessageId {
    let mut draft = draft(body);
    draft.recipient = Recipient::Agent(agent(to));
    journal.append(&draft, &at(unix_ms)).expect("appended")
}

fn send(journal: &mut Journal, body: &str, unix_ms: i64) -> MessageId {
    send_to(journal, "a", body, unix_ms)
}

fn everything(parts: &[MessagePart], _: &[EnteredPart]) -> Vec<usize> {
    (0..parts.len()).collect()
}

fn first(parts: &[MessagePart], _: &[EnteredPart]) -> Vec<usize> {
    (0..parts.len().min(1)).collect()
}

fn nothing(_: &[MessagePart], _: &[EnteredPart]) -> Vec<usize> {
    Vec::new()
}

/// Claims messages with an event of agent `a` that has this call.
fn event(
    journal: &mut Journal,
    call_id: Option<&str>,
    choose: Option<SelectParts<'_>>,
    now: i64,
) -> Option<ClaimedParts> {
    journal
        .claim_for(&agent("a"), &InboxUpdate { call_id, choose, ..InboxUpdate::default() }, &at(now))
        .expect("claimed")
}

fn texts(parts: &[MessagePart]) -> Vec<&str> {
    parts.iter().map(|part| part.message.draft.body.as_str()).collect()
}

fn pending(journal: &mut Journal, now: i64) -> Vec<String> {
    let pending = journal.pending_for(&agent("a"), now).expect("readable");
    pending.into_iter().map(|message| message.message.draft.body).collect()
}

fn state(journal: &mut Journal, id: &MessageId) -> String {
    journal.receipts(id.as_str()).expect("readable").remove(0).state
}

#[test]
fn a_message_goes_from_queued_to_seen_with_its_times() {
    let test = TestHome::new();
    let mut journal = test.open();
    let id = send(&mut journal, "look", 100);
    let row = |journal: &mut Journal| {
        let row = journal.receipts(id.as_str()).unwrap().remove(0);
        (row.agent, row.state, row.queued_ms, row.delivered_ms, row.seen_ms)
    };
    let expect = |state: &str, delivered, seen| ("a".to_owned(), state.to_owned(), 100, delivered, seen);
    assert_eq!(row(&mut journal), expect("queued", None, None));
    let claimed = event(&mut journal, Some("call-1"), Some(&everything), 200).expect("one waits");
    assert_eq!(texts(&claimed.parts), ["look"]);
    assert_eq!(row(&mut journal), expect("leased", None, None));
    journal.mark_delivered(&agent("a"), &claimed, 210).unwrap();
    assert_eq!(row(&mut journal), expect("delivered", Some(210), None));
    assert!(pending(&mut journal, 220).is_empty());
    assert_eq!(event(&mut journal, Some("call-2"), None, 300), None);
    assert_eq!(row(&mut journal), expect("seen", Some(210), Some(300)));
    // Never again, not even later.
    assert_eq!(event(&mut journal, Some("call-3"), Some(&everything), i64::MAX), None);
    assert_eq!(row(&mut journal), expect("seen", Some(210), Some(300)));
}

#[test]
fn the_event_it_was_handed_over_with_does_not_confirm_it() {
    // The call of the delivery, and the call of the next event.
    for (handed, next, confirmed) in [
        (Some("call-1"), Some("call-1"), false),
        (Some("call-1"), Some("call-2"), true),
        (Some("call-1"), None, true),
        (None, Some("call-1"), true),
        (None, None, false),
    ] {
        let test = TestHome::new();
        let mut journal = test.open();
        let id = send(&mut journal, "look", 0);
        let claimed = event(&mut journal, handed, Some(&everything), 1).expect("one waits");
        journal.mark_delivered(&agent("a"), &claimed, 2).unwrap();
        assert_eq!(event(&mut journal, next, Some(&everything), 3), None);
        let expect = if confirmed { "seen" } else { "delivered" };
        assert_eq!(state(&mut journal, &id), expect, "{handed:?} then {next:?}");
    }
}

#[test]
fn a_claim_that_was_never_written_is_pending_again_when_its_lease_is_over() {
    let test = TestHome::new();
    let mut journal = test.open();
    let id = send(&mut journal, "look", 0);
    event(&mut journal, Some("call-1"), Some(&everything), 0).expect("one waits");
    let over = ms(LEASE);
    // An event does not confirm a message that was not delivered.
    assert_eq!(event(&mut journal, Some("call-2"), Some(&everything), over), None);
    assert_eq!((state(&mut journal, &id).as_str(), pending(&mut journal, over).len()), ("leased", 0));
    assert_eq!(pending(&mut journal, over + 1), ["look"]);
    let again = event(&mut journal, Some("call-3"), Some(&everything), over + 1).expect("pending again");
    assert_eq!(again.parts[0].message.id, id, "under the same id");
    assert!(pending(&mut journal, over + 1 + ms(LEASE)).is_empty(), "with a lease of its own");
}

/// A client may drop messages that arrive too fast, and continues anyway.
#[test]
fn what_was_put_into_a_clients_inbox_is_confirmed_only_by_its_arrival() {
    let test = TestHome::new();
    let mut journal = test.open();
    let [one, two] = ["one", "two"].map(|body| send(&mut journal, body, 0));
    let call = format!("{CLIENT_INBOX_PREFIX}1");
    let claimed = event(&mut journal, Some(&call), Some(&everything), 1).unwrap();
    journal.mark_delivered(&agent("a"), &claimed, 2).unwrap();
    assert_eq!(event(&mut journal, Some("t1"), Some(&everything), 3), None);
    assert_eq!(
        [state(&mut journal, &one), state(&mut journal, &two)],
        ["delivered", "delivered"],
        "it goes on"
    );
    let arrived = [one.to_string()];
    let prompt = InboxUpdate { call_id: Some("t2"), confirmed_ids: &arrived, ..InboxUpdate::default() };
    journal.claim_for(&agent("a"), &prompt, &at(4)).unwrap();
    assert_eq!([state(&mut journal, &one), state(&mut journal, &two)], ["seen", "delivered"]);
    assert_eq!(pending(&mut journal, 3 + ms(CONFIRM_WITHIN)), ["two"], "what never arrived comes again");
}

#[test]
fn what_no_later_event_confirms_in_time_is_pending_again() {
    let test = TestHome::new();
    let mut journal = test.open();
    send(&mut journal, "look", 0);
    let claimed = event(&mut journal, Some("call-1"), Some(&everything), 0).expect("one waits");
    journal.mark_delivered(&agent("a"), &claimed, 5).unwrap();
    let over = 5 + ms(CONFIRM_WITHIN);
    assert!(pending(&mut journal, over).is_empty());
    assert_eq!(pending(&mut journal, over + 1), ["look"]);
}

#[test]
fn what_could_not_be_written_is_given_back_at_once() {
    let test = TestHome::new();
    let mut journal = test.open();
    let ids = ["one", "two"].map(|body| send(&mut journal, body, 0));
    let claimed = event(&mut journal, Some("call-1"), Some(&everything), 0).expect("two wait");
    let only_one = ClaimedParts { parts: claimed.parts[..1].to_vec(), ..claimed.clone() };
    journal.release(&agent("a"), &only_one).unwrap();
    assert_eq!(pending(&mut journal, 0), ["one"]);
    assert_eq!([state(&mut journal, &ids[0]), state(&mut journal, &ids[1])], ["queued", "leased"]);
    // It may be delivered again with the same call, which does not confirm it.
    let again = event(&mut journal, None, Some(&everything), 1).expect("pending");
    journal.mark_delivered(&agent("a"), &again, 2).unwrap();
    event(&mut journal, None, None, 3);
    assert_eq!(state(&mut journal, &ids[0]), "delivered");
}

#[test]
fn only_what_is_leased_can_be_handed_over_or_given_back() {
    let test = TestHome::new();
    let mut journal = test.open();
    let id = send(&mut journal, "look", 0);
    let claimed = event(&mut journal, Some("call-1"), Some(&everything), 0).expect("one waits");
    journal.mark_delivered(&agent("b"), &claimed, 1).unwrap();
    journal.release(&agent("b"), &claimed).unwrap();
    assert_eq!(state(&mut journal, &id), "leased", "it is not released by another call");
    journal.mark_delivered(&agent("a"), &claimed, 1).unwrap();
    journal.release(&agent("a"), &claimed).unwrap();
    assert_eq!(state(&mut journal, &id), "delivered", "too late to give it back");
    event(&mut journal, Some("call-2"), None, 2);
    journal.mark_delivered(&agent("a"), &claimed, 3).unwrap();
    assert_eq!(state(&mut journal, &id), "seen");
    let queued = send(&mut journal, "never claimed", 0);
    let pretended = ClaimedParts { parts: journal.pending_for(&agent("a"), 4).unwrap(), call_id: None };
    journal.mark_delivered(&agent("a"), &pretended, 4).unwrap();
    assert_eq!(state(&mut journal, &queued), "queued");
}

#[test]
fn everybody_has_an_inbox_of_his_own() {
    let test = TestHome::new();
    let mut journal = test.open();
    let (mine, other) = (send(&mut journal, "mine", 0), send_to(&mut journal, "b", "other", 0));
    journal.append(&draft("for the lead and the person"), &at(0)).unwrap();
    assert_eq!(pending(&mut journal, 0), ["mine"]);
    let claimed = event(&mut journal, None, Some(&everything), 0).expect("one waits");
    assert_eq!(texts(&claimed.parts), ["mine"]);
    let theirs = InboxUpdate { choose: Some(&everything), ..InboxUpdate::default() };
    let theirs = journal.claim_for(&agent("b"), &theirs, &at(0)).unwrap().expect("one waits");
    journal.mark_delivered(&agent("b"), &theirs, 1).unwrap();
    event(&mut journal, Some("call-2"), None, 2);
    assert_eq!([state(&mut journal, &mine), state(&mut journal, &other)], ["leased", "delivered"]);
    assert!(journal.receipts("nobody").unwrap().is_empty());
}

#[test]
fn what_is_chosen_enters_in_the_order_it_was_sent_and_the_rest_waits() {
    let test = TestHome::new();
    let mut journal = test.open();
    for body in ["one", "two", "three"] {
        send(&mut journal, body, 0);
    }
    let backwards = |parts: &[MessagePart], _: &[EnteredPart]| -> Vec<usize> {
        assert_eq!(texts(parts), ["one", "two", "three"], "all of them can be chosen from");
        vec![2, 0, 9]
    };
    let claimed = event(&mut journal, Some("call-1"), Some(&backwards), 0).expect("three wait");
    assert_eq!(texts(&claimed.parts), ["one", "three"]);
    assert_eq!(pending(&mut journal, 0), ["two"]);
    let next = event(&mut journal, Some("call-2"), Some(&first), 1).expect("one is left");
    assert_eq!(texts(&next.parts), ["two"]);
}

/// A part that entered a minute ago no longer counts for rate limits, and one that is pending again has not entered.
#[test]
fn a_choice_knows_what_entered_in_the_last_minute() {
    let test = TestHome::new();
    let mut journal = test.open();
    for (body, sent, delivered) in [("old", 0, 1_000), ("one", 30_000, 31_000), ("two", 61_000, 62_000)] {
        send(&mut journal, body, sent);
        let claimed = event(&mut journal, Some(body), Some(&everything), sent).expect("one waits");
        journal.mark_delivered(&agent("a"), &claimed, delivered).expect("delivered");
    }
    send(&mut journal, "next", 62_000);
    let check = |_: &[MessagePart], entered: &[EnteredPart]| -> Vec<usize> {
        let entered: Vec<_> = entered
            .iter()
            .map(|one| (one.part.message.draft.body.as_str(), one.age(62_000).as_secs()))
            .collect();
        assert_eq!(entered, [("one", 31), ("two", 0)]);
        vec![0]
    };
    let claimed = event(&mut journal, Some("call"), Some(&check), 62_000).expect("one waits");
    assert_eq!(texts(&claimed.parts), ["next"]);
}

/// However many messages one sender has sent, later messages of others can be selected, and entered parts are known.
#[test]
fn a_flood_of_one_sender_hides_neither_others_nor_what_entered() {
    let test = TestHome::new();
    let mut journal = test.open();
    for number in 0..600 {
        send(&mut journal, &format!("flood {number}"), 0);
    }
    let thirty = |parts: &[MessagePart], _: &[EnteredPart]| (0..parts.len().min(30)).collect();
    let claimed = event(&mut journal, Some("call-1"), Some(&thirty), 1).expect("many wait");
    let in_flight = |_: &[MessagePart], entered: &[EnteredPart]| -> Vec<usize> {
        assert_eq!(entered.len(), 30, "another call is about to hand them over");
        Vec::new()
    };
    assert_eq!(event(&mut journal, Some("call-2"), Some(&in_flight), 1), None);
    journal.mark_delivered(&agent("a"), &claimed, 2).expect("delivered");
    let mut other = draft("of another");
    other.sender = Sender::new("another").expect("a name");
    other.recipient = Recipient::Agent(agent("a"));
    journal.append(&other, &at(3)).expect("appended");
    let last = |parts: &[MessagePart], entered: &[EnteredPart]| -> Vec<usize> {
        assert_eq!(entered.len(), 30);
        let bodies = texts(parts);
        assert_eq!(bodies.len(), 512);
        assert_eq!((bodies[0], bodies[510], bodies[511]), ("flood 30", "flood 540", "of another"));
        vec![511]
    };
    let claimed = event(&mut journal, Some("call-3"), Some(&last), 4).expect("one is chosen");
    assert_eq!(texts(&claimed.parts), ["of another"]);
}

#[test]
fn a_budget_that_takes_nothing_claims_nothing() {
    let test = TestHome::new();
    let mut journal = test.open();
    let id = send(&mut journal, "look", 0);
    assert_eq!(event(&mut journal, Some("call-1"), Some(&nothing), 0), None);
    assert_eq!(event(&mut journal, Some("call-2"), None, 0), None);
    assert_eq!(state(&mut journal, &id), "queued");
    let asked = |_: &[MessagePart], _: &[EnteredPart]| -> Vec<usize> {
        panic!("nothing waits, so nothing is chosen")
    };
    let claim = InboxUpdate { choose: Some(&asked), ..InboxUpdate::default() };
    assert_eq!(journal.claim_for(&agent("nobody"), &claim, &at(0)).unwrap(), None);
}

#[test]
fn what_outlived_its_worth_does_not_enter() {
    let test = TestHome::new();
    let mut journal = test.open();
    let mut short = draft("short");
    short.recipient = Recipient::Agent(agent("a"));
    short.ttl = Some(Duration::from_millis(50));
    journal.append(&short, &at(100)).unwrap();
    send(&mut journal, "long", 100);
    assert_eq!(pending(&mut journal, 149), ["short", "long"]);
    assert_eq!(pending(&mut journal, 150), ["long"]);
    let claimed = event(&mut journal, None, Some(&everything), 150).expect("one is worth it");
    assert_eq!(texts(&claimed.parts), ["long"]);
}

/// Queues messages to agent `a` with plain SQL: `(count, ttl)`.
fn fill(test: &TestHome, parts: &[(u32, Option<u32>)]) {
    let connection = test.connection();
    let mut number = 0;
    for (count, ttl) in parts {
        for _ in 0..*count {
            number += 1;
            let message = "INSERT INTO message (id, ts, scope, sender, kind, recipient, body, ttl)
                           VALUES ('m' || ?1, 0, 'global', 'system', 'status', 'agent:a', ?1, ?2)";
            connection.execute(message, rusqlite::params![number, ttl]).expect("a message");
            let receipt = "INSERT INTO receipt (agent, seq, state, queued) VALUES ('a', last_insert_rowid(), 'queued', 0)";
            connection.execute(receipt, []).expect("a receipt");
        }
    }
}

#[test]
fn one_claim_looks_at_so_many_and_the_rest_comes_with_the_next() {
    let test = TestHome::new();
    let mut journal = test.open();
    fill(&test, &[(600, None)]);
    let claimed = event(&mut journal, Some("call-1"), Some(&everything), 1).expect("many wait");
    assert_eq!(claimed.parts.len(), 512);
    assert_eq!((claimed.parts[0].message.seq, claimed.parts[511].message.seq), (1, 512));
    assert_eq!(event(&mut journal, Some("call-2"), Some(&everything), 2).expect("more wait").parts.len(), 88);
}

#[test]
fn many_that_outlived_their_worth_do_not_keep_back_the_next() {
    let test = TestHome::new();
    let mut journal = test.open();
    fill(&test, &[(600, Some(1)), (1, None)]);
    assert_eq!(pending(&mut journal, 1_000), ["601"]);
}

#[test]
fn a_row_that_makes_no_sense_does_not_keep_back_the_next() {
    let test = TestHome::new();
    let mut journal = test.open();
    for body in ["one", "two"] {
        send(&mut journal, body, 0);
    }
    assert_eq!(test.connection().execute("UPDATE message SET id = '' WHERE seq = 1", []), Ok(1));
    assert_eq!(pending(&mut journal, 0), ["two"]);
}

#[test]
fn an_answer_waits_in_the_inbox_of_the_agent_that_asked() {
    let test = TestHome::new();
    let mut journal = test.open();
    let mut question = draft("which?");
    question.sender = Sender::new("a").unwrap();
    let asked = journal.ask(&question, "which?", &[], &at(0), None).unwrap();
    journal.answer(&asked.id, Some("this one"), &Sender::system(), &at(1)).unwrap();
    let waiting = journal.pending_for(&agent("a"), 1).unwrap();
    assert_eq!(texts(&waiting), ["Answer to \"which?\": this one"]);
    assert_eq!(waiting[0].message.draft.tag, Tag::Notice(Kind::Status));
    assert_eq!(
        (waiting[0].message.draft.question_id.as_ref(), &waiting[0].message.draft.scope),
        (Some(&asked.id), &Scope::global())
    );
}

#[test]
fn a_claim_that_took_too_long_vouches_for_no_other() {
    let test = TestHome::new();
    let mut journal = test.open();
    let id = send(&mut journal, "one", 0);
    let slow = event(&mut journal, Some("call-1"), Some(&everything), 0).expect("it waits");
    let later = i64::try_from(LEASE.as_millis()).unwrap() + 1;
    event(&mut journal, Some("call-2"), Some(&everything), later).expect("the lease has expired");
    journal.mark_delivered(&agent("a"), &slow, later).unwrap();
    assert_eq!(state(&mut journal, &id), "leased");
    journal.release(&agent("a"), &slow).unwrap();
    assert_eq!(state(&mut journal, &id), "leased");
}
