//! The desktop, with a bus and a notification server of the test's own.

use std::time::Duration;

use ringer_core::message::ShownKind;
use ringer_deliver::{Desktop, DesktopEvent, Error, MAX_QUEUED, Popup, PopupHandle, PreviousPopup};
use test_support::{DEADLINE, NotificationServer, ServerBehaviour, ServerCall, SessionBus, in_time};
use tokio::sync::mpsc::Receiver;

use crate::wait::{id, popup, until};

const ABLE: &[&str] = &["body", "body-markup", "actions"];

fn desktop(bus: &SessionBus) -> (Desktop, Receiver<DesktopEvent>) {
    Desktop::new(Some(bus.address()), Vec::new(), DEADLINE)
}

async fn show(desktop: &Desktop, popup: Popup) -> PopupHandle {
    in_time("a popup", desktop.show(popup)).await.expect("a popup").handle
}

async fn next(events: &mut Receiver<DesktopEvent>) -> DesktopEvent {
    in_time("an event", events.recv()).await.expect("an event")
}

#[tokio::test]
async fn every_field_as_the_standard_wants_it() {
    let bus = SessionBus::start();
    let mut server = NotificationServer::start(&bus.address(), ServerBehaviour::Normal, ABLE).await;
    let (desktop, _events) = desktop(&bus);
    let hostile = Popup {
        title: "Claude\x1b[31m Code".to_owned(),
        subtitle: "repo".to_owned(),
        body: "<b>rm</b> & more\x07".to_owned(),
        kind: ShownKind::Error,
        ..popup("a", "ws:1")
    };
    let shown = show(&desktop, hostile).await;
    assert_eq!(shown.number, 1);
    let told = server.next_popup().await;
    assert_eq!((told.app.as_str(), told.replaces, told.expire), ("Ringer", 0, -1));
    assert_eq!((told.icon.as_str(), told.summary.as_str()), ("dialog-error", "Claude[31m Code"));
    assert_eq!(told.body, "repo\n&lt;b&gt;rm&lt;/b&gt; &amp; more");
    assert_eq!(told.actions, ["default", "Show"]);
    let text = |name: &str| told.hints[name].downcast_ref::<&str>().expect("text").to_owned();
    assert_eq!(told.hints["urgency"].downcast_ref::<u8>().expect("a byte"), 1);
    assert_eq!(text("category"), "x-ringer.error");
    assert_eq!(text("desktop-entry"), "ringer");
    assert_eq!(text("x-dunst-stack-tag"), "ws:1");
    assert_eq!(told.hints.len(), 4);
}

#[tokio::test]
async fn only_what_must_be_answered_is_critical_and_stays() {
    let bus = SessionBus::start();
    let mut server = NotificationServer::start(&bus.address(), ServerBehaviour::Normal, ABLE).await;
    let (desktop, _events) = desktop(&bus);
    for kind in ShownKind::all() {
        show(&desktop, Popup { kind, ..popup("a", kind.as_str()) }).await;
        let told = server.next_popup().await;
        let urgency = told.hints["urgency"].downcast_ref::<u8>().expect("a byte");
        let expected = match kind {
            ShownKind::Question | ShownKind::Permission => (2, 0),
            ShownKind::Idle | ShownKind::Status => (0, -1),
            _ => (1, -1),
        };
        assert_eq!((urgency, told.expire), expected, "{kind}");
    }
}

#[tokio::test]
async fn a_simple_server_gets_no_actions_and_no_markup() {
    let bus = SessionBus::start();
    let mut server = NotificationServer::start(&bus.address(), ServerBehaviour::Normal, &["body"]).await;
    let (desktop, _events) = desktop(&bus);
    show(&desktop, Popup { body: "a < b".to_owned(), ..popup("a", "s") }).await;
    let told = server.next_popup().await;
    assert!(told.actions.is_empty());
    assert_eq!(told.body, "a < b");
}

