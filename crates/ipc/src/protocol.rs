//! The protocol of the socket: one JSON object per line, in both directions.

use ringer_term::escape_json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The longest line, in bytes. A longer one is refused before it is read completely, and the connection is closed.
pub const MAX_LINE: usize = 1024 * 1024;

/// A request. Unknown fields are ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestLine {
    /// The id, repeated in the answer.
    #[serde(default)]
    pub id: Value,
    /// The name of the method.
    pub method: String,
    /// The parameters of the method.
    #[serde(default)]
    pub params: Value,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The id of the request; null if the request has none or is invalid.
    pub id: Value,
    /// True on success.
    pub ok: bool,
    /// The result, on success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// The error, on failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ApiError>,
    /// About how many messages that were in the journal at the time of the request are not reflected, because the hub has not
    /// read them yet.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub behind: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The reason why a request failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// An identifier for programs.
    pub code: String,
    /// A message for people.
    pub message: String,
    /// More details, if there are any.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

impl ApiError {
    /// Creates an error.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), data: Value::Null }
    }

    /// Creates an error for a missing or invalid parameter.
    pub fn params(message: impl Into<String>) -> Self {
        Self::new("invalid_params", message)
    }
}

impl Response {
    /// Creates the answer to a request.
    pub fn to(id: Value, result: Result<Value, ApiError>) -> Self {
        let ok = result.is_ok();
        let (result, error) = match result {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error)),
        };
        Self { id, ok, result, error, behind: 0 }
    }

    /// Sets [`Self::behind`].
    pub fn without(self, behind: u64) -> Self {
        Self { behind, ..self }
    }

    /// Returns the response as a line.
    pub fn line(&self) -> Vec<u8> {
        json_line(self)
    }
}

/// Serializes a value as one line of JSON that is safe to print: people read the socket with `nc`, and some line readers also
/// break lines at U+0085 or U+2028.
pub fn json_line(value: &impl Serialize) -> Vec<u8> {
    // Serializing plain data cannot fail.
    let json = serde_json::to_string(value).unwrap_or_default();
    format!("{}\n", escape_json(&json)).into_bytes()
}

/// Parses a line as a request.
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
