//! The tool calls of a client that have not been answered yet.

use std::borrow::Cow;
use std::collections::VecDeque;

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The most calls that are tracked. Clients have a few; the limit bounds memory if a server never answers.
const MAX_OPEN: usize = 1024;

/// The ids of open calls as JSON text: `1` and `"1"` are different ids.
#[derive(Debug, Default)]
pub(crate) struct OpenCalls {
    ids: VecDeque<String>,
    calls: u64,
}

/// The fields read from a client's request or notification.
#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CancelParams<'a> {
    #[serde(borrow, rename = "requestId")]
    request_id: &'a RawValue,
}

impl OpenCalls {
    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Returns the number of calls made so far.
    pub(crate) fn calls(&self) -> u64 {
        self.calls
    }

    /// Reads a line of the client. Ignores everything but tool calls and cancellations.
    pub(crate) fn read_request(&mut self, line: &[u8]) {
        let contains = |word: &str| memmem::find(line, word.as_bytes()).is_some();
        if !contains("tools/call") && !contains("notifications/cancelled") {
            return;
        }
        let Ok(line) = std::str::from_utf8(line) else { return };
        for message in messages(line) {
            let Ok(request) = serde_json::from_str::<Request<'_>>(message) else { continue };
            match (request.method.as_ref(), request.id, request.params) {
                ("tools/call", Some(id), _) => {
                    if self.ids.len() == MAX_OPEN {
                        self.ids.pop_front();
                    }
                    self.ids.push_back(id.get().to_owned());
                    self.calls += 1;
                }
                ("notifications/cancelled", None, Some(params)) => {
                    if let Ok(cancelled) = serde_json::from_str::<CancelParams<'_>>(params.get()) {
                        self.close(cancelled.request_id.get());
                    }
                }
                _ => {}
            }
        }
    }

    /// Closes a call. Returns true if it was open.
    pub(crate) fn close(&mut self, id: &str) -> bool {
        let at = self.ids.iter().position(|open| open == id);
        at.and_then(|at| self.ids.remove(at)).is_some()
    }
}

/// Returns the messages of a line: a single one, or all of a batch.
pub(crate) fn messages(line: &str) -> Vec<&str> {
    if !line.trim_start().starts_with('[') {
        return vec![line];
    }
    let batch: Vec<&RawValue> = serde_json::from_str(line).unwrap_or_default();
    batch.into_iter().map(RawValue::get).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_after(lines: &[&str]) -> Vec<String> {
        let mut calls = OpenCalls::default();
        for line in lines {
            calls.read_request(line.as_bytes());
        }
        calls.ids.into()
    }

    #[test]
    fn calls_stay_open_until_answered_or_cancelled() {
        let call = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{}}}}"#);
        let cancel = r#"{"method":"notifications/cancelled","params":{"requestId":"1"}}"#;
        assert_eq!(open_after(&[&call("1"), &call("\"1\""), cancel]), ["1"]);
        assert_eq!(open_after(&[&format!("[{},{}]", call("7"), call("8"))]), ["7", "8"]);
        let mut calls = OpenCalls::default();
        calls.read_request(call("1").as_bytes());
        assert!(calls.close("1") && !calls.close("1") && calls.is_empty());
    }

    #[test]
    fn only_tool_calls_open_a_call() {
        assert!(
            open_after(&[
                r#"{"id":1,"method":"tools/list"}"#,
                r#"{"id":1,"method":"prompts/get","params":{"name":"tools/call"}}"#,
                r#"{"method":"tools/call"}"#,
                r#"{"id":1,"method":"tools/call""#,
                "tools/call",
                "[tools/call",
            ])
            .is_empty()
        );
    }

    #[test]
    fn memory_is_bounded() {
        let lines: Vec<String> =
            (0..3000).map(|id| format!(r#"{{"id":{id},"method":"tools/call"}}"#)).collect();
        let open = open_after(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!((open.len(), open[0].as_str()), (MAX_OPEN, "1976"));
    }
}