#[tokio::test]
async fn a_newer_popup_replaces_even_across_a_restart_of_the_hub() {
    let bus = SessionBus::start();
    let mut server = NotificationServer::start(&bus.address(), ServerBehaviour::Normal, ABLE).await;
    let (first, _events) = desktop(&bus);
    let shown = show(&first, popup("a", "s1")).await;
    show(&first, popup("b", "s2")).await;
    assert_eq!(show(&first, popup("c", "s1")).await, shown);
    for expected in [0, 0, 1] {
        assert_eq!(server.next_popup().await.replaces, expected);
    }
    drop(first);

    let known = vec![PreviousPopup { key: "s1".to_owned(), id: id("c"), handle: shown.clone(), offer: None }];
    let (second, _events) = Desktop::new(Some(bus.address()), known.clone(), DEADLINE);
    assert_eq!(show(&second, popup("d", "s1")).await, shown);
    assert_eq!(server.next_popup().await.replaces, 1);

    let (third, _events) = Desktop::new(Some(bus.address()), known, DEADLINE);
    in_time("an answer", third.withdraw(id("c"))).await.expect("the server was told");
    assert!(
        matches!(server.next_call().await, ServerCall::Close(1)),
        "known from before, never shown by this one"
    );
}

#[tokio::test]
async fn withdrawing_comes_after_showing_and_only_once() {
    let bus = SessionBus::start();
    let mut server = NotificationServer::start(&bus.address(), ServerBehaviour::Normal, ABLE).await;
    let (desktop, _events) = desktop(&bus);
    let other = desktop.clone();
    let showing = tokio::spawn(async move { show(&other, popup("a", "s1")).await });
    // The popup is queued before the withdrawal.
    tokio::task::yield_now().await;
    drop(desktop.withdraw(id("a")));
    drop(desktop.withdraw(id("a")));
    drop(desktop.withdraw(id("never shown")));
    showing.await.expect("shown");
    show(&desktop, popup("b", "s2")).await;
    assert_eq!(server.next_popup().await.summary, "Claude Code");
    assert!(matches!(server.next_call().await, ServerCall::Close(1)));
    assert_eq!(server.next_popup().await.replaces, 0, "and nothing in between");
}

#[tokio::test]
async fn what_the_person_does_is_told_and_what_time_does_is_not() {
    let bus = SessionBus::start();
    let server = NotificationServer::start(&bus.address(), ServerBehaviour::Normal, ABLE).await;
    let (desktop, mut events) = desktop(&bus);
    for (name, key) in [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")] {
        show(&desktop, popup(name, key)).await;
    }
    server.report_closed(1, 1).await;
    server.report_closed(2, 3).await;
    server.report_closed(77, 2).await;
    server.report_clicked(3, "other", None).await;
    server.report_closed(3, 2).await;
    assert_eq!(next(&mut events).await, DesktopEvent::Dismissed(id("c")));
    server.report_clicked(4, "default", Some("token")).await;
    server.report_clicked(4, "show", None).await;
    assert_eq!(next(&mut events).await, DesktopEvent::Show(id("d"), Some("token".to_owned())));
    assert_eq!(next(&mut events).await, DesktopEvent::Show(id("d"), None));
    // Servers close what was clicked.
    server.report_closed(4, 2).await;
    show(&desktop, popup("e", "5")).await;
    server.report_closed(5, 2).await;
    assert_eq!(next(&mut events).await, DesktopEvent::Dismissed(id("e")), "and not d");
}

#[tokio::test]
async fn closing_the_old_one_at_the_last_moment_does_not_read_the_new_one() {
    let bus = SessionBus::start();
    let server =
        NotificationServer::start(&bus.address(), ServerBehaviour::ClosesBeforeReplacing, ABLE).await;
    let (desktop, mut events) = desktop(&bus);
    show(&desktop, popup("old", "s")).await;
    show(&desktop, popup("new", "s")).await;
    assert_eq!(next(&mut events).await, DesktopEvent::Dismissed(id("old")));
    server.report_closed(1, 2).await;
    assert_eq!(next(&mut events).await, DesktopEvent::Dismissed(id("new")));
}

