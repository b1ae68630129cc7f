//! Interprets the payload of an OSC.

use crate::event::{Notification, Osc99Metadata, Prompt, PromptMark, Protocol, Query, TerminalEventKind};
use crate::osc99_chunk::{Chunk, PayloadType};
use crate::progress::Progress;
use crate::status::ProgramStatus;

/// The meaning of a payload.
#[expect(clippy::large_enum_variant, reason = "taken apart as soon as it is made, never stored")]
pub(crate) enum Meaning<'a> {
    Event(TerminalEventKind),
    /// A chunk of OSC 99: the text after `99;`.
    Chunk99(&'a [u8]),
    /// A sequence that is not reported.
    Nothing,
}

/// Interprets a payload. The number ends at the first `;`, and the meaning of the rest depends on the number alone.
pub(crate) fn interpret(payload: &[u8]) -> Meaning<'_> {
    let Some(semicolon) = payload.iter().position(|byte| *byte == b';') else {
        return Meaning::Nothing;
    };
    let (number, rest) = (&payload[..semicolon], &payload[semicolon + 1..]);
    if number == b"99" {
        return Meaning::Chunk99(rest);
    }
    let text = String::from_utf8_lossy(rest);
    let event = match number {
        b"0" | b"2" => Some(TerminalEventKind::Title(text.into_owned())),
        b"7" => Some(TerminalEventKind::Cwd(text.into_owned())),
        b"8" => hyperlink(&text),
        b"9" => osc9(&text),
        b"133" => prompt(&text),
        b"777" => osc777(&text),
        b"7501" if text == "?" => Some(TerminalEventKind::Query(Query::Osc7501)),
        b"7501" => ProgramStatus::parse(&text).map(TerminalEventKind::Status),
        _ => None,
    };
    event.map_or(Meaning::Nothing, Meaning::Event)
}

/// Returns true if a payload is a notification, or a part of one. Queries and requests to close one are neither.
pub(crate) fn is_notification(payload: &[u8]) -> bool {
    if !could_be_notification(payload) {
        return false;
    }
    match interpret(payload) {
        Meaning::Event(event) => matches!(event, TerminalEventKind::Notification(_)),
        Meaning::Chunk99(chunk) => Chunk::parse(chunk).is_some_and(|chunk| {
            !matches!(chunk.part, PayloadType::Query | PayloadType::Alive | PayloadType::Close)
        }),
        Meaning::Nothing => false,
    }
}

/// Returns true if a payload that begins like this may be a notification.
pub(crate) fn could_be_notification(start: &[u8]) -> bool {
    let begins = |whole: &[u8]| start.starts_with(whole) || whole.starts_with(start);
    match start.strip_prefix(b"9;") {
        // ConEmu's commands: a number and a `;`.
        Some(text) => {
            let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            !(1..=2).contains(&digits) || text.get(digits) != Some(&b';') || !is_conemu(&text[..digits])
        }
        None => begins(b"9;") || begins(b"99;") || begins(b"777;notify;"),
    }
}

fn is_conemu(digits: &[u8]) -> bool {
    std::str::from_utf8(digits)
        .ok()
        .and_then(|number| number.parse::<u8>().ok())
        .is_some_and(|number| (1..=12).contains(&number))
        && digits.first() != Some(&b'0')
}

/// OSC 9 is iTerm2's notification and ConEmu's twelve commands at once; a number from 1 to 12 and a `;` is ConEmu's.
fn osc9(text: &str) -> Option<TerminalEventKind> {
    if let Some((command, argument)) = text.split_once(';') {
        match command {
            "4" => return Progress::parse(argument).map(TerminalEventKind::Progress),
            "9" => return Some(TerminalEventKind::Cwd(argument.to_owned())),
            "12" => {
                return Some(TerminalEventKind::Prompt(Prompt {
                    mark: PromptMark::PromptStart,
                    exit_code: None,
                }));
            }
            "1" | "2" | "3" | "5" | "6" | "7" | "8" | "10" | "11" => return None,
            _ => {}
        }
    }
    // Older versions of Claude Code put two newlines in front, so that iTerm2 shows the text below its own heading.
    let body = text.trim_start_matches('\n');
    (!body.is_empty()).then(|| plain(Protocol::Osc9, "", body))
}

/// Only `notify` is a notification; urxvt's other extensions pass through.
fn osc777(text: &str) -> Option<TerminalEventKind> {
    let rest = text.strip_prefix("notify;")?;
    let (title, body) = rest.split_once(';').unwrap_or((rest, ""));
    (!(title.is_empty() && body.is_empty())).then(|| plain(Protocol::Osc777, title, body))
}

fn plain(protocol: Protocol, title: &str, body: &str) -> TerminalEventKind {
    TerminalEventKind::Notification(Notification {
        protocol,
        id: None,
        title: title.to_owned(),
        body: body.to_owned(),
        metadata: Osc99Metadata::default(),
    })
}

