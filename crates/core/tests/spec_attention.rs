//! The sentences of 30-attention.md about the whole line, through the engine's public face. Tests are named after them.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use ringer_core::attention::Cause;
use ringer_core::engine::{Caller, IncomingMessage, Ticket, View};
use ringer_core::message::{Place, SurfaceId, WorkspaceId};
use ringer_core::policy::{
    DeliveryChannel, Effects, Hook, HookAnswer, HookIdentity, HookInput, HookPatch, Mute, OnFailure,
    RuleSettings,
};
use ringer_core::time::{DailySpan, TimeOfDay};
use ringer_core::{Draft, Engine, Event, Kind, Message, MessageId, Now, Order, Preferences, Scope, Sender};

fn at(ms: u64) -> Now {
    let wall_ms = i64::try_from(ms).expect("not long");
    Now { mono: Duration::from_millis(ms), wall_ms, local: TimeOfDay::default() }
}

fn id(number: u64) -> MessageId {
    MessageId::new(number, [0; 10])
}

fn pane(surface: &str) -> Place {
    Place::surface(WorkspaceId::new("w"), SurfaceId::new(surface))
}

fn incoming(number: u64, surface: &str, body: &str) -> IncomingMessage {
    let sender = Sender::new("agent").expect("a name");
    let draft = Draft::new(Scope::global(), sender, Kind::Waiting, body).expect("a draft");
    let message = Message { seq: 1, id: id(number), unix_ms: 0, draft, machine: None };
    let caller = Caller { surface: Some(SurfaceId::new(surface)), ..Caller::default() };
    IncomingMessage { message, caller, is_subagent: false, pending: false }
}

fn message(number: u64, surface: &str, body: &str) -> Event {
    Event::Message(Box::new(incoming(number, surface, body)))
}

fn looking(present: bool, surface: &str) -> Event {
    let view = View { client: "main".to_owned(), surface: SurfaceId::new(surface) };
    Event::Looks { host: 1, views: vec![view], present, by_person: true }
}

fn hook(id: &str) -> Hook {
    let identity = HookIdentity { id: id.to_owned(), digest: format!("digest of {id}"), revision: 1 };
    Hook { identity, config_path: None, on_failure: OnFailure::Keep, trusted: true, scope: None }
}

fn engine(preferences: Preferences) -> Engine {
    let mut engine = Engine::new(preferences);
    for surface in ["a", "b", "c"] {
        let (surface, workspace) = (SurfaceId::new(surface), WorkspaceId::new("w"));
        engine.handle(at(0), Event::Surface { surface, workspace, tty: None, reports_focus: false });
    }
    engine
}

fn hook_chains(hooks: Vec<Hook>) -> Engine {
    engine(Preferences { hooks: hooks.into(), ..Preferences::default() })
}

fn asked(orders: &[Order]) -> Vec<(Ticket, HookInput)> {
    let asked = orders.iter().filter_map(|order| match order {
        Order::RunHook { ticket, hook_input, .. } => Some((*ticket, (**hook_input).clone())),
        _ => None,
    });
    asked.collect()
}

fn patched(ticket: Ticket, json: &str) -> Event {
    let patch: HookPatch = serde_json::from_str(json).expect("a patch");
    Event::HookAnswered { ticket, answer: HookAnswer::Patched(patch) }
}

fn ways(orders: &[Order]) -> Vec<DeliveryChannel> {
    let ways = orders.iter().filter_map(|order| match order {
        Order::Deliver(delivery) => Some(delivery.channel),
        _ => None,
    });
    ways.collect()
}

fn trail(engine: &Engine, number: u64) -> Vec<String> {
    let record = engine.attention().store().get(&id(number)).expect("it is remembered");
    record.trail.steps().map(|step| step.cause.to_string()).collect()
}

