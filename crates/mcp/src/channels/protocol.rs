//! The lines exchanged with a server that pushes messages.

use std::collections::BTreeMap;
use std::convert::Infallible;

use ringer_core::conversation::{PermissionRequestId, PermissionVerdict};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::line_splitter::{LineSplitter, Piece};

/// The protocol version to request. Any answer is accepted: the versions do not differ in the parts used here.
const VERSION: &str = "2025-11-25";
/// The id of the only request.
const INITIALIZE: u64 = 1;
/// The capability of a server that pushes messages.
const CAPABILITY: &str = "claude/channel";
/// The capability of a server that relays permission requests to a chat and returns the answers.
const PERMISSION_CAPABILITY: &str = "claude/channel/permission";
/// From the server: a message.
const METHOD: &str = "notifications/claude/channel";
/// From the server: the answer to a permission request.
const VERDICT: &str = "notifications/claude/channel/permission";
/// To the server: a permission request.
const REQUEST: &str = "notifications/claude/channel/permission_request";

/// A line of a server.
#[doc(hidden)]
#[derive(Debug, PartialEq, Eq)]
pub enum ServerLine {
    /// The answer to `initialize`.
    Initialized {
        /// The server declares that it pushes messages.
        declares_channel: bool,
        /// The server declares that it relays permissions.
        relays_permissions: bool,
    },
    /// An error in answer to `initialize`, with its message.
    Refused(String),
    /// A message that was pushed.
    Message(PushedMessage),
    /// The answer of a person in the chat to a permission request.
    Verdict {
        /// The id of the request.
        request_id: String,
        /// The answer.
        verdict: PermissionVerdict,
    },
    /// A request. Contains the line to reply with.
    Request(Vec<u8>),
    /// A line to ignore: another notification, or an answer to no request.
    Other,
    /// Not a valid message of the protocol, or a push without text.
    Invalid,
}

/// A message that a server pushed.
#[doc(hidden)]
#[derive(Debug, PartialEq, Eq)]
pub struct PushedMessage {
    /// The text.
    pub content: String,
    /// The metadata. Values that are not strings are dropped.
    pub meta: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    result: Option<Initialized>,
    error: Option<RequestError>,
}

#[derive(Deserialize)]
struct Initialized {
    #[serde(default)]
    capabilities: Capabilities,
}

