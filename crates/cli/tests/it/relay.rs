//! Several machines: real hubs with homes of their own, linked by the program itself.

mod identity;
mod machines;
#[cfg(feature = "nats")]
mod nats;
mod only_one;
mod popups;
mod repositories;
mod screen;
mod ssh;
pub(crate) mod sshd;

use std::fs;

use serde_json::json;
use test_support::until;

use crate::home::SCRIPTS;
use crate::hub::dialogs::{decision, until_hooks_wait};
use crate::ringer::{check, json as parsed};
use machines::{Laptop, linked};

#[test]
fn messages_of_both_machines_are_in_one_list() {
    let laptop = linked();
    laptop.far.notify(&["--from", "worker-1", "from the box"]);
    laptop.near.notify(&["from the laptop"]);
    laptop.until_listed("from the box");
    let rows = laptop.near.list(&[]);
    let row = rows.iter().find(|row| row["body"] == "from the box").expect("a row");
    assert_eq!((&row["from"], &row["workspace"]), (&json!("worker-1@box"), &json!("machine:box")));
    until("the box has the other one", || {
        laptop.far.run(&["log", "--everywhere"]).contains("from the laptop")
    });
    // What came from there does not go back, and what is known does not come again.
    assert_eq!(laptop.far.run(&["log", "--everywhere"]).matches("from the box").count(), 1);
    assert_eq!(laptop.near.run(&["log", "--everywhere"]).matches("from the laptop").count(), 1);
    let status = laptop.near.run(&["relay", "status"]);
    assert!(status.contains("box: connected since") && status.contains("1 message received"), "{status}");
    let checked = laptop.near.ringer(&["doctor", "--send"]).output().expect("it runs");
    let checked = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.contains("a message was stored there and confirmed within"), "{checked}");
}

#[test]
fn a_day_without_a_connection_loses_nothing() {
    let laptop = linked();
    laptop.near.run(&["hub", "stop"]);
    let texts: Vec<String> = (0..300).map(|number| format!("missed {number}")).collect();
    for text in &texts {
        laptop.far.base.notify(text);
    }
    laptop.near.run(&["hub", "start"]);
    laptop.until_listed("missed 299");
    let mut bodies = laptop.near.bodies(&["--limit", "1000"]);
    bodies.reverse();
    assert_eq!(bodies, texts);
}

#[test]
fn a_killed_side_connects_again() {
    let laptop = linked();
    laptop.kill_server();
    laptop.far.notify(&["after the kill"]);
    laptop.until_listed("after the kill");
    let hub = laptop.near.hub();
    crate::hub::environment::kill(hub);
    until("the far side ends with its link", || laptop.servers().is_empty());
    laptop.far.notify(&["while no hub ran"]);
    laptop.near.run(&["hub", "start"]);
    laptop.until_listed("while no hub ran");
    assert_eq!(laptop.near.bodies(&[]), ["while no hub ran", "after the kill"]);
}

#[test]
fn what_is_wrong_with_a_link_is_told() {
    let laptop =
        Laptop::with_command(&["sh", "-c", "echo 'box: Permission denied (publickey).' >&2; exit 255"]);
    laptop.near.run(&["hub", "start"]);
    until("the link has failed", || laptop.status().contains("not connected since"));
    let status = laptop.status();
    assert!(status.contains("Permission denied (publickey). (exit code 255); next try at"), "{status}");
    let checked = laptop.near.ringer(&["doctor"]).output().expect("it runs");
    let checked = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.contains("machine box   not connected since"), "{checked}");
    laptop.set_command(&["ringer-is-not-here"]);
    until("the other program is tried", || laptop.status().contains("ringer-is-not-here cannot be started"));
    // An older version on the other machine has no such command.
    laptop.set_command(&["sh", "-c", "echo \"error: unrecognized subcommand 'relay'\" >&2; exit 64"]);
    until("the version is named", || {
        laptop.status().contains("unrecognized subcommand 'relay' (exit code 64)")
    });
}

#[test]
fn an_answer_is_given_where_the_agent_runs() {
    let laptop = linked();
    let asked = parsed(&laptop.far.base.run(&["ask", "--from", "worker-1", "--json", "Which branch?"]));
    laptop.until_listed("Which branch?");
    let row = laptop.near.list(&[]).remove(0);
    let id = row["short_id"].as_str().expect("an id");
    assert_eq!(row["question_id"], json!(format!("{}@box", asked["question_id"].as_str().expect("an id"))));
    // Not without the person's leave.
    let refused = laptop.near.fails(&["answer", id, "main"], 77);
    assert!(refused.contains("set may_answer = true for box"), "{refused}");
    laptop.allow_answers();
    let shown = check(&mut laptop.near.ringer(&["answer", id]), 64).0;
    assert!(shown.contains("Which branch?"), "{shown}");
    laptop.near.run(&["answer", id, "main"]);
    let answered = laptop.far.base.run(&["questions", "--all", "--json"]);
    assert!(answered.contains("\"answer\":\"main\""), "{answered}");
    until("it is over here, too", || laptop.near.list(&[])[0]["is_open"] == false);
    let late = laptop.near.fails(&["answer", id, "other"], 65);
    assert!(late.contains("asks nothing"), "{late}");
}

