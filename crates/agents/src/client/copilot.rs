//! GitHub Copilot CLI, from its documentation; never run. Hook inputs (in camel case) and outputs follow the page "GitHub Copilot
//! hooks reference" (docs.github.com, a copy of 2026).
//!
//! Two hooks are not used. A failing `preToolUse` hook denies the tool, and Ringer must never cause that. `permissionRequest`
//! runs before the rules decide whether the person is asked at all; the `notification` of type `permission_prompt` comes when
//! they are. An `agentStop` has no last message, so the end of a turn is reported without one.

use ringer_core::agent::{AgentState, Authority, BlockedOn};
use serde::Serialize;

use super::adapter::{Adapter, PushMethod};
use super::input::HookInput;
use super::reply::{HookReply, to_json};
use super::report::{HookPoint, HookReport};
use super::request;
use super::settings::{ClientSettings, Format, HookEntryForm, HookFile, SettingsFile};

/// Maximum characters that Copilot appends to a tool's result, for all hooks together.
const CONTEXT_LIMIT: usize = 10_000;

/// GitHub Copilot CLI.
pub(super) const ADAPTER: Adapter = Adapter {
    name: "copilot",
    display_name: "Copilot CLI",
    programs: &["copilot"],
    is_tested: false,
    context_limit: Some(CONTEXT_LIMIT),
    session_id_begins_randomly: false,
    leaves_sessions_silently: false,
    read,
    answer: |event, reply| to_json(&answer(event, reply)),
    reports_events: true,
    sessions: None,
    prompts: None,
    push: PushMethod::Refused("Copilot CLI takes messages only while it works"),
    settings: ClientSettings {
        user_directory: |paths| paths.named_or_home(paths.copilot_home.as_ref(), ".copilot"),
        project_directory: ".github",
        // Copilot reads every file of that directory; this one is named after Ringer.
        files: &[SettingsFile::new("hooks/ringer.json", Format::Hooks)],
        hooks: Some(HookFile {
            events: &[
                "sessionStart",
                "userPromptSubmitted",
                "postToolUse",
                "postToolUseFailure",
                "notification",
                "agentStop",
                "errorOccurred",
                "sessionEnd",
            ],
            entry: HookEntryForm::Flat { has_type: true, line: "bash", timeout: "timeoutSec" },
            check: None,
            after_change: None,
        }),
        own_popups: None,
    },
};

fn read(event: &str, input: &HookInput) -> HookReport {
    let mut report = HookReport::new(input.text("sessionId"), input.text("cwd"));
    match event {
        "sessionStart" => report.session_starts(input),
        "userPromptSubmitted" => report.prompt_submitted(input),
        "postToolUse" | "postToolUseFailure" => {
            report.state(AgentState::Working);
            report.hook_point = HookPoint::AfterTool;
        }
        "notification" => notification(input, &mut report),
        "agentStop" => {
            report.state(AgentState::Done);
            report.hook_point = HookPoint::Stopping { already_blocked: input.flag("stop_hook_active") };
        }
        // Copilot retries by itself.
        "errorOccurred" if input.flag("recoverable") => report.alive(),
        "errorOccurred" => failure(input, &mut report),
        "sessionEnd" => report.state(AgentState::Exited),
        _ => {}
    }
    report
}

/// Reports prompts with the authority of a hook, because no other hook reports them; otherwise the `Working` of the moment before
/// would outrank them. Other types are about background shells and agents, which are silent.
fn notification(input: &HookInput, report: &mut HookReport) {
    let on = match input.text("notification_type") {
        Some("permission_prompt") => BlockedOn::Permission,
        Some("elicitation_dialog") => BlockedOn::Question,
        _ => return report.alive(),
    };
    let text = input.text("message").and_then(request::shorten);
    report.state_with(Authority::Hook, AgentState::Blocked(on), text);
}

fn failure(input: &HookInput, report: &mut HookReport) {
    let words = [input.text("error.name"), input.text("error.message")];
    let text = words.into_iter().flatten().collect::<Vec<_>>().join(": ");
    report.state_with(Authority::Hook, AgentState::Error, request::shorten(&text));
}

/// The output that Copilot accepts.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Output {
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// After a tool, appended to its result; at the start of a session, added to its context.
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_context: Option<String>,
}

