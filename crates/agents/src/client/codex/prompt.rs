//! Codex's dialogs. Its hooks report them before they open; its server has them while they are open.

use ringer_core::agent::{AnswerMethod, PermissionRequest, PromptContent, PromptQuestion};
use serde_json::{Value, json};

use crate::client::prompt::{self, PromptHooks};

/// The tool name of a command in hooks.
pub(crate) const COMMAND_TOOL: &str = "Bash";
/// The tool name of a file change in hooks.
pub(crate) const PATCH_TOOL: &str = "apply_patch";

/// Codex's hooks run before the dialog, which opens only when they end: they never wait.
pub(super) const HOOKS: PromptHooks = PromptHooks {
    events: &["PermissionRequest", "PreToolUse"],
    method: AnswerMethod::ClientServer,
    waiting_events: &[],
    read,
    output: |_, _, _| None,
    results: None,
    answer_events: None,
    unattended: None,
};

/// Reads the prompts that can be answered through the server. Other tools ask in another form.
fn read(event: &str, input: &Value) -> Option<PromptContent> {
    let tool = input.get("tool_name")?.as_str()?;
    let input = input.get("tool_input")?;
    match (event, tool) {
        ("PermissionRequest", COMMAND_TOOL | PATCH_TOOL) => {
            let command = input.get("command")?.as_str()?;
            let reason = input.get("description").and_then(Value::as_str);
            Some(PromptContent::Permission(permission_request(tool, command, reason, Vec::new())))
        }
        ("PreToolUse", "request_user_input") => questions(input).map(PromptContent::Questions),
        _ => None,
    }
}

/// A command or a patch, with the reason that Codex gives for it.
pub(crate) fn permission_request(
    tool: &str,
    command: &str,
    reason: Option<&str>,
    always: Vec<String>,
) -> PermissionRequest {
    prompt::permission_request(tool, &json!({ "command": command, "description": reason }), always)
}

/// Reads the questions. `None` if one is malformed.
pub(crate) fn questions(input: &Value) -> Option<Vec<PromptQuestion>> {
    // Hooks leave this out, and Codex always offers free text.
    let is_other = |question: &Value| question.get("isOther").and_then(Value::as_bool).unwrap_or(true);
    match prompt::questions(input, "", is_other)? {
        PromptContent::Questions(questions) => Some(questions),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_hooks_tell_what_its_server_asks() {
        let read = |event: &str, tool: &str, input: Value| {
            read(event, &json!({ "tool_name": tool, "tool_input": input }))
        };
        let asked = read("PermissionRequest", "Bash", json!({ "command": "make", "description": "May I?" }));
        let asked = asked.unwrap();
        assert_eq!(asked.full_text(), "Bash: make\nWhy: May I?");
        let patch = read("PermissionRequest", "apply_patch", json!({ "command": "*** Begin Patch" }));
        assert_eq!(patch.unwrap().full_text(), "apply_patch: *** Begin Patch");
        let question =
            json!({ "id": "q1", "question": "Which?", "options": [{ "label": "A" }, { "label": "B" }] });
        let asked = read("PreToolUse", "request_user_input", json!({ "questions": [question] })).unwrap();
        assert!(asked.read_answer(&["2"]).is_ok() && asked.read_answer(&["neither", "of", "them"]).is_ok());
    }

    #[test]
    fn what_its_server_asks_in_another_form_is_left_to_its_dialog() {
        let input = json!({ "tool_name": "mcp__files__write", "tool_input": { "command": "x" } });
        assert_eq!(read("PermissionRequest", &input), None);
        let input = json!({ "tool_name": "Bash", "tool_input": { "command": "make" } });
        assert_eq!(read("PreToolUse", &input), None);
        assert_eq!(read("PermissionRequest", &json!({ "tool_name": "Bash" })), None);
    }
}
