//! The commands that ask the hub for something.

use serde_json::{Value, json};
use test_support::until;

use super::environment::HubEnvironment;
use crate::ringer::{check, check_with_input};

#[test]
fn the_list_has_every_field_and_is_newest_first() {
    let world = HubEnvironment::new();
    world.notify(&["first"]);
    let id = world.notify(&[
        "--type",
        "error",
        "--from",
        "worker-1",
        "--title",
        "Build",
        "--subtitle",
        "main",
        "it is red",
    ]);
    let rows = world.list(&[]);
    assert_eq!(rows.len(), 2);
    let mut row = rows[0].clone();
    let ts = row["ts"].take();
    assert!(ts.as_str().is_some_and(|ts| ts.len() == 24 && ts.ends_with("+0000")), "{ts}");
    let scope = row["scope"].as_str().expect("a scope").to_owned();
    assert_eq!(
        row,
        json!({
            "id": id, "ts": null, "from": "worker-1", "kind": "error", "title": "Build", "subtitle": "main",
            "body": "it is red", "workspace": format!("repo:{scope}"), "surface": null, "scope": scope,
            "is_read": false,
        })
    );
    let words = world.run(&["list"]);
    let lines: Vec<&str> = words.lines().collect();
    assert!(
        lines[0].starts_with("* ") && lines[0].ends_with(&format!("Build: it is red  [{id}]")),
        "{words}"
    );
    assert!(lines[1].contains("system  first"), "{words}");
    assert_eq!(world.bodies(&["--limit", "1"]), ["it is red"]);
    assert_eq!(world.bodies(&["--here"]), ["it is red", "first"]);
    let elsewhere = world.environment.make_repository("elsewhere");
    let out = world.ringer(&["list", "--here", "--json"]).current_dir(elsewhere).output().expect("it runs");
    assert_eq!(out.stdout, b"[]\n");
    world.fails(&["list", "--all", "--unread"], 64);
}

#[test]
fn what_was_sent_is_shown_without_what_could_hurt() {
    let world = HubEnvironment::new();
    world.notify(&["--title", "a\x1b]0;x\x07b", "one\ntwo\x1b[2J"]);
    let words = world.run(&["list"]);
    assert!(!words.contains('\x1b') && !words.contains('\x07') && words.lines().count() == 1, "{words:?}");
}

#[test]
fn a_long_message_keeps_its_id_in_the_list() {
    let world = HubEnvironment::new();
    let id = world.notify(&["--title", &"t".repeat(200), &"x".repeat(5000)]);
    let words = world.run(&["list"]);
    assert!(words.ends_with(&format!("x…  [{id}]\n")), "{words}");
    let question = world.run(&["ask", &"y".repeat(5000)]);
    let log = world.run(&["log"]);
    assert!(log.ends_with(&format!("y… [{}]\n", question.trim())), "{log}");
    let all = world.run(&["list", "--all"]);
    assert!(all.contains(&format!("y… [{}]\n", question.trim())), "{all}");
}

#[test]
fn reading_unreading_and_clearing() {
    let world = HubEnvironment::new();
    let ids: Vec<String> = ["a", "b", "c"].iter().map(|body| world.notify(&[body])).collect();
    assert_eq!(world.run(&["read", &ids[0]]), "1 read\n");
    assert_eq!(world.run(&["read", &ids[0]]), "0 read\n", "it was");
    assert_eq!(world.bodies(&["--unread"]), ["c", "b"]);
    assert_eq!(world.json(&["unread", &ids[0], "--json"]), json!({ "unread": 3 }));
    assert_eq!(world.bodies(&["--unread"]).len(), 3);
    assert_eq!(world.run(&["read", &ids[0], &ids[1]]), "2 read\n");
    assert_eq!(world.run(&["clear", "--all-read"]), "2 removed\n");
    assert_eq!(world.bodies(&[]), ["c"]);
    assert_eq!(world.json(&["clear", &ids[2], "--json"]), json!({ "removed": 1 }));
    assert_eq!(world.run(&["list"]), "No notifications.\n");
    assert_eq!(world.bodies(&["--all"]), ["c", "b", "a"], "the journal keeps them");

    world.notify(&["d"]);
    world.notify(&["e"]);
    assert_eq!(world.json(&["read", "--all", "--json"]), json!({ "read": 2 }));
    world.notify(&["f"]);
    let workspace = world.list(&["--limit", "1"])[0]["workspace"].as_str().expect("one").to_owned();
    assert_eq!(world.run(&["clear", "--workspace", &workspace]), "3 removed\n");
    world.notify(&["g"]);
    assert_eq!(world.run(&["clear", "--all"]), "1 removed\n");
}

