//! The commands that ask the hub for something.

use ringer_core::message::Agent;
use ringer_journal::{Home, Journal};
use serde_json::{Value, json};
use test_support::until;

use super::environment::HubEnvironment;
use crate::ringer::{check, check_with_input, json as json_of};

#[test]
fn the_list_has_every_field_and_is_newest_first() {
    let environment = HubEnvironment::new();
    environment.notify(&["first"]);
    let id = environment.notify(&[
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
    let rows = environment.list(&[]);
    assert_eq!(rows.len(), 2);
    let mut row = rows[0].clone();
    let ts = row["ts"].take();
    assert!(ts.as_str().is_some_and(|ts| ts.len() == 24 && ts.ends_with("+0000")), "{ts}");
    let scope = row["scope"].as_str().expect("a scope").to_owned();
    let short = row["short_id"].as_str().expect("a short id").to_owned();
    assert_eq!(
        row,
        json!({
            "id": id, "ts": null, "from": "worker-1", "kind": "error", "title": "Build", "subtitle": "main",
            "body": "it is red", "workspace": format!("repo:{scope}"), "surface": null, "scope": scope,
            "is_read": false, "is_open": true, "short_id": short, "label": null,
        })
    );
    let words = environment.run(&["list"]);
    let lines: Vec<&str> = words.lines().collect();
    assert_eq!(lines[0], format!("* {short}  worker-1  error   Build: it is red  now"), "{words}");
    assert!(lines[1].contains("system    status  first"), "{words}");
    assert_eq!(environment.bodies(&["--limit", "1"]), ["it is red"]);
    assert_eq!(environment.bodies(&["--here"]), ["it is red", "first"]);
    let elsewhere = environment.base.make_repository("elsewhere");
    let out =
        environment.ringer(&["list", "--here", "--json"]).current_dir(elsewhere).output().expect("it runs");
    assert_eq!(out.stdout, b"[]\n");
    environment.fails(&["list", "--all", "--unread"], 64);
}

#[test]
fn what_was_sent_is_shown_without_what_could_hurt() {
    let environment = HubEnvironment::new();
    environment.notify(&["--title", "a\x1b]0;x\x07b", "one\ntwo\x1b[2J"]);
    let words = environment.run(&["list"]);
    assert!(!words.contains('\x1b') && !words.contains('\x07') && words.lines().count() == 1, "{words:?}");
}

#[test]
fn a_long_message_keeps_its_id_in_the_list() {
    let environment = HubEnvironment::new();
    environment.notify(&["--title", &"t".repeat(200), &"x".repeat(5000)]);
    let short = environment.list(&[])[0]["short_id"].as_str().expect("a short id").to_owned();
    let words = environment.run(&["list"]);
    assert!(words.starts_with(&format!("* {short}  ")) && words.ends_with("t…  now\n"), "{words}");
    let question = environment.run(&["ask", &"y".repeat(5000)]);
    let log = environment.run(&["log"]);
    assert!(log.ends_with(&format!("y… [{}]\n", question.trim())), "{log}");
    let all = environment.run(&["list", "--all"]);
    assert!(all.contains(&format!("y… [{}]\n", question.trim())), "{all}");
}

#[test]
fn reading_unreading_and_clearing() {
    let environment = HubEnvironment::new();
    let ids: Vec<String> = ["a", "b", "c"].iter().map(|body| environment.notify(&[body])).collect();
    assert_eq!(environment.run(&["read", &ids[0]]), "1 read\n");
    assert_eq!(environment.run(&["read", &ids[0]]), "0 read\n", "it was");
    assert_eq!(environment.bodies(&["--unread"]), ["c", "b"]);
    assert_eq!(environment.json(&["unread", &ids[0], "--json"]), json!({ "unread_again": 1 }));
    assert_eq!(environment.run(&["unread", &ids[0]]), "0 unread again\n", "it was");
    assert_eq!(environment.bodies(&["--unread"]).len(), 3);
    assert_eq!(environment.run(&["read", &ids[0], &ids[1]]), "2 read\n");
    assert_eq!(environment.run(&["clear", "--all-read"]), "2 removed\n");
    assert_eq!(environment.bodies(&[]), ["c"]);
    assert_eq!(environment.json(&["clear", &ids[2], "--json"]), json!({ "removed": 1 }));
    assert_eq!(environment.run(&["list"]), "No notifications.\n");
    assert_eq!(environment.bodies(&["--all"]), ["c", "b", "a"], "the journal keeps them");

    environment.notify(&["d"]);
    environment.notify(&["e"]);
    assert_eq!(environment.json(&["read", "--all", "--json"]), json!({ "read": 2 }));
    environment.notify(&["f"]);
    let workspace = environment.list(&["--limit", "1"])[0]["workspace"].as_str().expect("one").to_owned();
    assert_eq!(environment.run(&["clear", "--workspace", &workspace]), "3 removed\n");
    environment.notify(&["g"]);
    assert_eq!(environment.run(&["clear", "--all"]), "1 removed\n");
}

#[test]
fn wrong_arguments_end_with_the_code_of_their_kind() {
    let environment = HubEnvironment::new();
    let unknown = "01997a3e-0a1b-7c2d-8e3f-0123456789ab";
    environment.run(&["hub", "start"]);
    for command in ["read", "unread", "clear"] {
        let complaint = environment.fails(&[command], 64);
        assert!(complaint.contains("no notification given"), "{complaint}");
        let complaint = environment.fails(&[command, unknown], 65);
        assert!(complaint.contains(&format!("unknown notification {unknown}")), "{complaint}");
        assert!(complaint.contains("hint: ringer list"), "{complaint}");
        environment.fails(&[command, "no id at all"], 65);
        environment.fails(&[command, unknown, "--workspace", "w"], 64);
        let complaint = environment.fails(&[command, "--surface", "tty:/dev/pts/999@1"], 65);
        assert!(complaint.contains("unknown surface"), "{complaint}");
    }
    environment.fails(&["read", "--all", unknown], 64);
    environment.fails(&["unread", "--all"], 64);
    environment.fails(&["jump", unknown], 65);
    environment.fails(&["why", unknown], 65);
    environment.fails(&["why"], 65);
    environment.fails(&["toast"], 64);
    let complaint = environment.fails(&["toast", "--priority", "urgent", "x"], 64);
    assert!(complaint.contains("immediate, high, medium, low"), "{complaint}");
    environment.fails(&["toast", " "], 64);
    environment.fails(&["toast", "--remove", "--key", "k", "x"], 64);
    let complaint = environment.fails(&["observe", "the weather", "rain"], 64);
    assert!(complaint.contains("unknown source") && complaint.contains("mcp-connectivity"), "{complaint}");
    environment.fails(&["observe", "settings", "{ no json"], 65);
    environment.fails(&["watch", "--after", "-1"], 64);
    environment.fails(&["hub", "dance"], 64);
}

#[test]
fn jumping_picks_the_oldest_of_the_most_urgent_and_leaves_it_unread_where_it_cannot_go() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    assert_eq!(environment.run(&["jump"]), "No unread notifications.\n");
    assert_eq!(environment.json(&["jump", "--json"]), Value::Null);
    let older = environment.notify(&["older"]);
    environment.notify(&["newer"]);
    let short = environment.list(&[])[1]["short_id"].as_str().expect("a short id").to_owned();
    // It came from no terminal, so nothing can be brought to the front, and it has not been seen.
    let complaint = environment.fails(&["jump"], 69);
    assert!(complaint.contains("the notification stays unread: it came from no terminal"), "{complaint}");
    assert!(complaint.contains(&format!("ringer read {short}")), "{complaint}");
    let (out, _) = check(&mut environment.ringer(&["jump", &older, "--json"]), 69);
    let opened = crate::ringer::json(&out);
    assert_eq!((&opened["notification"]["id"], &opened["focus"]["focused"]), (&older.into(), &false.into()));
    assert_eq!(environment.bodies(&["--unread"]), ["newer", "older"]);
}

#[test]
fn why_tells_every_step() {
    let environment = HubEnvironment::new();
    let id = environment.notify(&["--from", "worker-1", "hello"]);
    environment.run(&["read", &id]);
    let steps = |answer: &Value| -> Vec<String> {
        let trail = answer["trail"].as_array().expect("a trail").iter();
        trail.map(|step| step["text"].as_str().expect("a text").to_owned()).collect()
    };
    let answer = environment.json(&["why", &id, "--json"]);
    let told = steps(&answer);
    assert!(told[0].starts_with("received from worker-1, "), "{told:?}");
    assert!(told.iter().any(|step| step.starts_with("channels: ")), "{told:?}");
    assert!(told.iter().any(|step| step.starts_with("marked read")), "{told:?}");
    assert_eq!((&answer["taken"], &answer["from"]), (&true.into(), &"worker-1".into()));
    let words = environment.run(&["why", &id]);
    assert!(
        words.contains(" by worker-1 to you and the lead agent") && words.contains("received from worker-1"),
        "{words}"
    );

    let for_agent = environment.notify(&["--to", "worker-9", "just for you"]);
    let answer = environment.json(&["why", &for_agent, "--json"]);
    assert_eq!(steps(&answer), ["not shown to you: it is for agent worker-9"]);
    assert_eq!((&answer["notification"], &answer["receipts"][0]["state"]), (&Value::Null, &"queued".into()));
}

#[test]
fn a_question_that_is_closed_is_not_told_as_answered() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    for (arguments, told, read_by) in [
        (&["--close"][..], "the question was closed without an answer", "closed_unanswered"),
        (&["yes"], "the question was answered", "answer"),
    ] {
        let question = environment.run(&["ask", "Deploy now?"]);
        let question = question.trim();
        environment.run(&[&["answer", question], arguments].concat());
        assert_eq!(environment.list(&["--limit", "1"])[0]["read_by"], read_by);
        let words = environment.run(&["why", "last"]);
        assert!(words.contains(told), "{words}");
    }
}