fn answer(event: &str, reply: &HookReply) -> Output {
    // Copilot drops the output of `userPromptSubmitted` hooks. After a failed tool, only exit code 2 has an effect.
    let additional_context = match event {
        "sessionStart" => reply.start_context(),
        "postToolUse" => reply.turn_context(),
        _ => None,
    };
    let reason = reply.reason().filter(|_| event == "agentStop");
    Output { decision: reason.is_some().then_some("block"), reason, additional_context }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringer_core::agent::SignalContent;
    use serde_json::json;

    /// The fields that the documentation shows for every event, and those of one.
    fn report(event: &str, own: serde_json::Value) -> HookReport {
        let mut input =
            json!({"sessionId": "0e4f7c12-9ab3", "timestamp": 1_763_000_000_000_u64, "cwd": "/p"});
        let (Some(all), serde_json::Value::Object(own)) = (input.as_object_mut(), own) else { panic!() };
        all.extend(own);
        let report = read(event, &HookInput::read(input.to_string().as_bytes()).unwrap());
        assert_eq!(
            (report.session_id.as_deref(), report.cwd.as_deref()),
            (Some("0e4f7c12-9ab3"), Some("/p"))
        );
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
        use AgentState::{Done, Exited, Ready, Working};
        let start = json!({"source": "startup", "initialPrompt": "say hello"});
        check("sessionStart", start, Ready, HookPoint::SessionStarts, None);
        let prompt = json!({"prompt": "say hello"});
        check("userPromptSubmitted", prompt, Working, HookPoint::PromptSubmitted, Some("say hello"));
        let after = json!({"toolName": "bash", "toolArgs": {"command": "make"},
            "toolResult": {"resultType": "success", "textResultForLlm": "a lot"}});
        check("postToolUse", after, Working, HookPoint::AfterTool, None);
        let failed = json!({"toolName": "bash", "toolArgs": {"command": "make"}, "error": "exit 2"});
        check("postToolUseFailure", failed, Working, HookPoint::AfterTool, None);
        for active in [false, true] {
            let stop = json!({"transcriptPath": "/t", "stopReason": "end_turn", "stop_hook_active": active});
            check("agentStop", stop, Done, HookPoint::Stopping { already_blocked: active }, None);
        }
        check("sessionEnd", json!({"reason": "user_exit"}), Exited, HookPoint::Other, None);
    }

    #[test]
    fn notifications_from_documents() {
        use BlockedOn::{Permission, Question};
        let notice = |kind: &str| {
            json!({"hook_event_name": "Notification", "message": "Run make?", "title": "Permission needed",
                "notification_type": kind})
        };
        for (kind, on) in [("permission_prompt", Permission), ("elicitation_dialog", Question)] {
            let blocked = AgentState::Blocked(on);
            check("notification", notice(kind), blocked, HookPoint::Other, Some("Run make?"));
        }
        for kind in ["shell_completed", "shell_detached_completed", "agent_completed", "agent_idle"] {
            assert_eq!(
                report("notification", notice(kind)).signals[0].content,
                SignalContent::Alive,
                "{kind}"
            );
        }
    }

    #[test]
    fn errors_from_documents() {
        let error = |recoverable: bool| {
            json!({"error": {"message": "429 Too Many Requests", "name": "ModelError", "stack": "at x"},
                "errorContext": "model_call", "recoverable": recoverable})
        };
        let text = Some("ModelError: 429 Too Many Requests");
        check("errorOccurred", error(false), AgentState::Error, HookPoint::Other, text);
        assert_eq!(report("errorOccurred", error(true)).signals[0].content, SignalContent::Alive);
    }

    #[test]
    fn what_it_takes_from_documents() {
        let output = |event: &str, reply: &HookReply| serde_json::to_value(answer(event, reply)).unwrap();
        let context = HookReply::with_context("hello");
        assert_eq!(output("postToolUse", &context), json!({"additionalContext": "hello"}));
        let block = json!({"decision": "block", "reason": "go"});
        assert_eq!(output("agentStop", &HookReply::with_stop_reason("go")), block);
        for event in ["userPromptSubmitted", "postToolUseFailure", "notification", "agentStop", "sessionEnd"]
        {
            assert_eq!(output(event, &context), json!({}), "{event}");
        }
    }

    #[test]
    fn an_event_that_setup_does_not_ask_for_says_nothing() {
        for event in ["preToolUse", "permissionRequest", "subagentStop", "preCompact", "Stop"] {
            assert_eq!(report(event, json!({"stopReason": "end_turn"})).signals, [], "{event}");
        }
    }
}
