//! The rules of the engine, one by one.

mod away;
mod bursts;
mod escalation;
mod focus;
mod hooks;
mod machines;
mod marks;
mod muting;
mod snooze;
mod terminal_signals;
mod undo;

use std::time::Duration;

use super::*;
use crate::agent::Signal;
use crate::engine::{Caller, TerminalSignal};
use crate::message::{Draft, Kind, Mark, Message, Scope, Sender, SurfaceId, Tag};
use crate::policy::{HookAnswer, HookIdentity, OnFailure};
use crate::time::TimeOfDay;

fn at(ms: u64) -> Now {
    let wall_ms = i64::try_from(ms).unwrap();
    Now { mono: Duration::from_millis(ms), wall_ms, local: TimeOfDay::default() }
}

fn id(number: u64) -> MessageId {
    MessageId::new(number, [0; 10])
}

fn place(surface: &str) -> Place {
    Place::surface(WorkspaceId::new("w"), SurfaceId::new(surface))
}

/// A command of the person, as it is in the journal.
fn mark(mark: Mark, target: &str, body: &str) -> Event {
    let mut incoming = incoming(99, "a", "x");
    incoming.message.draft.tag = Tag::Mark(mark);
    incoming.message.draft.key = Some(target.to_owned());
    body.clone_into(&mut incoming.message.draft.body);
    Event::Message(Box::new(incoming))
}

fn incoming(number: u64, surface: &str, body: &str) -> IncomingMessage {
    let draft = Draft::new(Scope::global(), Sender::new("agent").unwrap(), Kind::Waiting, body).unwrap();
    let message = Message { seq: 1, id: id(number), unix_ms: 0, draft, machine: None };
    let caller = Caller { surface: Some(SurfaceId::new(surface)), ..Caller::default() };
    IncomingMessage { message, caller, is_subagent: false, pending: false }
}

fn message(number: u64, surface: &str, body: &str) -> Event {
    Event::Message(Box::new(incoming(number, surface, body)))
}

/// The clients of one host show these surfaces, and no others.
fn looks(surfaces: &[&str]) -> Event {
    let view = |surface: &&str| View { client: format!("on {surface}"), surface: SurfaceId::new(surface) };
    Event::Looks { host: 1, views: surfaces.iter().map(view).collect(), present: true, by_person: true }
}

/// Settings of a revision with hooks from the person's own settings.
fn preferences(revision: u64, hooks: &[&str]) -> Preferences {
    let hook = |id: &&str| Hook {
        identity: HookIdentity { id: (*id).to_owned(), digest: format!("digest of {id}"), revision },
        config_path: None,
        on_failure: OnFailure::Keep,
        trusted: true,
        scope: None,
    };
    Preferences { hooks: hooks.iter().map(hook).collect(), ..Preferences::default() }
}

fn engine(hooks: &[&str]) -> Engine {
    let mut engine = Engine::new(preferences(1, hooks));
    for surface in ["a", "b", "c"] {
        let event = Event::Surface {
            surface: SurfaceId::new(surface),
            workspace: WorkspaceId::new("w"),
            tty: None,
            reports_focus: false,
        };
        engine.handle(at(0), event);
    }
    engine
}

/// Orders as short words, without those that only save something.
fn words(orders: &[Order]) -> Vec<String> {
    orders
        .iter()
        .filter_map(|order| {
            Some(match order {
                Order::RunHook { hook, .. } => format!("hook {} of {}", hook.id, hook.revision),
                Order::SaveRecord { .. }
                | Order::AddTrailStep { .. }
                | Order::Flash(_)
                | Order::ReportHook { .. }
                | Order::SaveState(_)
                | Order::ShowToast(_) => {
                    return None;
                }
                Order::AppendToJournal { surface, notification, .. } => {
                    format!("append {surface} {}", notification.body)
                }
                Order::WithdrawFromTerminal { surface, id, .. } => format!("withdraw {surface} {id}"),
                Order::NotifyOfSource(sent) => format!("notify {}", sent.text),
                Order::ApplySignal { surface, signal, .. } => format!("apply {surface} {:?}", signal.content),
                Order::DeleteRecord(id) => format!("forget {}", number(id)),
                Order::Deliver(delivery) => format!("{:?} {}", delivery.channel, number(&delivery.id)),
                Order::Withdraw(id) => format!("withdraw {}", number(id)),
                Order::Ring { place, ring } => {
                    format!("ring {} {}", place.surface.as_ref().unwrap(), ring.is_some())
                }
                Order::Badge { badge, .. } => format!("badge {}", badge.0),
                Order::Reorder(_) => "reorder".to_owned(),
                Order::Indicator { key, .. } => format!("indicator {key}"),
            })
        })
        .collect()
}

fn number(id: &MessageId) -> u64 {
    (0..100).find(|number| self::id(*number) == *id).unwrap()
}

fn tickets(orders: &[Order]) -> Vec<Ticket> {
    orders
        .iter()
        .filter_map(|order| match order {
            Order::RunHook { ticket, .. } => Some(*ticket),
            _ => None,
        })
        .collect()
}

