//! Encoding, wrapping and scanning a notice returns one notification with the sanitised text.

use proptest::prelude::*;
use ringer_term::{
    Actions, BlockedKind, MAX_CHARS, Method, Multiplexer, Notification, NotificationId, Osc99Metadata,
    OutgoingNotification, ProgramStatus, Protocol, Scanner, StatusState, TerminalEvent, TerminalEventKind,
    Terminator, Urgency, sanitise_block, sanitise_line,
};
use unicode_segmentation::UnicodeSegmentation;

use super::hostile::{every_stack, stack, text};
use crate::sender_script::ascii_of;

fn events(bytes: &[u8]) -> Vec<TerminalEvent> {
    let (mut scanner, mut events) = (Scanner::new(), Vec::new());
    scanner.feed(bytes, |event| events.push(event));
    events
}

/// A terminal reports clicks as input, and the program that reads the input is not Ringer.
#[test]
fn no_notification_has_buttons_or_makes_the_terminal_report() {
    let id = NotificationId::new("1").expect("an id");
    let hostile = "p=buttons;Allow\u{2028}Deny\x1b]99;i=1:a=report:c=1;\x07";
    for title in [None, Some("a=report:c=1"), Some(hostile)] {
        let notice =
            OutgoingNotification { id: &id, title, body: hostile, urgency: Urgency::Critical, icon: None };
        let found = events(&notice.encode(Method::Kitty, &[]));
        let [TerminalEvent { kind: TerminalEventKind::Notification(shown), .. }] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert!(shown.metadata.buttons.is_empty() && !shown.metadata.report_close, "{shown:?}");
        assert_eq!(shown.metadata.actions, Actions { focus: true, report: false });
    }
}

/// OSC 9 is one line, has no `;`, and does not start with a digit.
fn as_osc9(title: &str, body: &str) -> (String, String) {
    let joined = match (title, body) {
        ("", text) | (text, "") => text.to_owned(),
        _ => format!("{title}: {body}"),
    };
    let line = sanitise_line(&joined).replace(';', ",");
    let space = if line.starts_with(|first: char| first.is_ascii_digit()) { " " } else { "" };
    (String::new(), format!("{space}{line}"))
}

/// OSC 777 has no `;` in either part and no empty body, and a short title: both at their longest would be too long for one
/// sequence.
fn as_osc777(title: &str, body: &str) -> (String, String) {
    let part = |text: &str| sanitise_line(text).replace(';', ",");
    match (part(title), part(body)) {
        (title, body) if body.is_empty() && title.is_empty() => (title, " ".to_owned()),
        (title, body) if body.is_empty() => (body, title),
        (title, body) => {
            let mut length = 0;
            let fits = |grapheme: &&str| {
                length += grapheme.len();
                length <= 1024
            };
            (title.graphemes(true).take_while(fits).collect(), body)
        }
    }
}

/// OSC 99 keeps both unchanged, including the lines of the body.
fn as_osc99(title: &str, body: &str) -> (String, String) {
    (sanitise_line(title), sanitise_block(body))
}

/// Checks that encoding, wrapping and scanning returns the one notification with this text, or nothing for no text.
fn check(notice: &OutgoingNotification<'_>, method: Method, layers: &[Multiplexer]) {
    let (title, body) = (notice.title.unwrap_or_default(), notice.body);
    let id = (method == Method::Kitty).then(|| notice.id.clone());
    let (protocol, (title, body)) = match method {
        Method::Kitty => (Protocol::Osc99, as_osc99(title, body)),
        Method::Ghostty => (Protocol::Osc777, as_osc777(title, body)),
        _ => (Protocol::Osc9, as_osc9(title, body)),
    };
    let mut expected = Vec::new();
    if !(title.is_empty() && body.is_empty()) {
        let kind = TerminalEventKind::Notification(Notification {
            protocol,
            id,
            title,
            body,
            metadata: Osc99Metadata::default(),
        });
        expected.push(TerminalEvent { offset: 0, kind });
    }
    let bytes = notice.encode(method, layers);
    if method == Method::Iterm2WithBell {
        expected.push(TerminalEvent { offset: bytes.len() as u64 - 1, kind: TerminalEventKind::Bell });
    }
    let mut found = events(&bytes);
    if method != Method::Kitty && layers.contains(&Multiplexer::Screen) {
        keep_ascii(&mut found);
        keep_ascii(&mut expected);
    }
    // Short texts first: a failing text of a thousand characters is hard to read.
    let start = bytes[..bytes.len().min(100)].escape_ascii();
    assert_eq!(found.len(), expected.len(), "{method:?} {layers:?}, {} bytes: {start}", bytes.len());
    assert!(found == expected, "{method:?} {layers:?}, {} bytes, another text: {start}", bytes.len());
}