#[tokio::test]
async fn another_server_has_other_numbers() {
    let bus = SessionBus::start();
    let first = NotificationServer::start(&bus.address(), ServerBehaviour::Normal, ABLE).await;
    let (desktop, mut events) = desktop(&bus);
    let before = show(&desktop, popup("a", "s1")).await;
    first.stop().await;
    let gone = desktop.show(popup("b", "s1")).await;
    assert!(matches!(gone, Err(Error::Desktop(_))), "{gone:?}");

    let mut second = NotificationServer::start(&bus.address(), ServerBehaviour::Normal, &["body"]).await;
    second.report_closed(1, 2).await;
    drop(desktop.withdraw(id("a")));
    let after = show(&desktop, popup("c", "s1")).await;
    assert_ne!(before, after);
    let told = second.next_popup().await;
    assert_eq!(told.replaces, 0, "the first server's number is not this one's");
    assert!(told.actions.is_empty(), "it was asked anew what it can do");
    second.report_closed(1, 2).await;
    assert_eq!(next(&mut events).await, DesktopEvent::Dismissed(id("c")));

    // Nor is it for a hub that was restarted meanwhile.
    let known = vec![PreviousPopup { key: "s1".to_owned(), id: id("a"), handle: before, offer: None }];
    let (restarted, _events) = Desktop::new(Some(bus.address()), known, DEADLINE);
    drop(restarted.withdraw(id("a")));
    show(&restarted, popup("d", "s1")).await;
    assert_eq!(second.next_popup().await.replaces, 0);
}

#[tokio::test]
async fn a_bus_that_went_away_is_found_again() {
    let mut bus = SessionBus::start();
    let server = NotificationServer::start(&bus.address(), ServerBehaviour::Normal, ABLE).await;
    let (desktop, _events) = desktop(&bus);
    show(&desktop, popup("a", "s1")).await;
    bus.stop();
    drop(server);
    until("the bus is missed", async || {
        matches!(in_time("an answer", desktop.show(popup("b", "s1"))).await, Err(Error::NoBus(_)))
    })
    .await;
    bus.restart();
    let mut server = NotificationServer::start(&bus.address(), ServerBehaviour::Normal, ABLE).await;
    show(&desktop, popup("c", "s1")).await;
    assert_eq!(server.next_popup().await.replaces, 0);
}

#[tokio::test]
async fn no_bus_is_told_at_once() {
    for address in [None, Some("unix:path=/nowhere/bus".to_owned()), Some("nonsense".to_owned())] {
        let (desktop, _events) = Desktop::new(address, Vec::new(), DEADLINE);
        let error = in_time("an answer", desktop.show(popup("a", "s"))).await.expect_err("no bus");
        assert!(matches!(error, Error::NoBus(_)), "{error}");
        in_time("an answer", desktop.withdraw(id("a"))).await.expect("nothing to do");
    }
    let bus = SessionBus::start();
    let (desktop, _events) = desktop(&bus);
    let error = in_time("an answer", desktop.show(popup("a", "s"))).await.expect_err("no server");
    assert!(matches!(error, Error::Desktop(_)), "{error}");
    let error = Desktop::describe(&bus.address(), DEADLINE).await.expect_err("no server");
    assert!(matches!(error, Error::Desktop(_)), "{error}");
    let error = Desktop::describe("unix:path=/nowhere/bus", DEADLINE).await.expect_err("no bus");
    assert!(matches!(error, Error::NoBus(_)), "{error}");
}

