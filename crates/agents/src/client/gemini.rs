//! Gemini CLI: hook inputs and session logs, recorded from version 0.61.0, and the output that it accepts.

use jiff::Timestamp;
use ringer_core::agent::{AgentState, Authority, BlockedOn, SignalContent};

use super::adapter::{
    Adapter, LogPlace, PushMethod, SessionActivity, SessionFiles, SessionStatus, last_status,
};
use super::input::HookInput;
use super::json::Value;
use super::reply::{DecisionOutput, HookReply, to_json};
use super::report::{HookPoint, HookReport};
use super::request;
use super::settings::{
    ClientSettings, Format, HookCheck, HookEntryForm, HookFile, InstalledHooks, McpForm, SettingsFile,
};
use crate::setup::{Dialect, Obstacle};
use serde::Deserialize;

/// The name of Ringer's hooks in Gemini's settings, by which the person can disable them.
const HOOK_NAME: &str = "ringer";

/// The JSON that Gemini CLI accepts in its settings.
const DIALECT: Dialect = Dialect { comments: true, byte_order_mark: false };

/// Gemini CLI.
pub(super) const ADAPTER: Adapter = Adapter {
    name: "gemini",
    display_name: "Gemini CLI",
    programs: &["gemini"],
    context_limit: None,
    session_id_begins_randomly: true,
    leaves_sessions_silently: false,
    outlives_window: false,
    calls_hooks_itself: true,
    read,
    answer: |event, reply| to_json(&answer(event, reply)),
    // `tmp/PROJECT/chats/session-2026-11-16T07-34-3e9bdf87.jsonl`: the name ends with the first part of the session's id.
    sessions: Some(SessionFiles::Logs {
        directory: "tmp",
        place: LogPlace::NameEnd(|session_id| {
            format!("-{}.jsonl", session_id.split('-').next().unwrap_or_default())
        }),
        read: |tail| last_status(tail, read_log_line),
        add_detail: None,
    }),
    prompts: None,
    push: PushMethod::Refused("Gemini CLI takes messages only while it works"),
    settings: ClientSettings {
        user_directory: |paths| paths.home.join(".gemini"),
        project_directory: ".gemini",
        files: &[SettingsFile {
            mcp: Some(McpForm::Command { servers: "mcpServers", has_type: false }),
            ..SettingsFile::new("settings.json", Format::Hooks)
        }],
        hooks: Some(HookFile {
            events: &[
                "SessionStart",
                "BeforeAgent",
                "BeforeTool",
                "AfterTool",
                "AfterAgent",
                "Notification",
                "SessionEnd",
                "PreCompress",
            ],
            // Gemini shows this name in its hook panel; without it, the whole shell line. Timeouts are in milliseconds.
            entry: HookEntryForm::Group { name: Some(HOOK_NAME), timeout_per_second: 1000 },
            check: Some(HookCheck { dialect: DIALECT, find: find_obstacle }),
            after_change: None,
        }),
        own_popups: None,
    },
};

fn find_obstacle(hooks: &InstalledHooks) -> Option<Obstacle> {
    let switched_off =
        |what: &str, hint: &str| Obstacle::switched_off(ADAPTER.display_name, hooks.path, what, hint);
    if DIALECT.boolean(hooks.text, &["hooksConfig", "enabled"]) == Some(false) {
        return Some(switched_off("hooksConfig.enabled is false", "set it to true, or take it out"));
    }
    let disabled = DIALECT.list(hooks.text, &["hooksConfig", "disabled"]);
    disabled.iter().any(|name| name == HOOK_NAME).then(|| {
        let what = format!("hooksConfig.disabled names \"{HOOK_NAME}\"");
        switched_off(&what, &format!("type /hooks enable {HOOK_NAME} in gemini"))
    })
}

fn read(event: &str, input: &HookInput) -> HookReport {
    let mut report = HookReport::new(input.text("session_id"), input.text("cwd"));
    report.call_id = input.first_text(&["tool_call_id", "call_id"]).map(str::to_owned);
    match event {
        "SessionStart" => {
            report.state(AgentState::Ready);
            report.hook_point = HookPoint::SessionStarts;
        }
        "BeforeAgent" => {
            let prompt = input.text("prompt").map(without_context).unwrap_or_default();
            report.prompted(request::is_from_person(prompt));
            report.text = input.text("prompt").map(without_context).and_then(request::shorten);
            report.hook_point = HookPoint::PromptSubmitted;
        }
        "BeforeTool" => report.before_tool(input),
        "AfterTool" => {
            report.after_tool(input);
            // If a tool could not run, the model gets only the error, without a hook's context.
            if input.get("tool_response.error").is_some_and(|error| *error != Value::Null) {
                report.hook_point = HookPoint::Other;
            }
        }
        // Also after an interruption and after an error: only the session's log tells which.
        "AfterAgent" if input.text("prompt_response") == Some(NO_RESPONSE) => report.turn_ended(),
        "AfterAgent" => report.done(input, "prompt_response"),
        "Notification" => notification(input, &mut report),
        // `PreCompress` comes in every turn, even if there is nothing to compress.
        "PreCompress" | "BeforeModel" | "AfterModel" | "BeforeToolSelection" => report.alive(),
        "SessionEnd" => report.session_ends(input),
        _ => {}
    }
    report
}

/// The response in the hook's input if the model has given none.
const NO_RESPONSE: &str = "[no response text]";

/// The members of a line of a session's log that are read.
#[derive(Deserialize)]
struct LogLine {
    timestamp: String,
    #[serde(rename = "type")]
    kind: String,
    content: serde_json::Value,
}

