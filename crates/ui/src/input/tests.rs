use crossterm::event::{KeyEventKind, MouseEvent};
use proptest::prelude::*;

use super::*;

/// The events of an input, each in its shortest form.
fn read(input: &[u8]) -> Vec<String> {
    let mut parser = InputParser::default();
    let mut events = parser.feed(input);
    events.extend(parser.flush());
    assert!(!parser.is_waiting(), "{input:?}");
    events.iter().filter_map(|input| input.event.as_ref()).map(describe).collect()
}

fn describe(event: &Event) -> String {
    match event {
        Event::Key(key) => {
            let kind = if key.kind == KeyEventKind::Release { " released" } else { "" };
            let names = key.modifiers.iter_names().map(|(name, _)| format!("{}-", name.to_lowercase()));
            format!("{}{}{kind}", names.collect::<String>(), key.code)
        }
        Event::Mouse(MouseEvent { kind, column, row, .. }) => format!("{kind:?} {column},{row}"),
        Event::Paste(text) => format!("pasted {text:?}"),
        other => format!("{other:?}"),
    }
}

#[test]
fn keys_are_parsed() {
    let cases: [(&[u8], &[&str]); 22] = [
        (b"aA\xc3\xa9\xf0\x9f\x98\x80", &["a", "shift-A", "é", "😀"]),
        (
            b"\r\t\x7f \x03\x00\x1f",
            &["Enter", "Tab", "Backspace", "Space", "control-c", "control-Space", "control-7"],
        ),
        (b"\x1b", &["Esc"]),
        (b"\x1b\x1b", &["Esc", "Esc"]),
        (b"\x1bq\x1b\xc3\xa9", &["alt-q", "alt-é"]),
        (b"\x1b\x01", &["control-alt-a"]),
        (b"\x1b[A\x1bOB\x1b[1;5C\x1b[1;2D", &["Up", "Down", "control-Right", "shift-Left"]),
        (b"\x1b[H\x1b[4~\x1b[7~\x1b[F", &["Home", "End", "Home", "End"]),
        (b"\x1b[5~\x1b[6~\x1b[3~\x1b[2~", &["Page Up", "Page Down", "Del", "Insert"]),
        (b"\x1b[Z", &["shift-Back Tab"]),
        (b"\x1bOP\x1b[15~\x1b[17~\x1b[24~\x1b[[E\x1b[1;3S", &["F1", "F5", "F6", "F12", "F5", "alt-F4"]),
        (b"\x1b[97;5u\x1b[27u\x1b[13;2u", &["control-a", "Esc", "shift-Enter"]),
        (b"\x1b[97;1:3u", &["a released"]),
        (b"\x1b[57441;2u", &[]),
        (b"\x1b[I\x1b[O", &["FocusGained", "FocusLost"]),
        // Replies of the terminal are not keys.
        (b"\x1b[4;7R\x1b[?62;c\x1b]11;rgb:00/00/00\x1b\\x\x1b]11;?\x07\x1bP>|kitty\x1b\\y", &["x", "y"]),
        (b"\x1b[200~a\nb\x1b[Ac\x1b[201~d", &["pasted \"a\\nb\\u{1b}[Ac\"", "d"]),
        // Invalid bytes.
        (b"\xff\xc3a\xe2\x82", &["a"]),
        (b"\x1b[", &["alt-["]),
        (b"\x1bO", &["alt-O"]),
        (b"\x1b]x", &["alt-]", "x"]),
        (b"\x1b[12\x1b[A", &["Up"]),
    ];
    for (input, expected) in cases {
        assert_eq!(read(input), expected, "{}", String::from_utf8_lossy(input).escape_debug());
    }
}

#[test]
fn three_mouse_encodings_are_parsed() {
    assert_eq!(read(b"\x1b[<0;12;5M\x1b[<0;12;5m"), ["Down(Left) 11,4", "Up(Left) 11,4"]);
    assert_eq!(read(b"\x1b[<64;1;1M\x1b[<65;300;200M"), ["ScrollUp 0,0", "ScrollDown 299,199"]);
    assert_eq!(read(b"\x1b[<35;2;2M\x1b[<34;2;2M"), ["Moved 1,1", "Drag(Right) 1,1"]);
    assert_eq!(read(b"\x1b[34;12;5M"), ["Down(Right) 11,4"]);
    assert_eq!(read(b"\x1b[M !!\x1b[M#!!x"), ["Down(Left) 0,0", "Up(Left) 0,0", "x"]);
    assert!(read(b"\x1b[<0;0;0M\x1b[<99999;1;1M\x1b[<1M").is_empty());
}

#[test]
fn unterminated_sequences_are_bounded() {
    let mut parser = InputParser::default();
    parser.feed(b"\x1b]");
    for _ in 0..100 {
        parser.feed(&[b'x'; 1000]);
        assert!(parser.pending.len() <= MAX_SEQUENCE);
    }
    let mut parser = InputParser::default();
    parser.feed(b"\x1b[200~");
    assert!(parser.feed(&vec![b'x'; MAX_PASTE]).is_empty());
    assert!(!parser.is_waiting(), "the rest of a paste may take long");
    let pasted = |events: &[Input]| match events {
        [Input { event: Some(Event::Paste(_)), bytes, is_cut }] => Some((bytes.len(), *is_cut)),
        _ => None,
    };
    let whole = parser.feed(b"\x1b[201~");
    assert_eq!(pasted(&whole), Some((MAX_PASTE, false)));
    parser.feed(b"\x1b[200~");
    for _ in 0..3 {
        assert!(parser.feed(&vec![b'x'; MAX_PASTE]).is_empty());
    }
    assert_eq!(pasted(&parser.feed(b"\x1b[201~")), Some((MAX_PASTE, true)));
    assert_eq!(pasted(&parser.feed(b"\x1b[200~next\x1b[201~")), Some((4, false)));
}

