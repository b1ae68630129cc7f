//! Single OSC sequences, case by case: the payload between `ESC ]` and the terminator, and the resulting events.
//!
//! Where terminals disagree, the chosen rule is stated above the cases.

mod conemu;
mod links;
mod osc99;
mod prompts;
mod texts;

use ringer_term::{Notification, Osc99Metadata, Protocol, Scanner, TerminalEventKind};

/// An OSC ends with ST or BEL, which does not change its meaning.
const ENDS: [&str; 2] = ["\x1b\\", "\x07"];

/// Checks the events of an OSC with either terminator, in one piece and byte by byte.
#[track_caller]
fn check(payload: &str, expect: &[TerminalEventKind]) {
    for end in ENDS {
        let sequence = format!("\x1b]{payload}{end}");
        let mut whole = Vec::new();
        Scanner::new().feed(sequence.as_bytes(), |event| whole.push(event.kind));
        assert_eq!(whole, expect, "{payload:?} with the end {end:?}");
        let (mut scanner, mut pieces) = (Scanner::new(), Vec::new());
        for byte in sequence.as_bytes() {
            scanner.feed(&[*byte], |event| pieces.push(event.kind));
        }
        assert_eq!(pieces, expect, "{payload:?} with the end {end:?}, byte by byte");
    }
}

/// Checks that an OSC has no events. The outer terminal still receives its bytes.
#[track_caller]
fn check_silent(payloads: &[&str]) {
    for payload in payloads {
        check(payload, &[]);
    }
}

/// Returns a notification with only a text.
fn notification(protocol: Protocol, title: &str, body: &str) -> TerminalEventKind {
    TerminalEventKind::Notification(Notification {
        protocol,
        id: None,
        title: title.to_owned(),
        body: body.to_owned(),
        metadata: Osc99Metadata::default(),
    })
}
