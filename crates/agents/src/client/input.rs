//! The known members of a hook's standard input.

use std::io::Read;

use super::json::{InputError, Limits, Reader, Value};
use super::text::{MAX_TAIL, TruncatedText};

/// Maximum input size, in bytes. No client sends more; it is rejected.
pub const MAX_INPUT: u64 = 64 * 1024 * 1024;
/// Maximum size of a text that is kept whole, in bytes. A longer one keeps its beginning and its end.
pub const MAX_KEPT: usize = 16 * 1024;

const LIMITS: Limits = Limits {
    document: MAX_INPUT,
    text: MAX_KEPT - MAX_TAIL,
    field: 20 * 1024,
    total: 256 * 1024,
    keeps: is_known,
};

/// The members that Ringer reads, at any depth. Of a tool's result only its error is among them: the rest is large.
const KNOWN: &[&str] = &[
    // Identity, place, turn.
    "session_id",
    "sessionID",
    "sessionId",
    "thread-id",
    "thread_id",
    "parentID",
    "agent_id",
    "agent_type",
    "parentAgentId",
    "timestamp",
    "cwd",
    "directory",
    "worktree",
    "transcript_path",
    "permission_mode",
    "prompt_id",
    "turn_id",
    "turn-id",
    "id",
    "type",
    "hook_event_name",
    "event",
    "properties",
    "info",
    // Start and end.
    "source",
    "reason",
    "trigger",
    "status",
    "model",
    "from_model",
    "to_model",
    "stop_hook_active",
    "background_tasks",
    "session_crons",
    "is_interrupt",
    "aborted",
    "ends_with_turn",
    // Texts.
    "prompt",
    "prompt_response",
    "message",
    "title",
    "last_assistant_message",
    "last-assistant-message",
    "input-messages",
    "notification_type",
    "details",
    "error",
    "error_details",
    "name",
    "data",
    // Tools and their arguments.
    "tool",
    "tool_name",
    "toolName",
    "toolArgs",
    "tool_use_id",
    "tool_call_id",
    "tool_calls",
    "call_id",
    "callID",
    "requestID",
    "permissionID",
    "tool_input",
    "tool_response",
    "input",
    "args",
    "command",
    "description",
    "file_path",
    "filePath",
    "notebook_path",
    "path",
    "url",
    "query",
    "pattern",
    "plan",
    "patterns",
    "permission",
    "metadata",
    "question",
    "questions",
    "options",
    "label",
];

fn is_known(name: &str) -> bool {
    KNOWN.contains(&name)
}

/// A hook's input: the known members, each truncated to a limit.
///
/// It takes less than half a megabyte, whatever the size of the input. Unknown members are skipped: clients add some with every
/// version.
///
/// ```
/// use ringer_agents::client::HookInput;
///
/// let input = HookInput::read(&br#"{"tool_input": {"command": "make"}, "tool_response": {"llmContent": "a lot"}}"#[..])?;
/// assert_eq!(input.text("tool_input.command"), Some("make"));
/// assert_eq!(input.text("tool_response.llmContent"), None);
/// # Ok::<(), ringer_agents::client::InputError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookInput {
    root: Value,
}

impl HookInput {
    /// Reads one JSON object. Anything else is an error.
    pub fn read(source: impl Read) -> Result<Self, InputError> {
        match Reader::new(source, LIMITS).document()? {
            Some(root @ Value::Map(_)) => Ok(Self { root }),
            _ => Err(InputError::Syntax { at: 0, expected: "an object" }),
        }
    }

    /// The text at a dotted path, truncated. `None` if it is empty.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.whole_text(path).map(|text| text.head.as_str())
    }

    /// The first text that is present.
    pub fn first_text(&self, paths: &[&str]) -> Option<&str> {
        paths.iter().find_map(|path| self.text(path))
    }

    /// Returns true if the value is `true`. A missing value is false.
    pub fn flag(&self, path: &str) -> bool {
        matches!(self.get(path), Some(Value::Bool(true)))
    }

    /// Returns true if the text was truncated.
    pub fn is_cut(&self, path: &str) -> bool {
        self.whole_text(path).is_some_and(|text| text.cut)
    }

    /// The whole text; of a truncated one, its beginning and its end.
    pub fn full_text(&self, path: &str) -> Option<String> {
        self.whole_text(path).map(TruncatedText::full)
    }

    /// The last non-blank line of a text, even if the text was truncated.
    pub fn last_line(&self, path: &str) -> Option<&str> {
        self.whole_text(path)?.last_line()
    }

    pub(super) fn whole_text(&self, path: &str) -> Option<&TruncatedText> {
        match self.get(path) {
            Some(Value::Text(text)) if !text.head.is_empty() => Some(text),
            _ => None,
        }
    }

    pub(super) fn get(&self, path: &str) -> Option<&Value> {
        self.root.get(path)
    }
}

