//! `ringer ask`, `questions`, `acknowledge`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::background::Background;
use crate::home::{TestEnvironment, lines, texts};
use crate::ringer::{self, check};

/// Asks, and gives the question's id.
#[track_caller]
fn ask(environment: &TestEnvironment, arguments: &[&str]) -> String {
    let mut command = environment.ringer(&["ask"]);
    check(command.args(arguments), 0).0.trim().to_owned()
}

#[track_caller]
fn questions(environment: &TestEnvironment, arguments: &[&str]) -> Vec<Value> {
    let mut command = environment.ringer(&["questions", "--json"]);
    let (out, _) = check(command.args(arguments), 0);
    ringer::json(&out).as_array().expect("a list").clone()
}

/// Starts an `ask --wait`, and waits until it does.
#[track_caller]
fn ask_and_wait(environment: &TestEnvironment, arguments: &[&str]) -> (Background, String) {
    let mut command = environment.ringer(&["ask", "--wait"]);
    command.args(arguments);
    let asking = environment.start(command);
    let open = questions(environment, &[]);
    let id = open.last().expect("a question")["question_id"].as_str().expect("an id").to_owned();
    (asking, id)
}

/// `q-<unix seconds>-<6 hex>`.
fn is_question_id(id: &str) -> bool {
    let parts: Vec<&str> = id.split('-').collect();
    let hex = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    matches!(parts[..], ["q", seconds, random] if seconds.parse::<u64>().is_ok() && random.len() == 6 && hex(random))
}

#[test]
fn a_question_is_stored_and_told() {
    let environment = TestEnvironment::new();
    let options = ["--option", "yes", "--option", "no, \"never\""];
    let id = ask(&environment, &[&["--from", "worker-1", "Deploy now?"][..], &options].concat());
    assert!(is_question_id(&id), "{id}");
    let told = environment.drain();
    assert_eq!(texts(&told), ["Agent worker-1 asks: Deploy now?"]);
    assert_eq!((&told[0]["type"], &told[0]["question_id"]), (&json!("question"), &json!(id)));
    let open = questions(&environment, &[]);
    assert_eq!(open.len(), 1);
    for (field, value) in [
        ("question_id", json!(id)),
        ("from", json!("worker-1")),
        ("question", json!("Deploy now?")),
        ("options", json!(["yes", "no, \"never\""])),
        ("answered", Value::Null),
        ("answer", Value::Null),
    ] {
        assert_eq!(open[0][field], value, "{field}");
    }
    assert!(environment.run(&["questions"]).contains("Deploy now? (yes / no, \"never\")"));
    assert_eq!(environment.status()["open_questions"], 1);
}

#[test]
fn an_answer_closes_it() {
    let environment = TestEnvironment::new();
    let id = ask(&environment, &["Deploy now?"]);
    environment.run(&["answer", &id, "yes", "--from", "ada"]);
    assert!(questions(&environment, &[]).is_empty());
    let closed = &questions(&environment, &["--all"])[0];
    assert_eq!((&closed["answer"], &closed["answered_by"]), (&json!("yes"), &json!("ada")));
    assert!(closed["answered"].is_string());
    assert_eq!(environment.status()["open_questions"], 0);
}

#[test]
fn it_can_be_closed_without_an_answer() {
    let environment = TestEnvironment::new();
    let id = ask(&environment, &["--from", "worker-1", "Still needed?"]);
    environment.run(&["ack", &id]);
    let closed = &questions(&environment, &["--all"])[0];
    assert!(closed["answered"].is_string() && closed["answer"].is_null(), "{closed}");
    assert_eq!(environment.run(&["log", "--to", "worker-1"]), "", "there is nothing to tell the asker");
}

#[test]
fn wait_prints_the_answer() {
    let environment = TestEnvironment::new();
    let (asking, id) = ask_and_wait(&environment, &["Which branch?"]);
    environment.run(&["acknowledge", &id, "the \"main\" one\nplease"]);
    assert_eq!(asking.end(), (vec!["the \"main\" one".to_owned(), "please".to_owned()], Some(0)));
}

#[test]
fn wait_with_json_prints_one_object() {
    let environment = TestEnvironment::new();
    let (asking, id) = ask_and_wait(&environment, &["--json", "Which branch?"]);
    environment.run(&["acknowledge", &id, "main"]);
    assert_eq!(asking.messages(), [json!({"question_id": id, "answered": true, "answer": "main"})]);
}

