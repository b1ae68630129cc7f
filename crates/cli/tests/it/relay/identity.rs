//! Which machine is at the other end of a link.

use std::fs;
use std::process::Stdio;

use serde_json::json;
use test_support::until;

use super::machines::{Laptop, linked};
use crate::ringer::{check_with_input, json as parsed};

#[test]
fn another_machine_under_the_name_of_a_linked_one_is_refused_until_it_is_added_again() {
    let laptop = linked();
    laptop.far.notify(&["from the box"]);
    laptop.until_listed("from the box");
    // A new home is another machine.
    fs::remove_file(laptop.far.base.home().join("machine-id")).expect("an id");
    laptop.kill_server();
    until("the link is refused", || laptop.status().contains("not the one that was linked as box"));
    assert!(
        laptop.status().contains("ringer relay remove box, then ringer relay add"),
        "{}",
        laptop.status()
    );
    laptop.far.base.notify("forged");
    let checked = laptop.near.ringer(&["doctor", "--send"]).output().expect("it runs");
    let checked = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.contains("not the one that was linked as box"), "{checked}");
    assert_eq!(laptop.near.bodies(&[]), ["from the box"]);
    laptop.near.run(&["relay", "remove", "box", "--yes"]);
    let command = laptop.serve_command(&[]);
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    laptop.near.run(&[&["relay", "add", "command", "--name", "box", "--yes", "--"], &words[..]].concat());
    laptop.until_connected();
    laptop.far.base.notify("of the new one");
    laptop.until_listed("of the new one");
}

#[test]
fn a_machine_that_connects_here_can_be_forgotten() {
    let laptop = linked();
    let (name, before) = (laptop.known_there(), laptop.servers());
    laptop.far.fails(&["relay", "remove", "another"], 65);
    let forgotten = laptop.far.base.run(&["relay", "remove", &name]);
    assert!(forgotten.contains(&format!("Forgot {name}, and ended its connection.")), "{forgotten}");
    until("the connection has ended", || laptop.servers().iter().all(|server| !before.contains(server)));
    // The laptop has the link, so it connects again, as a new machine.
    laptop.until_connected_anew(&before);
    laptop.far.notify(&["for the new machine"]);
    laptop.until_listed("for the new machine");
    assert_eq!(laptop.known_there(), name);
}

#[test]
fn a_link_that_is_called_otherwise_in_the_settings_is_the_same_machine() {
    let laptop = linked();
    laptop.allow_answers();
    laptop.far.base.run(&["ask", "Which branch?"]);
    laptop.until_listed("Which branch?");
    let id = laptop.near.list(&[])[0]["id"].as_str().expect("an id").to_owned();
    laptop.rename("build");
    until("it is connected by its new name", || laptop.status().contains("build: connected since"));
    laptop.far.notify(&["--from", "worker-1", "after that"]);
    laptop.until_listed("after that");
    let rows = laptop.near.list(&[]);
    let row = rows.iter().find(|row| row["body"] == "after that").expect("a row");
    assert_eq!(row["from"], json!("worker-1@build"));
    // What it asked before is answered there.
    laptop.near.run(&["answer", &id, "main"]);
    let answered = laptop.far.base.run(&["questions", "--all", "--json"]);
    assert!(answered.contains("\"answer\":\"main\""), "{answered}");
    assert_eq!(laptop.near.bodies(&[]).len(), 2, "nothing came twice");
}

#[test]
fn what_was_open_when_a_link_was_renamed_ends_here_with_its_agent() {
    let laptop = linked();
    laptop.far.base.run(&["ask", "Which branch?"]);
    laptop.until_listed("Which branch?");
    let id = laptop.near.list(&[])[0]["id"].as_str().expect("an id").to_owned();
    let hook = laptop.ask_permission("make deploy");
    until("both are open", || open_of(&laptop) == [true, true]);
    laptop.rename("build");
    until("it is connected by its new name", || laptop.status().contains("build: connected since"));
    laptop.far.base.run(&["answer", &id, "main"]);
    until("the question is over", || open_of(&laptop) == [true, false]);
    drop(hook);
    let input = json!({ "session_id": "0123456789", "cwd": laptop.far.base.repository(), "prompt": "go on" });
    let mut hook = laptop.far.base.ringer(&["hook", "claude", "UserPromptSubmit"]);
    check_with_input(&mut hook, input.to_string().as_bytes());
    until("the permission is over", || open_of(&laptop) == [false, false]);
}

/// Which notifications are open on the laptop, the newest first.
fn open_of(laptop: &Laptop) -> Vec<bool> {
    laptop.near.list(&[]).iter().map(|row| row["is_open"] == true).collect()
}

/// An agent that speaks the protocol of links itself.
const AGENT: &str = r#"
    "$RINGER" hook claude SessionStart < "$INPUT" > /dev/null
    "$RINGER" relay serve --stdio < "$FRAMES"
    exit $?
"#;

#[test]
fn an_agent_that_serves_a_link_gives_no_answers() {
    let laptop = Laptop::without_link();
    let far = &laptop.far;
    let asked = parsed(&far.base.run(&["ask", "--from", "worker-1", "--json", "Which branch?"]));
    let question = asked["question_id"].as_str().expect("an id");
    let database = rusqlite::Connection::open(far.base.database()).expect("a database");
    let message = "SELECT id FROM message WHERE question_id = ?1";
    let message: String = database.query_row(message, [question], |row| row.get(0)).expect("a message");
    let hello = json!({
        "type": "hello", "protocol": [1, 1], "machine": "a".repeat(32), "name": "eve", "program": "1", "unix_ms": 0,
        "purpose": "answer", "may_answer": true,
    });
    let answer = json!({ "type": "answer", "message": message, "words": ["main"] });
    let (frames, input) = (far.base.path().join("frames"), far.base.path().join("input.json"));
    fs::write(&frames, format!("{hello}\n{answer}\n")).expect("a file");
    let content = json!({ "session_id": "0123456789", "source": "startup", "cwd": far.base.repository() });
    fs::write(&input, content.to_string()).expect("a file");
    let mut shell = far.program("sh");
    shell.args(["-c", AGENT]).env("INPUT", input).env("FRAMES", frames).stdin(Stdio::null());
    let said = String::from_utf8(shell.output().expect("it runs").stdout).expect("text");
    assert!(said.contains("takes no answers over this link"), "{said}");
    let questions = far.base.run(&["questions", "--json"]);
    assert!(
        questions.contains(asked["question_id"].as_str().expect("an id")),
        "it is still open: {questions}"
    );
}