#[test]
fn what_claude_code_says_of_its_model_is_told_when_it_changes() {
    let environment = HubEnvironment::new();
    let toast = || environment.json(&["hub", "status", "--json"])["toast"].clone();
    let redraw = |session: &str, model: &str, fast: bool| {
        let status = json!({"session_id": session, "model": {"display_name": model}, "fast_mode": fast});
        check_with_input(&mut environment.ringer(&["statusline", "claude"]), status.to_string().as_bytes());
    };
    // First: each hook would start one, and a late one would begin where none is to run.
    environment.run(&["hub", "start"]);
    // Notes are kept about agents that are known.
    for session in ["aaaaaaaa", "bbbbbbbb"] {
        let begins = json!({"session_id": session, "hook_event_name": "SessionStart", "source": "startup"});
        check_with_input(
            &mut environment.ringer(&["hook", "claude", "SessionStart"]),
            begins.to_string().as_bytes(),
        );
    }
    let agents = || environment.json(&["status", "--json"])["agents"].clone();
    until("both are known", || agents().as_array().is_some_and(|agents| agents.len() == 2));
    // What is told is noted after that, if the journal can be written at once.
    let mut journal = Journal::open(&Home::new(environment.base.home())).expect("a journal");
    let mut until_noted = |session: &str, model: &str, fast: bool| {
        let agent = Agent::new(&format!("claude-{session}")).expect("a name");
        until("it is noted", || {
            redraw(session, model, fast);
            let note = journal.agent_note(&agent).expect("a journal").map(|note| json_of(&note));
            note.is_some_and(|note| (&note["model"], &note["fast"]) == (&json!(model), &json!(fast)))
        });
    };
    until_noted("aaaaaaaa", "Opus", false);
    environment.run(&["hub", "stop"]);
    // Without a hub nothing is told, and nothing is forgotten.
    redraw("aaaaaaaa", "Haiku", false);
    environment.run(&["hub", "start"]);
    assert_eq!(toast(), Value::Null);
    until_noted("aaaaaaaa", "Haiku", false);
    // The status line does not wait until the hub has heard it.
    let becomes = |text: &str| until(text, || toast() == text);
    becomes("claude-aaaaaaaa: the model changed from Opus to Haiku");
    // It may have been told more than once before it was noted.
    until("it is removed, and not told again", || {
        environment.run(&["toast", "--remove", "model-migration"]);
        redraw("aaaaaaaa", "Haiku", false);
        toast() == Value::Null
    });
    redraw("aaaaaaaa", "Haiku", false);
    until_noted("bbbbbbbb", "Opus", false);
    assert_eq!(toast(), Value::Null, "nothing changed");
    until_noted("bbbbbbbb", "Opus", true);
    becomes("claude-bbbbbbbb is in fast mode");
}

