//! `ringer log`, `status`, `nuke`: looking at the journal, and taking a repository out of it.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::background::Background;
use crate::home::{TestEnvironment, is_listening, lines, texts};
use crate::pty::typed_in_terminal;
use crate::ringer::{self, check};

/// The texts that `log` prints with these options.
#[track_caller]
fn log(environment: &TestEnvironment, options: &[&str]) -> Vec<String> {
    let mut command = environment.ringer(&["log", "--json"]);
    texts(&lines(&check(command.args(options), 0).0))
}

fn some_messages(environment: &TestEnvironment) {
    environment.run(&["notify", "--from", "a1", "--type", "complete", "one"]);
    environment.run(&["notify", "--from", "a2", "--type", "error", "--to", "person", "two"]);
    environment.run(&["notify", "--from", "a1", "--type", "error", "--to", "worker-1", "three"]);
}

#[test]
fn log_filters() {
    let environment = TestEnvironment::new();
    assert_eq!(environment.run(&["log"]), "", "without a journal there is nothing to print");
    assert!(!environment.home().exists(), "and looking makes none");
    some_messages(&environment);
    for (options, expected) in [
        (&[][..], &["one", "two", "three"][..]),
        (&["--from", "a1"], &["one", "three"]),
        (&["--type", "error"], &["two", "three"]),
        (&["--type", "error", "--from", "a1"], &["three"]),
        (&["--to", "person"], &["two"]),
        (&["--to", "worker-1"], &["three"]),
        (&["--to", "agent:worker-1"], &["three"]),
        (&["--to", "default"], &["one"]),
        (&["--from", "nobody"], &[]),
    ] {
        assert_eq!(log(&environment, options), expected, "{options:?}");
    }
    check(&mut environment.ringer(&["log", "--type", "dance"]), 64);
    assert_eq!(environment.texts(), ["one"], "`log` moves no cursor");
}

/// The moment in a message's id, in milliseconds since 1970.
fn sent(message: &Value) -> i64 {
    let id: String = message["id"].as_str().expect("an id").chars().filter(|c| *c != '-').collect();
    i64::from_str_radix(&id[..12], 16).expect("a version 7 id begins with its time")
}

#[test]
fn log_since() {
    let environment = TestEnvironment::new();
    environment.notify("one");
    let first = sent(&lines(&environment.run(&["log", "--json"]))[0]);
    environment.notify("two");
    let after = jiff::Timestamp::from_millisecond(first + 1).unwrap().to_string();
    let at = jiff::Timestamp::from_millisecond(first).unwrap().to_string();
    for (since, expected) in [
        (after.as_str(), &["two"][..]),
        (&at, &["one", "two"]),
        ("2h", &["one", "two"]),
        ("2020-01-01", &["one", "two"]),
        ("2020-01-01T00:00:00", &["one", "two"]),
        ("2020-01-01T00:00:00-0600", &["one", "two"]),
        ("2999-01-01", &[]),
    ] {
        assert_eq!(log(&environment, &["--since", since]), expected, "{since}");
    }
    let (_, err) = check(&mut environment.ringer(&["log", "--since", "yesterday"]), 64);
    assert!(err.contains("2026-02-17"), "{err}");
}

#[test]
fn log_follow() {
    let environment = TestEnvironment::new();
    environment.run(&["notify", "--type", "error", "before"]);
    let mut command = environment.ringer(&["log", "--json", "--follow", "--type", "error"]);
    command.current_dir(environment.repository());
    let mut follower = environment.start(command);
    assert_eq!(follower.message()["msg"], "before");
    environment.run(&["notify", "--type", "status", "filtered out"]);
    environment.run(&["notify", "--type", "error", "--to", "person", "after"]);
    assert_eq!(follower.message()["msg"], "after");
    follower.kill();
    assert_eq!(follower.line(), None);
}

#[test]
fn log_follow_in_a_fresh_home_waits_for_the_first() {
    let environment = TestEnvironment::new();
    let follower = environment.start(environment.ringer(&["log", "--follow", "--json"]));
    environment.notify("first");
    assert_eq!(follower.message()["msg"], "first");
}

