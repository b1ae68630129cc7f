//! The seed's fixtures: what `notify` is given is what `listen` prints, one self-contained JSON object per line.

use std::fs;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;

use crate::home::{TestEnvironment, texts};
use crate::ringer::json;

fn fixture(name: &str) -> String {
    let path = format!("{}/tests/fixtures/notify/{name}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn send(environment: &TestEnvironment, input: &Value) {
    let text = |name: &str| input[name].as_str().map(str::to_owned);
    let mut arguments = vec!["notify".to_owned()];
    for (option, name) in [("--from", "from"), ("--type", "type"), ("--question-id", "question_id")] {
        arguments.extend(text(name).into_iter().flat_map(|value| [option.to_owned(), value]));
    }
    arguments.push(text("msg").expect("a message"));
    environment.run(&arguments);
}

/// The fields of an object in the order in which they stand.
struct Fields(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// `2026-02-17T14:30:05-0600`: `d` stands for a digit, `s` for a sign.
fn has_form(text: &str, form: &str) -> bool {
    text.len() == form.len()
        && text.chars().zip(form.chars()).all(|(own, wanted)| match wanted {
            'd' => own.is_ascii_digit(),
            's' => own == '+' || own == '-',
            _ => own == wanted,
        })
}

const STAMP: &str = "dddd-dd-ddTdd:dd:ddsdddd";

/// Gives the line as it was printed.
#[track_caller]
fn check_format(name: &str) -> String {
    let environment = TestEnvironment::new();
    let input = json(&fixture(name));
    send(&environment, &input);
    let printed = environment.run(&["listen", "--timeout", "0"]);
    assert!(printed.ends_with('\n') && printed.lines().count() == 1, "{printed}");
    let Fields(fields) = serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"));
    let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
    let question = input.get("question_id").map(|_| "question_id");
    let wanted: Vec<&str> =
        ["ts", "from", "type", "msg"].into_iter().chain(question).chain(["id", "scope", "origin"]).collect();
    assert_eq!(names, wanted);
    let output = json(&printed);
    for (name, value) in input.as_object().expect("an object") {
        assert_eq!(&output[name], value, "{name}");
    }
    assert!(has_form(output["ts"].as_str().expect("a text"), STAMP), "{printed}");
    printed
}

#[test]
fn format_basic() {
    check_format("format-basic.json");
}

#[test]
fn format_quotes() {
    let printed = check_format("format-quotes.json");
    assert!(printed.contains(r#"\"it works\""#) && printed.contains(r#"\"a\\b\""#), "{printed}");
}

#[test]
fn format_newlines() {
    let printed = check_format("format-newlines.json");
    assert!(printed.contains(r"first line\nsecond line\r\n\tindented\n\nafter"), "{printed}");
}

#[test]
fn format_question() {
    let printed = check_format("format-question.json");
    assert!(printed.contains(r#""question_id":"q-1740000607-a1b2c3","id":""#), "{printed}");
}

#[test]
fn what_else_a_message_has_follows_in_its_order() {
    let environment = TestEnvironment::new();
    environment.run(&[
        "notify",
        "--from",
        "a1",
        "--to",
        "all",
        "--title",
        "T",
        "--subtitle",
        "S",
        "--key",
        "k",
        "hello",
    ]);
    let printed = environment.run(&["listen", "--timeout", "0"]);
    let Fields(fields) = serde_json::from_str(&printed).unwrap();
    let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["ts", "from", "type", "msg", "id", "to", "title", "subtitle", "key", "scope", "origin"]
    );
}

#[track_caller]
fn check_drain(name: &str, count: usize) {
    let environment = TestEnvironment::new();
    let inputs: Vec<Value> = fixture(name).lines().map(json).collect();
    assert_eq!(inputs.len(), count);
    for input in &inputs {
        send(&environment, input);
    }
    let drained = environment.drain();
    assert_eq!(drained.len(), count);
    for (input, output) in inputs.iter().zip(&drained) {
        for (name, value) in input.as_object().expect("an object") {
            assert_eq!(&output[name], value, "{name}");
        }
    }
    assert_eq!(environment.run(&["listen", "--timeout", "0"]), "", "what was printed is not printed again");
}

#[test]
fn drain_single() {
    check_drain("drain-single.jsonl", 1);
}

#[test]
fn drain_multiple() {
    check_drain("drain-multiple.jsonl", 3);
}

#[test]
fn drain_empty() {
    check_drain("drain-empty.jsonl", 0);
}

#[test]
fn times_are_the_readers_local_time() {
    let environment = TestEnvironment::new();
    environment.notify("hello");
    for (reader, zone, offsets) in [
        ("a", Some("America/Chicago"), &["-0600", "-0500"][..]),
        ("b", Some("CST6"), &["-0600"]),
        ("c", Some("UTC"), &["+0000"]),
        ("d", None, &[""]),
    ] {
        let mut command = environment.ringer(&["listen", "--timeout", "0", "--as", reader]);
        if let Some(zone) = zone {
            command.env("TZ", zone);
        }
        let line = json(&crate::ringer::check(&mut command, 0).0);
        let stamp = line["ts"].as_str().unwrap();
        assert!(has_form(stamp, STAMP) && offsets.iter().any(|offset| stamp.ends_with(offset)), "{stamp}");
        let sent = jiff::Timestamp::strptime("%Y-%m-%dT%H:%M:%S%z", stamp).unwrap();
        let age = jiff::Timestamp::now().duration_since(sent);
        assert!((0..60).contains(&age.as_secs()), "{zone:?}: {stamp} is not the moment it was sent");
    }
}

/// The seed's integration test.
#[test]
fn a_listener_in_the_background_exits_with_the_message() {
    let environment = TestEnvironment::new();
    let listener = environment.listen(&["--timeout", "30"]);
    environment.run(&["notify", "--from", "test-agent", "--type", "complete", "Test message"]);
    let messages = listener.messages();
    assert_eq!(texts(&messages), ["Test message"]);
    assert_eq!((&messages[0]["from"], &messages[0]["type"]), (&"test-agent".into(), &"complete".into()));
}
