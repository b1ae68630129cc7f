//! What a well-known terminal makes of about two hundred inputs, against what we make of them.
//!
//! The cases are read where they are and are no part of this repository; without them there is nothing to compare.

mod agreement;
mod differences;

use std::collections::BTreeSet;
use std::fs;

use ringer_term::{EventKind, Scanner};
use serde_json::Value;

use agreement::{disagreement, fields_not_reported};
use differences::{DIFFERENCES, NOT_REPORTED};

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/lab/terminal/osc_cases.json");

struct Case {
    /// What stands between `ESC ]` and the end.
    input: String,
    /// Where the case leaves the end open, both have to do.
    ends: &'static [&'static str],
    expect: Value,
}

impl Case {
    fn events(&self, end: &str) -> Vec<EventKind> {
        let (mut scanner, mut events) = (Scanner::new(), Vec::new());
        scanner.feed(format!("\x1b]{}{end}", self.input).as_bytes(), |event| events.push(event.kind));
        events
    }
}

/// `None` where the cases are not at hand.
fn cases() -> Option<Vec<Case>> {
    let Ok(text) = fs::read(CASES) else {
        eprintln!("skipped: there is no {CASES}");
        return None;
    };
    let file: Value = serde_json::from_slice(&text).unwrap();
    let cases: Vec<Case> = file["cases"].as_array().unwrap().iter().map(case).collect();
    assert!(!cases.is_empty());
    Some(cases)
}

fn case(entry: &Value) -> Case {
    Case {
        input: entry["input"].as_str().unwrap().to_owned(),
        ends: match entry["terminator"].as_str() {
            Some("ST") => &["\x1b\\"],
            Some("unspecified") => &["\x1b\\", "\x07"],
            other => panic!("unknown terminator {other:?}"),
        },
        expect: entry["expect"].clone(),
    }
}

#[test]
fn every_case_agrees_or_is_a_difference_that_we_chose() {
    for case in cases().unwrap_or_default() {
        let chosen = DIFFERENCES.iter().find(|difference| difference.input() == case.input);
        for end in case.ends {
            let events = case.events(end);
            match (chosen, disagreement(&case.expect, &events)) {
                (None, None) => {}
                (Some(chosen), Some(_)) => chosen.check(&events),
                (None, Some(what)) => panic!("{}: {what}; we make of it: {events:?}", case.input),
                (Some(chosen), None) => {
                    panic!("{}: no longer a difference, although listed: {}", case.input, chosen.why)
                }
            }
        }
    }
}

#[test]
fn no_difference_is_listed_for_nothing() {
    let Some(cases) = cases() else { return };
    for difference in DIFFERENCES {
        let input = difference.input();
        assert!(cases.iter().any(|case| case.input == input), "there is no case {input}");
    }
    let fields: BTreeSet<(String, String)> =
        cases.iter().flat_map(|case| fields_not_reported(&case.expect)).collect();
    for (command, field, _) in NOT_REPORTED {
        assert!(fields.contains(&((*command).to_owned(), (*field).to_owned())), "no case has {field}");
    }
}