impl LogLine {
    /// Returns the first text of the content.
    fn text(&self) -> &str {
        self.content[0]["text"].as_str().or(self.content.as_str()).unwrap_or_default()
    }
}

/// Reads interruptions and errors, which no hook reports.
fn read_log_line(line: &[u8]) -> Option<SessionStatus> {
    let line: LogLine = serde_json::from_slice(line).ok()?;
    let activity = match (line.kind.as_str(), line.content.as_str()) {
        ("info", Some("Request cancelled.")) => SessionActivity::Interrupted,
        ("error", Some(text)) => SessionActivity::Failed(error_message(text)),
        // Written again after an interruption, with the old prompt behind it.
        ("user", _) if line.text().starts_with("<session_context>") => return None,
        ("user" | "gemini", _) => SessionActivity::Other,
        _ => return None,
    };
    let since: Timestamp = line.timestamp.parse().ok()?;
    Some(SessionStatus { activity, since_ms: since.as_millisecond() })
}

/// The server's message in `[API Error: {"error":{"message":…}}]`; the whole text if it has another form.
fn error_message(text: &str) -> String {
    let inner = text.strip_prefix("[API Error: ").and_then(|rest| rest.strip_suffix(']'));
    let message = inner.and_then(|json| {
        let error: serde_json::Value = serde_json::from_str(json).ok()?;
        error["error"]["message"].as_str().map(str::to_owned)
    });
    let text = message.as_deref().or(inner).unwrap_or(text);
    request::shorten(text).unwrap_or_else(|| "unknown error".to_owned())
}

/// Reports permission prompts with the authority of a hook, because no other hook reports them; otherwise the `Working` of the
/// moment before would outrank them.
fn notification(input: &HookInput, report: &mut HookReport) {
    let details = input.get("details").unwrap_or(&Value::Null);
    let message = input.text("message").and_then(request::shorten);
    if input.text("notification_type") != Some("ToolPermission") {
        report.notified(SignalContent::Notified, message);
        return;
    }
    if details.text("type") == Some("ask_user") {
        let text = request::question(details).or(message);
        report.state_with(Authority::Hook, AgentState::Blocked(BlockedOn::Question), text);
        return;
    }
    let title = details.text("title").map(|title| title.strip_prefix("Confirm ").unwrap_or(title));
    let request_line = match (title, details.text("command")) {
        (Some(title), Some(command)) if !title.contains(command) => {
            request::shorten(&format!("{title}: {command}"))
        }
        (Some(title), _) => request::shorten(title),
        (None, Some(command)) => request::shorten(command),
        (None, None) => message,
    };
    report.state_with(Authority::Hook, AgentState::Blocked(BlockedOn::Permission), request_line);
}

/// Strips the context that a hook put before the person's prompt.
fn without_context(prompt: &str) -> &str {
    let after = prompt.strip_prefix("<hook_context>").and_then(|rest| rest.split_once("</hook_context>"));
    after.map_or(prompt, |(_, after)| after)
}

fn answer(event: &str, reply: &HookReply) -> DecisionOutput {
    let context = match event {
        "SessionStart" => reply.start_context(),
        "BeforeAgent" | "AfterTool" => reply.turn_context(),
        _ => None,
    };
    let reason = reply.reason().filter(|_| event == "AfterAgent");
    DecisionOutput::new(event, context, "deny", reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asks(details: &serde_json::Value) -> (AgentState, Option<String>) {
        let input = json!({"notification_type": "ToolPermission", "message": "m", "details": details});
        let report = read("Notification", &HookInput::read(input.to_string().as_bytes()).unwrap());
        let SignalContent::State(state) = report.signals[0].content else { panic!("{report:?}") };
        (state, report.text)
    }

    #[test]
    fn what_it_wants_to_do() {
        use BlockedOn::{Permission, Question};
        let check = |details: serde_json::Value, on: BlockedOn, text: &str| {
            assert_eq!(asks(&details), (AgentState::Blocked(on), Some(text.to_owned())), "{details}");
        };
        check(json!({"type": "edit", "title": "Confirm Write: o.txt"}), Permission, "Write: o.txt");
        check(
            json!({"type": "exec", "title": "Confirm Shell Command", "command": "make"}),
            Permission,
            "Shell Command: make",
        );
        check(json!({"type": "exec", "command": "make"}), Permission, "make");
        check(json!({}), Permission, "m");
        check(json!({"type": "ask_user", "questions": [{"question": "Which?"}]}), Question, "Which?");
    }

    #[test]
    fn nothing_goes_into_the_result_of_a_tool_that_could_not_run() {
        let check = |response: serde_json::Value, hook_point: HookPoint| {
            let input = json!({"session_id": "s", "tool_response": response});
            let report = read("AfterTool", &HookInput::read(input.to_string().as_bytes()).unwrap());
            assert_eq!(
                (report.hook_point, &report.signals[0].content),
                (hook_point, &SignalContent::State(AgentState::Working))
            );
        };
        check(json!({"llmContent": "Exit Code: 3", "error": null}), HookPoint::AfterTool);
        check(json!({"llmContent": "Exit Code: 3"}), HookPoint::AfterTool);
        let error = json!({"message": "File not found.", "type": "file_not_found"});
        check(json!({"llmContent": "x", "error": error}), HookPoint::Other);
    }

    #[test]
    fn a_hooks_context_is_not_what_the_person_said() {
        assert_eq!(without_context("<hook_context>x</hook_context>\n\nhello").trim(), "hello");
        assert_eq!(without_context("hello"), "hello");
        assert_eq!(without_context("<hook_context>open"), "<hook_context>open");
    }
}
