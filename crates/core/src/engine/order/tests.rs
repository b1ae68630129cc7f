use std::collections::BTreeSet;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::*;
use crate::agent::{Authority, BlockedOn, SignalContent};
use crate::attention::{AwayPeriod, DesktopSession, ReadReason};
use crate::engine::FeatureValue;
use crate::message::{Draft, Kind, Mark, MessageOrigin, Recipient, Scope, Sender, Tag};
use crate::policy::{AgentContext, HookInputContext, HookInputText, HookPatch, MuteTarget};
use crate::toast::{Colour, Priority, SourceNotification, ToastSpan};

/// A delivery is saved, and a newer hub resumes it.
#[test]
fn a_saved_delivery_keeps_its_field_names() {
    let saved = r#"{"id":"0190b6a0-0000-7000-8000-000000000000","place":{"workspace":"w"},"way":"desktop","title":"",
        "subtitle":"","body":"done","kind":"complete","sender":"a1","replaces":null}"#;
    let delivery: Delivery = serde_json::from_str(saved).unwrap();
    assert_eq!(delivery.channel, DeliveryChannel::Desktop);
    assert_eq!(serde_json::to_value(&delivery).unwrap()["way"], "desktop");
}

/// Checks that each value survives a round trip through JSON, and that every variant has a value.
#[track_caller]
fn check_round_trips<T>(values: &[T])
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let mut checked = BTreeSet::new();
    for value in values {
        let text = serde_json::to_string(value).unwrap();
        assert_eq!(serde_json::from_str::<T>(&text).unwrap(), *value, "{text}");
        checked.extend(text.split('"').nth(1).map(str::to_owned));
    }
    // The error for an unknown variant lists all variants in backquotes, after the unknown one.
    let error = serde_json::from_str::<T>(r#""none of them""#).unwrap_err().to_string();
    let variants: BTreeSet<String> = error.split('`').skip(3).step_by(2).map(str::to_owned).collect();
    assert_eq!(checked, variants);
}

fn id() -> MessageId {
    MessageId::new(1, [0; 10])
}

fn surface() -> SurfaceId {
    SurfaceId::new("s")
}

fn workspace() -> WorkspaceId {
    WorkspaceId::new("w")
}

fn place() -> Place {
    Place::surface(workspace(), surface())
}

fn agent() -> Agent {
    Agent::new("a1").unwrap()
}

fn signals() -> Vec<Signal> {
    let contents = [
        SignalContent::Alive,
        SignalContent::Notified,
        SignalContent::Interrupted,
        SignalContent::State(crate::agent::AgentState::Blocked(BlockedOn::Question)),
    ];
    let signal = |content| Signal {
        authority: Authority::Title,
        content,
        text: Some("\u{7}\"ä\"\n".to_owned()),
        pending: true,
        running: 2,
        call: Some("Bash-1".to_owned()),
        by_person: true,
        turn: Some("t1".to_owned()),
        kind: Some(Kind::Error),
    };
    contents.into_iter().map(signal).collect()
}

/// A message with every field set.
fn message(tag: Tag, recipient: Recipient) -> Message {
    let mut draft = Draft::tagged(Scope::global(), Sender::system(), tag, "line\nline \u{1b}[0m");
    draft.recipient = recipient;
    draft.title = Some("title".to_owned());
    draft.subtitle = Some("subtitle".to_owned());
    draft.category = Some("idle_prompt".to_owned());
    draft.question_id = Some(QuestionId::new(1, 2));
    draft.key = Some("key".to_owned());
    draft.ttl = Some(Duration::from_millis(1500));
    draft.origin = MessageOrigin { surface: Some("s".to_owned()), ..MessageOrigin::default() };
    Message { seq: i64::MAX, id: id(), unix_ms: -1, draft, machine: Some("other".to_owned()) }
}

fn toast() -> Toast {
    Toast {
        spans: vec![ToastSpan { text: "limit".to_owned(), colour: Colour::Error }],
        timeout: Duration::from_millis(1),
        invalidates: vec!["other".to_owned()],
        fold: Some(|_, newer| newer.clone()),
        ..Toast::new("key", Priority::Immediate, "")
    }
}

fn notified() -> TerminalSignal {
    TerminalSignal::Notified(TerminalNotification {
        title: Some("t".to_owned()),
        body: "b".to_owned(),
        kind: Some(Kind::Error),
        id: Some("a".to_owned()),
        ttl_ms: Some(7),
        icon: Some("error".to_owned()),
    })
}

