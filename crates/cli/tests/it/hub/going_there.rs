//! Going to a surface of a host on the socket: it is asked, and the person learns what came of it.

use serde_json::{Value, json};

use super::environment::{HubEnvironment, Socket};
use crate::background::Background;
use crate::ringer::check;

/// A host that goes to its surface when it is asked to.
fn attach(environment: &HubEnvironment) -> Socket {
    let mut host = environment.connect();
    host.call("host.attach", &json!({ "name": "my-terminal", "can_focus": true }));
    host.call("surface.opened", &json!({ "surface_id": "my:7" }));
    host
}

fn notify(environment: &HubEnvironment, text: &str) {
    check(environment.ringer(&["notify", "--kind", "error", text]).env("RINGER_SURFACE", "my:7"), 0);
}

/// Waits for the order to go there.
#[track_caller]
fn asked(host: &mut Socket) {
    loop {
        let order = host.line().expect("an order");
        if order["event"] == "focus" {
            assert_eq!(order["data"], json!({ "surface_id": "my:7" }));
            return;
        }
    }
}

fn unread(environment: &HubEnvironment) -> usize {
    environment.list(&["--unread"]).len()
}

#[test]
fn what_the_host_went_to_is_read() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    let mut host = attach(&environment);
    notify(&environment, "main is red");
    let jump = Background::start(environment.ringer(&["jump"]));
    asked(&mut host);
    // On the open connection: the hub does not wait long for the host.
    let unread_now = host.call("notification.list", &json!({ "unread": true }))["result"].clone();
    assert_eq!(unread_now.as_array().map(Vec::len), Some(1), "the person is not there yet");
    host.call("surface.focused", &json!({ "surface_id": "my:7" }));
    let (said, exit) = jump.end();
    assert_eq!((said.len(), exit), (1, Some(0)), "{said:?}");
    assert_eq!(unread(&environment), 0);
    // By the surface.
    let mut client = environment.connect();
    client
        .send(&json!({ "id": 1, "method": "surface.focus", "params": { "surface_id": "my:7" } }).to_string());
    asked(&mut host);
    host.call("surface.focused", &json!({ "surface_id": "my:7" }));
    assert_eq!(
        client.line().expect("an answer")["result"],
        json!({ "focused": true, "host": "my-terminal" })
    );
}

#[test]
fn a_host_that_cannot_go_there_is_silent_or_ends_leaves_it_unread() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    let mut host = attach(&environment);
    notify(&environment, "main is red");
    let jump = || Background::start(environment.ringer(&["jump", "--json"]));
    let why = |jump: Background| {
        let (said, exit) = jump.end();
        assert_eq!(exit, Some(69), "{said:?}");
        let answer: Value = serde_json::from_str(&said.concat()).expect("JSON");
        answer["focus"]["why"].as_str().expect("a reason").to_owned()
    };
    let waits = jump();
    asked(&mut host);
    // An answer about another surface is none.
    host.call("surface.focused", &json!({ "surface_id": "my:8" }));
    host.call("surface.focused", &json!({ "surface_id": "my:7", "why": "its tab was \u{1b}[31mclosed" }));
    assert_eq!(why(waits), "my-terminal: its tab was \u{1b}[31mclosed");
    let waits = jump();
    asked(&mut host);
    let unreachable = json!({ "surface_id": "my:7", "why": "it has no window", "hint": "my-terminal open" });
    host.call("surface.focused", &unreachable);
    let answer: Value = serde_json::from_str(&waits.end().0.concat()).expect("JSON");
    let expected =
        json!({ "focused": false, "why": "my-terminal: it has no window", "hint": "my-terminal open" });
    assert_eq!(answer["focus"], expected);
    let waits = jump();
    asked(&mut host);
    assert_eq!(why(waits), "the program that shows it does not answer");
    let waits = jump();
    asked(&mut host);
    drop(host);
    assert_eq!(why(waits), "the program that shows it has ended");
    assert_eq!(unread(&environment), 1);
    // One that does not offer it is not asked.
    let mut host = environment.connect();
    host.call("host.attach", &json!({ "name": "plain" }));
    host.call("surface.opened", &json!({ "surface_id": "my:7" }));
    assert_eq!(why(jump()), "it is in plain, which cannot bring it to the front");
    let refused = environment.connect().call("surface.focused", &json!({ "surface_id": "my:7" }));
    assert_eq!(refused["error"]["code"], "invalid_request");
}