#[test]
fn coalescing_never_removes_a_message_it_only_says_that_a_newer_one_is_shown() {
    let mut engine = hook_chains(vec![hook("slow")]);
    engine.handle(at(0), message(1, "a", "one"));
    engine.handle(at(600), message(2, "a", "two"));
    let orders = engine.handle(at(1200), message(3, "a", "three"));
    let said = orders.iter().find_map(|order| match order {
        Order::AddTrailStep { id, cause } => Some((id.clone(), cause.to_string())),
        _ => None,
    });
    let (which, text) = said.expect("the one that made way says so");
    assert_eq!(which, id(2));
    assert!(text.contains("newer") && text.contains(id(3).as_str()), "{text}");
    let mut undecided: Vec<MessageId> = engine.undecided_ids().cloned().collect();
    undecided.sort();
    assert_eq!(undecided, [id(1), id(3)]);
}

#[test]
fn a_request_has_the_place_the_text_the_sender_and_the_focus() {
    let mut engine =
        hook_chains(vec![Hook { config_path: Some("/etc/ringer.toml".to_owned()), ..hook("triage") }]);
    let mut one = incoming(1, "a", "body");
    one.message.draft.title = Some("title".to_owned());
    one.message.draft.subtitle = Some("subtitle".to_owned());
    one.message.draft.category = Some("permission_prompt".to_owned());
    one.message.draft.origin.cwd = Some("/src".to_owned());
    one.pending = true;
    engine.handle(at(0), looking(true, "b"));
    let (_, hook_input) = asked(&engine.handle(at(1), Event::Message(Box::new(one)))).remove(0);
    let text = hook_input.notification;
    assert_eq!((text.workspace_id.as_str(), text.surface_id.as_deref()), ("w", Some("a")));
    assert_eq!(
        (text.title.as_str(), text.subtitle.as_str(), text.body.as_str()),
        ("title", "subtitle", "body")
    );
    let context = hook_input.context;
    assert_eq!((context.cwd.as_deref(), context.hook_id.as_deref()), (Some("/src"), Some("triage")));
    assert_eq!(context.config_path.as_deref(), Some("/etc/ringer.toml"));
    assert_eq!((context.app_focused, context.focused_panel), (true, false));
    let agent = hook_input.agent;
    assert_eq!(
        (agent.kind.as_deref(), agent.category.as_deref()),
        (Some("waiting"), Some("permission_prompt"))
    );
    assert_eq!((agent.pending, agent.is_subagent), (true, false));
    let (_, seen) = asked(&engine.handle(at(2), message(2, "b", "in view"))).remove(0);
    assert!(seen.context.app_focused && seen.context.focused_panel);
    engine.handle(at(3), looking(false, "c"));
    let (_, away) = asked(&engine.handle(at(4), message(3, "c", "out of view"))).remove(0);
    assert!(!away.context.app_focused && !away.context.focused_panel);
}