#[test]
fn an_event_that_is_saved_can_be_read_back() {
    let recipients = ["default", "lead", "person", "all", "agent:lead"];
    let recipients = recipients.map(|word| Recipient::parse(word).unwrap());
    let incoming = |tag, recipient| {
        let caller = Caller {
            workspace: Some(workspace()),
            surface: Some(surface()),
            tty: Some("/dev/pts/1".to_owned()),
            prefer_tty: true,
        };
        let message = message(tag, recipient);
        Event::Message(Box::new(IncomingMessage { message, caller, is_subagent: true, pending: true }))
    };
    let patch: HookPatch =
        serde_json::from_str(r#"{"notification":{"title":"t"},"effects":{"sound":false},"stop":true}"#)
            .unwrap();
    let mut events: Vec<Event> =
        recipients.into_iter().map(|recipient| incoming(Tag::Notice(Kind::Error), recipient)).collect();
    let marks = [
        Mark::Read,
        Mark::Unread,
        Mark::Clear,
        Mark::Answer,
        Mark::Undo,
        Mark::Snooze,
        Mark::Mute,
        Mark::Unmute,
    ];
    events.extend(marks.map(|mark| incoming(Tag::Mark(mark), Recipient::Default)));
    let terminal = signals().into_iter().map(TerminalSignal::Agent).chain([TerminalSignal::Bell, notified()]);
    events.extend(terminal.map(|signal| Event::TerminalSignal { surface: surface(), signal, report: None }));
    let withdrawn = TerminalSignal::Withdrawn { id: "i".to_owned() };
    events.push(Event::TerminalSignal { surface: surface(), signal: withdrawn, report: None });
    events.push(Event::TerminalSignal {
        surface: surface(),
        signal: TerminalSignal::Bell,
        report: Some(id()),
    });
    let channels = DeliveryChannel::ALL.into_iter();
    events.extend(channels.map(|channel| Event::Delivered {
        popup: None,
        id: id(),
        channel,
        result: Ok("sent".to_owned()),
    }));
    events.extend([
        Event::HookAnswered { ticket: Ticket(u64::MAX), answer: HookAnswer::Patched(patch) },
        Event::HookAnswered { ticket: Ticket(0), answer: HookAnswer::Failed("exit 1".to_owned()) },
        Event::Surface {
            surface: surface(),
            workspace: workspace(),
            tty: Some("/dev/pts/1".to_owned()),
            reports_focus: true,
        },
        Event::SurfaceGone(surface()),
        Event::SurfaceClosed(surface()),
        Event::AgentOnSurface { surface: surface(), agent: Some((agent(), true)) },
        Event::AgentOnSurface { surface: surface(), agent: None },
        Event::Looks {
            host: 7,
            views: vec![View { client: "main".to_owned(), surface: surface() }],
            present: true,
            by_person: false,
        },
        Event::Glanced { surface: surface(), at_ms: 7 },
        Event::Presence { host: 7, present: Some(false) },
        Event::Presence { host: 7, present: None },
        Event::Input { host: 7 },
        Event::HostGone { host: 7 },
        Event::Desktop(None),
        Event::Desktop(Some(DesktopSession { is_locked: true, is_idle: false, reports_idle: true })),
        Event::Read(place()),
        Event::ReadAll,
        Event::Mark { id: id(), read: true },
        Event::MarkUnread(Place::workspace(workspace())),
        Event::Activity(place()),
        Event::Restored(place()),
        Event::Remove(id()),
        Event::RemoveRead,
        Event::Clear(place()),
        Event::ClearAll,
        Event::QuestionClosed { question: QuestionId::new(1, 2), by: ReadReason::ClosedUnanswered },
        Event::Delivered {
            popup: None,
            id: id(),
            channel: DeliveryChannel::Desktop,
            result: Err("no answer".to_owned()),
        },
        Event::AddTrailStep { id: id(), cause: Cause::InView },
        Event::Observed(Observation::new("settings", "broken")),
        Event::Toast(toast()),
        Event::RemoveToast("key".to_owned()),
        Event::Tick,
    ]);
    check_round_trips(&events);
}

#[test]
fn an_order_that_is_saved_can_be_read_back() {
    let hook_input =
        HookInput::new(HookInputText::default(), HookInputContext::default(), AgentContext::default());
    let hook = HookIdentity { id: "h".to_owned(), digest: "d".to_owned(), revision: 3 };
    let message = message(Tag::Notice(Kind::Question), Recipient::Default);
    let mut record = Record::of(&message).unwrap();
    record.trail.add(5, Cause::Expired);
    let delivery = Delivery {
        id: id(),
        place: place(),
        channel: DeliveryChannel::Webhook,
        title: "t".to_owned(),
        subtitle: String::new(),
        body: "b".to_owned(),
        kind: ShownKind::Stuck,
        sender: "a1".to_owned(),
        replaces: Some(id()),
        icon: Some("error".to_owned()),
    };
    let append = |category: Option<&str>| Order::AppendToJournal {
        surface: surface(),
        notification: TerminalNotification { body: "b".to_owned(), ..TerminalNotification::default() },
        category: category.map(str::to_owned),
        report: category.map(|_| id()),
    };
    let mut orders: Vec<Order> = signals()
        .into_iter()
        .map(|signal| Order::ApplySignal { surface: surface(), agent: Some(agent()), signal })
        .collect();
    orders.extend([
        Order::RunHook { ticket: Ticket(7), hook, hook_input: Box::new(hook_input) },
        Order::WithdrawFromTerminal { surface: surface(), id: "i".to_owned(), report: Some(id()) },
        Order::SaveState(Box::new(AwayPeriod { since_ms: 1, until_ms: Some(2) }.saved())),
        Order::SaveState(Box::new(MuteTarget::Workspace(workspace()).removal())),
        Order::SaveRecord { record: Box::new(record), is_new: true },
        Order::DeleteRecord(id()),
        Order::AddTrailStep { id: id(), cause: Cause::Cleared },
        append(Some("bell")),
        append(None),
        Order::Deliver(Box::new(delivery)),
        Order::Withdraw(id()),
        Order::Ring { place: place(), ring: Some(Ring::default()) },
        Order::Badge { workspace: workspace(), badge: Badge(100) },
        Order::Flash(place()),
        Order::Reorder(workspace()),
        Order::ShowToast(Some(toast())),
        Order::ShowToast(None),
        Order::Indicator { key: "k".to_owned(), text: "t".to_owned() },
        Order::NotifyOfSource(SourceNotification {
            source: "s".to_owned(),
            title: "t".to_owned(),
            text: "x".to_owned(),
        }),
        Order::ReportHook { hook: "h".to_owned(), failure: Some("exit 1".to_owned()) },
    ]);
    check_round_trips(&orders);
}
