//! The lines on the socket: one JSON object each way.

use ringer_term::escape_json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The longest line, in bytes. A longer one is refused before it is read whole, and the connection ends.
pub const MAX_LINE: usize = 1024 * 1024;

/// What a client sends. Unknown fields are ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestLine {
    /// Comes back in the answer.
    #[serde(default)]
    pub id: Value,
    /// What is wanted.
    pub method: String,
    /// With what.
    #[serde(default)]
    pub params: Value,
}

/// What it gets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// That of the request; null if it had none, or made no sense.
    pub id: Value,
    /// Whether it worked.
    pub ok: bool,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ApiError>,
    /// How many messages, about, were in the journal when this was asked and are not taken into account, because the hub
    /// still reads them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub behind: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// One word for programs.
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// More, where there is more.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

impl ApiError {
    /// A refusal with that code.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), data: Value::Null }
    }

    /// A parameter is missing or makes no sense.
    pub fn params(message: impl Into<String>) -> Self {
        Self::new("invalid_params", message)
    }
}

impl Response {
    /// The answer to a request.
    pub fn to(id: Value, result: Result<Value, ApiError>) -> Self {
        let ok = result.is_ok();
        let (result, error) = match result {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error)),
        };
        Self { id, ok, result, error, behind: 0 }
    }

    /// The same, without this many messages.
    pub fn without(self, behind: u64) -> Self {
        Self { behind, ..self }
    }

    /// As a line.
    pub fn line(&self) -> Vec<u8> {
        json_line(self)
    }
}

/// A value as one line of JSON, safe to print: people read the socket with `nc`, and some readers of lines end one at
/// U+0085 or U+2028.
pub fn json_line(value: &impl Serialize) -> Vec<u8> {
    // Plain data: it cannot fail to be written.
    let json = serde_json::to_string(value).unwrap_or_default();
    format!("{}\n", escape_json(&json)).into_bytes()
}

/// Reads a line.
pub fn read_request(line: &[u8]) -> Result<RequestLine, ApiError> {
    serde_json::from_slice(line).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => {
            ApiError::new("invalid_request", format!("a request is {{id, method, params}}: {error}"))
        }
        _ => ApiError::new("parse_error", format!("that is no JSON: {error}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_request_needs_only_a_method() {
        let request = read_request(br#"{"method":"ping","more":1}"#).unwrap();
        assert_eq!(request, RequestLine { id: Value::Null, method: "ping".into(), params: Value::Null });
        assert_eq!(read_request(b"{").unwrap_err().code, "parse_error");
        assert_eq!(read_request(b"[1]").unwrap_err().code, "invalid_request");
    }

    #[test]
    fn an_answer_is_either() {
        let answer = |result| String::from_utf8(Response::to(json!(7), result).line()).unwrap();
        assert_eq!(answer(Ok(json!({"a": 1}))), "{\"id\":7,\"ok\":true,\"result\":{\"a\":1}}\n");
        let refused = ApiError::new("not_found", "there is none");
        assert_eq!(
            answer(Err(refused)),
            "{\"id\":7,\"ok\":false,\"error\":{\"code\":\"not_found\",\"message\":\"there is none\"}}\n"
        );
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_refused(line in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_request(&line);
        }
    }
}