/// GNU screen mangles every other character (see `screen.rs`), so only OSC 99, which has base64, is tested with them.
fn keep_ascii(events: &mut [TerminalEvent]) {
    for event in events {
        if let TerminalEventKind::Notification(Notification { title, body, .. }) = &mut event.kind {
            *title = ascii_of(title);
            *body = ascii_of(body);
        }
    }
}

const METHODS: [Method; 4] = [Method::Iterm2, Method::Iterm2WithBell, Method::Ghostty, Method::Kitty];

fn check_everywhere(title: Option<&str>, body: &str) {
    let id = NotificationId::new("7").unwrap();
    let notice = OutgoingNotification { id: &id, title, body, urgency: Urgency::Normal, icon: None };
    for layers in every_stack() {
        for method in METHODS {
            check(&notice, method, &layers);
        }
    }
}

#[test]
fn a_notice_round_trips_through_every_stack_of_multiplexers() {
    check_everywhere(Some("Claude Code"), "needs you");
    check_everywhere(None, "4;1;50");
    check_everywhere(Some("42; a title"), "");
    check_everywhere(Some(""), "");
    check_everywhere(Some("\x1b\\\x1b]9;gotcha\x07"), "Ü ✜ 👩\u{200d}🚀\none line;\r\nand another\u{9c}");
}

/// In the longest text that passes the sanitiser, each character has four bytes.
#[test]
fn the_longest_notice_round_trips() {
    let longest = "🚀".repeat(MAX_CHARS + 1);
    check_everywhere(Some(&longest), &longest);
    check_everywhere(Some(&longest), &format!("\n{longest}"));
}

fn check_status(title: &str, message: &str, progress: Option<u8>) {
    let sent = ProgramStatus {
        kind: Some(BlockedKind::Auth),
        app: Some("app".to_owned()),
        progress,
        title: Some(title.to_owned()),
        message: Some(message.to_owned()),
        ..ProgramStatus::new(StatusState::Blocked)
    };
    let events = events(sent.encode(Terminator::St).as_bytes());
    let [TerminalEvent { offset: 0, kind: TerminalEventKind::Status(read) }] = &events[..] else {
        panic!("{events:?}")
    };
    let (title_read, message_read) = (read.title.as_deref().unwrap(), read.message.as_deref().unwrap());
    // Truncated to fit, but never inside a grapheme.
    for (sent, read) in [(sanitise_line(title), title_read), (sanitise_block(message), message_read)] {
        let end: String = read.chars().rev().take(3).collect();
        assert!(sent.starts_with(read), "{} bytes that were not sent, backwards {end:?}", read.len());
        assert!(sanitise_block(read) == read, "{} bytes that are torn, backwards {end:?}", read.len());
    }
    let progress = progress.map(|percent| percent.min(100));
    let expected =
        ProgramStatus { title: read.title.clone(), message: read.message.clone(), progress, ..sent };
    assert_eq!(*read, expected);
}

#[test]
fn a_status_round_trips() {
    check_status("fix; the: tests=", "two\nlines\x1b]0;gotcha\x07", Some(200));
    check_status("", "", None);
}

/// 👩 and 🚀 and the joiner between them are 11 bytes: some truncation falls after the joiner.
#[test]
fn a_long_status_is_truncated_between_graphemes() {
    for padding in 0..11 {
        let long = format!("{}{}", "x".repeat(padding), "👩\u{200d}🚀".repeat(300));
        check_status(&long, &long, None);
    }
}

proptest! {
    #[test]
    fn any_notice_round_trips_through_any_multiplexers(title in text(), body in text(), layers in stack()) {
        let id = NotificationId::new("7").unwrap();
        for title in [None, Some(title.as_str())] {
            let notice = OutgoingNotification { id: &id, title, body: &body, urgency: Urgency::Normal, icon: None };
            for method in METHODS {
                check(&notice, method, &layers);
            }
        }
    }

    #[test]
    fn any_status_round_trips(title in text(), message in text(), progress in any::<Option<u8>>()) {
        check_status(&title, &message, progress);
    }
}
