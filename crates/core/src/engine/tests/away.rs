//! Notifications that can wait make no popup while the person is away, and one digest summarises them.

use super::*;
use crate::attention::{AwayPeriod, DesktopSession, digest_id};
use crate::message::ShownKind;
use crate::policy::PopupMode;

fn of_kind(number: u64, surface: &str, kind: ShownKind) -> Event {
    let mut incoming = incoming(number, surface, "text");
    let (stored, category) = kind.stored();
    incoming.message.draft.tag = Tag::Notice(stored);
    incoming.message.draft.category = category.map(str::to_owned);
    incoming.message.unix_ms = i64::try_from(number).unwrap();
    Event::Message(Box::new(incoming))
}

fn locked(is_locked: bool) -> Event {
    Event::Desktop(Some(DesktopSession { is_locked, is_idle: false, reports_idle: true }))
}

/// The texts of the digests that are delivered.
fn digests(orders: &[Order]) -> Vec<String> {
    let delivered = orders.iter().filter_map(|order| match order {
        Order::Deliver(delivery) if delivery.id == digest_id() => Some(delivery),
        _ => None,
    });
    delivered.map(|delivery| format!("{}: {}", delivery.title, delivery.body)).collect()
}

fn channels(orders: &[Order]) -> Vec<DeliveryChannel> {
    let channel = |order: &Order| match order {
        Order::Deliver(delivery) => Some(delivery.channel),
        _ => None,
    };
    orders.iter().filter_map(channel).collect()
}

#[test]
fn what_can_wait_makes_no_popup_and_no_sound_while_the_person_is_away() {
    for (at_ms, kind) in (0..).zip(ShownKind::all()) {
        let mut engine = engine(&[]);
        engine.handle(at(0), locked(true));
        let orders = engine.handle(at(at_ms), of_kind(at_ms, "a", kind));
        let waits = matches!(kind, ShownKind::Complete | ShownKind::Idle | ShownKind::Status);
        let record = engine.attention().store().newest().next().expect("it is recorded");
        assert!(!record.is_read, "{kind}: unread");
        assert_eq!(record.had_popup, !waits, "{kind}");
        let shown = channels(&orders);
        assert_eq!(shown.contains(&DeliveryChannel::Desktop), !waits, "{kind}: {shown:?}");
        assert_eq!(shown.contains(&DeliveryChannel::Sound), !waits, "{kind}: {shown:?}");
        assert!(shown.contains(&DeliveryChannel::Webhook), "{kind}: {shown:?}");
        assert_eq!(record.trail.steps().any(|step| step.cause == Cause::Away), waits, "{kind}");
        assert!(orders.iter().any(|order| matches!(order, Order::Ring { ring: Some(_), .. })), "{kind}");
    }
}

#[test]
fn coming_back_gives_one_digest_of_what_is_unread_or_open() {
    let mut engine = engine(&[]);
    engine.handle(at(1), of_kind(1, "a", ShownKind::Complete));
    let orders = engine.handle(at(2), locked(true));
    assert!(
        orders.contains(&Order::SaveState(Box::new(AwayPeriod { since_ms: 2, until_ms: None }.saved()))),
        "{orders:?}"
    );
    for (number, surface, kind) in
        [(3, "b", ShownKind::Complete), (4, "c", ShownKind::Complete), (5, "d", ShownKind::Permission)]
    {
        engine.handle(at(number), of_kind(number, surface, kind));
    }
    assert!(engine.has_digest());
    engine.handle(at(6), Event::Mark { id: id(4), read: true });
    let orders = engine.handle(at(7), locked(false));
    assert_eq!(digests(&orders), ["While you were away: 1 needs permission, 1 done"]);
    assert!(
        orders.contains(&Order::SaveState(Box::new(AwayPeriod { since_ms: 2, until_ms: Some(7) }.saved())))
    );
    assert_eq!(channels(&orders), [DeliveryChannel::Desktop], "no sound, no command, no webhook");
    assert!(!engine.has_digest());
    assert!(digests(&engine.handle(at(8), locked(false))).is_empty(), "once");
    engine.handle(at(9), locked(true));
    assert!(digests(&engine.handle(at(10), locked(false))).is_empty(), "nothing came");
}

#[test]
fn the_digest_falls_back_to_the_terminal_and_leaves_no_trail() {
    let mut engine = engine(&[]);
    engine.handle(at(0), locked(true));
    engine.handle(at(1), of_kind(1, "a", ShownKind::Complete));
    engine.handle(at(2), locked(false));
    let result = |channel, result: Result<String, String>| Event::Delivered {
        id: digest_id(),
        channel,
        result,
        popup: None,
    };
    let orders = engine.handle(at(3), result(DeliveryChannel::Desktop, Err("no bus".to_owned())));
    assert_eq!(channels(&orders), [DeliveryChannel::Terminal]);
    let orders = engine.handle(at(4), result(DeliveryChannel::Terminal, Ok("shown".to_owned())));
    assert!(orders.is_empty(), "{orders:?}");
}