#[tokio::test]
async fn a_list_of_addresses_is_tried_in_turn() {
    let bus = SessionBus::start();
    let _server = NotificationServer::start(&bus.address(), ServerBehaviour::Normal, ABLE).await;
    let addresses = format!("unix:path=/nowhere/bus;{}", bus.address());
    let (desktop, _events) = Desktop::new(Some(addresses), Vec::new(), DEADLINE);
    show(&desktop, popup("a", "s")).await;
}

#[tokio::test]
async fn a_server_that_hangs_costs_each_caller_its_own_deadline() {
    let bus = SessionBus::start();
    let mut server = NotificationServer::start(&bus.address(), ServerBehaviour::Hangs, ABLE).await;
    let (desktop, _events) = Desktop::new(Some(bus.address()), Vec::new(), Duration::from_secs(2));
    let all = [desktop.show(popup("a", "1")), desktop.show(popup("b", "2")), desktop.show(popup("c", "3"))];
    let [first, second, third] = all;
    let (first, second, third) = in_time("the deadline", async { tokio::join!(first, second, third) }).await;
    for result in [first, second, third] {
        assert!(matches!(result, Err(Error::NoAnswer(_))), "{result:?}");
    }
    assert_eq!(server.next_popup().await.summary, "Claude Code");
    // Those behind it gave up while they waited, and are not shown late.
    server.stop().await;
    let mut well = NotificationServer::start(&bus.address(), ServerBehaviour::Normal, ABLE).await;
    let (patient, _events) = self::desktop(&bus);
    show(&patient, popup("d", "4")).await;
    assert_eq!(well.next_popup().await.replaces, 0);
    assert_eq!(show(&patient, popup("e", "5")).await.number, 2);
}

#[tokio::test]
async fn a_popup_that_comes_too_late_is_taken_back() {
    let bus = SessionBus::start();
    let mut server = NotificationServer::start(&bus.address(), ServerBehaviour::AnswersWhenWoken, ABLE).await;
    // A caller that gives up by itself, and one whose deadline passes.
    let (desktop, _events) = desktop(&bus);
    tokio::select! {
        result = desktop.show(popup("a", "1")) => panic!("{result:?}"),
        told = server.next_popup() => assert_eq!(told.replaces, 0),
    }
    server.wake();
    assert!(matches!(server.next_call().await, ServerCall::Close(1)));

    let (hasty, _events) = Desktop::new(Some(bus.address()), Vec::new(), Duration::from_secs(2));
    let result = in_time("the deadline", hasty.show(popup("b", "2"))).await;
    assert!(matches!(result, Err(Error::NoAnswer(_))), "{result:?}");
    assert_eq!(server.next_popup().await.replaces, 0);
    server.wake();
    assert!(matches!(server.next_call().await, ServerCall::Close(2)));
}

#[tokio::test]
async fn a_full_queue_is_reported_in_time_and_a_hanging_server_holds_up_no_other() {
    let bus = SessionBus::start();
    let mut server = NotificationServer::start(&bus.address(), ServerBehaviour::Hangs, ABLE).await;
    let (stuck, _events) = Desktop::new(Some(bus.address()), Vec::new(), Duration::from_secs(4));
    let waiting = stuck.show(popup("a", "1"));
    tokio::pin!(waiting);
    tokio::select! {
        result = &mut waiting => panic!("{result:?}"),
        told = server.next_popup() => assert_eq!(told.replaces, 0),
    }
    for number in 0..MAX_QUEUED {
        drop(stuck.withdraw(id(&number.to_string())));
    }
    let calm = SessionBus::start();
    let _server = NotificationServer::start(&calm.address(), ServerBehaviour::Normal, ABLE).await;
    let (other, _events) = desktop(&calm);
    tokio::select! {
        biased;
        result = &mut waiting => panic!("{result:?}"),
        _ = show(&other, popup("c", "3")) => {}
    }

    let refused = in_time("a refusal", stuck.show(popup("b", "2"))).await;
    assert!(matches!(refused, Err(Error::Busy(_) | Error::NoAnswer(_))), "{refused:?}");
}
