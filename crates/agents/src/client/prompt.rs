//! Dialogs of clients: what they ask, and how a hook answers them.

use std::io::{self, Read};

use ringer_core::agent::{Answer, AnswerMethod, PermissionRequest, PromptContent};
use serde_json::Value;

/// The longest input that is kept whole beside what is read of it. A longer one can only be answered in its dialog.
const MAX_RAW: usize = 1024 * 1024;
/// How much of a request is kept, in bytes. Of a longer one only the beginning is, and it cannot be allowed from elsewhere.
const MAX_REQUEST: usize = 64 * 1024;

/// What is between a command and the reason for it.
pub(crate) const BEFORE_REASON: &str = "\nWhy: ";

/// Reads the results of tools in a line of a transcript.
pub(crate) type ReadResults = fn(line: &[u8]) -> Vec<String>;

/// How the hooks of a client tell of its dialogs.
#[derive(Debug)]
pub(crate) struct PromptHooks {
    /// The events that tell of a dialog.
    pub(crate) events: &'static [&'static str],
    /// How an answer from elsewhere reaches it. A hook may only wait for one where the dialog is open meanwhile.
    pub(crate) method: AnswerMethod,
    /// The events whose hook waits for the answer.
    pub(crate) waiting_events: &'static [&'static str],
    /// Reads what a dialog asks.
    pub(crate) read: fn(event: &str, input: &Value) -> Option<PromptContent>,
    /// The output of the waiting hook that gives an answer. `None` if the client takes no such answer.
    pub(crate) output: fn(event: &str, input: &Value, answer: &Answer) -> Option<String>,
    /// The results of tools in a line of the session's transcript, for a client that has one: a result that does not repeat the
    /// answer shows that another answer was first.
    pub(crate) results: Option<ReadResults>,
    /// How the client tells which answer it took, if it does.
    pub(crate) taken: Option<TakenAnswers>,
    /// The variable, and its value, in a run that no person attends: the client asks its hooks, and refuses.
    pub(crate) unattended: Option<(&'static str, &'static str)>,
}

/// How a client tells which answer it took.
#[derive(Debug)]
pub(crate) struct TakenAnswers {
    /// The events that tell it.
    pub(crate) events: &'static [&'static str],
    /// Reads the answer.
    pub(crate) read: fn(event: &str, input: &Value) -> Option<Answer>,
}

/// Reads from a source and keeps a copy, up to a limit.
pub(super) struct KeepingReader<R> {
    source: R,
    kept: Vec<u8>,
    is_too_long: bool,
}

impl<R: Read> KeepingReader<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, kept: Vec::new(), is_too_long: false }
    }

    /// What was read, as JSON. `None` if it was too long or is none.
    pub(super) fn into_json(self) -> Option<Value> {
        if self.is_too_long {
            return None;
        }
        serde_json::Deserializer::from_slice(&self.kept).into_iter().next()?.ok()
    }
}

impl<R: Read> Read for KeepingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.source.read(buffer)?;
        self.is_too_long |= self.kept.len() + length > MAX_RAW;
        if !self.is_too_long {
            self.kept.extend_from_slice(&buffer[..length]);
        }
        Ok(length)
    }
}

/// What a tool is to do, all of it: the command alone, or every member of the tool's input.
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
            // A file's name before its content.
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

/// A text, cut if it is too long, and whether it is whole.
pub(super) fn cut(mut text: String) -> (String, bool) {
    if text.len() <= MAX_REQUEST {
        return (text, true);
    }
    text.truncate(text.floor_char_boundary(MAX_REQUEST));
    (text, false)
}

/// The questions of a client, in the form that Claude Code and opencode share.
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
            let mut reader = KeepingReader::new(bytes);
            io::copy(&mut reader, &mut io::sink()).unwrap();
            reader.into_json()
        };
        assert_eq!(keep(b" {\"a\": 1}\n "), Some(json!({"a": 1})));
        assert_eq!(keep(b"{\"a\": "), None);
        let long = json!({"a": "x".repeat(MAX_RAW)}).to_string();
        assert_eq!(keep(long.as_bytes()), None);
    }
}
