//! Snoozing.

use super::*;
use crate::attention::ResolvedBy;
use crate::message::{IDLE_PROMPT, Mark, PERMISSION_PROMPT, QuestionId};

fn snooze(number: u64, until_ms: i64) -> Event {
    mark(Mark::Snooze, id(number).as_str(), &until_ms.to_string())
}

/// A message of a kind from a script.
fn of_kind(number: u64, surface: &str, kind: Kind) -> Event {
    let mut incoming = incoming(number, surface, &format!("text {number}"));
    incoming.message.draft.tag = Tag::Notice(kind);
    Event::Message(Box::new(incoming))
}

/// Whether it is read, whether it is over, and until when it is snoozed.
fn state(engine: &Engine, number: u64) -> (bool, bool, Option<i64>) {
    let record = engine.attention().store().get(&id(number)).unwrap();
    (record.is_read, record.is_resolved, record.snoozed_until.get())
}

fn steps(orders: &[Order], number: u64) -> Vec<String> {
    let saved = orders.iter().rev().find_map(|order| match order {
        Order::SaveRecord { record, .. } if record.id == id(number) => Some(record),
        _ => None,
    });
    saved.unwrap().trail.steps().map(|step| step.cause.to_string()).collect()
}

#[test]
fn it_is_out_of_the_way_and_comes_back_as_new_once() {
    let mut engine = engine(&[]);
    engine.handle(at(0), of_kind(1, "a", Kind::Error));
    let orders = engine.handle(at(1000), snooze(1, 60_000));
    assert_eq!(words(&orders), ["withdraw 1", "ring a false", "badge 0"]);
    assert_eq!(state(&engine, 1), (true, false, Some(60_000)));
    assert_eq!(engine.attention().store().needs_person().count(), 0, "it needs the person later");
    assert_eq!(engine.next_deadline(at(2000)), Some(Duration::from_mins(1)));
    assert!(engine.has_snoozed());
    assert_eq!(engine.handle(at(59_999), Event::Tick), []);
    let orders = engine.handle(at(60_000), Event::Tick);
    assert_eq!(words(&orders), ["ring a true", "badge 1", "Desktop 1", "Sound 1", "Command 1", "Webhook 1"]);
    assert!(orders.contains(&Order::Flash(place("a"))));
    assert_eq!(state(&engine, 1), (false, false, None));
    assert_eq!(engine.attention().store().needs_person().count(), 1);
    let said = steps(&orders, 1);
    assert_eq!(said[said.len() - 3], "snoozed by you for 59s");
    assert_eq!(said[said.len() - 2], "came back: it was snoozed until now");
    assert_eq!(engine.handle(at(70_000), Event::Tick), [], "once");
    assert!(!engine.has_snoozed() && engine.next_deadline(at(70_000)).is_none());
}

#[test]
fn what_ends_meanwhile_does_not_come_back() {
    let ends = |number: u64| -> Vec<(&str, Event)> {
        vec![
            ("read", mark(Mark::Read, id(number).as_str(), "")),
            ("read with all", mark(Mark::Read, "all", "")),
            ("cleared", mark(Mark::Clear, "all", "")),
            ("looked at", looks(&["a"])),
            ("resolved", mark(Mark::Resolve, id(number).as_str(), ResolvedBy::WentOn.as_str())),
        ]
    };
    for kind in [Kind::Complete, Kind::Error, Kind::Status] {
        for (how, end) in ends(1) {
            let mut engine = engine(&[]);
            engine.handle(at(0), of_kind(1, "a", kind));
            engine.handle(at(1), snooze(1, 1000));
            engine.handle(at(2), end);
            assert!(!engine.has_snoozed(), "{kind:?} {how}");
            assert_eq!(words(&engine.handle(at(2000), Event::Tick)), [] as [&str; 0], "{kind:?} {how}");
        }
    }
    let mut engine = engine(&[]);
    let mut question = incoming(1, "a", "which?");
    question.message.draft.tag = Tag::Notice(Kind::Question);
    question.message.draft.question_id = Some(QuestionId::new(1, 0));
    engine.handle(at(0), Event::Message(Box::new(question)));
    engine.handle(at(1), snooze(1, 1000));
    engine.handle(at(2), Event::QuestionClosed { question: QuestionId::new(1, 0), by: ReadReason::Answered });
    assert_eq!(words(&engine.handle(at(2000), Event::Tick)), [] as [&str; 0], "answered");
    assert_eq!(state(&engine, 1), (true, true, None));
}

#[test]
fn what_waits_for_the_person_comes_back_although_it_was_read_and_looked_at() {
    let mut engine = engine(&[]);
    let mut permission = incoming(1, "a", "Bash: make");
    permission.message.draft.category = Some(PERMISSION_PROMPT.to_owned());
    permission.message.draft.key = Some("episode:x".to_owned());
    engine.handle(at(0), Event::Message(Box::new(permission)));
    engine.handle(at(1), snooze(1, 1000));
    engine.handle(at(2), mark(Mark::Read, id(1).as_str(), ""));
    engine.handle(at(3), looks(&["a"]));
    engine.handle(at(4), looks(&[]));
    assert_eq!(state(&engine, 1), (true, false, Some(1000)));
    assert!(words(&engine.handle(at(1000), Event::Tick)).contains(&"Desktop 1".to_owned()));
}

