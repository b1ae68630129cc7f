//! Following what happens: `ringer watch` and `events.subscribe`.

use serde_json::{Value, json};

use super::environment::{HubEnvironment, kill};
use crate::ringer::check;

#[test]
fn what_happens_is_told_as_it_happens() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    let watch = environment.watch(&["--after", "0", "--event", "notification"]);
    let id = environment.notify(&["hello"]);
    let event = watch.message();
    assert_eq!(
        (&event["event"], &event["data"]["id"]),
        (&"notification.created".into(), &id.as_str().into())
    );
    assert!(event["seq"].is_u64() && event["unix_ms"].is_i64(), "{event}");
    environment.run(&["read", &id]);
    let updated = watch.message();
    assert_eq!(
        (&updated["event"], &updated["data"]["is_read"]),
        (&"notification.updated".into(), &true.into())
    );
    environment.run(&["clear", &id]);
    let removed = watch.message();
    assert_eq!((&removed["event"], &removed["data"]["id"]), (&"notification.removed".into(), &id.into()));
}

#[test]
fn a_notification_is_created_once_however_many_ways_out_it_takes() {
    let environment = HubEnvironment::with_settings("[notify]\ncommand = [\"true\"]\npopup = \"off\"\n");
    environment.run(&["hub", "start"]);
    let watch = environment.watch(&["--after", "0", "--event", "notification"]);
    let id = environment.notify(&["hello"]);
    let events = [watch.message(), watch.message()];
    assert!(events.iter().all(|event| event["data"]["id"] == id.as_str()), "{events:?}");
    let names = events.map(|event| event["event"].clone());
    assert_eq!(
        names,
        ["notification.created", "notification.updated"],
        "it ran its command, and is no other"
    );
}

#[test]
fn what_was_missed_is_replayed_and_the_watch_ends_after_so_many() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    for body in ["a", "b", "c"] {
        environment.notify(&[body]);
        environment.run(&["list"]);
    }
    let events =
        environment.watch(&["--after", "0", "--event", "notification.created", "--max", "3"]).messages();
    let bodies: Vec<&Value> = events.iter().map(|event| &event["data"]["body"]).collect();
    assert_eq!(bodies, ["a", "b", "c"]);
    let after = events[0]["seq"].to_string();
    let events =
        environment.watch(&["--after", &after, "--event", "notification.created", "--max", "2"]).messages();
    assert_eq!(events.iter().map(|event| &event["data"]["body"]).collect::<Vec<_>>(), ["b", "c"]);
    let all = environment.watch(&["--after", "0", "--max", "4"]).messages();
    let numbers: Vec<u64> = all.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(numbers, [1, 2, 3, 4], "without a gap");
    assert_eq!(environment.run(&["watch", "--max", "0"]), "");
}

#[test]
fn a_gap_is_told() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    environment.notify(&["hello"]);
    environment.run(&["list"]);
    // A number of another hub.
    let mut watch = environment.ringer(&["watch", "--after", "100000", "--max", "1"]);
    let (out, err) = check(&mut watch, 0);
    assert!(err.contains("some older events are no longer kept"), "{err}");
    assert!(out.contains("\"seq\":1,"), "everything that is kept is replayed: {out}");

    let mut socket = environment.connect();
    let answer = socket.call("events.subscribe", &json!({ "after_seq": 0 }));
    assert_eq!((&answer["result"]["gap"], &answer["result"]["subscribed"]), (&false.into(), &true.into()));
    // More than is kept, from several: each may send so many at once. In pieces, because answers have to be read.
    for connection in 0..45 {
        let mut other = environment.connect();
        for number in 0..100 {
            let text = format!("{connection} {number}");
            let params = json!({ "key": "k", "priority": "immediate", "text": text });
            other.send(&json!({ "method": "toast.add", "params": params }).to_string());
        }
        for _ in 0..100 {
            assert_eq!(other.line().expect("an answer")["ok"], true);
        }
    }
    let answer = environment.connect().call("events.subscribe", &json!({ "after_seq": 0 }));
    assert_eq!(answer["result"]["gap"], true, "{answer}");
}

#[test]
fn a_watch_ends_with_its_hub() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    let watch = environment.watch(&["--after", "0"]);
    environment.notify(&["hello"]);
    assert_eq!(watch.message()["seq"], 1);
    kill(environment.hub());
    let (_, exit) = watch.end();
    assert!(exit.is_some(), "it ended by itself");
}

#[test]
fn one_surface_is_followed() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    let watch =
        environment.watch(&["--after", "0", "--surface", "ws:a", "--event", "agent", "--event", "surface"]);
    let mut hub = environment.connect();
    let mut heard = |surface: &str, says: &Value| {
        let signal = json!({ "authority": "title", "says": says, "text": null, "pending": false });
        let params = json!({ "surface_id": surface, "signal": signal });
        assert_eq!(hub.call("surface.heard", &params)["ok"], true);
    };
    let is = |state: &str| json!({ "is": { "state": state } });
    heard("ws:b", &is("ready"));
    for says in [is("ready"), is("working"), json!("turn_ended")] {
        heard("ws:a", &says);
        let signal = watch.message();
        assert_eq!((&signal["event"], &signal["data"]["signal"]["says"]), (&json!("surface.heard"), &says));
        let agent = watch.message();
        assert_eq!(
            (&agent["event"], &agent["data"]["surface"]),
            (&json!("agent"), &json!("ws:a")),
            "{agent}"
        );
        let state = says["is"]["state"].as_str().unwrap_or("done");
        assert_eq!(agent["data"]["state"], state);
    }
}