fn hyperlink(text: &str) -> Option<TerminalEventKind> {
    let (parameters, uri) = text.split_once(';')?;
    let id = parameters
        .split(':')
        .find_map(|pair| pair.strip_prefix("id="))
        .filter(|id| !id.is_empty())
        .map(str::to_owned);
    // A link with an id but no target is neither a start nor an end.
    (!uri.is_empty() || id.is_none()).then(|| TerminalEventKind::Hyperlink { id, uri: uri.to_owned() })
}

fn prompt(text: &str) -> Option<TerminalEventKind> {
    let (letter, options) = match text.split_once(';') {
        Some((letter, options)) => (letter, Some(options)),
        None => (text, None),
    };
    let mark = match letter {
        "A" | "N" | "P" => PromptMark::PromptStart,
        "B" | "I" => PromptMark::InputStart,
        "C" => PromptMark::OutputStart,
        "D" => PromptMark::CommandEnd,
        "L" if options.is_none() => PromptMark::FreshLine,
        _ => return None,
    };
    let exit_code = options
        .filter(|_| mark == PromptMark::CommandEnd)
        .and_then(|options| options.split(';').next())
        .and_then(|code| code.parse().ok());
    Some(TerminalEventKind::Prompt(Prompt { mark, exit_code }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(payload: &str) -> Option<TerminalEventKind> {
        match interpret(payload.as_bytes()) {
            Meaning::Event(event) => Some(event),
            Meaning::Chunk99(_) | Meaning::Nothing => None,
        }
    }

    fn check_text(payload: &str, expected: Option<(&str, &str)>) {
        let found = event(payload).map(|event| match event {
            TerminalEventKind::Notification(notification) => (notification.title, notification.body),
            other => panic!("{payload}: {other:?}"),
        });
        let expected = expected.map(|(title, body)| (title.to_owned(), body.to_owned()));
        assert_eq!(found, expected, "{payload}");
    }

    #[test]
    fn osc9_is_text_unless_it_is_conemus() {
        check_text("9;Hello; world", Some(("", "Hello; world")));
        check_text("9;\n\nClaude Code:\n\ndone", Some(("", "Claude Code:\n\ndone")));
        check_text("9;13;x", Some(("", "13;x")));
        check_text("9;4", Some(("", "4")));
        check_text("9;", None);
        for conemu in ["9;1;420", "9;2;x", "9;3;", "9;4;", "9;4;5", "9;5;x", "9;10;", "9;11;x"] {
            assert_eq!(event(conemu), None, "{conemu}");
        }
        assert_eq!(event("9;9;/tmp"), Some(TerminalEventKind::Cwd("/tmp".into())));
        assert_eq!(event("9;4;3;"), Some(TerminalEventKind::Progress(Progress::Indeterminate)));
    }

    #[test]
    fn osc777_splits_title_and_body_once() {
        check_text("777;notify;Title;Body;more", Some(("Title", "Body;more")));
        check_text("777;notify;Title", Some(("Title", "")));
        check_text("777;notify;;", None);
        check_text("777;precmd", None);
        check_text("777;preexec;notify;x", None);
    }

    #[test]
    fn the_number_ends_at_the_first_semicolon() {
        assert_eq!(event("0;a;b"), Some(TerminalEventKind::Title("a;b".into())));
        for other in ["0", "", ";", "00;x", "1;icon", "10;?", "52;c;x", "notify;x"] {
            assert_eq!(event(other), None, "{other}");
        }
    }

    #[test]
    fn links() {
        let link = |id: Option<&str>, uri: &str| {
            Some(TerminalEventKind::Hyperlink { id: id.map(str::to_owned), uri: uri.to_owned() })
        };
        assert_eq!(event("8;;http://example.com/;a"), link(None, "http://example.com/;a"));
        assert_eq!(event("8;x=1:id=foo;u"), link(Some("foo"), "u"));
        assert_eq!(event("8;;"), link(None, ""));
        assert_eq!(event("8;id=foo;"), None);
    }

    #[test]
    fn prompt_marks() {
        let mark = |mark, exit_code| Some(TerminalEventKind::Prompt(Prompt { mark, exit_code }));
        assert_eq!(event("133;A;aid=1"), mark(PromptMark::PromptStart, None));
        assert_eq!(event("133;B"), mark(PromptMark::InputStart, None));
        assert_eq!(event("133;C"), mark(PromptMark::OutputStart, None));
        assert_eq!(event("133;D;12;aid=foo"), mark(PromptMark::CommandEnd, Some(12)));
        assert_eq!(event("133;D"), mark(PromptMark::CommandEnd, None));
        assert_eq!(event("133;Dextra"), None);
        assert_eq!(event("133;L;aid=1"), None);
    }
}