#[test]
fn a_question_of_another_machine_is_closed_only_there() {
    let laptop = linked();
    laptop.allow_answers();
    laptop.far.base.run(&["ask", "Which branch?"]);
    laptop.until_listed("Which branch?");
    let id = laptop.near.list(&[])[0]["id"].as_str().expect("an id").to_owned();
    for command in [&["answer", &id, "--close"][..], &["acknowledge", &id]] {
        let refused = laptop.near.fails(command, 64);
        assert!(refused.contains("a question of box can be closed only there"), "{refused}");
    }
    assert!(laptop.far.base.run(&["questions"]).contains("Which branch?"), "it is open");
    assert_eq!(laptop.near.list(&[])[0]["is_open"], true);
}

#[test]
fn a_long_prompt_of_another_machine_is_shown_whole() {
    let laptop = linked();
    laptop.allow_answers();
    // As JSON it is six times as long.
    let command = "\u{1}".repeat(60 * 1024);
    let hook = laptop.ask_permission(&command);
    until_hooks_wait(&laptop.far, 1);
    until("it needs the person here", || !laptop.near.list(&[]).is_empty());
    let id = laptop.near.list(&[])[0]["id"].as_str().expect("an id").to_owned();
    let shown = laptop.near.run(&["answer", &id, "--json"]);
    let is_whole =
        parsed(&shown)["content"].to_string().contains(json!(command).to_string().trim_matches('"'));
    assert!(is_whole, "{} bytes", shown.len());
    let answered = laptop.near.ringer(&["answer", &id, "deny"]).output().expect("it runs");
    assert!(matches!(answered.status.code(), Some(0 | 75)), "{answered:?}");
    assert_eq!(decision(hook)["behavior"], "deny");
}

#[test]
fn only_what_is_for_a_machine_waits_for_it() {
    let laptop = linked();
    laptop.near.run(&["notify", "--to", "worker-1", "for an agent here"]);
    laptop.near.run(&["read", "--all"]);
    assert!(!laptop.status().contains("not sent yet"), "{}", laptop.status());
    laptop.near.run(&["hub", "stop"]);
    laptop.near.base.notify("for both");
    laptop.near.base.run(&["notify", "--to", "worker-1", "for an agent here"]);
    assert!(laptop.status().contains("1 message not sent yet"), "{}", laptop.status());
}

/// A machine that says at first that seven messages wait, and after the next connection nothing.
const SAYS_SEVEN: &str = r#"
    echo '{"type":"hello","protocol":[1,1],"machine":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","name":"box","program":"1","unix_ms":0}'
    if [ -e "$0" ]; then cat > /dev/null; exit; fi
    echo '{"type":"start","at":{"generation":"g","seq":0}}'
    echo '{"type":"messages","after":{"generation":"g","seq":0},"end":{"generation":"g","seq":1},"waiting":7,"messages":[{"seq":1,"id":"01890000-0000-7000-8000-00000000000a","tag":"status","scope":"global","sender":"system","recipient":"default","body":"one"}]}'
    until [ -e "$0" ]; do sleep 0.05; done
"#;

#[test]
fn what_waits_on_another_machine_is_said_anew_in_each_connection() {
    let laptop = Laptop::without_link();
    let state = laptop.near.base.path().join("goes-on");
    laptop.set_command(&["sh", "-c", SAYS_SEVEN, state.to_str().expect("a path")]);
    laptop.near.run(&["hub", "start"]);
    until("seven wait", || laptop.status().contains("about 7 messages to come"));
    fs::write(&state, "").expect("a file");
    until("the next connection says nothing", || {
        let status = laptop.status();
        status.contains("box: connected since") && !status.contains("to come")
    });
}

