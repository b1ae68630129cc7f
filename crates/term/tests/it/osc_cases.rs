//! What one OSC says, case by case: what stands between `ESC ]` and the end, and the events it makes.
//!
//! Where terminals disagree, the rule that we chose stands above the cases.

mod conemu;
mod links;
mod osc99;
mod prompts;
mod texts;

use ringer_term::{Notification, Osc99Metadata, Protocol, Scanner, TerminalEventKind};

/// An OSC ends with ST or BEL, and what it says does not depend on that.
const ENDS: [&str; 2] = ["\x1b\\", "\x07"];

/// Checks what an OSC makes, with either end, in one piece and byte by byte.
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

/// Checks that an OSC says nothing to us. The terminal around still gets its bytes.
#[track_caller]
fn check_silent(payloads: &[&str]) {
    for payload in payloads {
        check(payload, &[]);
    }
}

/// A notification that has a text and nothing else.
fn notification(protocol: Protocol, title: &str, body: &str) -> TerminalEventKind {
    TerminalEventKind::Notification(Notification {
        protocol,
        id: None,
        title: title.to_owned(),
        body: body.to_owned(),
        metadata: Osc99Metadata::default(),
    })
}
