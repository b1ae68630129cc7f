//! Mutes on demand.

use super::*;
use crate::attention::{UndoItem, UndoKind};
use crate::message::Mark;
use crate::policy::{MuteTarget, RequestedMute};

fn muted(engine: &Engine, ms: u64) -> Vec<String> {
    engine.mutes().holding(at(ms).wall_ms).map(|mute| mute.target.to_string()).collect()
}

#[test]
fn what_is_muted_is_listed_as_unread_and_draws_no_attention() {
    for key in ["all", "agent:agent", "workspace:w", "workspace:repo:global"] {
        let mut engine = engine(&[]);
        let orders = engine.handle(at(0), mark(Mark::Mute, key, "c until=60000"));
        assert!(orders.iter().any(|order| matches!(order, Order::SaveState(_))), "{key}");
        let orders = engine.handle(at(1), message(1, "a", "needs you"));
        assert_eq!(words(&orders), ["ring a true", "badge 1"], "{key}");
        assert!(!orders.iter().any(|order| matches!(order, Order::Flash(_))), "{key}");
        let Some(Order::SaveRecord { record, .. }) = orders.first() else { panic!("{orders:?}") };
        assert!(!record.is_read && record.needs_person());
        let said: Vec<String> = record.trail.steps().map(|step| step.cause.to_string()).collect();
        assert!(said.iter().any(|step| step.starts_with("you muted ")), "{said:?}");
        let orders = engine.handle(at(60_000), message(2, "b", "needs you"));
        assert!(words(&orders).contains(&"Desktop 2".to_owned()), "it ended by itself");
    }
}

#[test]
fn no_hook_and_no_fallback_gets_around_a_mute() {
    let mut engine = engine(&["one"]);
    let tickets = tickets(&engine.handle(at(0), message(1, "a", "needs you")));
    engine.handle(at(1), mark(Mark::Mute, "all", "c"));
    let patch = serde_json::from_str(r#"{"effects":{"desktop":true,"sound":true}}"#).unwrap();
    let answer = HookAnswer::Patched(patch);
    let orders = engine.handle(at(2), Event::HookAnswered { ticket: tickets[0], answer });
    assert_eq!(words(&orders), ["ring a true", "badge 1"]);

    let mut engine = self::engine(&[]);
    engine.handle(at(0), message(1, "a", "needs you"));
    engine.handle(at(1), mark(Mark::Mute, "agent:agent", "c"));
    let failed = Event::Delivered {
        id: id(1),
        channel: DeliveryChannel::Desktop,
        result: Err("no bus".to_owned()),
        popup: None,
    };
    assert_eq!(words(&engine.handle(at(2), failed)), [] as [&str; 0], "the terminal is not tried");
}

#[test]
fn what_comes_back_from_a_snooze_is_muted_too() {
    let mut engine = engine(&[]);
    engine.handle(at(0), message(1, "a", "needs you"));
    engine.handle(at(1), mark(Mark::Snooze, id(1).as_str(), "1000"));
    engine.handle(at(2), mark(Mark::Mute, "all", "c"));
    assert_eq!(words(&engine.handle(at(1000), Event::Tick)), ["ring a true", "badge 1"]);
}

#[test]
fn an_undo_takes_a_mute_and_its_end_back() {
    let mut engine = engine(&[]);
    engine.handle(at(0), mark(Mark::Mute, "agent:ci", "one until=9000"));
    engine.handle(at(1), mark(Mark::Mute, "all", "two"));
    engine.handle(at(2), mark(Mark::Mute, "agent:ci", "three"));
    engine.handle(at(3), mark(Mark::Unmute, "every", "four"));
    assert_eq!((muted(&engine, 4), engine.undo_log().last()), (vec![], Some(UndoKind::Mute)));
    // Another process continues with the saved items.
    let saved: Vec<_> = engine.undo_log().items().map(UndoItem::saved).collect();
    let mut engine = self::engine(&[]);
    engine.restore_state(at(4), saved);
    engine.handle(at(5), mark(Mark::Undo, "all", ""));
    assert_eq!(muted(&engine, 20_000), ["all", "agent:ci"], "both, and without an end");
    engine.handle(at(6), mark(Mark::Undo, "all", ""));
    assert_eq!(
        (muted(&engine, 7), muted(&engine, 20_000)),
        (vec!["all".into(), "agent:ci".into()], vec!["all".into()])
    );
    engine.handle(at(8), mark(Mark::Undo, "all", ""));
    engine.handle(at(9), mark(Mark::Undo, "all", ""));
    assert_eq!((muted(&engine, 9), engine.undo_log().last()), (vec![], None));
}

#[test]
fn a_mute_that_has_ended_goes_when_another_is_set() {
    let mut engine = engine(&[]);
    let mute = RequestedMute {
        target: MuteTarget::Agent("ci".to_owned()),
        until_unix_ms: Some(10),
        allow: Vec::new(),
    };
    engine.restore_state(at(0), [mute.saved()]);
    let orders = engine.handle(at(20), mark(Mark::Mute, "all", "c"));
    let deleted = Order::SaveState(Box::new(mute.target.removal()));
    assert!(orders.contains(&deleted) && engine.mutes().all().count() == 1);
    assert!(engine.next_deadline(at(20)).is_none(), "nothing happens at the end of a mute");
}
