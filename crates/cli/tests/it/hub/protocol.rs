//! The socket, as a script in another language speaks to it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use super::environment::HubEnvironment;

#[test]
fn a_request_is_a_line_and_so_is_the_answer() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    let mut socket = environment.connect();
    assert_eq!(
        socket.ask(r#"{"method":"ping"}"#),
        json!({ "id": null, "ok": true, "result": { "pong": true } })
    );
    let unknown = socket.call("notification.dance", &Value::Null);
    assert_eq!(
        (&unknown["ok"], &unknown["error"]["code"]),
        (&false.into(), &"unknown_method".into()),
        "{unknown}"
    );
    let more = r#"{"id":7,"method":"ping","params":{"x":1},"jsonrpc":"2.0"}"#;
    assert_eq!(socket.ask(more)["ok"], true, "unknown fields are ignored");
    assert_eq!(socket.ask("{")["error"]["code"], "parse_error");
    assert_eq!(socket.ask("[]")["error"]["code"], "invalid_request");
    assert_eq!(socket.ask(r#"{"id":1}"#)["error"]["code"], "invalid_request");
    socket.send("");
    socket.send(r#"{"id":[1,"a"],"method":"ping"}"#);
    assert_eq!(socket.line().expect("an answer")["id"], json!([1, "a"]), "an empty line is none");
    let names = socket.call("hub.methods", &Value::Null);
    for method in names["result"].as_array().expect("names") {
        let method = method.as_str().expect("a name");
        if ["hub.stop", "events.subscribe"].contains(&method) {
            continue;
        }
        // Whatever it is given, each of them answers, and the hub lives on.
        for params in [json!(null), json!([1]), json!({ "id": 7, "surface_id": [], "text": {} })] {
            let answer = socket.call(method, &params);
            assert!(answer["ok"].is_boolean(), "{method} {params}: {answer}");
        }
    }
}

#[test]
fn notifications_are_made_over_the_socket_too() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    let mut socket = environment.connect();
    let made = socket.call("notification.create", &json!({ "title": "only a title", "colour": "blue" }));
    assert_eq!(made["ok"], true, "{made}");
    let params =
        json!({ "surface_id": "s1", "workspace_id": "w1", "body": "b", "kind": "question", "from": "x" });
    let made = socket.call("notification.create_for_surface", &params);
    let id = made["result"]["id"].as_str().expect("an id").to_owned();
    let row = &environment.list(&["--limit", "1"])[0];
    assert_eq!(
        (&row["id"], &row["surface"], &row["kind"]),
        (&id.into(), &"s1".into(), &"question".into()),
        "{row}"
    );
    let params = json!({ "preferred_surface_id": "s2", "preferred_workspace_id": "w2", "body": "c" });
    socket.call("notification.create_for_caller", &params);
    assert_eq!(environment.list(&["--limit", "1"])[0]["surface"], "s2");
    for (params, says) in [
        (json!({ "body": "" }), "empty"),
        (json!({ "body": "x", "kind": "party" }), "party"),
        (json!({ "body": "x".repeat(70_000) }), "65536"),
        (json!({ "body": 7 }), "invalid type"),
    ] {
        let refused = socket.call("notification.create", &params);
        assert_eq!(refused["error"]["code"], "invalid_params", "{refused}");
        assert!(refused["error"]["message"].as_str().is_some_and(|why| why.contains(says)), "{refused}");
    }
    let refused = socket.call("notification.create_for_surface", &json!({ "body": "x" }));
    assert_eq!(refused["error"]["message"], "surface_id is missing");

    let rows = socket.call("notification.list", &json!({ "surface_id": "s1" }));
    assert_eq!(rows["result"].as_array().map(Vec::len), Some(1));
    let marked = socket.call("notification.mark_read", &json!({ "surface_id": "s1" }));
    assert_eq!((&marked["result"]["read"], &marked["result"]["unread"]), (&1.into(), &2.into()), "{marked}");
    let refused = socket.call("notification.mark_read", &Value::Null);
    assert_eq!(refused["error"]["code"], "invalid_params");
    let dismissed = socket.call("notification.dismiss", &json!({ "all_read": true }));
    assert_eq!(dismissed["result"]["removed"], 1);
    let workspaces = socket.call("workspace.list", &Value::Null);
    let workspaces = workspaces["result"].as_array().expect("a list");
    assert_eq!(workspaces.iter().filter_map(|own| own["unread"].as_u64()).sum::<u64>(), 2, "{workspaces:?}");
}

#[test]
fn only_the_person_can_get_at_the_socket() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    let presence = environment.presence().expect("a file");
    let socket = Path::new(presence["socket"].as_str().expect("a path"));
    let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(socket), mode(socket.parent().expect("a directory"))), (0o600, 0o700));
    for name in ["hub.json", "hub.log", "ringer.db"] {
        assert_eq!(mode(&environment.base.home().join(name)) & 0o077, 0, "{name}");
    }
}
