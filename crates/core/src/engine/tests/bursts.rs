//! Several messages of one surface in a short time: bursts, and reports of the same event.

use super::*;
use crate::message::QuestionId;

fn notice(number: u64, kind: Kind) -> Event {
    let mut incoming = incoming(number, "a", &format!("text {number}"));
    incoming.message.draft.tag = Tag::Notice(kind);
    Event::Message(Box::new(incoming))
}

#[test]
fn of_a_burst_the_newest_is_shown_and_the_others_are_counted() {
    let mut engine = engine(&[]);
    let mut delivered = Vec::new();
    let mut handle = |engine: &mut Engine, ms, event| {
        let orders = engine.handle(at(ms), event);
        delivered.extend(orders.iter().filter_map(|order| match order {
            Order::Deliver(delivery) if delivery.channel == DeliveryChannel::Command => {
                Some(delivery.body.clone())
            }
            _ => None,
        }));
    };
    for number in 1..=60 {
        handle(&mut engine, number, message(number, "a", &format!("waiting {number}")));
    }
    assert_eq!(engine.undecided(), 1);
    assert_eq!(engine.next_deadline(at(60)), Some(Duration::from_millis(1001)));
    // Neither another kind nor a prompt waits for it.
    handle(&mut engine, 70, notice(61, Kind::Error));
    handle(&mut engine, 70, notice(62, Kind::Question));
    assert_eq!(engine.undecided(), 1);
    handle(&mut engine, 1001, Event::Tick);
    assert_eq!(engine.undecided(), 0);
    assert_eq!(delivered[..5], ["waiting 1", "waiting 2", "waiting 3", "waiting 4", "waiting 5"]);
    assert_eq!(delivered[7..], ["waiting 60 (+54 like this)"]);
}

#[test]
fn the_richer_of_two_reports_is_one_notification_and_the_command_runs_once() {
    let mut engine = engine(&[]);
    engine.handle(at(0), message(1, "a", "done"));
    for channel in [DeliveryChannel::Command, DeliveryChannel::Sound] {
        engine.handle(at(1), Event::Delivered { id: id(1), channel, result: Ok(String::new()), popup: None });
    }
    let mut richer = incoming(2, "a", "done");
    richer.message.draft.title = Some("Claude Code".into());
    let orders = words(&engine.handle(at(100), Event::Message(Box::new(richer))));
    assert!(orders.contains(&"Desktop 2".to_owned()), "the popup is replaced: {orders:?}");
    assert!(!orders.iter().any(|order| order == "Command 2" || order == "Sound 2"), "{orders:?}");
    assert!(orders.contains(&"Webhook 2".to_owned()), "the first is still under way: {orders:?}");
    // A prompt is sent in any case: the message before it could not be answered.
    let mut prompt = incoming(3, "a", "done");
    prompt.message.draft.tag = Tag::Notice(Kind::Question);
    prompt.message.draft.question_id = Some(QuestionId::new(7, 0));
    let orders = words(&engine.handle(at(200), Event::Message(Box::new(prompt))));
    assert!(orders.contains(&"Command 3".to_owned()), "{orders:?}");
}

#[test]
fn a_richer_report_ends_the_hooks_of_the_earlier_one() {
    let mut engine = engine(&["slow"]);
    engine.handle(at(0), message(1, "a", "done"));
    let mut richer = incoming(2, "a", "done");
    richer.message.draft.title = Some("Claude Code".into());
    let orders = engine.handle(at(100), Event::Message(Box::new(richer)));
    let dropped = Cause::ReplacedByNewer { newer: id(2) };
    assert!(orders.contains(&Order::AddTrailStep { id: id(1), cause: dropped }), "{orders:?}");
    assert_eq!(engine.undecided(), 1);
}