const OUT: [&str; 4] = ["Desktop 1", "Sound 1", "Command 1", "Webhook 1"];

#[test]
fn a_message_rings_and_is_delivered() {
    let mut engine = engine(&[]);
    let orders = words(&engine.handle(at(0), message(1, "a", "needs you")));
    assert_eq!(orders[..2], ["ring a true", "badge 1"]);
    assert_eq!(orders[2..], OUT);
    assert!(engine.toast().is_none(), "toasts are for conditions");
}

#[test]
fn focusing_the_pane_reads_it_and_withdraws_its_popups() {
    let mut engine = engine(&[]);
    engine.handle(at(0), message(1, "a", "needs you"));
    assert_eq!(words(&engine.handle(at(1), looks(&["a"]))), ["withdraw 1", "ring a false", "badge 0"]);
}

#[test]
fn a_notification_in_view_is_read_with_a_brief_ring_and_neither_popup_nor_sound() {
    let mut engine = engine(&[]);
    engine.handle(at(0), looks(&["a"]));
    let orders = words(&engine.handle(at(0), message(1, "a", "done")));
    assert_eq!(orders, ["withdraw 1", "ring a true", "Command 1", "Webhook 1"]);
    assert!(engine.attention().store().get(&id(1)).unwrap().is_read);
    let deadline = engine.next_deadline(at(0)).unwrap();
    assert_eq!(deadline, Duration::from_secs(2));
    assert_eq!(words(&engine.handle(at(2000), Event::Tick)), ["ring a false"]);
}

#[test]
fn a_duplicate_within_the_window_is_dropped_or_replaces_the_earlier_one() {
    let mut engine = engine(&[]);
    engine.handle(at(0), message(1, "a", "needs you"));
    let same = engine.handle(at(100), message(2, "a", "needs you"));
    assert!(
        words(&same).is_empty()
            && matches!(&same[0], Order::AddTrailStep { cause: Cause::Duplicate { .. }, .. })
    );
    let mut richer = incoming(3, "a", "needs you");
    richer.message.draft.title = Some("Claude Code".into());
    let orders = engine.handle(at(200), Event::Message(Box::new(richer)));
    assert!(orders.iter().any(|order| matches!(order, Order::Deliver(d) if d.replaces == Some(id(1)))));
    assert_eq!(engine.attention().store().total_unread(), 1);
}

#[test]
fn a_channel_that_fails_falls_back_to_the_next() {
    let mut engine = engine(&[]);
    engine.handle(at(0), message(1, "a", "needs you"));
    let failed =
        |channel| Event::Delivered { popup: None, id: id(1), channel, result: Err("no session bus".into()) };
    assert_eq!(words(&engine.handle(at(1), failed(DeliveryChannel::Desktop))), ["Terminal 1"]);
    assert!(words(&engine.handle(at(2), failed(DeliveryChannel::Terminal))).is_empty(), "there is no third");
    let trail: Vec<String> = engine
        .attention()
        .store()
        .get(&id(1))
        .unwrap()
        .trail
        .steps()
        .map(|step| step.cause.to_string())
        .collect();
    assert!(trail.iter().any(|step| step.contains("no session bus")), "{trail:?}");
}

#[test]
fn a_delivery_that_fails_after_it_was_read_goes_no_further() {
    let mut engine = engine(&[]);
    engine.handle(at(0), message(1, "a", "needs you"));
    engine.handle(at(1), Event::Read(place("a")));
    let failed = Event::Delivered {
        popup: None,
        id: id(1),
        channel: DeliveryChannel::Desktop,
        result: Err("slow".into()),
    };
    assert!(words(&engine.handle(at(2), failed)).is_empty());
}

#[test]
fn a_newer_one_of_a_surface_withdraws_the_older_once_it_is_shown() {
    let mut engine = engine(&[]);
    engine.handle(at(0), message(1, "a", "first"));
    let newer = words(&engine.handle(at(1000), message(2, "a", "second")));
    assert!(!newer.contains(&"withdraw 1".to_owned()), "a popup that goes and comes back is two");
    assert_eq!(engine.attention.store().total_unread(), 1);
    let shown = Event::Delivered {
        popup: None,
        id: id(2),
        channel: DeliveryChannel::Desktop,
        result: Ok("shown".into()),
    };
    assert_eq!(words(&engine.handle(at(1001), shown)), ["withdraw 1"]);

    // If no popup replaces it, it is withdrawn at once.
    engine.set_preferences(Preferences { popup: PopupMode::Off, ..Preferences::default() });
    let newest = words(&engine.handle(at(2000), message(3, "a", "third")));
    assert_eq!(newest[0], "withdraw 2");
}

#[test]
fn a_message_without_a_surface_rings_in_its_repositorys_workspace() {
    let mut engine = Engine::new(Preferences::default());
    let mut nowhere = incoming(1, "gone", "done");
    nowhere.caller = Caller::default();
    engine.handle(at(0), Event::Message(Box::new(nowhere)));
    assert_eq!(engine.attention().badge(&WorkspaceId::new("repo:global")).0, 1);
}

