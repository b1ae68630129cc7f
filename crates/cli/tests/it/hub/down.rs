//! With no hub: what can be done all the same, and what the next hub makes of it.

use std::process::Command;

use serde_json::{Value, json as value};

use super::environment::{HubEnvironment, kill};
use crate::ringer::{check, json};

fn off(environment: &HubEnvironment, arguments: &[&str]) -> Command {
    let mut command = environment.ringer(arguments);
    command.env("RINGER_HUB", "off");
    command
}

fn bodies(environment: &HubEnvironment, arguments: &[&str]) -> Vec<String> {
    let (out, _) = check(&mut off(environment, &[&["list", "--json"], arguments].concat()), 0);
    let rows = json(&out);
    rows.as_array()
        .expect("a list")
        .iter()
        .map(|row| row["body"].as_str().expect("a text").to_owned())
        .collect()
}

#[test]
fn marks_wait_for_the_next_hub() {
    let environment = HubEnvironment::new();
    let ids: Vec<String> = ["a", "b", "c"].iter().map(|body| environment.notify(&[body])).collect();
    environment.settled_hub();
    environment.run(&["read", &ids[2]]);
    kill(environment.hub());

    check(&mut off(&environment, &["read", &ids[0]]), 0);
    check(&mut off(&environment, &["clear", &ids[1]]), 0);
    check(&mut off(&environment, &["unread", &ids[2]]), 0);
    let (_, complaint) = check(&mut off(&environment, &["read", "01997a3e-0a1b-7c2d-8e3f-0123456789ab"]), 65);
    assert!(complaint.contains("unknown notification"), "{complaint}");
    let (_, complaint) = check(&mut off(&environment, &["read", "--surface", "tty:/dev/pts/1@1"]), 65);
    assert!(complaint.contains("unknown surface"), "{complaint}");

    environment.run(&["hub", "start"]);
    let rows: Vec<(Value, Value)> =
        environment.list(&[]).iter().map(|row| (row["body"].clone(), row["is_read"].clone())).collect();
    assert_eq!(rows, [(value!("c"), value!(false)), (value!("a"), value!(true))]);
}

#[test]
fn the_list_without_a_hub_has_what_came_since() {
    let environment = HubEnvironment::new();
    assert_eq!(bodies(&environment, &[]), Vec::<String>::new());
    let taken = environment.notify(&["taken"]);
    environment.settled_hub();
    environment.run(&["read", &taken]);
    kill(environment.hub());
    let waiting = check(&mut off(&environment, &["notify", "--json", "waiting"]), 0).0;
    assert_eq!(bodies(&environment, &[]), ["waiting", "taken"]);
    assert_eq!(bodies(&environment, &["--unread"]), ["waiting"]);
    assert_eq!(bodies(&environment, &["--all"]), ["waiting", "taken"]);

    let why = |id: &str| json(&check(&mut off(&environment, &["why", id, "--json"]), 0).0);
    let id = json(&waiting)["id"].as_str().expect("an id").to_owned();
    assert_eq!((&why(&id)["taken"], &why(&id)["notification"]), (&false.into(), &Value::Null));
    let (words, _) = check(&mut off(&environment, &["why", &id]), 0);
    assert!(words.contains("not processed by the hub yet; start it with: ringer hub start"), "{words}");
    assert_eq!(why(&taken)["notification"]["is_read"], true, "what the last hub wrote down is there");
    assert!(why(&taken)["trail"].as_array().is_some_and(|trail| trail.len() >= 3));
}

#[test]
fn a_mark_on_a_message_that_no_hub_has_seen_counts_when_one_comes() {
    let environment = HubEnvironment::new();
    let sent = check(&mut off(&environment, &["notify", "--json", "early"]), 0).0;
    let id = json(&sent)["id"].as_str().expect("an id").to_owned();
    check(&mut off(&environment, &["read", &id]), 0);
    environment.run(&["hub", "start"]);
    assert_eq!(environment.bodies(&[]), ["early"]);
    assert!(environment.bodies(&["--unread"]).is_empty());
}

#[test]
fn everything_is_cleared_without_a_hub() {
    let environment = HubEnvironment::new();
    check(&mut off(&environment, &["notify", "a"]), 0);
    check(&mut off(&environment, &["clear", "--all"]), 0);
    check(&mut off(&environment, &["notify", "b"]), 0);
    environment.run(&["hub", "start"]);
    assert_eq!(environment.bodies(&[]), ["b"], "only what came before it");
    assert_eq!(environment.bodies(&["--all"]), ["b", "a"]);
}
