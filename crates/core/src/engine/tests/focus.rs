//! Notifications that the person sees or knows without a popup.

use super::*;
use crate::attention::DesktopSession;
use crate::message::{About, IDLE_PROMPT, PERMISSION_PROMPT};

const POPUP: &str = "Desktop";

/// A notice of an agent, `turn` seconds after the person's prompt.
fn notice(number: u64, kind: Kind, category: Option<&str>, turn: Option<u64>) -> Event {
    let mut incoming = incoming(number, "a", &format!("notice {number}"));
    let draft = &mut incoming.message.draft;
    draft.tag = Tag::Notice(kind);
    draft.category = category.map(str::to_owned);
    draft.key = Some(format!("episode:agent:{number}"));
    draft.about = Some(About { turn_ms: turn.map(|seconds| seconds * 1000), ..About::default() });
    Event::Message(Box::new(incoming))
}

fn done(number: u64, turn: u64) -> Event {
    notice(number, Kind::Complete, None, Some(turn))
}

fn idle(number: u64) -> Event {
    notice(number, Kind::Waiting, Some(IDLE_PROMPT), None)
}

fn with_min_turn() -> Engine {
    let mut engine = engine(&[]);
    let rules = RuleSettings { min_turn: Duration::from_secs(10), ..RuleSettings::default() };
    engine.set_preferences(Preferences { rules, ..Preferences::default() });
    engine
}

fn pops_up(orders: &[Order]) -> bool {
    words(orders).iter().any(|word| word.starts_with(POPUP))
}

fn register(engine: &mut Engine, workspace: &str, reports_focus: bool) {
    let (surface, workspace) = (SurfaceId::new("a"), WorkspaceId::new(workspace));
    engine.handle(at(0), Event::Surface { surface, workspace, tty: None, reports_focus });
}

fn is_read(engine: &Engine, number: u64) -> bool {
    engine.attention().store().get(&id(number)).unwrap().is_read
}

fn has_step(engine: &Engine, number: u64, cause: &Cause) -> bool {
    engine.attention().store().get(&id(number)).unwrap().trail.steps().any(|step| step.cause == *cause)
}

#[test]
fn looking_marks_read_but_an_open_permission_stays_open() {
    let mut engine = engine(&[]);
    engine.handle(at(0), notice(1, Kind::Waiting, Some(PERMISSION_PROMPT), None));
    assert_eq!(words(&engine.handle(at(1), looks(&["a"]))), ["withdraw 1", "ring a false", "badge 0"]);
    let store = engine.attention().store();
    assert!(store.get(&id(1)).unwrap().is_read && store.needs_person().count() == 1);
    // The same for a notification that arrives while they look.
    engine.handle(at(2), notice(2, Kind::Question, None, None));
    assert_eq!(engine.attention().store().needs_person().count(), 2);
    assert!(is_read(&engine, 2) && has_step(&engine, 2, &Cause::InView));
}

#[test]
fn two_clients_may_look_at_two_panes() {
    let mut engine = engine(&[]);
    engine.handle(at(0), looks(&["a", "b"]));
    assert_eq!(words(&engine.handle(at(1), message(1, "a", "x")))[..2], ["withdraw 1", "ring a true"]);
    assert_eq!(words(&engine.handle(at(1), message(2, "b", "y")))[..2], ["withdraw 2", "ring b true"]);
    engine.handle(at(2), looks(&["b"]));
    assert!(pops_up(&engine.handle(at(600), message(3, "a", "z"))));
}

#[test]
fn a_glance_reads_what_happened_before_it_and_nothing_later() {
    let mut engine = engine(&[]);
    let happened = |number, surface, unix_ms| {
        let mut incoming = incoming(number, surface, &format!("notice {number}"));
        incoming.message.unix_ms = unix_ms;
        incoming.message.draft.category = Some(PERMISSION_PROMPT.to_owned());
        Event::Message(Box::new(incoming))
    };
    let glanced = |at_ms| Event::Glanced { surface: SurfaceId::new("a"), at_ms };
    engine.handle(at(0), happened(1, "a", 100));
    engine.handle(at(0), happened(2, "b", 100));
    assert!(pops_up(&engine.handle(at(600), happened(3, "a", 101))));
    // The answer of a slow terminal.
    engine.handle(at(601), glanced(100));
    assert_eq!([1, 2, 3].map(|number| is_read(&engine, number)), [true, false, false]);
    engine.handle(at(602), glanced(101));
    assert!(is_read(&engine, 3));
    assert!(pops_up(&engine.handle(at(1200), happened(4, "a", 102))), "they may have gone since");
    let locked = DesktopSession { is_locked: true, is_idle: false, reports_idle: false };
    engine.handle(at(1201), Event::Desktop(Some(locked)));
    engine.handle(at(1202), glanced(200));
    assert!(!is_read(&engine, 4), "they are away");
}

