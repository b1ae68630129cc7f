//! Client dialogs: what they ask, and how a hook answers them.

use std::io::{self, Read};

use ringer_core::agent::{Answer, AnswerMethod, PermissionRequest, PromptContent};
use serde_json::Value;

/// Maximum input size, in bytes, that is kept for the answer. A dialog with a longer one can only be answered in the client.
const MAX_RAW: usize = 1024 * 1024;
/// Maximum bytes kept of a request. A longer one is truncated and cannot be allowed from elsewhere.
const MAX_REQUEST: usize = 64 * 1024;

/// Separates a command and the reason for it.
pub(crate) const BEFORE_REASON: &str = "\nWhy: ";

/// Reads the tool results in a line of a transcript.
pub(crate) type ReadResults = fn(line: &[u8]) -> Vec<String>;

/// Reads from a session's log and the client's settings that the client refuses the dialog of an event.
pub(crate) type RefusesDialog = fn(event: &str, log: &[u8], settings: &str) -> bool;

/// How a client's hooks report its dialogs.
#[derive(Debug)]
pub(crate) struct PromptHooks {
    /// The events that report a dialog.
    pub(crate) events: &'static [&'static str],
    /// How an answer from elsewhere reaches the client. A hook may wait for one only if the dialog is open meanwhile.
    pub(crate) method: AnswerMethod,
    pub(crate) waiting_events: &'static [&'static str],
    pub(crate) read: fn(event: &str, input: &Value) -> Option<PromptContent>,
    /// The output of the waiting hook for an answer. `None` if the client does not accept this answer.
    pub(crate) output: fn(event: &str, input: &Value, answer: &Answer) -> Option<String>,
    /// Reads the tool results in a line of the session's transcript, if the client writes one. A result that does not repeat the
    /// answer shows that another answer came first.
    pub(crate) results: Option<ReadResults>,
    /// How the client reports which answer it took, if it does.
    pub(crate) answer_events: Option<AnswerEvents>,
    /// The environment variable and value of an unattended run, in which the client calls its hooks and then refuses by itself.
    pub(crate) unattended: Option<(&'static str, &'static str)>,
    /// For a client whose hook reports dialogs that it then refuses by itself.
    pub(crate) refuses: Option<RefusesDialog>,
}

/// How a client reports which answer it took.
#[derive(Debug)]
pub(crate) struct AnswerEvents {
    pub(crate) events: &'static [&'static str],
    pub(crate) read: fn(event: &str, input: &Value) -> Option<Answer>,
}

/// Keeps a copy of what is read, up to a limit.
pub(super) struct TeeReader<R> {
    source: R,
    copy: Vec<u8>,
    is_too_long: bool,
}

impl<R: Read> TeeReader<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, copy: Vec::new(), is_too_long: false }
    }

    /// Parses the copy as JSON. `None` if the input was too long or is not JSON.
    pub(super) fn into_json(self) -> Option<Value> {
        if self.is_too_long {
            return None;
        }
        serde_json::Deserializer::from_slice(&self.copy).into_iter().next()?.ok()
    }
}

impl<R: Read> Read for TeeReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.source.read(buffer)?;
        self.is_too_long |= self.copy.len() + length > MAX_RAW;
        if !self.is_too_long {
            self.copy.extend_from_slice(&buffer[..length]);
        }
        Ok(length)
    }
}

/// The complete request of a tool: the command alone, or every member of the tool's input.
pub(super) fn permission_request(tool: &str, input: &Value, always: Vec<String>) -> PermissionRequest {
    let text = match (input.get("command").and_then(Value::as_str), input.as_object()) {
        (Some(command), Some(members))
            if members.keys().all(|key| key == "command" || key == "description") =>
        {
            match members.get("description").and_then(Value::as_str) {
                Some(why) if !why.trim().is_empty() => format!("{command}{BEFORE_REASON}{why}"),
                _ => command.to_owned(),
            }
        }
        (_, Some(members)) => {
            let mut members: Vec<String> = members.iter().map(|(key, value)| member(key, value)).collect();
            // Short members first: a file's name before its content.
            members.sort_by_key(|member| member.contains('\n'));
            members.join("\n")
        }
        (_, None) => String::new(),
    };
    let (request, whole) = cut(text);
    PermissionRequest { tool: tool.to_owned(), request, whole, always }
}

fn member(key: &str, value: &Value) -> String {
    match value {
        Value::String(text) if text.contains('\n') => format!("{key}:\n{text}"),
        Value::String(text) => format!("{key}: {text}"),
        value => format!("{key}: {value}"),
    }
}

/// Truncates a long text. Returns true if the text is whole.
pub(super) fn cut(mut text: String) -> (String, bool) {
    if text.len() <= MAX_REQUEST {
        return (text, true);
    }
    text.truncate(text.floor_char_boundary(MAX_REQUEST));
    (text, false)
}

/// Reads questions in the form that Claude Code and opencode share.
pub(super) fn questions(
    input: &Value,
    multiple: &str,
    free_text: impl Fn(&Value) -> bool,
) -> Option<PromptContent> {
    use ringer_core::agent::PromptQuestion;
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let asked = input.get("questions")?.as_array()?;
    let questions: Option<Vec<PromptQuestion>> = asked
        .iter()
        .map(|question| {
            let options =
                question.get("options").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            Some(PromptQuestion {
                text: text(question, "question")?,
                options: options.iter().map(|option| text(option, "label")).collect::<Option<_>>()?,
                descriptions: options
                    .iter()
                    .map(|option| text(option, "description").unwrap_or_default())
                    .collect(),
                multiple: question.get(multiple).and_then(Value::as_bool).unwrap_or(false),
                free_text: free_text(question),
            })
        })
        .collect();
    questions.filter(|questions| !questions.is_empty()).map(PromptContent::Questions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_command_is_shown_as_it_is_and_other_tools_with_all_they_get() {
        let request = |tool: &str, input: Value| permission_request(tool, &input, Vec::new()).request;
        assert_eq!(request("Bash", json!({"command": "a \\\n b"})), "a \\\n b");
        assert_eq!(request("Bash", json!({"command": "a", "description": "tidy up"})), "a\nWhy: tidy up");
        let hidden =
            request("Bash", json!({"command": "a", "description": "x", "dangerouslyDisableSandbox": true}));
        assert!(
            hidden.contains("dangerouslyDisableSandbox: true") && hidden.contains("command: a"),
            "{hidden}"
        );
        let write = request("Write", json!({"file_path": "/p/a", "content": "one\ntwo"}));
        assert_eq!(write, "file_path: /p/a\ncontent:\none\ntwo");
        assert_eq!(request("mcp__x__y", json!({})), "");
    }

    #[test]
    fn a_long_request_is_not_whole() {
        let long = permission_request("Bash", &json!({"command": "é".repeat(40_000)}), Vec::new());
        assert!(!long.whole && long.request.len() <= MAX_REQUEST);
        let limit = permission_request("Bash", &json!({"command": "x".repeat(MAX_REQUEST)}), Vec::new());
        assert!(limit.whole);
    }

    #[test]
    fn what_is_read_is_kept_up_to_a_limit() {
        let keep = |bytes: &[u8]| {
            let mut reader = TeeReader::new(bytes);
            io::copy(&mut reader, &mut io::sink()).unwrap();
            reader.into_json()
        };
        assert_eq!(keep(b" {\"a\": 1}\n "), Some(json!({"a": 1})));
        assert_eq!(keep(b"{\"a\": "), None);
        let long = json!({"a": "x".repeat(MAX_RAW)}).to_string();
        assert_eq!(keep(long.as_bytes()), None);
    }
}