#[test]
fn another_answer_does_not_end_the_wait() {
    let environment = TestEnvironment::new();
    let other = ask(&environment, &["Another one?"]);
    let (asking, id) = ask_and_wait(&environment, &["Which branch?"]);
    environment.run(&["acknowledge", &other, "not this"]);
    environment.notify("nor this");
    environment.run(&["acknowledge", &id, "main"]);
    assert_eq!(asking.end(), (vec!["main".to_owned()], Some(0)));
}

#[test]
fn a_timeout_is_75_and_the_question_stays_open() {
    let environment = TestEnvironment::new();
    let (out, err) =
        check(&mut environment.ringer(&["ask", "--wait", "--timeout", "0.05", "Anybody there?"]), 75);
    assert!(out.is_empty() && err.contains("stays open") && err.contains("hint: ringer answer q-"), "{err}");
    let open = questions(&environment, &[]);
    assert_eq!(open.len(), 1);
    let id = open[0]["question_id"].as_str().unwrap();
    environment.run(&["acknowledge", id, "late, but here"]);
    check(&mut environment.ringer(&["ask", "--timeout", "1", "A timeout for nothing?"]), 64);
}

#[test]
fn twenty_at_the_same_moment_are_twenty() {
    let environment = TestEnvironment::new();
    let asking: Vec<Background> = (0..20)
        .map(|number| Background::start(environment.ringer(&["ask", &format!("Question {number}?")])))
        .collect();
    let ids: BTreeSet<String> = asking
        .into_iter()
        .map(|asking| {
            let (lines, exit) = asking.end();
            assert_eq!((lines.len(), exit), (1, Some(0)));
            lines[0].clone()
        })
        .collect();
    assert_eq!(ids.len(), 20);
    let open = questions(&environment, &[]);
    let asked: BTreeSet<&str> = open.iter().map(|one| one["question"].as_str().unwrap()).collect();
    assert_eq!((open.len(), asked.len()), (20, 20));
    assert_eq!(environment.drain().len(), 20);
}

#[test]
fn a_second_answer_is_refused_and_the_first_stays() {
    let environment = TestEnvironment::new();
    let id = ask(&environment, &["--from", "worker-1", "Deploy now?"]);
    environment.run(&["acknowledge", &id, "yes"]);
    for second in [&["acknowledge", &id, "no"][..], &["acknowledge", &id]] {
        let (out, err) = check(&mut environment.ringer(second), 65);
        assert!(
            out.is_empty() && err.contains("was already answered \"yes\"") && err.contains("hint: "),
            "{err}"
        );
    }
    assert_eq!(questions(&environment, &["--all"])[0]["answer"], "yes");
    assert_eq!(lines(&environment.run(&["log", "--to", "worker-1", "--json"])).len(), 1);
}

#[test]
fn of_ten_answers_at_once_one_counts() {
    let environment = TestEnvironment::new();
    let id = ask(&environment, &["--from", "worker-1", "Who is first?"]);
    let mut answering: Vec<_> = (0..10)
        .map(|number| {
            let mut command = environment.ringer(&["acknowledge", &id, &number.to_string()]);
            command.stderr(std::process::Stdio::null()).spawn().expect("it starts")
        })
        .collect();
    let mut exits: Vec<i32> = answering.iter_mut().map(|one| one.wait().unwrap().code().unwrap()).collect();
    let winner = exits.iter().position(|exit| *exit == 0).expect("a first one");
    exits.sort_unstable();
    assert_eq!(exits, [&[0][..], &[65; 9]].concat());
    assert_eq!(questions(&environment, &["--all"])[0]["answer"], winner.to_string());
}

#[test]
fn an_unknown_id_is_65_and_says_where_to_look() {
    let environment = TestEnvironment::new();
    ask(&environment, &["Deploy now?"]);
    let (_, err) = check(&mut environment.ringer(&["acknowledge", "q-1-000000", "yes"]), 65);
    assert!(err.contains("unknown question q-1-000000") && err.contains("hint: ringer list --open"), "{err}");
}