#[test]
fn quiet_hours_mutes_and_popups_that_are_off_hold_for_the_digest() {
    let after = |settings: Preferences, commands: &[Event]| {
        let mut engine = engine(&[]);
        engine.set_preferences(settings);
        engine.handle(at(0), locked(true));
        engine.handle(at(1), of_kind(1, "a", ShownKind::Complete));
        engine.handle(at(1), of_kind(2, "b", ShownKind::Question));
        for command in commands {
            engine.handle(at(2), command.clone());
        }
        digests(&engine.handle(at(3), locked(false)))
    };
    let plain = || preferences(1, &[]);
    assert_eq!(after(plain(), &[]), ["While you were away: 1 asks, 1 done"]);
    let quiet = vec![crate::time::DailySpan::parse("00:00-00:00").unwrap()];
    let rules = RuleSettings { quiet_hours: quiet, ..RuleSettings::default() };
    assert!(after(Preferences { rules, ..plain() }, &[]).is_empty());
    assert!(after(Preferences { popup: PopupMode::Off, ..plain() }, &[]).is_empty());
    assert!(after(plain(), &[mark(Mark::Mute, "all", "c")]).is_empty());
    let allowed = mark(Mark::Mute, "all", "c allow=question");
    assert_eq!(after(plain(), &[allowed]), ["While you were away: 1 asks"]);
    assert!(after(plain(), &[mark(Mark::Mute, "agent:agent", "c")]).is_empty());
}

#[test]
fn the_next_hub_knows_since_when_and_tells_once() {
    let mut engine = engine(&[]);
    engine.handle(at(100), locked(true));
    let orders = engine.handle(at(200), of_kind(200, "a", ShownKind::Complete));
    let saved = orders.iter().find_map(|order| match order {
        Order::SaveRecord { record, .. } => Some((**record).clone()),
        _ => None,
    });
    let away = engine.away_period().expect("they are away");
    let mut next = super::engine(&[]);
    next.restore(at(300), saved, []);
    next.restore_state(at(300), [away.saved()]);
    let orders = next.handle(at(300), of_kind(300, "b", ShownKind::Complete));
    assert!(!channels(&orders).contains(&DeliveryChannel::Desktop), "nothing is known yet, so they are away");
    assert!(next.handle(at(301), locked(true)).is_empty(), "still since then");
    let orders = next.handle(at(400), locked(false));
    assert_eq!(digests(&orders), ["While you were away: 2 done"]);
    let away = next.away_period().expect("it is known");
    let mut third = super::engine(&[]);
    third.restore_state(at(500), [away.saved()]);
    assert!(third.handle(at(500), locked(false)).is_empty(), "they came back before");
}

#[test]
fn a_pane_that_is_shown_to_a_locked_screen_is_not_looked_at() {
    let mut engine = engine(&[]);
    engine.handle(at(0), looks(&["a"]));
    engine.handle(at(1), locked(true));
    engine.handle(at(2), of_kind(2, "a", ShownKind::Complete));
    engine.handle(at(3), of_kind(3, "b", ShownKind::Complete));
    assert_eq!(engine.attention().store().total_unread(), 2);
    let orders = engine.handle(at(4), locked(false));
    assert_eq!(digests(&orders), ["While you were away: 1 done"], "the other one is on the screen now");
    assert_eq!(engine.attention().store().total_unread(), 1);
}

#[test]
fn a_host_without_input_is_away_at_the_deadline_and_back_with_the_next_key() {
    let mut engine = engine(&[]);
    engine.set_preferences(Preferences { away_after: Some(Duration::from_mins(3)), ..preferences(1, &[]) });
    engine.handle(at(1000), Event::Input { host: 1 });
    assert_eq!(engine.next_deadline(at(1000)), Some(Duration::from_secs(181)));
    let orders = engine.handle(at(181_000), Event::Tick);
    assert_eq!(
        orders,
        [Order::SaveState(Box::new(AwayPeriod { since_ms: 181_000, until_ms: None }.saved()))]
    );
    engine.handle(at(182_000), of_kind(182_000, "a", ShownKind::Status));
    assert_eq!(
        digests(&engine.handle(at(183_000), Event::Input { host: 1 })),
        ["While you were away: 1 status"]
    );
    engine.handle(at(184_000), Event::HostGone { host: 1 });
    assert!(engine.handle(at(900_000), Event::Tick).is_empty(), "unknown is present");
}