#[test]
fn wrong_arguments_end_with_the_code_of_their_kind() {
    let world = HubEnvironment::new();
    let nobody = "01997a3e-0a1b-7c2d-8e3f-0123456789ab";
    world.run(&["hub", "start"]);
    for command in ["read", "unread", "clear"] {
        let complaint = world.fails(&[command], 64);
        assert!(complaint.contains("no notification given"), "{complaint}");
        let complaint = world.fails(&[command, nobody], 65);
        assert!(complaint.contains(&format!("unknown notification {nobody}")), "{complaint}");
        assert!(complaint.contains("ringer list --all"), "{complaint}");
        world.fails(&[command, "no id at all"], 65);
        world.fails(&[command, nobody, "--workspace", "w"], 64);
        let complaint = world.fails(&[command, "--surface", "tty:/dev/pts/999@1"], 65);
        assert!(complaint.contains("unknown surface"), "{complaint}");
    }
    world.fails(&["read", "--all", nobody], 64);
    world.fails(&["unread", "--all"], 64);
    world.fails(&["jump", nobody], 65);
    world.fails(&["why", nobody], 65);
    world.fails(&["why"], 64);
    world.fails(&["toast"], 64);
    let complaint = world.fails(&["toast", "--priority", "urgent", "x"], 64);
    assert!(complaint.contains("immediate, high, medium, low"), "{complaint}");
    world.fails(&["toast", " "], 64);
    world.fails(&["toast", "--remove", "--key", "k", "x"], 64);
    let complaint = world.fails(&["observe", "the weather", "rain"], 64);
    assert!(complaint.contains("unknown source") && complaint.contains("mcp-connectivity"), "{complaint}");
    world.fails(&["observe", "settings", "{ no json"], 65);
    world.fails(&["watch", "--after", "-1"], 64);
    world.fails(&["hub", "dance"], 64);
}

#[test]
fn jumping_picks_the_newest_unread_and_leaves_it_so_where_it_cannot_go() {
    let world = HubEnvironment::new();
    world.run(&["hub", "start"]);
    assert_eq!(world.run(&["jump"]), "No unread notifications.\n");
    assert_eq!(world.json(&["jump", "--json"]), Value::Null);
    let older = world.notify(&["older"]);
    let newer = world.notify(&["newer"]);
    // It came from no terminal, so nothing can be brought to the front, and nobody has seen it.
    let complaint = world.fails(&["jump"], 69);
    assert!(complaint.contains("the notification stays unread: it came from no terminal"), "{complaint}");
    assert!(complaint.contains(&format!("ringer read {newer}")), "{complaint}");
    let (out, _) = check(&mut world.ringer(&["jump", &older, "--json"]), 69);
    let opened = crate::ringer::json(&out);
    assert_eq!((&opened["notification"]["id"], &opened["focus"]["focused"]), (&older.into(), &false.into()));
    assert_eq!(world.bodies(&["--unread"]), ["newer", "older"]);
}

#[test]
fn why_tells_every_step() {
    let world = HubEnvironment::new();
    let id = world.notify(&["--from", "worker-1", "hello"]);
    world.run(&["read", &id]);
    let steps = |answer: &Value| -> Vec<String> {
        let trail = answer["trail"].as_array().expect("a trail").iter();
        trail.map(|step| step["text"].as_str().expect("a text").to_owned()).collect()
    };
    let answer = world.json(&["why", &id, "--json"]);
    let told = steps(&answer);
    assert!(told[0].starts_with("received from worker-1, "), "{told:?}");
    assert!(told.iter().any(|step| step.starts_with("channels: ")), "{told:?}");
    assert!(told.iter().any(|step| step.starts_with("marked read")), "{told:?}");
    assert_eq!((&answer["taken"], &answer["from"]), (&true.into(), &"worker-1".into()));
    let words = world.run(&["why", &id]);
    assert!(
        words.contains(" by worker-1 to you and the lead agent") && words.contains("received from worker-1"),
        "{words}"
    );

    let for_agent = world.notify(&["--to", "worker-9", "just for you"]);
    let answer = world.json(&["why", &for_agent, "--json"]);
    assert_eq!(steps(&answer), ["not shown to you: it is for agent worker-9"]);
    assert_eq!((&answer["notification"], &answer["receipts"][0]["state"]), (&Value::Null, &"queued".into()));
}

