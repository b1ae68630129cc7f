//! Cursor, the editor and its CLI, from its documentation; never run. Hook inputs and outputs follow the page "Hooks"
//! (cursor.com/docs/hooks, a copy of 2026).
//!
//! What the page leaves open is not used. No hook reports that Cursor waits for a permission. A `stop` has no last message, so
//! the end of a turn is reported without one. The page does not say in which conversation the tools of a subagent run, so
//! subagent hooks are not used.

use ringer_core::agent::{AgentState, Authority};
use serde::Serialize;

use super::adapter::{Adapter, PushMethod};
use super::input::HookInput;
use super::json::Value;
use super::reply::{HookReply, to_json};
use super::report::{HookPoint, HookReport};
use super::request;
use super::settings::{ClientSettings, Format, HookEntryForm, HookFile, McpForm, SettingsFile};

/// How many follow-ups of `stop` hooks Cursor accepts in one conversation. A hook's entry may set another limit; Ringer's does
/// not.
const LOOP_LIMIT: u32 = 5;

/// Cursor: the editor and `cursor-agent`.
pub(super) const ADAPTER: Adapter = Adapter {
    name: "cursor",
    display_name: "Cursor",
    programs: &["cursor-agent", "cursor"],
    is_tested: false,
    context_limit: None,
    session_id_begins_randomly: false,
    leaves_sessions_silently: false,
    read,
    answer: |event, reply| to_json(&answer(event, reply)),
    reports_events: true,
    sessions: None,
    prompts: None,
    push: PushMethod::Refused("Cursor takes messages only while it works"),
    settings: ClientSettings {
        user_directory: |paths| paths.home.join(".cursor"),
        project_directory: ".cursor",
        files: &[
            SettingsFile::new("hooks.json", Format::Hooks),
            // From the page "Model Context Protocol" (docs.cursor.com, a copy of 2026).
            SettingsFile::with_mcp_servers(
                "mcp.json",
                McpForm::Command { servers: "mcpServers", has_type: false },
            ),
        ],
        hooks: Some(HookFile {
            events: &[
                "sessionStart",
                "beforeSubmitPrompt",
                "postToolUse",
                "postToolUseFailure",
                "stop",
                "sessionEnd",
            ],
            entry: HookEntryForm::Flat { has_type: false, line: "command", timeout: "timeout" },
            check: None,
            after_change: None,
        }),
        own_popups: None,
    },
};

fn read(event: &str, input: &HookInput) -> HookReport {
    // User hooks run in `~/.cursor`, so only the workspace tells where the agent is.
    let cwd = input.first_text(&["workspace_roots.0", "cwd"]);
    let mut report = HookReport::new(input.first_text(&["conversation_id", "session_id"]), cwd);
    report.call_id = input.text("tool_use_id").map(str::to_owned);
    match event {
        "sessionStart" => report.session_starts(input),
        "beforeSubmitPrompt" => report.prompt_submitted(input),
        "postToolUse" | "postToolUseFailure" => {
            // The person stopped the agent: the `stop` that follows reports how the turn ended.
            if input.flag("is_interrupt") {
                report.alive();
            } else {
                report.state(AgentState::Working);
            }
            report.hook_point = HookPoint::AfterTool;
        }
        "stop" => stop(input, &mut report),
        "sessionEnd" => {
            let text = input.text("error_message").and_then(request::shorten);
            report.state_with(Authority::Hook, AgentState::Exited, text);
        }
        _ => {}
    }
    report
}

/// Only a completed turn is continued: a person who stopped it wants it stopped.
fn stop(input: &HookInput, report: &mut HookReport) {
    let why = |text: &str| Some(text.to_owned());
    match input.text("status") {
        Some("aborted") => report.state_with(Authority::Hook, AgentState::Ready, why("aborted")),
        Some("error") => report.state(AgentState::Error),
        _ => {
            let follow_ups = follow_up_count(input);
            report.state(AgentState::Done);
            // Cursor would ignore one more, and its messages would be lost.
            if follow_ups < LOOP_LIMIT {
                report.hook_point = HookPoint::Stopping { already_blocked: follow_ups > 0 };
            }
        }
    }
}

/// How many follow-ups have continued the turn.
fn follow_up_count(input: &HookInput) -> u32 {
    match input.get("loop_count") {
        Some(Value::Number(count)) => count.parse().unwrap_or(LOOP_LIMIT),
        _ => 0,
    }
}

/// The output that Cursor accepts.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Output {
    /// After a tool, appended to its result; at the start of a session, added to its context.
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_context: Option<String>,
    /// After a turn: submitted as the next prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    followup_message: Option<String>,
}