#[test]
fn built_in_rules_come_first_then_the_hook_programs() {
    let rules = RuleSettings {
        mute: vec![Mute { agent: Some("agent".to_owned()), ..Mute::default() }],
        quiet_hours: vec![DailySpan::parse("00:00-01:00").expect("a span")],
        ..RuleSettings::default()
    };
    let mut engine =
        engine(Preferences { rules, hooks: vec![hook("triage")].into(), ..Preferences::default() });
    let (ticket, hook_input) = asked(&engine.handle(at(0), message(1, "a", "x"))).remove(0);
    assert_eq!(hook_input.effects, Effects { record: true, ..Effects::NONE });
    // A hook has the last word.
    let orders = engine.handle(at(1), patched(ticket, r#"{"effects":{"sound":true}}"#));
    assert_eq!(ways(&orders), [DeliveryChannel::Sound]);
    let mut of_subagent = incoming(2, "b", "y");
    of_subagent.is_subagent = true;
    let orders = engine.handle(at(2), Event::Message(Box::new(of_subagent)));
    assert!(asked(&orders).is_empty(), "what is silenced for good is not worth a program");
    assert!(engine.attention().store().get(&id(2)).is_none());
}

#[test]
fn each_effect_switches_its_own_and_a_recorded_notification_makes_no_toast() {
    let check = |patch: &str, remembered: bool, unread: usize, flashes: bool, expect: &[DeliveryChannel]| {
        let mut engine = hook_chains(vec![hook("h")]);
        let (ticket, _) = asked(&engine.handle(at(0), message(1, "a", "x"))).remove(0);
        let orders = engine.handle(at(1), patched(ticket, patch));
        assert_eq!(engine.attention().store().get(&id(1)).is_some(), remembered, "{patch}");
        assert_eq!(engine.attention().store().total_unread(), unread, "{patch}");
        assert_eq!(orders.iter().any(|order| matches!(order, Order::Flash(_))), flashes, "{patch}");
        assert!(engine.toast().is_none(), "{patch}");
        assert_eq!(ways(&orders), expect, "{patch}");
        assert!(!orders.iter().any(|order| matches!(order, Order::Reorder(_))), "not turned on: {patch}");
    };
    let all = [
        DeliveryChannel::Desktop,
        DeliveryChannel::Sound,
        DeliveryChannel::Command,
        DeliveryChannel::Webhook,
    ];
    check("{}", true, 1, true, &all);
    check(r#"{"effects":{"record":false}}"#, false, 0, false, &all);
    check(r#"{"effects":{"markUnread":false}}"#, true, 0, true, &all);
    check(r#"{"effects":{"paneFlash":false}}"#, true, 1, false, &all);
    check(
        r#"{"effects":{"desktop":false}}"#,
        true,
        1,
        true,
        &[DeliveryChannel::Sound, DeliveryChannel::Command, DeliveryChannel::Webhook],
    );
    check(
        r#"{"effects":{"sound":false}}"#,
        true,
        1,
        true,
        &[DeliveryChannel::Desktop, DeliveryChannel::Command, DeliveryChannel::Webhook],
    );
    check(
        r#"{"effects":{"command":false}}"#,
        true,
        1,
        true,
        &[DeliveryChannel::Desktop, DeliveryChannel::Sound],
    );
}

#[test]
fn a_patch_of_a_hook_changes_what_is_remembered_and_sent() {
    let mut engine = hook_chains(vec![hook("h")]);
    let (ticket, _) = asked(&engine.handle(at(0), message(1, "a", "x"))).remove(0);
    let patch = r#"{"notification":{"title":"T","subtitle":"S","body":"B","workspaceId":"other"}}"#;
    let orders = engine.handle(at(1), patched(ticket, patch));
    let record = engine.attention().store().get(&id(1)).expect("remembered");
    assert_eq!(
        (record.title.as_deref(), record.subtitle.as_deref(), &*record.body),
        (Some("T"), Some("S"), "B")
    );
    assert_eq!(record.place, pane("a"), "ids in a patch are ignored");
    let sent = orders.iter().any(|order| {
        matches!(order, Order::Deliver(sent) if sent.title == "T" && sent.subtitle == "S" && sent.body == "B")
    });
    assert!(sent);
}

#[test]
fn an_untrusted_hook_is_skipped_and_a_toast_says_so() {
    let mut engine = hook_chains(vec![Hook { trusted: false, ..hook("theirs") }]);
    let orders = engine.handle(at(0), message(1, "a", "x"));
    assert!(asked(&orders).is_empty() && engine.attention().store().get(&id(1)).is_some());
    let toast = engine.toast().expect("it says so");
    assert!(toast.text().contains("theirs") && toast.text().contains("ringer trust"), "{}", toast.text());
}

#[test]
fn a_ring_shows_only_when_rings_are_enabled() {
    let mut engine = engine(Preferences { no_rings: true, ..Preferences::default() });
    let mut orders = engine.handle(at(0), message(1, "a", "x"));
    orders.extend(engine.handle(at(1), looking(true, "b")));
    orders.extend(engine.handle(at(2), message(2, "b", "in view")));
    assert!(!orders.iter().any(|order| matches!(order, Order::Ring { .. })));
    assert!(orders.iter().any(|order| matches!(order, Order::Badge { .. })), "the number is no ring");
}

#[test]
fn the_setting_of_rings_alters_those_that_are_lit() {
    let mut engine = engine(Preferences::default());
    engine.handle(at(0), message(1, "a", "x"));
    let rings = |engine: &Engine| engine.lit_rings().count();
    assert_eq!(rings(&engine), 1);
    for (no_rings, lit) in [(true, 0), (false, 1)] {
        engine.set_preferences(Preferences { no_rings, ..Preferences::default() });
        let orders = engine.redraw_rings(at(1));
        assert!(matches!(&orders[..], [Order::Ring { .. }]), "{orders:?}");
        assert_eq!(rings(&engine), lit);
    }
    assert!(engine.redraw_rings(at(2)).is_empty());
}

#[test]
fn every_action_does_what_the_table_says_and_withdraws_what_was_delivered() {
    let check = |action: Event, withdrawn: &[u64], unread: usize, left: usize| {
        let mut engine = engine(Preferences::default());
        engine.handle(at(0), message(1, "a", "one"));
        engine.handle(at(1), message(2, "b", "two"));
        let name = format!("{action:?}");
        let orders = engine.handle(at(2), action);
        let mut taken: Vec<MessageId> = orders
            .iter()
            .filter_map(|order| match order {
                Order::Withdraw(id) => Some(id.clone()),
                _ => None,
            })
            .collect();
        taken.sort();
        assert_eq!(taken, withdrawn.iter().map(|number| id(*number)).collect::<Vec<_>>(), "{name}");
        let store = engine.attention().store();
        assert_eq!((store.total_unread(), store.len()), (unread, left), "{name}");
        let forgotten = orders.iter().filter(|order| matches!(order, Order::DeleteRecord(_))).count();
        assert_eq!(forgotten, 2 - left, "{name}: what is off the list is written so");
        // A delivery in flight does not fall back to another channel.
        for number in withdrawn {
            let failed = Event::Delivered {
                popup: None,
                id: id(*number),
                channel: DeliveryChannel::Desktop,
                result: Err("slow".to_owned()),
            };
            assert!(ways(&engine.handle(at(3), failed)).is_empty(), "{name}");
        }
    };
    check(looking(true, "a"), &[1], 1, 2);
    check(Event::Read(pane("a")), &[1], 1, 2);
    check(Event::ReadAll, &[1, 2], 0, 2);
    check(Event::Mark { id: id(1), read: true }, &[1], 1, 2);
    check(Event::Remove(id(1)), &[1], 1, 1);
    check(Event::Clear(pane("a")), &[1], 1, 1);
    check(Event::Clear(Place::workspace(WorkspaceId::new("w"))), &[1, 2], 0, 0);
    check(Event::ClearAll, &[1, 2], 0, 0);
    check(looking(false, "a"), &[], 2, 2);
}

#[test]
fn the_three_other_sources_of_unread_have_lives_of_their_own() {
    let badge = |engine: &Engine| engine.attention().badge(&WorkspaceId::new("w")).0;
    let whole = || Place::workspace(WorkspaceId::new("w"));
    let mut engine = engine(Preferences::default());
    engine.handle(at(0), Event::MarkUnread(pane("a")));
    engine.handle(at(0), Event::Activity(pane("a")));
    engine.handle(at(0), Event::Activity(pane("b")));
    assert_eq!(badge(&engine), 2, "one for each that is set, however many surfaces");
    engine.handle(at(1), message(1, "a", "x"));
    assert_eq!(badge(&engine), 2, "a notification ends the mark, and counts itself");
    engine.handle(at(2), Event::Mark { id: id(1), read: true });
    assert_eq!(badge(&engine), 1, "activity stays");
    engine.handle(at(3), Event::MarkUnread(pane("a")));
    engine.handle(at(4), Event::Read(whole()));
    assert_eq!(badge(&engine), 0, "the person reads the workspace");
}

#[test]
fn what_is_still_stored_as_unread_is_not_counted_again_when_it_is_restored() {
    let badge = |engine: &Engine| engine.attention().badge(&WorkspaceId::new("w")).0;
    let mut engine = engine(Preferences::default());
    engine.handle(at(0), message(1, "a", "exit status 3"));
    engine.handle(at(1), Event::Restored(pane("a")));
    assert_eq!(badge(&engine), 1);
    engine.handle(at(2), Event::Read(pane("a")));
    assert_eq!(badge(&engine), 0);
    engine.handle(at(3), Event::Restored(pane("a")));
    assert_eq!(badge(&engine), 1, "nothing else says so");
}

#[test]
fn a_surface_that_is_closed_keeps_its_notifications_and_nothing_else_that_is_unread() {
    let badge = |engine: &Engine| engine.attention().badge(&WorkspaceId::new("w")).0;
    let mut engine = engine(Preferences::default());
    engine.handle(at(0), message(1, "a", "exit status 3"));
    engine.handle(at(1), Event::Activity(pane("a")));
    engine.handle(at(1), Event::Restored(pane("b")));
    engine.handle(at(2), Event::SurfaceGone(SurfaceId::new("a")));
    engine.handle(at(2), Event::SurfaceGone(SurfaceId::new("b")));
    assert_eq!(badge(&engine), 3, "their host may come back with them");
    let orders = engine.handle(at(3), Event::SurfaceClosed(SurfaceId::new("b")));
    assert!(
        orders.iter().any(|order| matches!(order, Order::Badge { badge, .. } if badge.0 == 2)),
        "{orders:?}"
    );
    engine.handle(at(3), Event::SurfaceClosed(SurfaceId::new("a")));
    assert_eq!((badge(&engine), engine.attention().store().total_unread()), (1, 1));
}

#[test]
fn in_view_nothing_pops_up_or_sounds_and_elsewhere_in_the_workspace_everything_does() {
    for (app, surface, expect) in [
        (true, "a", vec![DeliveryChannel::Command, DeliveryChannel::Webhook]),
        (
            true,
            "b",
            vec![
                DeliveryChannel::Desktop,
                DeliveryChannel::Sound,
                DeliveryChannel::Command,
                DeliveryChannel::Webhook,
            ],
        ),
        (
            false,
            "a",
            vec![
                DeliveryChannel::Desktop,
                DeliveryChannel::Sound,
                DeliveryChannel::Command,
                DeliveryChannel::Webhook,
            ],
        ),
    ] {
        let mut engine = engine(Preferences::default());
        engine.handle(at(0), looking(app, surface));
        assert_eq!(ways(&engine.handle(at(1), message(1, "a", "x"))), expect, "{app} {surface}");
    }
}

#[test]
fn every_decision_is_appended_to_the_trail() {
    let rules = RuleSettings {
        quiet_hours: vec![DailySpan::parse("00:00-01:00").expect("a span")],
        ..RuleSettings::default()
    };
    let mut engine =
        engine(Preferences { rules, hooks: vec![hook("triage")].into(), ..Preferences::default() });
    let (ticket, _) = asked(&engine.handle(at(1), message(1, "a", "x"))).remove(0);
    engine.handle(at(2), patched(ticket, r#"{"effects":{"desktop":false,"command":true}}"#));
    let done = Event::Delivered {
        popup: None,
        id: id(1),
        channel: DeliveryChannel::Command,
        result: Ok("ran".to_owned()),
    };
    engine.handle(at(3), done);
    let check = |steps: Vec<String>, expect: &[&str]| {
        let found: Vec<Option<usize>> =
            expect.iter().map(|part| steps.iter().position(|step| step.contains(part))).collect();
        assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{found:?} in {steps:?}");
    };
    // Where it rings, the rule, the hook, what was decided, the channel and its result.
    check(
        trail(&engine, 1),
        &["in its pane", "quiet hours", "hook triage", "channels: command", "command: ran"],
    );
    engine.handle(at(4), looking(true, "a"));
    let (ticket, _) = asked(&engine.handle(at(600), message(2, "a", "y"))).remove(0);
    engine.handle(at(601), patched(ticket, r#"{"effects":{"command":true}}"#));
    check(
        trail(&engine, 2),
        &["hook triage", "you are looking at it", "channels: command; webhook (listed as read)"],
    );
}

#[test]
fn what_outlived_its_worth_before_it_arrived_is_not_shown() {
    let mut one = incoming(1, "a", "x");
    one.message.draft.ttl = Some(Duration::from_millis(10));
    let mut engine = engine(Preferences::default());
    let orders = engine.handle(at(10), Event::Message(Box::new(one.clone())));
    assert!(matches!(&orders[..], [Order::AddTrailStep { cause: Cause::Expired, .. }]), "{orders:?}");
    assert!(!ways(&engine.handle(at(9), Event::Message(Box::new(one)))).is_empty());
}
