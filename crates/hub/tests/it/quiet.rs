//! What the person does not want to see now.

use std::time::Duration;

use ringer_core::attention::{Record, Trail};
use ringer_core::message::{Mark, Tag};
use ringer_core::{Draft, Kind, MessageId};
use ringer_ipc::{HubClient, HubClientError};
use ringer_journal::{HubChanges, IdSource};
use serde_json::{Value, json};
use test_support::{DEADLINE, WebRequest, WebResponse, serve};

use crate::hub::{TestHub, draft};

/// A moment from now, in milliseconds since 1970.
fn soon(milliseconds: i64) -> i64 {
    IdSource::now().unix_ms + milliseconds
}

#[test]
fn a_hub_with_nothing_else_to_do_stays_until_a_snoozed_notification_came_back() {
    let hub = TestHub::ending("", None, Duration::from_millis(50));
    let id = hub.send("later");
    let snoozed = hub.call("notification.snooze", &json!({ "id": id, "until_unix_ms": soon(3000) }));
    assert_eq!(snoozed["is_read"], true, "{snoozed}");
    hub.wait_for_end();
    let record = hub.memory().notification(id.as_str()).expect("readable").expect("stored");
    assert_eq!(
        (record.is_read, record.snoozed_until.get()),
        (false, None),
        "it came back before the hub ended"
    );
}

/// A notification whose time came while no hub ran.
fn overdue(hub: &mut TestHub) -> MessageId {
    let id = hub.send("later");
    hub.call("notification.snooze", &json!({ "id": id, "until_unix_ms": soon(60_000) }));
    hub.end();
    let mut store = hub.memory();
    let record = store.notification(id.as_str()).expect("readable").expect("stored");
    assert!(record.is_read && !record.snoozed_until.is_none(), "{record:?}");
    let record = Record { snoozed_until: Some(soon(-1)).into(), trail: Trail::default(), ..record };
    store.commit(&HubChanges { records: vec![record], ..HubChanges::default() }).expect("written");
    id
}

#[test]
fn what_is_overdue_comes_back_once_when_the_next_hub_starts() {
    let mut hub = TestHub::start("");
    let id = overdue(&mut hub);
    hub.begin();
    hub.wait_for_step(&id, "came back");
    hub.end();
    hub.begin();
    let came_back = hub.trail(&id).into_iter().filter(|step| step.starts_with("came back")).count();
    assert_eq!((came_back, hub.is_read(&id)), (1, false));
}

#[test]
fn what_was_resolved_while_no_hub_ran_does_not_come_back() {
    let mut hub = TestHub::start("");
    let id = overdue(&mut hub);
    hub.append(&Draft { tag: Tag::Mark(Mark::Read), key: Some(id.to_string()), ..draft("x") });
    hub.begin();
    let trail = hub.wait_for_step(&id, "marked read");
    assert!(!trail.iter().any(|step| step.starts_with("came back")), "{trail:?}");
}

#[test]
fn the_socket_says_what_cannot_be_snoozed() {
    let hub = TestHub::start("");
    let check = |params: &Value, code: &str| {
        let refused = HubClient::connect(hub.home())
            .and_then(|mut client| client.call("notification.snooze", params))
            .expect_err("refused");
        let HubClientError::Refused(refusal) = refused else { panic!("{refused}") };
        assert_eq!(refusal.code, code, "{refusal:?}");
    };
    assert_eq!(hub.call("notification.snooze", &json!({ "until_unix_ms": soon(60_000) })), Value::Null);
    let id = hub.send("x");
    check(&json!({ "id": id, "until_unix_ms": 5 }), "invalid_params");
    check(&json!({ "id": id }), "invalid_params");
    hub.mark_read(&id);
    check(&json!({ "id": id, "until_unix_ms": soon(60_000) }), "resolved");
    check(
        &json!({ "id": "01997a3e-0a1b-7c2d-8e3f-0123456789ab", "until_unix_ms": soon(60_000) }),
        "not_found",
    );
    let urgent = hub.send("unread");
    let snoozed = hub.call("notification.snooze", &json!({ "until_unix_ms": soon(60_000) }));
    assert_eq!(snoozed["id"], urgent.as_str(), "the only unread one");
    assert!(snoozed["snoozed_until"].is_string(), "{snoozed}");
}

