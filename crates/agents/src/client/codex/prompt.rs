//! What Codex asks in its dialogs. Its hooks tell of them before they open; its server has them while they are open.

use ringer_core::agent::{AnswerMethod, PermissionRequest, PromptContent, PromptQuestion};
use serde_json::{Value, json};

use crate::client::prompt::{self, PromptHooks};

/// The tool name that hooks give a command.
pub(crate) const COMMAND_TOOL: &str = "Bash";
/// The tool name that hooks give a change of files.
pub(crate) const PATCH_TOOL: &str = "apply_patch";

/// Its hooks run before the dialog, which opens only when they end: they never wait.
pub(super) const HOOKS: PromptHooks = PromptHooks {
    events: &["PermissionRequest", "PreToolUse"],
    method: AnswerMethod::ClientServer,
    waiting_events: &[],
    read,
    output: |_, _, _| None,
    results: None,
    taken: None,
    unattended: None,
};

/// What its server can be answered to. Other tools ask in another form.
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

/// Its questions. `None` if one cannot be read.
pub(crate) fn questions(input: &Value) -> Option<Vec<PromptQuestion>> {
    // The hook does not say it, and Codex always offers it.
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
