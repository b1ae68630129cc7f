//! The filter passes everything but notifications, wherever the stream is cut.

use proptest::prelude::*;
use ringer_term::{Multiplexer, NotificationStripper, Scanner, TerminalEvent, TerminalEventKind, wrap};

use super::hostile::stack;
use super::splits::{cut, stream};

fn filtered<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, withhold: bool) -> (Vec<u8>, Vec<TerminalEvent>) {
    let (mut filter, mut passed, mut events) = (NotificationStripper::new(), Vec::new(), Vec::new());
    for piece in pieces {
        filter.feed(piece, withhold, |bytes| passed.extend_from_slice(bytes), |event| events.push(event));
    }
    filter.release(|bytes| passed.extend_from_slice(bytes));
    (passed, events)
}

fn scanned(bytes: &[u8]) -> Vec<TerminalEvent> {
    let (mut scanner, mut events) = (Scanner::new(), Vec::new());
    scanner.feed(bytes, |event| events.push(event));
    events
}

/// Sequences other than notifications, and text.
const OTHERS: &[&str] = &[
    "text ",
    "\x07",
    "\x1b[31m",
    "\x1b[?1004h",
    "\x1b]0;title\x07",
    "\x1b]2;title\x1b\\",
    "\x1b]9;4;1;50\x1b\\",
    "\x1b]9;9;/tmp\x07",
    "\x1b]9;\x07",
    "\x1b]99;i=1:p=?;\x1b\\",
    "\x1b]99;i=1:p=close;\x1b\\",
    "\x1b]99;i=1:p=alive;\x1b\\",
    "\x1b]777;precmd\x07",
    "\x1b]7501;?\x07",
    "\x1b]8;;http://x\x07",
    "\x1b_Gf=100;AAAA\x1b\\",
    "\x1bPq#0;2\x1b\\",
    "\x1bc",
    "é✳",
];

const NOTIFICATIONS: &[&str] = &[
    "\x1b]9;done\x07",
    "\x1b]9;13;x\x1b\\",
    "\x1b]9;\n\nClaude Code: done\x07",
    "\x1b]99;i=1:d=0:p=title;T\x1b\\",
    "\x1b]99;i=1:d=0:p=body;B\x1b\\",
    "\x1b]99;i=1:d=1:a=focus;\x1b\\",
    "\x1b]99;;x\x07",
    "\x1b]777;notify;T;B\x07",
];

/// Generates a sequence, and true if it is a notification.
fn sequence() -> impl Strategy<Value = (Vec<u8>, bool)> {
    let other = prop::sample::select(OTHERS).prop_map(|bytes| (bytes.as_bytes().to_vec(), false));
    // An incomplete stream in a wrapper of screen continues in the next wrapper, so only complete ones are wrapped.
    let notification = (prop::sample::select(NOTIFICATIONS), stack())
        .prop_map(|(bytes, layers): (&str, Vec<Multiplexer>)| (wrap(bytes.as_bytes(), &layers), true));
    prop_oneof![other, notification]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn exactly_the_notifications_are_removed(
        sequences in prop::collection::vec(sequence(), 0..24),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let all: Vec<u8> = sequences.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let others: Vec<u8> =
            sequences.iter().filter(|(_, is_one)| !is_one).flat_map(|(bytes, _)| bytes.clone()).collect();
        let (passed, events) = filtered(cut(&all, &places), true);
        prop_assert_eq!(passed.escape_ascii().to_string(), others.escape_ascii().to_string());
        prop_assert_eq!(events, scanned(&all));
    }

    /// Also for incomplete, nested, overlong and invalid sequences.
    #[test]
    fn splitting_does_not_change_the_output(
        bytes in stream(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let whole = filtered([bytes.as_slice()], true);
        prop_assert_eq!(&whole.1, &scanned(&bytes));
        prop_assert_eq!(&filtered(cut(&bytes, &places), true), &whole, "cut at {:?}", places);
        prop_assert_eq!(&filtered(bytes.chunks(1), true), &whole, "byte by byte");
        prop_assert_eq!(&filtered(cut(&bytes, &places), false).0, &bytes, "nothing is withheld");
        // The output is a subsequence of the stream.
        let mut rest = bytes.iter();
        prop_assert!(whole.0.iter().all(|byte| rest.any(|own| own == byte)));
        if whole.1.iter().all(|event| !matches!(event.kind, TerminalEventKind::Notification(_))) {
            // Parts of an OSC 99 that was never completed may be missing.
            let parts = bytes.windows(5).any(|five| five == b"\x1b]99;");
            prop_assert!(parts || whole.0 == bytes);
        }
    }

    /// Filtering may be switched on or off at any time; each notification passes or is removed as a whole.
    #[test]
    fn no_notification_is_removed_in_part(
        sequences in prop::collection::vec(sequence(), 0..24),
        switches in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..8),
    ) {
        let all: Vec<u8> = sequences.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let places: Vec<_> = switches.iter().map(|(place, _)| *place).collect();
        let (mut filter, mut passed) = (NotificationStripper::new(), Vec::new());
        let withhold = switches.iter().map(|(_, withhold)| *withhold).chain([true]);
        for (piece, withhold) in cut(&all, &places).into_iter().zip(withhold) {
            filter.feed(piece, withhold, |bytes| passed.extend_from_slice(bytes), |_| {});
        }
        let mut rest = passed.as_slice();
        for (bytes, is_one) in &sequences {
            match rest.strip_prefix(bytes.as_slice()) {
                Some(after) => rest = after,
                None => prop_assert!(is_one, "{} is missing", bytes.escape_ascii()),
            }
        }
        prop_assert!(rest.is_empty(), "{} is left", rest.escape_ascii());
    }
}