#[test]
fn the_socket_tells_what_is_muted_and_when_that_changes() {
    let mut hub = TestHub::start("");
    let events = hub.follow("mute");
    let until = soon(60_000);
    let set = json!({ "agent": "ci", "until_unix_ms": until, "allow": ["question"] });
    let muted = hub.call("mute.set", &set);
    assert_eq!((&muted[0]["agent"], &muted[0]["until_unix_ms"]), (&json!("ci"), &json!(until)), "{muted}");
    assert_eq!((&muted[0]["allow"], muted[0]["until"].is_string()), (&json!(["question"]), true));
    events.next("what is muted", |data| data["muted"] == muted);
    hub.call("mute.set", &json!({ "workspace_id": "repo:global" }));
    hub.end();
    hub.begin();
    let muted = hub.call("mute.list", &json!({}));
    assert_eq!(
        (&muted[1]["workspace"], &muted[1]["until"]),
        (&json!("repo:global"), &Value::Null),
        "{muted}"
    );
    let id = hub.send("x");
    hub.wait_for_step(&id, "you muted repo:global");
    assert!(!hub.is_read(&id));
    let undone = hub.call("notification.undo", &json!({}));
    assert_eq!(undone["undone"], "mute", "{undone}");
    assert_eq!(hub.call("mute.list", &json!({})).as_array().map(Vec::len), Some(1));
    assert_eq!(hub.call("mute.remove", &json!({})), json!([]), "every one");
    for wrong in [
        json!({}),
        json!({ "agent": "" }),
        json!({ "agent": "a", "all": true }),
        json!({ "all": true, "until_unix_ms": 5 }),
        json!({ "all": true, "allow": ["shouting"] }),
    ] {
        let refused = HubClient::connect(hub.home()).and_then(|mut client| client.call("mute.set", &wrong));
        let Err(HubClientError::Refused(refusal)) = refused else { panic!("{wrong}: {refused:?}") };
        assert_eq!(refusal.code, "invalid_params", "{wrong}");
    }
}

/// A hub with a webhook for when the person is away.
fn with_away_webhook(escalate_after: &str) -> (TestHub, std::sync::mpsc::Receiver<WebRequest>) {
    let (address, sent) = serve(vec![WebResponse::Status("200 OK"); 4]);
    let notify = format!("[notify]\npopup = \"off\"\nescalate_after = \"{escalate_after}\"\n");
    let webhook =
        format!("[[webhook]]\nid = \"phone\"\nkind = \"json\"\nurl = \"{address}/x\"\nwhen = \"away\"\n");
    (TestHub::start(&format!("{notify}{webhook}")), sent)
}

fn error(body: &str) -> Draft {
    Draft { tag: Tag::Notice(Kind::Error), ..draft(body) }
}

#[test]
fn what_stays_open_is_sent_to_the_webhook_for_when_the_person_is_away() {
    let (mut hub, sent) = with_away_webhook("1s");
    let done = hub.send("done");
    let id = hub.append(&error("broken"));
    let request = sent.recv_timeout(DEADLINE).expect("a request");
    assert!(request.body.contains("broken"), "{request:?}");
    hub.wait_for_step(&id, "away-webhook: sent to phone");
    assert!(hub.trail(&id).iter().any(|step| step.starts_with("still open after")), "{:?}", hub.trail(&id));
    assert!(!hub.trail(&done).iter().any(|step| step.contains("webhook")), "it can wait");
    hub.end();
    hub.begin();
    let escalated = hub.trail(&id).into_iter().filter(|step| step.contains("escalated")).count();
    assert_eq!(escalated, 1, "the next hub does not send it again");
}

#[test]
fn a_host_that_says_that_the_person_is_away_makes_it_go_out_at_once() {
    let (hub, sent) = with_away_webhook("1h");
    let id = hub.append(&error("broken"));
    hub.wait_for_step(&id, "channels: none");
    let mut host = HubClient::connect(hub.home()).expect("a hub");
    host.call("host.attach", &json!({ "name": "scripted" })).expect("attached");
    host.call("surface.views", &json!({ "views": [], "present": false })).expect("told");
    assert!(sent.recv_timeout(DEADLINE).expect("a request").body.contains("broken"), "what was open");
    let trail = hub.wait_for_step(&id, "you are away: escalated");
    assert!(!trail.iter().any(|step| step.starts_with("still open")), "{trail:?}");
    hub.append(&error("broken, too"));
    assert!(sent.recv_timeout(DEADLINE).expect("a request").body.contains("broken, too"), "what arrives");
}