#[test]
fn a_machine_can_refuse_answers() {
    let laptop = Laptop::with_arguments(&["--no-answers"]);
    laptop.near.run(&["hub", "start"]);
    laptop.until_connected();
    laptop.allow_answers();
    laptop.far.base.run(&["ask", "Which branch?"]);
    laptop.until_listed("Which branch?");
    let id = laptop.near.list(&[])[0]["id"].as_str().expect("an id").to_owned();
    let refused = laptop.near.fails(&["answer", &id, "main"], 77);
    assert!(refused.contains("takes no answers over this link"), "{refused}");
    // Nor messages for its agents.
    laptop.near.run(&["notify", "--to", "worker-1@box", "obey"]);
    laptop.near.notify(&["a marker"]);
    until("the next one came", || laptop.far.base.run(&["log", "--everywhere"]).contains("a marker"));
    assert!(!laptop.far.base.run(&["log", "--everywhere"]).contains("obey"));
}

#[test]
fn an_agent_of_another_machine_gets_its_message() {
    let laptop = linked();
    laptop.allow_answers();
    let (_, warned) =
        check(&mut laptop.near.ringer(&["notify", "--to", "worker-1@box", "look at the tests"]), 0);
    assert_eq!(warned, "", "the machine is known");
    until("it is there", || {
        laptop.far.base.run(&["log", "--everywhere", "--json"]).contains("\"to\":\"agent:worker-1\"")
    });
    let list = laptop.near.bodies(&[]);
    assert!(list.is_empty(), "the person need not see it: {list:?}");
}

#[test]
fn links_are_added_and_removed() {
    let laptop = Laptop::without_link();
    let command: Vec<String> = laptop.serve_command(&[]);
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let add = [&["relay", "add", "command", "--name", "box", "--yes", "--"], &words[..]].concat();
    let added = laptop.near.run(&add);
    assert!(added.contains("box answers: ringer") && added.contains("ringer relay remove box"), "{added}");
    laptop.until_connected();
    let again = laptop.near.fails(&add, 64);
    assert!(again.contains("there is a machine named box already"), "{again}");
    let list = laptop.near.run(&["relay", "list"]);
    assert!(list.starts_with("box: env") && list.ends_with("no answers from here\n"), "{list}");
    laptop.near.run(&["relay", "remove", "box", "--yes"]);
    assert!(laptop.near.run(&["relay", "list"]).starts_with("no machines are set"));
    until("its program has ended", || laptop.servers().is_empty());
    let settings = fs::read_to_string(laptop.near.base.path().join("config.toml")).expect("a file");
    assert!(settings.contains("rate_limit") && !settings.contains("relay"), "{settings}");
    let nothing = laptop.near.fails(&["relay", "add", "command", "--yes", "--", "false"], 69);
    assert!(nothing.contains("the program of the link ended (exit code 1)"), "{nothing}");
    laptop.near.fails(&["relay", "add", "ssh", "-oProxyCommand=x"], 64);
}

#[test]
fn a_machine_that_is_removed_is_disconnected_also_where_the_hub_does_not_see_the_settings_change() {
    let laptop = Laptop::without_link();
    let directory = laptop.near.base.path().join("settings");
    fs::create_dir(&directory).expect("a directory");
    let config = directory.join("config.toml");
    fs::write(&config, SCRIPTS).expect("a file");
    let run = |arguments: &[&str]| check(laptop.near.ringer(arguments).env("RINGER_CONFIG", &config), 0).0;
    run(&["hub", "start"]);
    let command: Vec<String> = laptop.serve_command(&[]);
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    run(&[&["relay", "add", "command", "--name", "box", "--yes", "--"], &words[..]].concat());
    until("it is connected", || run(&["relay", "status"]).contains("connected"));
    // Another directory stands in the place of the one that the hub watches.
    let settings = fs::read(&config).expect("a file");
    fs::rename(&directory, laptop.near.base.path().join("watched")).expect("a directory");
    fs::create_dir(&directory).expect("a directory");
    fs::write(&config, settings).expect("a file");
    let changes = || {
        let log = fs::read_to_string(laptop.near.base.home().join("hub.log")).expect("a log");
        log.matches("the settings changed").count()
    };
    // When it is asked something it looks at the file, but once a second at most.
    run(&["list"]);
    let before = changes();
    run(&["relay", "remove", "box", "--yes"]);
    until("the hub has read the settings", || changes() > before);
    until("its program has ended", || laptop.servers().is_empty());
}