fn answer(event: &str, reply: &HookReply) -> Output {
    // Hooks for prompts and failed tools cannot add context.
    let additional_context = match event {
        "sessionStart" => reply.start_context(),
        "postToolUse" => reply.turn_context(),
        _ => None,
    };
    Output { additional_context, followup_message: reply.reason().filter(|_| event == "stop") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringer_core::agent::SignalContent;
    use serde_json::json;

    /// The fields that the documentation shows for every event, and those of one.
    fn report(event: &str, own: serde_json::Value) -> HookReport {
        let mut input = json!({
            "conversation_id": "cdefee2d-2727-4b73-bf77-d9d830f31d2a",
            "generation_id": "26b45fb6-bdea-439c-b2dc-5e97ee00ecea",
            "model": "claude-opus-4-7-thinking-max",
            "model_id": "claude-opus-4-7",
            "model_params": [{"id": "effort", "value": "max"}],
            "hook_event_name": event,
            "cursor_version": "1.7.2",
            "workspace_roots": ["/project"],
            "user_email": null,
            "transcript_path": null,
        });
        let (Some(all), serde_json::Value::Object(own)) = (input.as_object_mut(), own) else { panic!() };
        all.extend(own);
        let report = read(event, &HookInput::read(input.to_string().as_bytes()).unwrap());
        assert_eq!(report.session_id.as_deref(), Some("cdefee2d-2727-4b73-bf77-d9d830f31d2a"));
        assert_eq!(report.cwd.as_deref(), Some("/project"));
        report
    }

    #[track_caller]
    fn check(
        event: &str,
        own: serde_json::Value,
        state: AgentState,
        hook_point: HookPoint,
        text: Option<&str>,
    ) {
        report(event, own).assert_only_signal(state, hook_point, text);
    }

    #[test]
    fn a_session_from_documents() {
        use AgentState::{Exited, Ready, Working};
        let start = json!({"session_id": "cdefee2d-2727-4b73-bf77-d9d830f31d2a",
            "is_background_agent": false, "composer_mode": "agent"});
        check("sessionStart", start, Ready, HookPoint::SessionStarts, None);
        let prompt = json!({"prompt": "make the tests pass",
            "attachments": [{"type": "file", "file_path": "/project/a.rs"}]});
        check("beforeSubmitPrompt", prompt, Working, HookPoint::PromptSubmitted, Some("make the tests pass"));
        let end = json!({"session_id": "cdefee2d-2727-4b73-bf77-d9d830f31d2a", "reason": "user_close",
            "duration_ms": 45000, "is_background_agent": false, "final_status": "completed"});
        check("sessionEnd", end, Exited, HookPoint::Other, None);
        let end = json!({"reason": "error", "duration_ms": 45000, "error_message": "no\nnetwork"});
        check("sessionEnd", end, Exited, HookPoint::Other, Some("no network"));
    }

    #[test]
    fn a_tool_from_documents() {
        let after = json!({"tool_name": "Shell", "tool_input": {"command": "npm test"},
            "tool_output": "{\"exitCode\":0,\"stdout\":\"All tests passed\"}", "tool_use_id": "abc123",
            "cwd": "/project/web", "duration": 5432});
        check("postToolUse", after.clone(), AgentState::Working, HookPoint::AfterTool, None);
        assert_eq!(report("postToolUse", after).call_id.as_deref(), Some("abc123"));
        let failed = |interrupt: bool| {
            json!({"tool_name": "Shell", "tool_input": {"command": "npm test"}, "tool_use_id": "abc123",
                "cwd": "/project", "error_message": "Command timed out after 30s",
                "failure_type": "timeout", "duration": 5000, "is_interrupt": interrupt})
        };
        check("postToolUseFailure", failed(false), AgentState::Working, HookPoint::AfterTool, None);
        assert_eq!(report("postToolUseFailure", failed(true)).signals[0].content, SignalContent::Alive);
    }

    #[test]
    fn the_end_of_a_turn_from_documents() {
        use AgentState::{Done, Error, Ready};
        let stop = |status: &str, count: u32| json!({"status": status, "loop_count": count});
        let stopping = |already_blocked| HookPoint::Stopping { already_blocked };
        check("stop", stop("completed", 0), Done, stopping(false), None);
        check("stop", stop("completed", 4), Done, stopping(true), None);
        check("stop", stop("completed", 5), Done, HookPoint::Other, None);
        check("stop", stop("aborted", 0), Ready, HookPoint::Other, Some("aborted"));
        check("stop", stop("error", 0), Error, HookPoint::Other, None);
    }

    #[test]
    fn what_it_takes_from_documents() {
        let output = |event: &str, reply: &HookReply| serde_json::to_value(answer(event, reply)).unwrap();
        let context = HookReply::with_context("hello");
        assert_eq!(output("postToolUse", &context), json!({"additional_context": "hello"}));
        assert_eq!(output("stop", &HookReply::with_stop_reason("go")), json!({"followup_message": "go"}));
        for event in ["beforeSubmitPrompt", "postToolUseFailure", "stop", "sessionEnd"] {
            assert_eq!(output(event, &context), json!({}), "{event}");
        }
    }

    #[test]
    fn an_event_that_setup_does_not_ask_for_says_nothing() {
        for event in ["preToolUse", "subagentStop", "afterAgentThought", "workspaceOpen", "Stop"] {
            assert_eq!(report(event, json!({"status": "completed"})).signals, [], "{event}");
        }
    }
}
