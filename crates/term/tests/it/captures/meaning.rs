//! Interprets the raw sequences of a manifest without the scanner, so that the scanner is not compared with itself.
//!
//! It handles only the sequences in the recordings and rejects others: a person must review a new recording first.

use ringer_term::{
    BlockedKind, Notification, NotificationId, Osc99Metadata, ProgramStatus, Progress, Protocol, Query,
    StatusState, TerminalEvent, TerminalEventKind,
};

use super::recording::Sequence;

/// Returns the events of a recording, ordered by the end of their sequences.
pub(super) fn events(sequences: &[Sequence]) -> Vec<TerminalEvent> {
    let mut events = Vec::new();
    // Claude Code sends title, body, and last what a click does; the first chunk says where the notification starts.
    let mut begun: Option<(usize, String)> = None;
    for sequence in sequences {
        let payload = payload(&sequence.raw);
        let mut offset = sequence.offset;
        let kind = if let Some(chunk) = payload.strip_prefix("99;") {
            let (keys, text) = chunk.split_once(';').unwrap();
            match keys.split(':').collect::<Vec<_>>()[..] {
                [_, "d=0", "p=title"] => {
                    assert!(
                        begun.replace((offset, text.to_owned())).is_none(),
                        "{payload}: another was open"
                    );
                    None
                }
                [id, "p=body"] => {
                    let (start, title) = begun.take().unwrap();
                    offset = start;
                    let id = NotificationId::new(id.strip_prefix("i=").unwrap()).unwrap();
                    Some(notification(Protocol::Osc99, Some(id), &title, text))
                }
                [_, "d=1", "a=focus"] if text.is_empty() => None,
                _ => panic!("an OSC 99 that no client sent before: {payload}"),
            }
        } else {
            plain(&payload)
        };
        events.extend(kind.map(|kind| TerminalEvent { offset: offset as u64, kind }));
    }
    events
}

/// Returns the sequence without its wrapper and frame. A bell stays a bell.
fn payload(raw: &str) -> String {
    let bare = match raw.strip_prefix("\x1bPtmux;") {
        Some(wrapped) => wrapped.strip_suffix("\x1b\\").unwrap().replace("\x1b\x1b", "\x1b"),
        None => raw.to_owned(),
    };
    let Some(payload) = bare.strip_prefix("\x1b]") else {
        assert_eq!(bare, "\x07");
        return bare;
    };
    payload.strip_suffix("\x07").or_else(|| payload.strip_suffix("\x1b\\")).unwrap().to_owned()
}

fn plain(payload: &str) -> Option<TerminalEventKind> {
    if payload == "\x07" {
        return Some(TerminalEventKind::Bell);
    }
    let (number, rest) = payload.split_once(';').unwrap();
    Some(match (number, rest) {
        ("0", title) => TerminalEventKind::Title(title.to_owned()),
        ("9", "4;0;") => TerminalEventKind::Progress(Progress::Clear),
        ("9", "4;3;") => TerminalEventKind::Progress(Progress::Indeterminate),
        ("9", text) if text.starts_with(char::is_alphabetic) => notification(Protocol::Osc9, None, "", text),
        ("777", text) => {
            let (title, body) = text.strip_prefix("notify;").unwrap().split_once(';').unwrap();
            notification(Protocol::Osc777, None, title, body)
        }
        ("7501", "?") => TerminalEventKind::Query(Query::Osc7501),
        ("7501", pairs) => TerminalEventKind::Status(status(pairs)),
        ("8", link) => {
            let (id, uri) = link.split_once(';').unwrap();
            TerminalEventKind::Hyperlink {
                id: id.strip_prefix("id=").map(str::to_owned),
                uri: uri.to_owned(),
            }
        }
        // The client queries the colours of the terminal, which has no event.
        ("10" | "11", "?") => return None,
        _ => panic!("a sequence that no client sent before: {payload}"),
    })
}

fn notification(
    protocol: Protocol,
    id: Option<NotificationId>,
    title: &str,
    body: &str,
) -> TerminalEventKind {
    let (title, body) = (title.to_owned(), body.to_owned());
    TerminalEventKind::Notification(Notification {
        protocol,
        id,
        title,
        body,
        metadata: Osc99Metadata::default(),
    })
}

fn status(pairs: &str) -> ProgramStatus {
    let mut status = ProgramStatus::new(StatusState::Idle);
    for pair in pairs.split(':') {
        match pair.split_once('=').unwrap() {
            ("state", "idle") => status.state = StatusState::Idle,
            ("state", "working") => status.state = StatusState::Working,
            ("state", "blocked") => status.state = StatusState::Blocked,
            ("state", "done") => status.state = StatusState::Done,
            ("state", "error") => status.state = StatusState::Error,
            ("state", "clear") => status.state = StatusState::Clear,
            ("kind", "question") => status.kind = Some(BlockedKind::Question),
            ("kind", "permission") => status.kind = Some(BlockedKind::Permission),
            ("app", app) => status.app = Some(app.to_owned()),
            ("msg", encoded) => status.message = Some(message(encoded).to_owned()),
            _ => panic!("a status that no client sent before: {pairs}"),
        }
    }
    status
}

/// Decoded by hand, with `base64 -d`.
fn message(encoded: &str) -> &'static str {
    match encoded {
        "YW5zd2VyOiBXaGljaD8gKEEgwrcgQik=" => "answer: Which? (A · B)",
        "QVBJIEVycm9yOiA0MDAgbW9jayBiYWQ=" => "API Error: 400 mock bad",
        _ => panic!("a message that no client sent before: {encoded}"),
    }
}
