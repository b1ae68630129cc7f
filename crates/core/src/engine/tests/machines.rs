//! What other machines may do to the list.

use super::*;
use crate::message::{Mark, QuestionId};

fn from_box(mut incoming: IncomingMessage) -> Event {
    incoming.message.machine = Some("box".to_owned());
    incoming.caller = Caller { workspace: Some(WorkspaceId::new("machine:box")), ..Caller::default() };
    Event::Message(Box::new(incoming))
}

fn sent_by_box(number: u64, body: &str) -> Event {
    let mut incoming = incoming(number, "a", body);
    incoming.message.draft.sender = Sender::new("agent@box").unwrap();
    from_box(incoming)
}

fn mark_of_box(kind: Mark, target: Option<String>, question: Option<QuestionId>, body: &str) -> Event {
    let mut incoming = incoming(99, "a", "x");
    incoming.message.draft.tag = Tag::Mark(kind);
    (incoming.message.draft.key, incoming.message.draft.question_id) = (target, question);
    body.clone_into(&mut incoming.message.draft.body);
    from_box(incoming)
}

/// An open permission of this machine, with a key and a question.
fn prompt() -> Record {
    let mut record = Record::new(id(1), place("a"), Kind::Question, "rm -rf ~/important", 0);
    record.key = Some("episode:claude-1:1".into());
    record.open_question = Some(QuestionId::new(1, 2));
    record
}

#[test]
fn no_mark_of_another_machine_changes_an_open_prompt_of_this_one() {
    let by_id = Some(id(1).to_string());
    let by_place = Some(crate::attention::MarkTarget::Place(place("a")).to_string());
    let by_key = Some("episode:claude-1:1".to_owned());
    let question = Some(QuestionId::new(1, 2));
    for (kind, target, question, body) in [
        (Mark::Read, by_id.clone(), None, ""),
        (Mark::Clear, by_id.clone(), None, ""),
        (Mark::Snooze, by_id.clone(), None, "9000000000000"),
        (Mark::Resolve, by_id, None, "exited"),
        (Mark::Read, by_place.clone(), None, ""),
        (Mark::Clear, by_place, None, ""),
        (Mark::Read, Some("all".to_owned()), None, ""),
        (Mark::Clear, Some("all".to_owned()), None, ""),
        (Mark::Resolve, by_key.clone(), None, "went_on"),
        (Mark::Decision, by_key, None, "allow"),
        (Mark::Answer, None, question, "yes"),
    ] {
        let mut engine = engine(&[]);
        engine.restore(at(0), [prompt()], []);
        engine.handle(at(1), mark_of_box(kind, target.clone(), question.clone(), body));
        assert_eq!(engine.attention().store().get(&id(1)), Some(&prompt()), "{kind:?} {target:?}");
    }
}

/// A hook still looks at it, so it is not in the list yet.
#[test]
fn nor_of_one_that_is_not_decided_yet() {
    for target in [id(7).to_string(), "episode:claude-1:1".to_owned()] {
        let mut engine = engine(&["slow"]);
        let mut prompt = incoming(7, "a", "rm -rf ~/important");
        prompt.message.draft.key = Some("episode:claude-1:1".to_owned());
        engine.handle(at(0), Event::Message(Box::new(prompt)));
        assert_eq!(engine.undecided(), 1);
        engine.handle(at(1), mark_of_box(Mark::Resolve, Some(target), None, "exited"));
        assert_eq!(engine.undecided(), 1);
    }
}

#[test]
fn what_asks_nothing_is_read_there_as_well_as_here() {
    let mut engine = engine(&[]);
    let done = Record::new(id(2), place("a"), Kind::Complete, "done", 0);
    let theirs = Record { id: id(3), machine: Some("box".into()), ..prompt() };
    engine.restore(at(0), [done, theirs], []);
    for number in [2, 3] {
        engine.handle(at(1), mark_of_box(Mark::Read, Some(id(number).to_string()), None, ""));
        assert!(engine.attention().store().get(&id(number)).unwrap().is_read);
    }
}

fn rows(engine: &Engine) -> Vec<String> {
    engine.attention().store().newest().map(|record| record.body.to_string()).collect()
}

#[test]
fn a_flood_of_another_machine_is_one_row_that_counts_it() {
    let mut engine = engine(&[]);
    engine.handle(at(0), message(1, "b", "rm -rf ~/important?"));
    let mut saved = 0;
    for number in 0..20_000 {
        let orders = engine.handle(at(number), sent_by_box(number + 10, "look!"));
        saved += orders.iter().filter(|order| matches!(order, Order::SaveRecord { .. })).count();
    }
    let tick = engine.next_deadline(at(20_000)).unwrap();
    engine.handle(at(u64::try_from(tick.as_millis()).unwrap()), Event::Tick);
    let rows = rows(&engine);
    // 500 at once, and one each two seconds.
    assert_eq!(rows.len(), 1 + 509 + 1);
    assert_eq!(rows.iter().filter(|row| row.contains("19491 more messages from box")).count(), 1, "{rows:?}");
    assert!(saved < 700, "{saved} writes");
    assert_eq!(engine.attention().store().needs_person_count(), 510);
    let mut needing: Vec<&Record> = engine.attention().store().needs_person().collect();
    needing.sort_by(|one, two| one.by_urgency(two));
    assert_eq!(&*needing[0].body, "rm -rf ~/important?");
}

#[test]
fn once_the_count_was_read_another_one_begins() {
    let mut engine = engine(&[]);
    for number in 0..503 {
        engine.handle(at(0), sent_by_box(number + 10, "look!"));
    }
    engine.handle(at(1_100), Event::Tick);
    assert!(rows(&engine)[0].starts_with("3 more messages from box"), "{:?}", rows(&engine)[0]);
    engine.handle(at(1_200), Event::ReadAll);
    engine.handle(at(1_300), sent_by_box(9_000, "look!"));
    assert!(rows(&engine)[0].starts_with("1 more message from box"), "{:?}", rows(&engine)[0]);
}