#[derive(Deserialize, Default)]
struct Capabilities {
    #[serde(default)]
    experimental: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct RequestError {
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct VerdictParams {
    request_id: String,
    behavior: Behavior,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Behavior {
    Allow,
    Deny,
}

#[derive(Deserialize)]
struct Params {
    content: String,
    #[serde(default)]
    meta: Option<BTreeMap<String, Value>>,
}

/// The `initialize` request, the first line of a connection.
pub(super) fn initialize() -> Vec<u8> {
    let client = json!({ "name": "ringer", "version": env!("CARGO_PKG_VERSION") });
    let params = json!({ "protocolVersion": VERSION, "capabilities": {}, "clientInfo": client });
    line(&json!({ "jsonrpc": "2.0", "id": INITIALIZE, "method": "initialize", "params": params }))
}

/// The notification that follows the answer to `initialize`.
pub(super) fn initialized() -> Vec<u8> {
    line(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
}

/// A permission request of the agent: the tool and the whole request.
pub(super) fn permission_request(id: &PermissionRequestId, tool: &str, request: &str) -> Vec<u8> {
    let description = if tool.is_empty() { "The agent asks for a permission" } else { tool };
    let params = json!({
        "request_id": id.as_str(), "tool_name": tool, "description": description, "input_preview": request,
    });
    line(&json!({ "jsonrpc": "2.0", "method": REQUEST, "params": params }))
}

fn line(message: &Value) -> Vec<u8> {
    format!("{message}\n").into_bytes()
}

/// Parses the lines that these bytes complete. A line that is too long is invalid.
pub(super) fn split_lines(splitter: &mut LineSplitter, bytes: &[u8]) -> Vec<ServerLine> {
    let mut lines = Vec::new();
    let Ok(()) = splitter.feed(bytes, |piece| {
        match piece {
            Piece::Line(line) => lines.push(read_line(line)),
            // The end of a line that is too long. Its beginning was dropped.
            Piece::Part(part) if part.ends_with(b"\n") => lines.push(ServerLine::Invalid),
            Piece::Part(_) => {}
        }
        Ok::<(), Infallible>(())
    });
    lines
}

/// Parses the lines in a stream of pieces, for fuzzing.
#[doc(hidden)]
pub fn read_lines<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<ServerLine> {
    let mut splitter = LineSplitter::default();
    pieces.into_iter().flat_map(|piece| split_lines(&mut splitter, piece)).collect()
}

fn read_line(bytes: &[u8]) -> ServerLine {
    let Ok(line) = serde_json::from_slice::<Line<'_>>(bytes) else { return ServerLine::Invalid };
    match (line.id, line.method.as_deref()) {
        (None, Some(METHOD)) => read_message(line.params).map_or(ServerLine::Invalid, ServerLine::Message),
        (None, Some(VERDICT)) => read_verdict(line.params).unwrap_or(ServerLine::Invalid),
        (Some(id), Some(method)) if is_id(id) => ServerLine::Request(answer(id, method)),
        (Some(id), None) if id.get() == INITIALIZE.to_string() => match (line.result, line.error) {
            (Some(result), _) => {
                let declares = |name| result.capabilities.experimental.contains_key(name);
                let (declares_channel, relays_permissions) =
                    (declares(CAPABILITY), declares(PERMISSION_CAPABILITY));
                ServerLine::Initialized { declares_channel, relays_permissions }
            }
            (None, Some(error)) => ServerLine::Refused(error.message),
            (None, None) => ServerLine::Invalid,
        },
        (None, Some(_)) | (Some(_), None) => ServerLine::Other,
        (None, None) | (Some(_), Some(_)) => ServerLine::Invalid,
    }
}

/// Returns true for a string or a number, the only ids in the protocol. The id is copied verbatim into the answer, where
/// anything else could contain a line break.
fn is_id(id: &RawValue) -> bool {
    id.get().starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit())
}

fn read_message(params: Option<&RawValue>) -> Option<PushedMessage> {
    let params: Params = serde_json::from_str(params?.get()).ok()?;
    let texts = params.meta.unwrap_or_default().into_iter().filter_map(|(key, value)| match value {
        Value::String(text) => Some((key, text)),
        _ => None,
    });
    Some(PushedMessage { content: params.content, meta: texts.collect() })
}

fn read_verdict(params: Option<&RawValue>) -> Option<ServerLine> {
    let VerdictParams { request_id, behavior } = serde_json::from_str(params?.get()).ok()?;
    let verdict = match behavior {
        Behavior::Allow => PermissionVerdict::Allow,
        Behavior::Deny => PermissionVerdict::Deny,
    };
    Some(ServerLine::Verdict { request_id, verdict })
}

/// Answers `ping`. All other requests need capabilities that were not declared.
fn answer(id: &RawValue, method: &str) -> Vec<u8> {
    let id = id.get();
    let outcome = match method {
        "ping" => r#""result":{}"#,
        _ => r#""error":{"code":-32601,"message":"method not found"}"#,
    };
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{outcome}}}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_server() {
        let check =
            |line: &str, expected: ServerLine| assert_eq!(read_line(line.as_bytes()), expected, "{line}");
        let declares =
            |declares_channel| ServerLine::Initialized { declares_channel, relays_permissions: false };
        check(r#"{"id":1,"result":{"capabilities":{"experimental":{"claude/channel":{}}}}}"#, declares(true));
        check(r#"{"id":1,"result":{"capabilities":{"tools":{}}}}"#, declares(false));
        check(r#"{"id":1,"result":{}}"#, declares(false));
        check(r#"{"id":1,"error":{"code":1,"message":"no"}}"#, ServerLine::Refused("no".to_owned()));
        check(r#"{"id":2,"result":{}}"#, ServerLine::Other);
        check(r#"{"method":"notifications/progress","params":{}}"#, ServerLine::Other);
        let refusal = "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{\"code\":-32601,\"message\":\"method not found\"}}\n";
        check(r#"{"id":"a","method":"sampling/createMessage"}"#, ServerLine::Request(refusal.into()));
        let pong = "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n";
        check(r#"{"id":7,"method":"ping"}"#, ServerLine::Request(pong.into()));
        for line in ["", "no JSON", "[]", "3", r#"{"jsonrpc":"2.0"}"#, r#"{"id":1}"#, "{\"method\":3}"] {
            check(line, ServerLine::Invalid);
        }
        for id in ["[1,\r2]", "{}", "true"] {
            check(&format!(r#"{{"id":{id},"method":"ping"}}"#), ServerLine::Invalid);
        }
    }

    #[test]
    fn permissions() {
        let both = r#"{"id":1,"result":{"capabilities":{"experimental":
            {"claude/channel":{},"claude/channel/permission":{}}}}}"#;
        let initialized = ServerLine::Initialized { declares_channel: true, relays_permissions: true };
        assert_eq!(read_line(both.as_bytes()), initialized);
        let verdict = |params: &str| {
            let method = "notifications/claude/channel/permission";
            read_line(format!(r#"{{"method":"{method}","params":{params}}}"#).as_bytes())
        };
        for (behavior, expected) in [("allow", PermissionVerdict::Allow), ("deny", PermissionVerdict::Deny)] {
            let line = verdict(&format!(r#"{{"request_id":"abcde","behavior":"{behavior}"}}"#));
            assert_eq!(line, ServerLine::Verdict { request_id: "abcde".to_owned(), verdict: expected });
        }
        for params in
            ["{}", "null", r#"{"request_id":"abcde"}"#, r#"{"request_id":"abcde","behavior":"always"}"#]
        {
            assert_eq!(verdict(params), ServerLine::Invalid, "{params}");
        }
        let id = PermissionRequestId::new(0);
        let request: Value = serde_json::from_slice(&permission_request(&id, "Bash", "make\n\"x\"")).unwrap();
        let params = json!({
            "request_id": "aaaaa", "tool_name": "Bash", "description": "Bash", "input_preview": "make\n\"x\"",
        });
        assert_eq!(request["params"], params);
        assert_eq!(request["method"], "notifications/claude/channel/permission_request");
    }

    #[test]
    fn messages() {
        let push = |params: &str| {
            read_line(format!(r#"{{"method":"notifications/claude/channel","params":{params}}}"#).as_bytes())
        };
        let meta = [("user".to_owned(), "a".to_owned())].into();
        let message = ServerLine::Message(PushedMessage { content: "x\0".to_owned(), meta });
        assert_eq!(push(r#"{"content":"x\u0000","meta":{"user":"a","n":3,"o":{}},"more":1}"#), message);
        for params in ["{}", "null", "[]", r#"{"content":3}"#, r#"{"content":"x","meta":[]}"#] {
            assert_eq!(push(params), ServerLine::Invalid, "{params}");
        }
        assert_eq!(read_line(br#"{"method":"notifications/claude/channel"}"#), ServerLine::Invalid);
    }
}
