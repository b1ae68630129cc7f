//! "The only open one" and "the most urgent" mean the same for every command: of all that is listed, of this machine and of
//! others.

use std::collections::BTreeSet;

use serde_json::Value;
use test_support::until;

use super::machines::{Laptop, linked};
use crate::ringer::{check, json as parsed};

fn ids(rows: &[Value]) -> BTreeSet<String> {
    rows.iter().map(|row| row["short_id"].as_str().expect("an id").to_owned()).collect()
}

/// What waits for an answer, as the list has it.
fn listed(laptop: &Laptop) -> BTreeSet<String> {
    let rows = laptop.near.list(&[]);
    ids(&rows.into_iter().filter(|row| row["is_open"] == true).collect::<Vec<_>>())
}

/// The ids at the beginning of lines.
fn first_words(text: &str) -> BTreeSet<String> {
    text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// What each command takes for open, with a hub or without one.
fn seen(laptop: &Laptop, hub: Option<&str>) -> Vec<(&'static str, BTreeSet<String>)> {
    let command = |arguments: &[&str]| {
        let mut command = laptop.near.ringer(arguments);
        command.envs(hub.map(|hub| ("RINGER_HUB", hub)));
        command
    };
    let run = |arguments: &[&str]| check(&mut command(arguments), 0).0;
    let questions = parsed(&run(&["questions", "--json"]));
    let rows = questions.as_array().expect("rows");
    let id_of = |sender: &String| {
        let row = rows.iter().find(|row| row["from"] == **sender).expect("a question of this sender");
        row["short_id"].as_str().expect("an id").to_owned()
    };
    let completed = run(&["complete", "--", "answer", ""]);
    let (_, refused) = check(&mut command(&["answer", "allow"]), 64);
    let answers = refused.lines().filter(|line| line.starts_with("  ")).collect::<Vec<_>>().join("\n");
    vec![
        ("questions", ids(questions.as_array().expect("rows"))),
        ("complete", first_words(&completed).iter().map(id_of).collect()),
        ("answer", first_words(&answers)),
    ]
}

#[test]
fn every_command_sees_what_the_list_shows() {
    let laptop = linked();
    laptop.allow_answers();
    laptop.far.base.run(&["ask", "--from", "worker-1", "There?"]);
    laptop.until_listed("There?");
    laptop.near.run(&["ask", "--from", "worker-2", "Here?"]);
    let expected = listed(&laptop);
    assert_eq!(expected.len(), 2);
    for hub in [None, Some("off")] {
        for (command, seen) in seen(&laptop, hub) {
            assert_eq!(seen, expected, "{command}, hub {hub:?}");
        }
    }
    // Nothing was decided by that.
    assert_eq!(listed(&laptop), expected);
}

#[test]
fn the_only_open_one_may_be_on_another_machine() {
    let laptop = linked();
    laptop.allow_answers();
    laptop.far.base.run(&["ask", "--from", "worker-1", "--option", "red", "--option", "blue", "Which?"]);
    until("it is listed", || listed(&laptop).len() == 1);
    let questions = parsed(&laptop.near.run(&["questions", "--json"]));
    let question = &questions[0];
    assert_eq!((&question["from"], &question["options"][1]), (&"worker-1@box".into(), &"blue".into()));
    let id = question["question_id"].as_str().expect("an id");
    let shown = check(&mut laptop.near.ringer(&["answer", id]), 64).0;
    assert!(shown.contains("Which?"), "it is named by its own id, too");
    laptop.near.run(&["answer", "2"]);
    let answered = laptop.far.base.run(&["questions", "--all", "--json"]);
    assert!(answered.contains("\"answer\":\"blue\""), "{answered}");
    until("it is over here, too", || laptop.near.run(&["questions", "--json"]).trim() == "[]");
    let nothing = laptop.near.fails(&["answer", "allow"], 65);
    assert!(nothing.contains("nothing waits for an answer"), "{nothing}");
}

/// What is of this machine comes first, also where the other one was asked earlier.
#[test]
fn the_most_urgent_is_of_this_machine() {
    for hub in [None, Some("off")] {
        let laptop = linked();
        laptop.far.base.run(&["ask", "--from", "worker-1", "There?"]);
        laptop.until_listed("There?");
        let snoozed = |wanted: &str| {
            let mut command = laptop.near.ringer(&["snooze", "--json", "20m"]);
            let (row, _) = check(command.envs(hub.map(|hub| ("RINGER_HUB", hub))), 0);
            assert_eq!(parsed(&row)["body"], wanted, "hub {hub:?}");
        };
        laptop.near.run(&["ask", "--from", "worker-2", "Here?"]);
        snoozed("Here?");
        snoozed("There?");
    }
}