#[test]
fn what_is_over_or_unknown_is_not_snoozed() {
    let mut engine = engine(&[]);
    engine.handle(at(0), of_kind(1, "a", Kind::Complete));
    engine.handle(at(1), mark(Mark::Read, "all", ""));
    for number in [1, 2] {
        assert_eq!(engine.handle(at(2), snooze(number, 1000)), []);
    }
    assert_eq!(engine.handle(at(2), mark(Mark::Snooze, id(1).as_str(), "soon")), []);
    assert_eq!(state(&engine, 1), (true, true, None));
}

#[test]
fn marking_it_unread_ends_the_snooze_and_a_second_one_replaces_the_first() {
    let mut engine = engine(&[]);
    engine.handle(at(0), of_kind(1, "a", Kind::Error));
    engine.handle(at(1), snooze(1, 1000));
    engine.handle(at(2), mark(Mark::Unread, id(1).as_str(), ""));
    assert_eq!((state(&engine, 1), engine.has_snoozed()), ((false, false, None), false));
    engine.handle(at(3), snooze(1, 1000));
    engine.handle(at(4), snooze(1, 5000));
    assert_eq!(words(&engine.handle(at(2000), Event::Tick)), [] as [&str; 0]);
    assert!(words(&engine.handle(at(5000), Event::Tick)).contains(&"Desktop 1".to_owned()));
}

#[test]
fn it_comes_back_beside_what_arrived_meanwhile() {
    let mut engine = engine(&[]);
    engine.handle(at(0), of_kind(1, "a", Kind::Complete));
    engine.handle(at(1), snooze(1, 20_000));
    engine.handle(at(10_000), of_kind(2, "a", Kind::Complete));
    engine.handle(at(20_000), Event::Tick);
    assert_eq!((state(&engine, 1), state(&engine, 2)), ((false, false, None), (false, false, None)));
}

#[test]
fn where_the_person_looks_it_comes_back_without_a_popup() {
    let mut engine = engine(&[]);
    engine.handle(at(0), of_kind(1, "a", Kind::Complete));
    engine.handle(at(1), snooze(1, 1000));
    engine.restore(at(2), [], []);
    // They looked at it before it was snoozed, and went on looking.
    engine.focus.set(1, vec![View { client: "c".to_owned(), surface: SurfaceId::new("a") }], true);
    let orders = engine.handle(at(1000), Event::Tick);
    assert_eq!(words(&orders), ["ring a true", "Command 1", "Webhook 1"], "a ring for two seconds");
    assert_eq!(state(&engine, 1), (true, true, None));
}

#[test]
fn another_process_goes_on_and_what_is_overdue_comes_back_once() {
    let mut engine = engine(&[]);
    engine.handle(at(0), of_kind(1, "a", Kind::Error));
    let orders = engine.handle(at(1), snooze(1, 1000));
    let saved = orders.iter().find_map(|order| match order {
        Order::SaveRecord { record, .. } => Some(serde_json::to_string(record).unwrap()),
        _ => None,
    });
    let record: Record = serde_json::from_str(&saved.unwrap()).unwrap();
    let mut next = self::engine(&[]);
    next.restore(at(9_000_000), [record], []);
    assert_eq!(next.next_deadline(at(9_000_000)), Some(at(9_000_000).mono));
    let came = words(&next.handle(at(9_000_000), Event::Tick));
    assert!(came.contains(&"Desktop 1".to_owned()), "{came:?}");
    assert_eq!(next.handle(at(9_000_001), Event::Tick), []);
}

#[test]
fn in_quiet_hours_it_comes_back_without_a_popup() {
    let quiet_hours = vec![crate::time::DailySpan::parse("00:00-00:00").unwrap()];
    let rules = RuleSettings { quiet_hours, ..RuleSettings::default() };
    let mut engine = engine(&[]);
    engine.handle(at(0), of_kind(1, "a", Kind::Error));
    engine.handle(at(1), snooze(1, 1000));
    engine.set_preferences(Preferences { rules, ..preferences(1, &[]) });
    assert_eq!(words(&engine.handle(at(1000), Event::Tick)), ["ring a true", "badge 1"]);
}

#[test]
fn an_undo_restores_the_snooze_that_a_command_ended() {
    for command in [Mark::Read, Mark::Clear] {
        let mut engine = engine(&[]);
        let mut idle = incoming(1, "a", "waits");
        idle.message.draft.category = Some(IDLE_PROMPT.to_owned());
        engine.handle(at(0), Event::Message(Box::new(idle)));
        engine.handle(at(1), snooze(1, 1000));
        engine.handle(at(2), mark(command, id(1).as_str(), "c"));
        assert!(!engine.has_snoozed(), "{command:?}");
        engine.handle(at(3), mark(Mark::Undo, "all", ""));
        assert_eq!(state(&engine, 1), (true, false, Some(1000)), "{command:?}");
        assert!(words(&engine.handle(at(1000), Event::Tick)).contains(&"Desktop 1".to_owned()));
    }
}