#[test]
fn marks_are_applied_and_never_shown() {
    let mut engine = engine(&[]);
    engine.handle(at(0), message(1, "a", "needs you"));
    let mut mark = incoming(2, "a", "x");
    mark.message.draft.tag = Tag::Mark(Mark::Read);
    mark.message.draft.key = Some(id(1).to_string());
    let orders = words(&engine.handle(at(1), Event::Message(Box::new(mark))));
    assert_eq!(orders, ["withdraw 1", "ring a false", "badge 0"]);
    assert_eq!(engine.attention().store().len(), 1);
}

#[test]
fn an_answer_closes_its_question() {
    let mut engine = engine(&[]);
    let mut question = incoming(1, "a", "Deploy?");
    let asked = crate::message::QuestionId::new(1, 1);
    question.message.draft.tag = Tag::Notice(Kind::Question);
    question.message.draft.question_id = Some(asked.clone());
    engine.handle(at(0), Event::Message(Box::new(question)));
    engine.handle(at(1000), message(2, "a", "two"));
    assert_eq!(engine.attention().store().total_unread(), 2, "an open question stays");
    assert_eq!(
        words(&engine.handle(at(1001), Event::QuestionClosed { question: asked, by: ReadReason::Answered })),
        ["withdraw 1", "ring a true", "badge 1"]
    );
}

#[test]
fn a_burst_is_drained_sixteen_at_a_time() {
    let mut engine = Engine::new(Preferences::default());
    for number in 0..40 {
        let mut one = incoming(number, "x", "same text");
        one.caller = Caller::default();
        engine.queue.push(
            Place::workspace(WorkspaceId::new("w")),
            Some(ShownKind::Status),
            Candidate {
                incoming: one,
                replaces: None,
                done: Vec::new(),
                others: 0,
                steps: Vec::new(),
                hooks: Arc::default(),
            },
            &engine.fence.clone(),
        );
    }
    for left in [24, 8, 0] {
        engine.handle(at(0), Event::Tick);
        assert_eq!(engine.queue.len(), left);
        let again = engine.next_deadline(at(0)) == Some(Duration::ZERO);
        assert_eq!(again, left > 0, "asks to be called at once");
    }
}

#[test]
fn marks_reach_one_a_place_or_everything() {
    use Mark::{Clear, Read, Unread};

    let after = |mark: Mark, target: &str| {
        let mut engine = engine(&[]);
        for (number, surface) in [(1, "a"), (2, "b")] {
            engine.handle(at(0), message(number, surface, "needs you"));
        }
        let mut one = incoming(9, "a", "x");
        one.message.draft.tag = Tag::Mark(mark);
        one.message.draft.key = Some(target.replace("ID", id(1).as_str()));
        engine.handle(at(1), Event::Message(Box::new(one)));
        (engine.attention.store().total_unread(), engine.attention.store().len())
    };
    assert_eq!(after(Read, "ID"), (1, 2));
    assert_eq!(after(Read, "place:1:wa"), (1, 2));
    assert_eq!(after(Read, "place:1:w"), (0, 2));
    assert_eq!(after(Read, "all"), (0, 2));
    assert_eq!(after(Unread, "ID"), (2, 2));
    assert_eq!(after(Clear, "ID"), (1, 1));
    assert_eq!(after(Clear, "place:1:wb"), (1, 1));
    assert_eq!(after(Clear, "all"), (0, 0));
    assert_eq!(after(Clear, "all-read"), (2, 2));
    assert_eq!(after(Clear, "place:oops"), (2, 2));
}

#[test]
fn a_message_for_an_agent_or_the_lead_does_not_ring_for_the_person() {
    for (to, rings) in
        [("default", true), ("person", true), ("all", true), ("lead", false), ("agent:w1", false)]
    {
        let mut one = incoming(1, "a", "needs you");
        one.message.draft.recipient = crate::message::Recipient::parse(to).unwrap();
        let orders = engine(&[]).handle(at(0), Event::Message(Box::new(one)));
        assert_eq!(orders.iter().any(|order| matches!(order, Order::Deliver(_))), rings, "{to}");
    }
}

#[test]
fn a_message_hours_late_is_recorded_without_a_popup() {
    let mut engine = engine(&[]);
    let orders = engine.handle(at(700_000), message(1, "a", "needs you"));
    assert!(!orders.iter().any(|order| matches!(order, Order::Deliver(_))));
    assert_eq!(engine.attention.store().total_unread(), 1);
}

#[test]
fn a_disabled_channel_is_not_used() {
    let mut engine = engine(&[]);
    let disabled_channels = vec![DeliveryChannel::Sound, DeliveryChannel::Command, DeliveryChannel::Desktop];
    engine.set_preferences(Preferences { disabled_channels, ..Preferences::default() });
    let orders = words(&engine.handle(at(0), message(1, "a", "needs you")));
    let channels: Vec<&String> =
        orders.iter().filter(|word| word.ends_with(" 1") && !word.starts_with("badge")).collect();
    assert_eq!(channels, ["Terminal 1", "Webhook 1"]);
}