#[test]
fn looking_counts_only_while_the_person_is_present() {
    let mut engine = engine(&[]);
    let shows = |present| {
        let view = View { client: "main".to_owned(), surface: SurfaceId::new("a") };
        Event::Looks { host: 1, views: vec![view], present, by_person: true }
    };
    engine.handle(at(0), shows(false));
    assert!(pops_up(&engine.handle(at(1), message(1, "a", "x"))));
    assert!(!is_read(&engine, 1));
    engine.handle(at(2), shows(true));
    assert!(is_read(&engine, 1), "they are back, and see it");
}

#[test]
fn what_changes_without_the_person_does_not_bring_them_back() {
    let shows = |by_person| {
        let view = View { client: "main".to_owned(), surface: SurfaceId::new("a") };
        Event::Looks { host: 1, views: vec![view], present: true, by_person }
    };
    let idle = Event::Desktop(Some(DesktopSession { is_locked: false, is_idle: true, reports_idle: true }));
    for (by_person, is_away) in [(false, true), (true, false)] {
        let mut engine = engine(&[]);
        engine.handle(at(0), idle.clone());
        engine.handle(at(10), message(1, "a", "x"));
        engine.handle(at(20), shows(by_person));
        assert_eq!(!is_read(&engine, 1), is_away, "by the person: {by_person}");
    }
}

#[test]
fn a_host_that_is_gone_shows_nothing() {
    let mut engine = engine(&[]);
    engine.handle(at(0), looks(&["a"]));
    engine.handle(at(1), Event::Looks { host: 1, views: Vec::new(), present: true, by_person: true });
    assert!(pops_up(&engine.handle(at(2), message(1, "a", "x"))));
}

#[test]
fn what_the_person_marks_unread_stays_unread_while_they_look() {
    let mut engine = engine(&[]);
    engine.handle(at(0), looks(&["a"]));
    engine.handle(at(1), message(1, "a", "x"));
    engine.handle(at(2), Event::Mark { id: id(1), read: false });
    engine.handle(at(3), looks(&["a"]));
    assert!(!is_read(&engine, 1), "the host only says the same again");
    engine.handle(at(4), looks(&[]));
    engine.handle(at(5), looks(&["a"]));
    assert!(is_read(&engine, 1));
}

#[test]
fn looking_reads_what_came_before_the_surface_moved() {
    let mut engine = engine(&[]);
    engine.handle(at(0), message(1, "a", "x"));
    register(&mut engine, "elsewhere", false);
    engine.handle(at(1), message(2, "a", "y"));
    engine.handle(at(2), looks(&["a"]));
    assert!(is_read(&engine, 1) && is_read(&engine, 2));
}

#[test]
fn the_end_of_a_short_turn_makes_no_popup_where_no_host_reports_focus() {
    let mut engine = with_min_turn();
    let orders = engine.handle(at(0), done(1, 9));
    assert!(!pops_up(&orders) && words(&orders).contains(&"Command 1".to_owned()), "{orders:?}");
    assert!(!is_read(&engine, 1));
    assert!(has_step(&engine, 1, &Cause::ShortTurn { turn_ms: 9000, min_turn_ms: 10_000 }));
    assert!(pops_up(&engine.handle(at(600), done(2, 10))));
    register(&mut engine, "w", true);
    assert!(pops_up(&engine.handle(at(1200), done(3, 9))), "it is known that they look elsewhere");
}

#[test]
fn an_idle_agent_tells_what_the_end_of_the_turn_did_not() {
    let mut engine = with_min_turn();
    assert!(pops_up(&engine.handle(at(0), done(1, 60))));
    assert!(!pops_up(&engine.handle(at(60_000), idle(2))));
    assert!(!is_read(&engine, 2) && has_step(&engine, 2, &Cause::TurnShown));
    // A short turn, which had no popup.
    assert!(!pops_up(&engine.handle(at(70_000), done(3, 5))));
    assert!(pops_up(&engine.handle(at(130_000), idle(4))));
    // A turn that ended while they looked.
    engine.handle(at(140_000), looks(&["a"]));
    engine.handle(at(150_000), done(5, 60));
    engine.handle(at(151_000), looks(&[]));
    assert!(pops_up(&engine.handle(at(210_000), idle(6))));
}

#[test]
fn a_popup_that_no_channel_could_show_is_none() {
    let mut engine = with_min_turn();
    engine.handle(at(0), done(1, 60));
    for channel in [DeliveryChannel::Desktop, DeliveryChannel::Terminal] {
        let result = Err("no session bus".to_owned());
        engine.handle(at(1), Event::Delivered { id: id(1), channel, result, popup: None });
    }
    assert!(pops_up(&engine.handle(at(60_000), idle(2))));
}

#[test]
fn after_a_restart_it_is_known_whether_the_turn_had_a_popup() {
    let mut before = with_min_turn();
    before.handle(at(0), done(1, 60));
    let saved = before.attention().store().get(&id(1)).unwrap().clone();
    let saved: Record = serde_json::from_str(&serde_json::to_string(&saved).unwrap()).unwrap();
    let mut after = with_min_turn();
    after.restore(at(1), [saved], []);
    assert!(!pops_up(&after.handle(at(60_000), idle(2))));
}