#[test]
fn log_follow_ends_when_its_reader_has_gone() {
    let environment = TestEnvironment::new();
    let mut command = environment.program("sh");
    // It closes the pipe before it prints what came.
    let reader = "{ read -r line; exec <&-; printf '%s\\n' \"$line\"; }";
    command.args(["-c", &format!("\"$RINGER\" log --follow --json | {reader}")]);
    let pipeline = Background::start(command);
    environment.wait_until("it follows", |status| !status["listeners"].as_array().unwrap().is_empty());
    environment.notify("one");
    assert_eq!(pipeline.message()["msg"], "one");
    // Its next line meets the closed pipe.
    environment.notify("two");
    assert_eq!(pipeline.end(), (Vec::new(), Some(0)));
}

#[test]
fn log_is_safe_to_print_and_json_is_as_sent() {
    let environment = TestEnvironment::new();
    environment.notify("a\u{1b}]0;title\u{7}b\nc");
    let words = environment.run(&["log"]);
    assert!(!words.contains('\u{1b}') && !words.contains('\u{7}') && words.lines().count() == 1, "{words:?}");
    assert_eq!(log(&environment, &[]), ["a\u{1b}]0;title\u{7}b\nc"]);
}

#[test]
fn status_has_every_field() {
    let environment = TestEnvironment::new();
    let empty = ringer::json(&environment.run(&["status", "--json"]));
    assert_eq!((&empty["messages"], &empty["listeners"]), (&json!(0), &json!([])));
    assert!(!environment.home().exists(), "looking makes nothing");
    some_messages(&environment);
    environment.drain();
    environment.notify("four");
    let status = ringer::json(&environment.run(&["status", "--json"]));
    let fields: Vec<&String> = status.as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        [
            "agents",
            "home",
            "hub",
            "hub_behind",
            "listeners",
            "messages",
            "needs_you",
            "open_questions",
            "repository",
            "scope",
            "unread",
            "unread_notifications"
        ]
    );
    assert_eq!(status["home"], environment.home().to_str().unwrap());
    assert_eq!(status["repository"], environment.repository().to_str().unwrap());
    assert_eq!((&status["messages"], &status["open_questions"]), (&json!(4), &json!(0)));
    assert_eq!(status["unread"].as_array().unwrap().len(), 1);
    let unread = &status["unread"][0];
    assert_eq!((&unread["consumer"], &unread["messages"]), (&json!("lead"), &json!(1)));
    let agents: Vec<&Value> = status["agents"].as_array().unwrap().iter().map(|agent| &agent["id"]).collect();
    assert!(agents.len() == 2 && agents.contains(&&json!("a1")) && agents.contains(&&json!("a2")));
    let words = environment.run(&["status"]);
    assert!(words.contains("1 for lead") && words.contains("listeners         none"), "{words}");
}

#[test]
fn status_shows_a_listener_while_it_lives() {
    let environment = TestEnvironment::new();
    let mut listener = environment.listen(&["--as", "dashboard"]);
    let status = ringer::json(&environment.run(&["status", "--json"]));
    let expected = json!([{"consumer": "dashboard", "scope": status["scope"], "pid": listener.pid()}]);
    assert_eq!(status["listeners"], expected);
    listener.stop();
    assert!(is_listening(&environment.status(), listener.pid()), "stopped is not dead");
    listener.kill();
    assert_eq!(environment.status()["listeners"], json!([]));
}

#[test]
fn nuke_without_a_terminal_needs_to_be_told() {
    let environment = TestEnvironment::new();
    environment.notify("hello");
    let (_, err) = check(&mut environment.ringer(&["nuke"]), 64);
    assert!(err.contains("hello") && err.contains("hint: ringer nuke --yes"), "{err}");
    assert_eq!(environment.texts(), ["hello"]);
}

