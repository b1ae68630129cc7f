//! kitty's remote control, as bytes: a request, and the answer wherever it was split.

use serde::Deserialize;
use serde_json::{Value, json};

/// The longest answer. A window takes about 5 KB of it, most of that its environment.
pub(crate) const MAX_ANSWER: usize = 1024 * 1024;

const BEGIN: &[u8] = b"\x1bP@kitty-cmd";
const END: &[u8] = b"\x1b\\";
/// The version whose commands are used; newer ones of kitty understand it.
const VERSION: [u32; 3] = [0, 26, 0];

/// A request, with its parameters.
pub(crate) fn request(command: &str, payload: &Value) -> Vec<u8> {
    let request = json!({ "cmd": command, "version": VERSION, "no_response": false, "payload": payload });
    [BEGIN, request.to_string().as_bytes(), END].concat()
}

/// What kitty answers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Answer {
    ok: bool,
    #[serde(default)]
    data: Option<Value>,
    #[serde(default)]
    error: Option<String>,
}

impl Answer {
    /// What it gives, or why it refuses.
    pub(crate) fn result(self) -> Result<Option<Value>, String> {
        if self.ok { Ok(self.data) } else { Err(self.error.unwrap_or_else(|| "it refuses".to_owned())) }
    }
}

/// Why an answer cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AnswerError {
    #[error("its answer is longer than 1 MiB")]
    TooLong,
    #[error("what it answers is not of kitty")]
    NotOfKitty,
}

/// Puts an answer together.
#[derive(Debug, Default)]
pub(crate) struct AnswerReader {
    bytes: Vec<u8>,
}

impl AnswerReader {
    /// Adds what was read. Gives the answer when it is whole.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<Option<Answer>, AnswerError> {
        // The end may be split.
        let searched = self.bytes.len().saturating_sub(END.len() - 1).max(BEGIN.len());
        let room = MAX_ANSWER.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let begun = self.bytes.len().min(BEGIN.len());
        if self.bytes[..begun] != BEGIN[..begun] {
            return Err(AnswerError::NotOfKitty);
        }
        let unsearched = self.bytes.get(searched..).unwrap_or_default();
        match unsearched.windows(END.len()).position(|window| window == END) {
            Some(end) => {
                let answer = &self.bytes[BEGIN.len()..searched + end];
                serde_json::from_slice(answer).map(Some).map_err(|_| AnswerError::NotOfKitty)
            }
            None if bytes.len() > room => Err(AnswerError::TooLong),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(json: &str) -> Vec<u8> {
        [BEGIN, json.as_bytes(), END].concat()
    }

    #[test]
    fn a_refusal_says_why() {
        let answer = |json: &str| AnswerReader::default().feed(&whole(json)).unwrap().unwrap().result();
        assert_eq!(answer(r#"{"ok": true, "data": "2"}"#), Ok(Some("2".into())));
        assert_eq!(answer(r#"{"ok": true}"#), Ok(None));
        let refusal = r#"{"ok": false, "error": "Remote control is disabled", "tb": "…"}"#;
        assert_eq!(answer(refusal), Err("Remote control is disabled".to_owned()));
    }

    #[test]
    fn what_is_not_of_kitty_ends_at_once() {
        for other in [&b"HTTP/1.1 400 Bad Request\r\n"[..], b"\x1bP@kitty-cmdx\x1b\\", b"\x1b]"] {
            assert_eq!(AnswerReader::default().feed(other), Err(AnswerError::NotOfKitty), "{other:?}");
        }
    }

    #[test]
    fn an_answer_without_an_end_is_bounded() {
        let mut reader = AnswerReader::default();
        assert_eq!(reader.feed(BEGIN), Ok(None));
        let piece = vec![b' '; 64 * 1024];
        let pieces = (0..100).take_while(|_| reader.feed(&piece) == Ok(None)).count();
        assert_eq!(pieces, MAX_ANSWER / piece.len() - 1);
        assert_eq!(reader.feed(b"x"), Err(AnswerError::TooLong));
        assert!(reader.bytes.len() <= MAX_ANSWER);
    }

    proptest! {
        #[test]
        fn an_answer_is_the_same_wherever_it_is_split(
            text in ".{0,80}",
            cuts in proptest::collection::vec(1_usize..40, 0..20),
        ) {
            let bytes = whole(&json!({ "ok": true, "data": text.clone() }).to_string());
            let mut reader = AnswerReader::default();
            let (mut rest, mut cuts) = (&bytes[..], cuts.into_iter());
            let answer = loop {
                let (piece, later) = rest.split_at(cuts.next().unwrap_or(rest.len()).min(rest.len()));
                rest = later;
                let read = reader.feed(piece).unwrap();
                prop_assert_eq!(read.is_some(), rest.is_empty());
                if let Some(answer) = read {
                    break answer;
                }
            };
            prop_assert_eq!(answer.result(), Ok(Some(text.into())));
        }

        #[test]
        fn any_bytes_are_refused_or_wait_for_more(bytes: Vec<u8>, after_begin: bool) {
            let mut reader = AnswerReader::default();
            if after_begin {
                prop_assert_eq!(reader.feed(BEGIN), Ok(None));
            }
            let _ = reader.feed(&bytes);
        }
    }
}
