//! The events, with their offsets, do not depend on how a stream is split.

use proptest::prelude::*;
use ringer_term::{Multiplexer, Scanner, TerminalEvent, wrap};

use super::hostile::stack;

/// All bytes that change the scanner's state, whole and in halves.
const PIECES: &[&[u8]] = &[
    b"\x1b",
    b"\x07",
    b"\x18",
    b"\x1a",
    b"\\",
    b"]",
    b"P",
    b"[",
    b"_",
    b"^",
    b"X",
    b"tmux;",
    b"tmu",
    b";",
    b"?",
    b"\x1b\\",
    b"\x1b]",
    b"\x1bP",
    b"\x1b\x1b",
    b"\x1b\x1b\\",
    b"\x1b[31m",
    b"\x1bPtmux;",
    b"\x1bPtmux;\x1b\x1b]",
    b"\x1bP\x1b]",
    b"\x1b_G",
    b"\x9c",
    b"\x9d",
    b"\xc2\x9c",
    b"\xe2\x9c\xb3",
];

const PAYLOADS: &[&str] = &[
    "0;✳ Claude Code",
    "2;",
    "7;file:///tmp",
    "8;id=a;http://x",
    "8;;",
    "9;done",
    "9;\n\ndone",
    "9;4;1;50",
    "9;4;3;",
    "9;9;/tmp",
    "99;i=1:d=0:p=title;T",
    "99;i=1:d=0:p=body;B",
    "99;i=1:p=body;B",
    "99;i=1:d=1:a=focus;",
    "99;i=2:d=0:e=1:p=body;w6k=",
    "99;;x",
    "99;i=1:p=close;",
    "99;i=1:p=?;",
    "133;A",
    "133;D;1",
    "777;notify;T;B",
    "777;precmd",
    "7501;?",
    "7501;state=blocked:kind=question:msg=WA==",
    "10;?",
];

pub(super) fn stream() -> impl Strategy<Value = Vec<u8>> {
    let sequence =
        (prop::sample::select(PAYLOADS), prop::sample::select(vec!["\x07", "\x1b\\", "\x18", ""]), stack())
            .prop_map(|(payload, end, layers): (&str, &str, Vec<Multiplexer>)| {
                wrap(format!("\x1b]{payload}{end}").as_bytes(), &layers)
            });
    // Near the limits: GNU screen's piece, and the longest OSC.
    let run = prop_oneof![740usize..780, 8_150usize..8_200].prop_map(|length| vec![b'x'; length]);
    let fragment = prop_oneof![
        8 => prop::sample::select(PIECES).prop_map(<[u8]>::to_vec),
        4 => prop::sample::select(PAYLOADS).prop_map(|payload| payload.as_bytes().to_vec()),
        6 => sequence,
        2 => prop::collection::vec(any::<u8>(), 0..8),
        1 => run,
    ];
    prop::collection::vec(fragment, 0..24).prop_map(|fragments| fragments.concat())
}

fn events<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<TerminalEvent>, u64) {
    let (mut scanner, mut events) = (Scanner::new(), Vec::new());
    for piece in pieces {
        scanner.feed(piece, |event| events.push(event));
    }
    (events, scanner.position())
}

pub(super) fn cut<'a>(bytes: &'a [u8], places: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places.iter().map(|place| place.index(bytes.len() + 1)).collect();
    places.sort_unstable();
    let starts = [0].into_iter().chain(places.iter().copied());
    let ends = places.iter().copied().chain([bytes.len()]);
    starts.zip(ends).map(|(start, end)| &bytes[start..end]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn splitting_does_not_change_the_events(bytes in stream(), places in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        let whole = events([bytes.as_slice()]);
        prop_assert_eq!(whole.1, bytes.len() as u64);
        prop_assert_eq!(&events(cut(&bytes, &places)), &whole, "cut at {:?}", places);
        prop_assert_eq!(&events(bytes.chunks(1)), &whole, "byte by byte");
    }

    /// Each event starts inside the stream, at an ESC or a BEL.
    #[test]
    fn every_event_starts_at_a_sequence(bytes in stream()) {
        for event in events([bytes.as_slice()]).0 {
            let start = bytes.get(usize::try_from(event.offset).unwrap());
            prop_assert!(matches!(start, Some(0x1b | 0x07)), "{event:?} in {}", bytes.escape_ascii());
        }
    }
}