#[test]
fn toasts_and_observations_show_in_the_footer() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    let toast = || environment.json(&["hub", "status", "--json"])["toast"].clone();
    environment.run(&["toast", "--key", "build", "--timeout", "1h", "the build is red"]);
    assert_eq!(toast(), "the build is red");
    environment.run(&["toast", "--priority", "immediate", "--timeout", "1h", "look here"]);
    assert_eq!(toast(), "look here");
    environment.run(&["toast", "--remove", "look here"]);
    assert_eq!(toast(), "the build is red", "what was pushed aside comes back");
    environment.run(&["toast", "--remove", "build"]);
    assert_eq!(toast(), Value::Null);
    environment.run(&["observe", "plugin-update", "two plugins are new"]);
    assert_eq!(toast(), "two plugins are new");
    environment.run(&[
        "observe",
        "language-server",
        r#"{"subject":"rust-analyzer","text":"crashed","error":true}"#,
    ]);
    assert!(environment.bodies(&["--all"]).is_empty(), "none of it is stored");
}

#[test]
fn what_was_nuked_is_off_the_list_of_a_hub_that_runs() {
    let environment = HubEnvironment::new();
    let other = environment.base.make_repository("other");
    check(environment.ringer(&["notify", "elsewhere"]).current_dir(&other), 0);
    environment.notify(&["one"]);
    let read = environment.notify(&["two"]);
    environment.run(&["read", &read]);
    assert_eq!(environment.bodies(&[]).len(), 3);
    environment.run(&["nuke", "--yes"]);
    assert_eq!(environment.bodies(&[]), ["elsewhere"]);
    // With the announcement that a script did it.
    assert_eq!(environment.json(&["hub", "status", "--json"])["unread"], 2);
    // Nor does the next hub know of it.
    super::environment::kill(environment.hub());
    environment.run(&["hub", "start"]);
    assert_eq!(environment.bodies(&[]), ["elsewhere"]);
}

#[test]
fn a_toast_has_colours_and_changes_those_of_its_key() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    let mut hub = environment.connect();
    let mut add = |params: Value| hub.call("toast.add", &params);
    let status = || environment.json(&["hub", "status", "--json"]);
    let spans = json!([{ "text": "api ", "colour": "plain" }, { "text": "red", "colour": "error" }]);
    add(json!({ "key": "build", "spans": spans }));
    assert_eq!(status()["toast_spans"], spans);
    add(json!({ "key": "build", "text": "web green" }));
    assert_eq!(status()["toast"], "api red", "without a fold it stays");
    add(json!({ "key": "build", "text": "web green", "fold": "append" }));
    assert_eq!(status()["toast"], "api red · web green");
    environment.run(&["toast", "--key", "build", "all green"]);
    assert_eq!(status()["toast"], "all green");
    environment.run(&["toast", "--invalidates", "build", "deployed"]);
    assert_eq!(status()["toast"], "deployed");
    let refused = add(json!({ "text": "x", "fold": "sum" }));
    assert_eq!(refused["error"]["message"], "unknown fold \"sum\" (known: replace, append)");
    assert!(
        add(json!({ "text": " " }))["error"]["message"].as_str().is_some_and(|why| why.contains("empty"))
    );
}