#[test]
fn what_was_read_here_is_read_there() {
    let laptop = linked();
    laptop.far.run(&["hub", "start"]);
    let id = laptop.far.notify(&["from the box"]);
    laptop.until_listed("from the box");
    laptop.near.run(&["read", &id]);
    until("it is read there", || laptop.far.list(&[])[0]["is_read"] == true);
    // And the other way.
    let id = laptop.near.notify(&["from the laptop"]);
    until("it is there", || laptop.far.bodies(&[]).contains(&"from the laptop".to_owned()));
    laptop.far.run(&["clear", &id]);
    until("it is gone here", || laptop.near.bodies(&[]) == ["from the box"]);
    // Applying a mark makes none: both journals have one mark of their own and one of the other.
    let marks = |home: &crate::hub::environment::HubEnvironment| {
        let database = rusqlite::Connection::open(home.base.database()).expect("a database");
        let count = "SELECT count(*) FROM message WHERE kind LIKE 'mark-%' AND machine IS NULL";
        database.query_row(count, [], |row| row.get::<_, i64>(0)).expect("a number")
    };
    assert_eq!((marks(&laptop.near), marks(&laptop.far)), (1, 1));
}

#[test]
fn what_was_read_there_without_a_connection_is_read_here() {
    let laptop = linked();
    laptop.near.run(&["hub", "stop"]);
    laptop.far.run(&["hub", "start"]);
    let id = laptop.far.notify(&["read there"]);
    laptop.far.run(&["read", &id]);
    laptop.far.notify(&["not read"]);
    laptop.near.run(&["hub", "start"]);
    laptop.until_listed("not read");
    assert_eq!(laptop.near.bodies(&[]), ["not read", "read there"]);
    let is_read = || laptop.near.list(&[]).iter().map(|row| row["is_read"] == true).collect::<Vec<_>>();
    until("one of the two is read", || is_read() == [false, true]);
}

#[test]
fn a_permission_of_another_machine_is_decided_here() {
    let laptop = linked();
    laptop.allow_answers();
    let hook = laptop.ask_permission("make deploy");
    until_hooks_wait(&laptop.far, 1);
    until("it needs the person here", || !laptop.near.list(&[]).is_empty());
    let row = laptop.near.list(&[]).remove(0);
    assert_eq!((&row["kind"], &row["label"]), (&json!("permission"), &json!("box:repository")));
    let id = row["short_id"].as_str().expect("an id");
    let shown = check(&mut laptop.near.ringer(&["answer", id]), 64).0;
    assert!(shown.contains("make deploy"), "{shown}");
    // The client of this agent does not go on, so it is not seen that it took the answer: that has its own exit code.
    let answered = laptop.near.ringer(&["answer", id, "deny", "not on main"]).output().expect("it runs");
    assert!(matches!(answered.status.code(), Some(0 | 75)), "{answered:?}");
    let decided = decision(hook);
    assert_eq!(decided["behavior"], "deny", "{decided}");
    assert!(decided["message"].as_str().is_some_and(|text| text.contains("not on main")), "{decided}");
}

#[test]
fn agents_of_another_machine_are_listed_with_it() {
    let laptop = linked();
    let hook = |event: &str| {
        let cwd = laptop.far.base.repository();
        let input =
            json!({ "hook_event_name": event, "session_id": "0123456789", "cwd": cwd, "prompt": "go" });
        let mut command = laptop.far.base.ringer(&["hook", "claude", event]);
        crate::ringer::check_with_input(&mut command, input.to_string().as_bytes());
    };
    let agent = || {
        let status = parsed(&laptop.near.run(&["status", "--everywhere", "--json"]));
        let agents = status["agents"].as_array().cloned().unwrap_or_default();
        agents.into_iter().find(|agent| agent["id"] == "claude-01234567@box")
    };
    hook("SessionStart");
    hook("UserPromptSubmit");
    until("it works", || agent().is_some_and(|agent| agent["state"] == "working"));
    let found = agent().expect("an agent");
    assert_eq!((&found["machine"], &found["cwd"]), (&json!("box"), &json!("box:repository")));
    assert!(laptop.near.run(&["status"]).contains("1 working"), "it is counted");
    hook("Stop");
    let told = || agent().is_some_and(|agent| agent["state"] != "working");
    until(&format!("it is done: {:?}", laptop.far.base.status()), told);
    // What it does is not known without a connection.
    laptop.near.run(&["hub", "stop"]);
    let found = agent().expect("an agent");
    assert_eq!((&found["connected"], &found["state"]), (&json!(false), &json!(null)));
}

#[test]
fn reading_everything_counts_there_for_what_had_come() {
    let laptop = linked();
    laptop.far.run(&["hub", "start"]);
    for text in ["one", "two"] {
        laptop.far.notify(&[text]);
        laptop.until_listed(text);
    }
    laptop.near.run(&["read", "--all"]);
    until("both are read there", || laptop.far.list(&[]).iter().all(|row| row["is_read"] == true));
    laptop.far.notify(&["three"]);
    laptop.until_listed("three");
    assert_eq!(laptop.far.list(&[])[0]["is_read"], false, "it came after that");
}