impl Value {
    /// The value at a dotted path. A number indexes a list.
    pub(super) fn get(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, |value, step| match value {
            Self::Map(members) => members.iter().find(|(name, _)| name == step).map(|(_, value)| value),
            Self::List { items, .. } => items.get(step.parse::<usize>().ok()?),
            _ => None,
        })
    }

    /// The text at a dotted path, unless it is empty.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        match self.get(path)? {
            Self::Text(text) if !text.head.is_empty() => Some(&text.head),
            _ => None,
        }
    }

    /// The items of a list that were kept.
    pub(super) fn items(&self) -> &[Self] {
        match self {
            Self::List { items, .. } => items,
            _ => &[],
        }
    }

    /// The number of items that the list had, kept or not.
    pub(super) fn seen(&self) -> usize {
        match self {
            Self::List { seen, .. } => *seen,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> HookInput {
        HookInput::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn known_fields_are_kept_and_others_passed_over() {
        let input = read(
            r#"{"weather": {"command": "rain"}, "tool_input": {"content": "x", "command": "make"},
                "stop_hook_active": true, "tool_calls": [{"tool_use_id": "t1"}], "message": ""}"#,
        );
        assert_eq!(input.text("tool_input.command"), Some("make"));
        assert_eq!(input.text("tool_calls.0.tool_use_id"), Some("t1"));
        assert!(input.flag("stop_hook_active"));
        for nothing in ["weather", "weather.command", "tool_input.content", "message", "tool_calls.1", ""] {
            assert_eq!(input.text(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn one_field_does_not_crowd_out_another() {
        let long = "y".repeat(MAX_KEPT * 4);
        let input = read(&format!(
            r#"{{"prompt": "{long}", "tool_input": {{"prompt": "{long}", "question": "{long}", "query": "{long}"}},
                "tool_use_id": "t1"}}"#
        ));
        assert_eq!(input.text("prompt").map(str::len), Some(MAX_KEPT - MAX_TAIL));
        assert!(input.is_cut("prompt"));
        assert_eq!(input.text("tool_use_id"), Some("t1"));
    }

    #[test]
    fn the_last_line_survives_the_cut() {
        let long = "y".repeat(MAX_KEPT * 4);
        for (message, expected) in
            [(format!("{long}\\nWAITING\\n"), "WAITING"), ("a\\n b \\n\\n".to_owned(), "b")]
        {
            let input = read(&format!(r#"{{"last_assistant_message": "{message}"}}"#));
            assert_eq!(input.last_line("last_assistant_message"), Some(expected));
        }
    }

    #[test]
    fn sixteen_kilobytes_are_kept_whole_and_more_loses_its_middle() {
        let read_back = |length: usize| {
            let message = format!("begin{}end", "y".repeat(length - 8));
            read(&format!(r#"{{"message": "{message}"}}"#)).full_text("message").unwrap()
        };
        assert_eq!(read_back(MAX_KEPT).len(), MAX_KEPT);
        let cut = read_back(MAX_KEPT + 1);
        assert!(cut.starts_with("begin") && cut.contains("y\n…\ny") && cut.ends_with("end"));
        assert!(cut.len() <= MAX_KEPT + "\n…\n".len());
    }

    #[test]
    fn a_list_that_does_not_fit_says_how_many_there_were() {
        let tasks = vec![r#"{"command": "make"}"#; 10_000].join(",");
        let input = read(&format!(r#"{{"background_tasks": [{tasks}]}}"#));
        let tasks = input.get("background_tasks").unwrap();
        assert!(tasks.items().len() < 100);
        assert_eq!(tasks.seen(), 10_000);
    }

    #[test]
    fn anything_but_an_object_is_an_error() {
        for text in ["", " ", "1", "[]", "null", "\"text\"", "{", "{}x", "{\"a\":}"] {
            assert!(HookInput::read(text.as_bytes()).is_err(), "{text}");
        }
        assert!(HookInput::read(&b"{}"[..]).is_ok());
    }

    #[test]
    fn too_much_is_refused() {
        let endless = std::io::repeat(b' ');
        assert!(matches!(HookInput::read(endless), Err(InputError::TooLong { most: MAX_INPUT })));
    }
}