#[test]
fn nuke_removes_what_belongs_to_the_repository_and_nothing_else() {
    let environment = TestEnvironment::new();
    let other = environment.make_repository("other");
    check(environment.ringer(&["notify", "elsewhere"]).current_dir(&other), 0);
    let id = environment.repository().join(".git/ringer/id");
    let listener = environment.listen(&[]);
    let elsewhere = environment.start({
        let mut command = environment.ringer(&["listen", "--from-now"]);
        command.current_dir(&other);
        command
    });
    listener.stop();
    environment.run(&["notify", "--from", "a1", "here"]);
    environment.run(&["ask", "here?"]);
    assert!(id.exists());
    let mut nuke = environment.ringer(&["nuke", "--yes", "--json"]);
    let (out, err) = check(&mut nuke, 0);
    let report = ringer::json(&out);
    assert_eq!((&report["messages_removed"], &report["listeners_ended"]), (&json!(2), &json!(1)));
    assert!(err.find("here").expect("the unread are listed") < err.find("This deletes").unwrap(), "{err}");
    listener.signal(Signal::CONT);
    let (printed, exit) = listener.end();
    assert_eq!((printed.len(), exit), (0, None), "it was ended");
    assert!(!id.exists());
    assert!(environment.drain().is_empty() && environment.run(&["log"]).is_empty());
    assert_eq!(environment.run(&["questions", "--all", "--json", "--everywhere"]), "[]\n");
    check(environment.ringer(&["notify", "still there"]).current_dir(&other), 0);
    assert_eq!(texts(&elsewhere.messages()), ["still there"]);
    let mut left = log(&environment, &["--everywhere"]);
    // The test has no terminal.
    left.retain(|body| !body.starts_with("A script of yours did this: delete"));
    assert_eq!(left, ["elsewhere", "still there"]);
}

#[test]
fn nuke_lists_only_what_no_reader_has_read() {
    let environment = TestEnvironment::new();
    environment.notify("was read");
    environment.drain();
    environment.notify("was not");
    let (_, err) = check(&mut environment.ringer(&["nuke", "--yes"]), 0);
    assert!(err.contains("was not") && !err.contains("was read"), "{err}");
}

#[test]
fn nuke_asks_at_a_terminal() {
    let environment = TestEnvironment::new();
    environment.notify("hello");
    let nuke = |answer: &str| {
        let home = environment.home();
        let scripts = environment.path().join("scripts.toml");
        let variables = [
            ("RINGER_HOME", home.to_str().unwrap()),
            ("TERM", "xterm"),
            ("RINGER_HUB", "off"),
            // The terminal is held by the test.
            ("RINGER_CONFIG", scripts.to_str().unwrap()),
        ];
        typed_in_terminal(&["nuke"], &variables, &environment.repository(), answer)
    };
    for no in ["n\n", "\n", "yess\n", "\u{4}"] {
        let (written, exit) = nuke(no);
        assert!(exit == 0 && written.contains("Nothing was deleted."), "{no:?}: {written}");
        assert!(written.find("hello").unwrap() < written.find("Delete?").unwrap(), "{written}");
    }
    assert_eq!(log(&environment, &[]), ["hello"]);
    let (written, exit) = nuke("y\n");
    assert!(exit == 0 && written.contains("deleted 1 message"), "{written}");
    assert!(log(&environment, &[]).is_empty());
}

#[test]
fn nuke_outside_a_repository_is_64() {
    let environment = TestEnvironment::new();
    let (_, err) = check(environment.ringer(&["nuke", "--yes"]).current_dir(environment.path()), 64);
    assert!(err.contains("not a git repository"), "{err}");
}

#[test]
fn after_a_nuke_everything_begins_anew() {
    let environment = TestEnvironment::new();
    environment.notify("old");
    let before = environment.run(&["status", "--json"]);
    environment.run(&["nuke", "--yes"]);
    environment.run(&["nuke", "--yes"]);
    environment.notify("new");
    assert_eq!(environment.texts(), ["new"]);
    let after = environment.run(&["status", "--json"]);
    assert_ne!(ringer::json(&before)["scope"], ringer::json(&after)["scope"]);
}