#[test]
fn the_answer_is_queued_for_the_agent_that_asked() {
    let environment = TestEnvironment::new();
    let mut asking = environment.ringer(&["ask", "Deploy now?"]);
    let id = check(asking.env("RINGER_AGENT", "worker-1"), 0).0;
    environment.drain();
    environment.run(&["acknowledge", id.trim(), "yes, but keep the old API"]);
    let inbox = lines(&environment.run(&["log", "--to", "worker-1", "--json"]));
    assert_eq!(texts(&inbox), ["Answer to \"Deploy now?\": yes, but keep the old API"]);
    assert_eq!(
        (&inbox[0]["to"], &inbox[0]["question_id"], &inbox[0]["category"]),
        (&json!("agent:worker-1"), &json!(id.trim()), &json!("answer"))
    );
    assert!(environment.drain().is_empty(), "it is not for the lead");
}

/// It has the answer in its hand: told once more in its next tool result, it would look like another one.
#[test]
fn an_answer_that_was_waited_for_does_not_come_into_the_inbox_as_well() {
    let environment = TestEnvironment::new();
    let (asking, id) = ask_and_wait(&environment, &["--from", "worker-1", "Which port?"]);
    environment.run(&["acknowledge", &id, "8080"]);
    assert_eq!(asking.end().0, ["8080"]);
    let answer = environment.run(&["log", "--json", "--to", "worker-1"]);
    let answer = lines(&answer)[0]["id"].as_str().expect("an id").to_owned();
    let why = ringer::json(&environment.run(&["why", "--json", &answer]));
    assert_eq!(why["receipts"][0]["state"], "seen", "{why}");
}

#[test]
fn questions_belong_to_a_repository() {
    let environment = TestEnvironment::new();
    let other = environment.make_repository("other");
    ask(&environment, &["Here?"]);
    let elsewhere = |arguments: &[&str]| {
        let mut command = environment.ringer(&[&["questions", "--json"], arguments].concat());
        check(command.current_dir(&other), 0).0
    };
    assert_eq!(elsewhere(&["--here"]), "[]\n");
    assert_eq!(questions(&environment, &["--here"]).len(), 1);
    for everywhere in [&[][..], &["--everywhere"]] {
        let listed = ringer::json(&elsewhere(everywhere));
        assert_eq!((&listed[0]["question"], &listed[0]["label"]), (&json!("Here?"), &json!("repository")));
        assert!(listed[0]["scope"].is_string(), "{listed}");
    }
    check(&mut environment.ringer(&["questions", "--here", "--everywhere"]), 64);
}

#[test]
fn the_table_has_a_short_id_the_answers_to_choose_from_and_the_answer() {
    let environment = TestEnvironment::new();
    ask(
        &environment,
        &["--from", "worker-1", "Which database?", "--option", "Postgres", "--option", "SQLite"],
    );
    let done = ask(&environment, &["--from", "worker-2", "Deploy?"]);
    environment.run(&["answer", &done, "yes"]);
    let withdrawn = ask(&environment, &["--from", "worker-3", "Still there?"]);
    environment.run(&["answer", &withdrawn, "--close"]);
    let short_id = |number: usize| questions(&environment, &["--all"])[number]["short_id"].clone();
    let short_id = |number: usize| short_id(number).as_str().expect("a short id").to_owned();
    let open = environment.run(&["questions"]);
    let expected =
        format!(" {}  worker-1  question  Which database? (Postgres / SQLite)  now\n", short_id(0));
    assert_eq!(open, expected);
    let all = environment.run(&["questions", "--all"]);
    let rest: Vec<Vec<&str>> = all.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rest[0], [&short_id(1), "worker-2", "answered", "Deploy?", "→", "yes", "now"]);
    assert_eq!(rest[1], [&short_id(2), "worker-3", "closed", "Still", "there?", "now"]);
    // Its short id is enough to answer it.
    environment.run(&["answer", &short_id(0), "SQLite"]);
    assert_eq!(questions(&environment, &["--all"])[0]["answer"], "SQLite");
}

#[test]
fn what_cannot_be_asked_is_refused_and_nothing_is_stored() {
    let environment = TestEnvironment::new();
    let too_long = "x".repeat(64 * 1024 + 1);
    for (arguments, exit) in [
        (&["ask", ""][..], 64),
        (&["ask", " \n"], 64),
        (&["ask", "--from", "worker-1", ""], 64),
        (&["ask", &too_long], 65),
        (&["ask", "--from", "a\nb", "What?"], 65),
    ] {
        check(&mut environment.ringer(arguments), exit);
    }
    assert!(questions(&environment, &["--all"]).is_empty() && environment.drain().is_empty());
}