#[test]
fn what_claude_code_says_of_its_model_is_told_when_it_changes() {
    let world = HubEnvironment::new();
    let toast = || world.json(&["hub", "status", "--json"])["toast"].clone();
    let redraw = |session: &str, model: &str, fast: bool| {
        let status = json!({"session_id": session, "model": {"display_name": model}, "fast_mode": fast});
        check_with_input(&mut world.ringer(&["statusline", "claude"]), status.to_string().as_bytes());
    };
    // Notes are kept about agents that are known.
    for session in ["aaaaaaaa", "bbbbbbbb"] {
        let begins = json!({"session_id": session, "hook_event_name": "SessionStart", "source": "startup"});
        check_with_input(
            &mut world.ringer(&["hook", "claude", "SessionStart"]),
            begins.to_string().as_bytes(),
        );
    }
    world.run(&["hub", "start"]);
    redraw("aaaaaaaa", "Opus", false);
    world.run(&["hub", "stop"]);
    // Without a hub nothing is told, and nothing is forgotten.
    redraw("aaaaaaaa", "Haiku", false);
    world.run(&["hub", "start"]);
    assert_eq!(toast(), Value::Null);
    redraw("aaaaaaaa", "Haiku", false);
    // The status line does not wait until the hub has heard it.
    let becomes = |text: &str| until(text, || toast() == text);
    becomes("claude-aaaaaaaa: the model changed from Opus to Haiku");
    world.run(&["toast", "--remove", "model-migration"]);
    redraw("aaaaaaaa", "Haiku", false);
    redraw("bbbbbbbb", "Opus", false);
    assert_eq!(toast(), Value::Null, "nothing changed");
    redraw("bbbbbbbb", "Opus", true);
    becomes("claude-bbbbbbbb is in fast mode");
}

#[test]
fn toasts_and_observations_show_in_the_footer() {
    let world = HubEnvironment::new();
    world.run(&["hub", "start"]);
    let toast = || world.json(&["hub", "status", "--json"])["toast"].clone();
    world.run(&["toast", "--key", "build", "--timeout", "1h", "the build is red"]);
    assert_eq!(toast(), "the build is red");
    world.run(&["toast", "--priority", "immediate", "--timeout", "1h", "look here"]);
    assert_eq!(toast(), "look here");
    world.run(&["toast", "--remove", "look here"]);
    assert_eq!(toast(), "the build is red", "what was pushed aside comes back");
    world.run(&["toast", "--remove", "build"]);
    assert_eq!(toast(), Value::Null);
    world.run(&["observe", "model-deprecation", "this model goes in March"]);
    assert_eq!(toast(), "this model goes in March");
    world.run(&[
        "observe",
        "language-server",
        r#"{"subject":"rust-analyzer","text":"crashed","error":true}"#,
    ]);
    assert!(world.bodies(&["--all"]).is_empty(), "none of it is stored");
}

#[test]
fn what_was_nuked_is_off_the_list_of_a_hub_that_runs() {
    let world = HubEnvironment::new();
    let other = world.environment.make_repository("other");
    check(world.ringer(&["notify", "elsewhere"]).current_dir(&other), 0);
    world.notify(&["one"]);
    let read = world.notify(&["two"]);
    world.run(&["read", &read]);
    assert_eq!(world.bodies(&[]).len(), 3);
    world.run(&["nuke", "--yes"]);
    assert_eq!(world.bodies(&[]), ["elsewhere"]);
    assert_eq!(world.json(&["hub", "status", "--json"])["unread"], 1);
    // Nor does the next hub know of it.
    super::environment::kill(world.hub());
    world.run(&["hub", "start"]);
    assert_eq!(world.bodies(&[]), ["elsewhere"]);
}
