//! Notifications that need the person and are not dealt with go to the away webhooks.

use super::*;
use crate::message::{Mark, PERMISSION_PROMPT};

fn escalating() -> Engine {
    let mut engine = engine(&[]);
    engine
        .set_preferences(Preferences { escalate_after: Some(Duration::from_mins(2)), ..preferences(1, &[]) });
    engine
}

fn of_kind(number: u64, kind: Kind) -> Event {
    let mut incoming = incoming(number, "a", "text");
    incoming.message.draft.tag = Tag::Notice(kind);
    if kind == Kind::Waiting {
        incoming.message.draft.category = Some(PERMISSION_PROMPT.to_owned());
        incoming.message.draft.key = Some("episode:x".to_owned());
    }
    Event::Message(Box::new(incoming))
}

/// What happens at the next deadline of the engine.
fn at_deadline(engine: &mut Engine, now: Now) -> (u64, Vec<String>) {
    let deadline = engine.next_deadline(now).expect("a deadline");
    let ms = u64::try_from(deadline.as_millis()).unwrap();
    (ms, words(&engine.handle(at(ms), Event::Tick)))
}

#[test]
fn what_is_still_open_after_a_while_goes_out_once() {
    for kind in [Kind::Question, Kind::Waiting, Kind::Stuck, Kind::Error] {
        let mut engine = escalating();
        let orders = words(&engine.handle(at(1000), of_kind(1, kind)));
        assert!(!orders.contains(&"AwayWebhook 1".to_owned()), "{kind:?}: {orders:?}");
        assert!(engine.has_escalations());
        let (ms, orders) = at_deadline(&mut engine, at(2000));
        assert_eq!((ms, orders), (121_000, vec!["AwayWebhook 1".to_owned()]), "{kind:?}");
        assert!(!engine.has_escalations() && engine.next_deadline(at(200_000)).is_none(), "once");
    }
    for kind in [Kind::Complete, Kind::Status] {
        let mut engine = escalating();
        engine.handle(at(1000), of_kind(1, kind));
        assert!(!engine.has_escalations(), "{kind:?}");
    }
}

#[test]
fn when_the_person_is_away_it_goes_out_at_once() {
    let mut engine = escalating();
    engine.handle(at(0), of_kind(1, Kind::Error));
    engine.handle(at(1000), Event::Presence { host: 1, present: Some(false) });
    assert_eq!(at_deadline(&mut engine, at(1000)), (1000, vec!["AwayWebhook 1".to_owned()]), "what was open");
    engine.handle(at(2000), of_kind(2, Kind::Waiting));
    assert_eq!(at_deadline(&mut engine, at(2000)).1, ["AwayWebhook 2"], "what arrives");
    engine.handle(at(3000), Event::Presence { host: 1, present: None });
    engine.handle(at(4000), of_kind(3, Kind::Question));
    assert_eq!(at_deadline(&mut engine, at(4000)).0, 124_000, "unknown is present");
}

#[test]
fn what_is_over_or_snoozed_or_muted_does_not_escalate() {
    let mut engine = escalating();
    engine.handle(at(0), of_kind(1, Kind::Error));
    engine.handle(at(1), mark(Mark::Read, "all", ""));
    assert!(!engine.has_escalations(), "an error is over when it is read");

    let mut engine = escalating();
    engine.handle(at(0), of_kind(1, Kind::Waiting));
    engine.handle(at(1), mark(Mark::Read, "all", ""));
    assert!(engine.has_escalations(), "an agent still waits");
    engine.handle(at(2), mark(Mark::Snooze, id(1).as_str(), "60000"));
    assert!(!engine.has_escalations(), "it is snoozed");
    engine.handle(at(60_000), Event::Tick);
    assert_eq!(
        at_deadline(&mut engine, at(60_000)),
        (180_000, vec!["AwayWebhook 1".to_owned()]),
        "it came back"
    );

    let mut engine = escalating();
    engine.handle(at(0), of_kind(1, Kind::Waiting));
    engine.handle(at(1), mark(Mark::Mute, "all", "c"));
    assert_eq!(at_deadline(&mut engine, at(1)), (120_000, vec![]), "everything is muted");
    engine.handle(at(130_000), of_kind(2, Kind::Error));
    assert!(!engine.has_escalations(), "it was muted when it came");
}

#[test]
fn a_prompt_that_is_looked_at_still_escalates_and_another_process_goes_on() {
    let mut engine = escalating();
    engine.handle(at(0), looks(&["a"]));
    let orders = engine.handle(at(0), of_kind(1, Kind::Waiting));
    let saved = orders.iter().find_map(|order| match order {
        Order::SaveRecord { record, .. } => Some((**record).clone()),
        _ => None,
    });
    assert!(engine.has_escalations());
    let mut next = escalating();
    next.restore(at(500_000), saved, []);
    assert_eq!(at_deadline(&mut next, at(500_000)), (500_000, vec!["AwayWebhook 1".to_owned()]), "overdue");
    assert!(!next.has_escalations());
}