#[test]
fn the_rest_of_a_character_may_arrive_late() {
    for (input, expected) in [("é", "é"), ("漢", "漢"), ("😀", "😀"), ("\x1bé", "alt-é")] {
        let (mut parser, mut events) = (InputParser::default(), Vec::new());
        // A lone escape byte would be a key by then.
        let first = input.len() - input.trim_start_matches('\x1b').len() + 1;
        let bytes = input.as_bytes();
        for piece in [&bytes[..first]].into_iter().chain(bytes[first..].chunks(1)) {
            events.extend(parser.feed(piece));
            assert!(!parser.is_waiting(), "time does not decide about {input}");
            events.extend(parser.flush());
        }
        assert_eq!(events.len(), 1, "{events:?}");
        assert_eq!(
            (events[0].event.as_ref().map(describe).as_deref(), &events[0].bytes[..]),
            (Some(expected), bytes)
        );
    }
    // Another byte arrived instead of the rest.
    let mut parser = InputParser::default();
    parser.feed(b"\xe6\xbc");
    parser.flush();
    let events = parser.feed(b"a\x1b[A\xc3\xa9");
    let keys: Vec<String> = events.iter().filter_map(|input| input.event.as_ref()).map(describe).collect();
    assert_eq!(keys, ["a", "Up", "é"]);
}

/// A connection may drop in the middle of a paste while the terminal stays.
#[test]
fn the_rest_of_an_unfinished_paste_is_not_read_as_keys() {
    let mut parser = InputParser::default();
    let all = |inputs: Vec<Input>| -> Vec<String> {
        inputs.iter().map(|input| input.event.as_ref().map(describe).unwrap_or_default()).collect()
    };
    assert_eq!(parser.feed(b"\x1b[200~half a\x1b[20"), []);
    assert!(parser.is_pasting() && !parser.is_waiting());
    let unfinished = |parser: &mut InputParser| all(parser.take_unfinished_paste().into_iter().collect());
    assert_eq!(unfinished(&mut parser), [r#"pasted "half a""#]);
    assert!(!parser.is_pasting() && unfinished(&mut parser).is_empty());
    // The paste continues and ends.
    assert_eq!(parser.feed(b"x\x07\n"), []);
    assert!(parser.is_pasting());
    assert_eq!(all(parser.feed(b"rm\n\x1b[201~a")), [r#"pasted "\u{1b}[20x\u{7}\nrm\n""#, "a"]);
    // Only the end marker followed.
    parser.feed(b"\x1b[200~half");
    assert_eq!(unfinished(&mut parser), [r#"pasted "half""#]);
    assert_eq!(all(parser.feed(b"\x1b[201~a")), ["a"]);
    // A single key with Ctrl: the person gives up on the paste.
    for key in [&b"\x07"[..], b"\x1b[103;5u"] {
        parser.feed(b"\x1b[200~half");
        assert_eq!(parser.feed(key), [], "it is not late yet");
        unfinished(&mut parser);
        for rest in [&b"a"[..], b"\n", b"\r", b"\x1b", b"\x07d"] {
            assert_eq!(parser.feed(rest), []);
            unfinished(&mut parser);
        }
        let typed = parser.feed(key);
        assert_eq!((typed.len(), all(parser.feed(b"d"))), (1, vec!["d".to_owned()]), "{typed:?}");
    }
    assert_eq!(all(parser.feed(b"\x1b[200~\x1b[201~")), [r#"pasted """#], "unchanged");
}

proptest! {
    #[test]
    fn events_do_not_depend_on_how_the_input_is_split(
        input in "(\x1b\\[|\x1b|\\[|[0-9;<~AMOIPu]|é|😀|\x1b\\[200~|\x1b\\[201~|\x1b\\]|\x07|a){0,20}",
        cuts in prop::collection::vec(0_usize..60, 0..4)
    ) {
        let bytes = input.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.sort_unstable();
        let mut parser = InputParser::default();
        let (mut events, mut start) = (Vec::new(), 0);
        for cut in cuts.into_iter().chain([bytes.len()]) {
            events.extend(parser.feed(&bytes[start..cut]));
            start = cut;
        }
        let mut whole = InputParser::default();
        prop_assert_eq!(events, whole.feed(bytes));
        prop_assert_eq!(parser.flush(), whole.flush());
    }

    #[test]
    fn no_bytes_stay_pending(input in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut parser = InputParser::default();
        parser.feed(&input);
        parser.flush();
        prop_assert!(!parser.is_waiting());
        // The rest of a paste is bounded elsewhere; a part of a character, held with Alt, is this long at most.
        prop_assert!(parser.paste.is_some() || parser.pending.len() <= 4, "{:?}", parser.pending);
    }
}
