//! Arbitrary lines of an MCP server that pushes messages: any cut gives the same lines, answers are one line of JSON with the
//! id of their request, a message is one element that nothing in it closes, and a verdict answers what was asked, once.

use ringer_mcp::channels::{PushedMessage, ServerLine, element, read_lines};
use ringer_core::conversation::{MAX_META, McpServer, PermissionRelay, PermissionVerdict, RelayedMessage, parse_answer};
use serde::de::IgnoredAny;

use crate::input::{assert_printable, split};

/// The attributes of an element, with its source.
const MAX_TAG: usize = 1_100;

pub fn run(data: &[u8]) {
    let Some((stream, pieces)) = split(data) else { return };
    let lines = read_lines([stream]);
    assert_eq!(lines, read_lines(pieces));
    let mut relay = PermissionRelay::default();
    let asked = relay.ask(0).expect("one request is open");
    let mut is_answered = false;
    for line in lines {
        match line {
            ServerLine::Request(answer) => check_answer(&answer),
            ServerLine::Message(message) => check_message(message),
            ServerLine::Verdict { request_id, verdict } => {
                let received = relay.receive_verdict(&request_id, verdict);
                let answers = RelayedMessage::Answer { id: asked.clone(), verdict };
                let is_first = request_id == asked.as_str() && !is_answered;
                assert_eq!(received == Ok(answers), is_first);
                is_answered |= is_first;
            }
            ServerLine::Initialized { .. }
            | ServerLine::Refused(_)
            | ServerLine::Other
            | ServerLine::Invalid => {}
        }
    }
}

fn check_answer(answer: &[u8]) {
    let answer = std::str::from_utf8(answer).expect("an answer is text");
    assert!(answer.ends_with('\n'));
    assert!(answer.bytes().filter(|byte| *byte < b' ').eq(*b"\n"), "{answer:?}");
    let id = answer.strip_prefix(r#"{"jsonrpc":"2.0","id":"#).expect("an answer begins with its id");
    assert!(id.starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit()), "{answer}");
    // A number may be larger than any that is read.
    assert!(serde_json::from_str::<IgnoredAny>(answer).is_ok(), "{answer}");
}

fn check_message(message: PushedMessage) {
    if let Some((id, verdict)) = parse_answer(&message.content) {
        let words = [(PermissionVerdict::Allow, "yes"), (PermissionVerdict::Deny, "no")];
        assert!(words.iter().any(|(own, word)| {
            *own == verdict && message.content.trim().eq_ignore_ascii_case(&format!("{word} {id}"))
        }));
    }
    let Ok(message) = element(McpServer::new("chat").expect("a name"), message) else { return };
    assert!(message.meta().pairs().count() <= MAX_META);
    let wrapped = message.wrapped();
    let inside =
        wrapped.strip_prefix("<channel source=\"chat\"").and_then(|rest| rest.strip_suffix("</channel>"));
    let (tag, text) = inside.and_then(|inside| inside.split_once('>')).expect("an element");
    assert!(!tag.contains('<') && !text.contains(['<', '>']), "{wrapped}");
    assert!(tag.len() <= MAX_TAG, "{} bytes", tag.len());
    assert_eq!(tag.matches('"').count(), 2 * message.meta().pairs().count());
    assert_printable(tag);
    text.split(['\n', '\t']).for_each(assert_printable);
}