#[track_caller]
fn check(bytes: &[u8], passed: &[u8]) {
    let found = filtered([bytes], true).0;
    assert_eq!(found.escape_ascii().to_string(), passed.escape_ascii().to_string());
}

#[test]
fn only_wrappers_of_notifications_alone_are_removed() {
    check(b"\x1bPtmux;\x1b\x1b]9;x\x07\x1b\x1b]9;y\x07\x1b\\.", b".");
    for mixed in [
        &b"\x1bPtmux;\x1b\x1b]9;x\x07text\x1b\\."[..],
        b"\x1bPtmux;text\x1b\x1b]9;x\x07\x1b\\.",
        b"\x1bPtmux;\x1b\x1b]9;x\x07\x1b\x1b]0;t\x07\x1b\\.",
        b"\x1bPtmux;\x1b\x1b]9;x\x07\x1b\x1b]9;y\x1b\\.",
        b"\x1bPtmux;\x1b\\.",
        b"\x1bPtmux;\x1b\x1b[0m\x1b\x1b]9;x\x07\x1b\\.",
    ] {
        check(mixed, mixed);
    }
}

#[test]
fn incomplete_sequences_pass() {
    check(b"\x1b]9;x\x1b]9;y\x07z", b"\x1b]9;xz");
    check(b"\x1b]0;x\x1b]9;y\x07z", b"\x1b]0;xz");
    check(b"\x1b\x1b]9;y\x07z", b"\x1bz");
    check(b"\x1b]9;x\x18z", b"\x1b]9;x\x18z");
    check(b"\x1b]9;x", b"\x1b]9;x");
    check(b"\x1b\x07]9;x\x07", b"\x1b\x07]9;x\x07");
}

#[test]
fn an_unterminated_sequence_passes_without_memory() {
    let (mut filter, mut passed) = (NotificationStripper::new(), 0);
    filter.feed(b"\x1b]9;", true, |bytes| passed += bytes.len(), |_| {});
    assert_eq!(passed, 0);
    for _ in 0..1024 {
        filter.feed(&[b'x'; 1024], true, |bytes| passed += bytes.len(), |_| {});
    }
    assert_eq!(passed, 4 + 1024 * 1024);
}

#[test]
fn an_escape_alone_can_be_released_and_its_sequence_then_passes() {
    let (mut filter, mut passed) = (NotificationStripper::new(), Vec::new());
    filter.feed(b"a\x1b", true, |bytes| passed.extend_from_slice(bytes), |_| {});
    assert!(filter.holds_escape());
    assert_eq!(passed, b"a");
    filter.release(|bytes| passed.extend_from_slice(bytes));
    assert!(!filter.holds_escape());
    filter.feed(b"]9;x\x07b\x1b]9;x\x07", true, |bytes| passed.extend_from_slice(bytes), |_| {});
    assert_eq!(passed, b"a\x1b]9;x\x07b");
}

#[test]
fn only_possible_notifications_are_held() {
    for start in [
        "\x1b[",
        "\x1b]0;t",
        "\x1b]9;4;",
        "\x1b]98",
        "\x1b]777;p",
        "\x1b_G",
        "\x1bPq",
        "\x1bPtmux;t",
        "\x1b(",
        "é",
    ] {
        let (mut filter, mut passed) = (NotificationStripper::new(), Vec::new());
        for byte in start.as_bytes() {
            filter.feed(&[*byte], true, |bytes| passed.extend_from_slice(bytes), |_| {});
        }
        assert_eq!(passed, start.as_bytes(), "{start:?}");
    }
}
