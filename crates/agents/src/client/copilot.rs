//! GitHub Copilot CLI: hook inputs, session logs and the output that it accepts, recorded from version 1.0.102.
//!
//! Two hooks are not used, because Copilot denies the tool if one of them fails, even if it was killed: `preToolUse`, and
//! `permissionRequest`, which also runs for tools that need no permission, and before the dialog opens. `errorOccurred` calls every
//! failed request recoverable, also the last one: the session's log has the error that ended the turn.

use std::collections::HashSet;

use jiff::Timestamp;
use ringer_core::agent::{AgentState, Authority, BlockedOn, SignalContent};
use serde::{Deserialize, Serialize};

use super::adapter::{Adapter, LogPlace, PushMethod, SessionActivity, SessionFiles, SessionStatus};
use super::input::{HookInput, MAX_KEPT};
use super::json::Value;
use super::reply::{HookReply, to_json};
use super::report::{HookReport, LogDetail};
use super::request;
use super::settings::{ClientSettings, Format, HookEntryForm, HookFile, SettingsFile};
use super::text::TruncatedText;

/// Maximum characters that Copilot appends to a tool's result, for all hooks together, according to its documentation.
const CONTEXT_LIMIT: usize = 10_000;

/// The tool that asks the person.
const QUESTION_TOOL: &str = "ask_user";

/// The beginnings of the text with which Copilot asks for permission to run a command or to edit a file, and the name of the tool's
/// argument that follows.
const PERMISSION_TEXTS: [(&str, &str); 2] = [("Run command: ", "command"), ("Edit file: ", "path")];

/// GitHub Copilot CLI.
pub(super) const ADAPTER: Adapter = Adapter {
    name: "copilot",
    display_name: "Copilot CLI",
    programs: &["copilot"],
    context_limit: Some(CONTEXT_LIMIT),
    session_id_begins_randomly: true,
    leaves_sessions_silently: false,
    outlives_window: false,
    // When the parent was recorded, it ended at once in about 1 of 12 runs, while the session went on.
    calls_hooks_itself: false,
    read,
    answer: |event, reply| to_json(&answer(event, reply)),
    // `session-state/SESSION/events.jsonl`
    sessions: Some(SessionFiles::Logs {
        directory: "session-state",
        place: LogPlace::SessionDirectory("events.jsonl"),
        read: read_log,
        add_detail: Some(add_detail),
    }),
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
                "sessionEnd",
            ],
            entry: HookEntryForm::Flat { line: "bash", timeout: "timeoutSec" },
            check: None,
            after_change: None,
        }),
        own_popups: None,
    },
};

fn read(event: &str, input: &HookInput) -> HookReport {
    if let Some(parent) = input.text("parentAgentId") {
        return subagent(event, input, parent);
    }
    let mut report = HookReport::new(input.text("sessionId"), input.text("cwd"));
    report.called_ms = match input.get("timestamp") {
        Some(Value::Number(number)) => number.parse().ok(),
        _ => None,
    };
    match event {
        "sessionStart" => report.session_starts(input),
        "userPromptSubmitted" => report.prompt_submitted(input),
        "postToolUse" | "postToolUseFailure" => report.call_ended(call_of(input)),
        "notification" => notification(input, &mut report),
        "agentStop" => {
            report.done_without_message(input);
            report.log_detail = Some(LogDetail::LastMessage);
        }
        "sessionEnd" => {
            // `copilot -p` ends a failed turn with its session.
            if input.text("reason") == Some("error") {
                report.state(AgentState::Error);
                report.log_detail = Some(LogDetail::Error);
            }
            report.state(AgentState::Exited);
        }
        _ => {}
    }
    report
}

/// The hooks of a subagent name its own session. Its parent may be a subagent, too, which Ringer does not know.
fn subagent(event: &str, input: &HookInput, parent: &str) -> HookReport {
    let mut report = HookReport::new(Some(parent), input.text("cwd"));
    match event {
        "postToolUse" | "postToolUseFailure" => report.call_ended(call_of(input)),
        _ => report.alive(),
    }
    report.into_subagent()
}

/// A key that distinguishes the tool call of the input from others.
fn call_of(input: &HookInput) -> Option<String> {
    let subject = PERMISSION_TEXTS.iter().find_map(|(_, name)| input.text(&format!("toolArgs.{name}")));
    let subject = subject.or_else(|| input.text("toolName"))?;
    Some(request::text_key(subject))
}

/// Reports prompts with the authority of a hook, because no other hook reports them; otherwise the `Working` of the moment before
/// would outrank them. Other types are about background shells and agents, which are silent.
fn notification(input: &HookInput, report: &mut HookReport) {
    let (on, detail) = match input.text("notification_type") {
        Some("permission_prompt") => (BlockedOn::Permission, LogDetail::Permission),
        Some("elicitation_dialog") => (BlockedOn::Question, LogDetail::Question),
        _ => return report.alive(),
    };
    let message = input.text("message").unwrap_or_default();
    let subject = PERMISSION_TEXTS.iter().find_map(|(begin, _)| message.strip_prefix(begin));
    report.state_with(Authority::Hook, AgentState::Blocked(on), request::shorten(message));
    report.set_call(subject.map(request::text_key));
    report.log_detail = Some(detail);
}

/// The output that Copilot accepts.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Output {
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Added to a tool's result, to a prompt, or before the first prompt of a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_context: Option<String>,
}

fn answer(event: &str, reply: &HookReply) -> Output {
    let additional_context = match event {
        "sessionStart" => reply.start_context(),
        "userPromptSubmitted" | "postToolUse" | "postToolUseFailure" => reply.turn_context(),
        _ => None,
    };
    let reason = reply.reason().filter(|_| event == "agentStop");
    Output { decision: reason.is_some().then_some("block"), reason, additional_context }
}

/// The members of a line of a session's log that are read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogLine {
    timestamp: String,
    #[serde(rename = "type")]
    kind: String,
    /// The subagent that the line is about.
    agent_id: Option<String>,
    #[serde(default)]
    data: LogData,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogData {
    request_id: Option<String>,
    message: Option<String>,
    content: Option<String>,
    tool_name: Option<String>,
    decision_source: Option<String>,
    #[serde(default)]
    arguments: serde_json::Value,
    /// The input of a hook that was called.
    #[serde(default)]
    input: serde_json::Value,
    result: Option<PermissionResult>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PermissionResult {
    kind: String,
}

impl LogLine {
    fn status(&self, activity: SessionActivity) -> Option<SessionStatus> {
        let since: Timestamp = self.timestamp.parse().ok()?;
        Some(SessionStatus { activity, since_ms: since.as_millisecond() })
    }

    /// Returns true if the line is about the session itself, and not about a subagent.
    fn is_own(&self) -> bool {
        self.agent_id.is_none()
    }

    /// Returns true for the line that begins a turn, or a step of one.
    fn begins_step(&self) -> bool {
        self.is_own() && matches!(self.kind.as_str(), "user.message" | "assistant.message")
    }
}

/// The lines of a log that can be read, the last one first. Of most lines, only a few members are kept.
fn lines_from_end(tail: &[u8]) -> impl Iterator<Item = LogLine> {
    tail.rsplit(|byte| *byte == b'\n').filter_map(|line| {
        // A line without these members has something else in `result`, and a tool's result may be long.
        serde_json::from_slice(line).ok()
    })
}

/// Reads interruptions, errors, and answers to permission dialogs, which no hook reports.
fn read_log(tail: &[u8]) -> Option<SessionStatus> {
    let mut decided = HashSet::new();
    let mut allowed: Option<SessionStatus> = None;
    for line in lines_from_end(tail) {
        match line.kind.as_str() {
            "abort" if line.is_own() => return line.status(SessionActivity::Interrupted),
            "session.error" if line.is_own() => {
                let message = line.data.message.as_deref().and_then(request::shorten);
                let activity = SessionActivity::Failed(message.unwrap_or_else(|| "unknown error".to_owned()));
                return line.status(activity);
            }
            "permission.completed" => {
                // It follows the interruption that closed the dialog.
                if allowed.is_none()
                    && line.data.result.as_ref().is_some_and(|result| result.kind != "cancelled")
                {
                    allowed = line.status(SessionActivity::Busy);
                }
                decided.extend(line.data.request_id);
            }
            "permission.requested"
                if line.data.request_id.as_ref().is_some_and(|id| !decided.contains(id)) =>
            {
                return line.status(SessionActivity::Waiting(Some(BlockedOn::Permission)));
            }
            _ if line.begins_step() => {
                return allowed.or_else(|| line.status(SessionActivity::Other));
            }
            _ => {}
        }
    }
    allowed
}

/// Moves behind the line of the hook's own call. Copilot writes the lines before it together with it, while the hook starts.
fn has_call(lines: &mut impl Iterator<Item = LogLine>, report: &HookReport) -> bool {
    let Some(called_ms) = report.called_ms else { return false };
    lines.any(|line| line.kind == "hook.start" && line.data.input["timestamp"] == called_ms)
}

fn add_detail(report: &mut HookReport, detail: LogDetail, tail: &[u8]) -> bool {
    match detail {
        LogDetail::LastMessage => {
            let mut lines = lines_from_end(tail);
            if !has_call(&mut lines, report) {
                return false;
            }
            let message = lines.find(LogLine::begins_step);
            let message =
                message.filter(|line| line.kind == "assistant.message").and_then(|line| line.data.content);
            let Some(message) = message.filter(|message| !message.trim().is_empty()) else { return true };
            let message = TruncatedText::of(&message, MAX_KEPT);
            report.set_last_message(&message.full(), message.last_line());
            true
        }
        LogDetail::Error => {
            let error = lines_from_end(tail).find(|line| line.is_own() && line.kind == "session.error");
            let Some(message) = error.and_then(|line| line.data.message) else { return false };
            report.set_line(AgentState::Error, &message);
            true
        }
        LogDetail::Question => {
            let mut lines = lines_from_end(tail);
            if !has_call(&mut lines, report) {
                return false;
            }
            let is_question = |line: &LogLine| {
                line.kind == "tool.execution_start" && line.data.tool_name.as_deref() == Some(QUESTION_TOOL)
            };
            let Some(call) = lines.take_while(|line| !line.begins_step()).find(is_question) else {
                return true;
            };
            if let Some(question) = call.data.arguments["message"].as_str() {
                report.set_line(AgentState::Blocked(BlockedOn::Question), question);
            }
            true
        }
        LogDetail::Permission => {
            let mut decisions = lines_from_end(tail).take_while(|line| !line.begins_step());
            let is_unattended =
                decisions.any(|line| line.data.decision_source.as_deref() == Some(UNATTENDED));
            if is_unattended {
                report.replace_permission_prompt(&SignalContent::UnattendedPermission);
            }
            is_unattended
        }
    }
}

/// The source of a decision in a run that no person attends, such as `copilot -p`.
const UNATTENDED: &str = "unattended_fallback";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::report::HookPoint;
    use serde_json::json;

    const SESSION: &str = "eb4951b2-cdcf-4844-bd0c-0fc644d5dcc2";

    /// Reads an input with the members that all events share and those of this event.
    fn report(event: &str, own: serde_json::Value) -> HookReport {
        let mut input = json!({"sessionId": SESSION, "timestamp": 1_795_122_305_275_u64, "cwd": "/p"});
        let (Some(all), serde_json::Value::Object(own)) = (input.as_object_mut(), own) else { panic!() };
        all.extend(own);
        let report = read(event, &HookInput::read(input.to_string().as_bytes()).unwrap());
        assert_eq!((report.session_id.as_deref(), report.cwd.as_deref()), (Some(SESSION), Some("/p")));
        report
    }

    #[track_caller]
    fn check(
        event: &str,
        own: serde_json::Value,
        state: AgentState,
        hook_point: HookPoint,
        text: Option<&str>,
    ) -> HookReport {
        let report = report(event, own);
        report.assert_only_signal(state, hook_point, text);
        report
    }

    #[test]
    fn a_session() {
        use AgentState::{Done, Exited, Ready, Working};
        let start = json!({"source": "new", "initialPrompt": "do it"});
        check("sessionStart", start, Ready, HookPoint::SessionStarts, None);
        let prompt = json!({"prompt": "do it"});
        let prompted =
            check("userPromptSubmitted", prompt, Working, HookPoint::PromptSubmitted, Some("do it"));
        assert!(prompted.signals[0].by_person);
        let task = json!({"prompt": "<system_notification>\nShell command \"long\" (shellId: 0) has completed successfully.\n</system_notification>"});
        assert!(!report("userPromptSubmitted", task).signals[0].by_person);
        let after = json!({"toolName": "bash", "toolArgs": {"command": "make", "description": "build"},
            "toolResult": {"resultType": "success", "textResultForLlm": "a lot"}});
        check("postToolUse", after, Working, HookPoint::AfterTool, None);
        let failed = json!({"toolName": "edit", "toolArgs": {"path": "/p/a"}, "error": "no such file"});
        check("postToolUseFailure", failed, Working, HookPoint::AfterTool, None);
        for already_blocked in [false, true] {
            let stop = json!({"transcriptPath": "/t", "stopReason": "end_turn",
                "stop_hook_active": already_blocked});
            let ended = check("agentStop", stop, Done, HookPoint::Stopping { already_blocked }, None);
            assert_eq!(ended.log_detail, Some(LogDetail::LastMessage));
        }
        for reason in ["user_exit", "complete"] {
            check("sessionEnd", json!({ "reason": reason }), Exited, HookPoint::Other, None);
        }
        let failed = report("sessionEnd", json!({"reason": "error"}));
        let states = [AgentState::Error, Exited].map(SignalContent::State);
        assert!(failed.signals.iter().map(|signal| &signal.content).eq(&states));
    }

    fn notice(kind: &str, message: &str) -> serde_json::Value {
        json!({"hook_event_name": "Notification", "message": message, "title": "Permission needed",
            "notification_type": kind})
    }

    #[test]
    fn notifications() {
        use BlockedOn::{Permission, Question};
        for (kind, on, text) in [
            ("permission_prompt", Permission, "Run command: make"),
            ("elicitation_dialog", Question, "Information requested"),
        ] {
            check("notification", notice(kind, text), AgentState::Blocked(on), HookPoint::Other, Some(text));
        }
        for kind in ["shell_completed", "shell_detached_completed", "agent_completed", "agent_idle"] {
            let signals = report("notification", notice(kind, "it ended")).signals;
            assert_eq!(signals[0].content, SignalContent::Alive, "{kind}");
        }
    }

    #[test]
    fn a_permission_is_recognised_by_its_command_or_file() {
        let call = |event: &str, own: serde_json::Value| report(event, own).signals[0].call.clone();
        let asked = |message: &str| call("notification", notice("permission_prompt", message));
        let ran = |tool: &str, arguments: serde_json::Value| {
            call("postToolUse", json!({ "toolName": tool, "toolArgs": arguments }))
        };
        let command = ran("bash", json!({"command": "make; ls", "description": "build"}));
        assert_eq!(asked("Run command: make; ls"), command);
        assert_ne!(asked("Run command: make"), command);
        assert_eq!(asked("Edit file: /p/a"), ran("create", json!({"path": "/p/a", "file_text": "x"})));
        assert_eq!(asked("Path permission needed: /nope"), None);
    }

    #[test]
    fn a_subagent_is_not_an_agent_of_its_own() {
        for (event, working) in [("userPromptSubmitted", false), ("postToolUse", true), ("agentStop", false)]
        {
            let input = json!({"sessionId": "55e83cb0", "cwd": "/p", "toolName": "bash",
                "toolArgs": {"command": "ls"}, "agentId": "55e83cb0", "agentType": "explore",
                "parentAgentId": SESSION});
            let report = read(event, &HookInput::read(input.to_string().as_bytes()).unwrap());
            assert!(report.subagent && report.session_id.as_deref() == Some(SESSION), "{event}");
            let state = SignalContent::State(AgentState::Working);
            assert_eq!(report.signals[0].content, if working { state } else { SignalContent::Alive });
            assert_eq!((report.hook_point, report.log_detail), (HookPoint::Other, None));
        }
    }

    #[test]
    fn what_it_accepts() {
        let output = |event: &str, reply: &HookReply| serde_json::to_value(answer(event, reply)).unwrap();
        let context = HookReply::with_context("hello");
        for event in ["userPromptSubmitted", "postToolUse", "postToolUseFailure"] {
            assert_eq!(output(event, &context), json!({"additionalContext": "hello"}), "{event}");
        }
        let block = json!({"decision": "block", "reason": "go"});
        assert_eq!(output("agentStop", &HookReply::with_stop_reason("go")), block);
        for event in ["notification", "agentStop", "sessionEnd"] {
            assert_eq!(output(event, &context), json!({}), "{event}");
        }
    }

    #[test]
    fn an_event_that_setup_does_not_ask_for_says_nothing() {
        for event in
            ["preToolUse", "permissionRequest", "subagentStop", "preCompact", "errorOccurred", "Stop"]
        {
            assert_eq!(report(event, json!({"stopReason": "end_turn"})).signals, [], "{event}");
        }
    }

    /// A line of a log, with the members that a test is about.
    fn line(kind: &str, data: &serde_json::Value) -> String {
        json!({"type": kind, "data": data, "id": "a", "timestamp": "2026-11-19T21:05:05.000Z", "parentId": "b"})
            .to_string()
    }

    fn asked(id: &str) -> String {
        let request = json!({"kind": "shell", "toolCallId": "call_1", "fullCommandText": "make"});
        line("permission.requested", &json!({"requestId": id, "permissionRequest": request}))
    }

    fn decided(id: &str, kind: &str, source: &str) -> String {
        line(
            "permission.completed",
            &json!({"requestId": id, "toolCallId": "call_1", "result": {"kind": kind}, "decisionSource": source}),
        )
    }

    fn log(lines: &[String]) -> Vec<u8> {
        lines.join("\n").into_bytes()
    }

    #[test]
    fn the_log_says_what_no_hook_says() {
        use SessionActivity::{Busy, Failed, Interrupted, Other, Waiting};
        let prompt = line("user.message", &json!({"content": "do it"}));
        let step = line("assistant.message", &json!({"content": "", "toolRequests": []}));
        let ran = line("tool.execution_complete", &json!({"result": {"content": "ok"}, "success": true}));
        let aborted = line("abort", &json!({"reason": "user_initiated"}));
        let failed = line(
            "session.error",
            &json!({"errorType": "query", "message": "400 bad thing", "statusCode": 400}),
        );
        let yes = |id: &str| decided(id, "approved", "human_response");
        let waiting = Waiting(Some(BlockedOn::Permission));
        let subagent = aborted.replacen('{', "{\"agentId\": \"x\", ", 1);
        for (lines, expected) in [
            (vec![prompt.clone()], Some(Other)),
            (vec![prompt.clone(), step.clone(), asked("1")], Some(waiting.clone())),
            (vec![step.clone(), asked("1"), yes("1")], Some(Busy)),
            (vec![step.clone(), asked("1"), yes("1"), ran.clone()], Some(Busy)),
            (vec![step.clone(), asked("1"), asked("2"), yes("1"), ran], Some(waiting)),
            (vec![asked("1"), yes("1"), step.clone()], Some(Other)),
            (
                vec![step.clone(), asked("1"), aborted.clone(), decided("1", "cancelled", "")],
                Some(Interrupted),
            ),
            (vec![aborted.clone(), prompt.clone()], Some(Other)),
            (vec![step, subagent], Some(Other)),
            (vec![prompt, failed], Some(Failed("400 bad thing".to_owned()))),
            (vec![aborted, "{\"type\": \"user.mess".to_owned()], Some(Interrupted)),
            (vec![], None),
        ] {
            let status = read_log(&log(&lines));
            assert_eq!(status.map(|status| status.activity), expected, "{lines:?}");
        }
    }

    #[test]
    fn the_log_completes_a_report() {
        let call =
            line("hook.start", &json!({"hookType": "x", "input": {"timestamp": 1_795_122_305_275_i64}}));
        let add = |mut report: HookReport, lines: &[String]| {
            let detail = report.log_detail.unwrap();
            let lines = [lines, std::slice::from_ref(&call)].concat();
            let is_added = add_detail(&mut report, detail, &log(&lines));
            (is_added, report)
        };
        let ended = || report("agentStop", json!({"stop_hook_active": false}));
        let message = line("assistant.message", &json!({"content": "All done.\nTests pass.\n"}));
        let turn_end = line("assistant.turn_end", &json!({"turnId": "0"}));
        let (is_added, done) = add(ended(), &[message.clone(), turn_end.clone()]);
        assert!(is_added);
        assert_eq!(done.signals[0].text.as_deref(), Some("All done.\nTests pass."));
        assert_eq!(done.last_line.as_deref(), Some("Tests pass."));
        // Copilot has not written yet what came before the call.
        assert!(!add_detail(&mut ended(), LogDetail::LastMessage, &log(std::slice::from_ref(&message))));
        // The last message of this turn, not of the one before.
        let prompt = line("user.message", &json!({"content": "again"}));
        assert_eq!(add(ended(), &[message, prompt, turn_end]).1.signals[0].text, None);

        let error = line("session.error", &json!({"message": "400 bad\nthing"}));
        let (_, failed) = add(report("sessionEnd", json!({"reason": "error"})), &[error]);
        assert_eq!(failed.signals[0].text.as_deref(), Some("400 bad thing"));
        assert_eq!(failed.signals[1].text, None);

        let question = line(
            "tool.execution_start",
            &json!({"toolName": "ask_user", "arguments": {"message": "Which one?", "requestedSchema": {}}}),
        );
        let asks = || report("notification", notice("elicitation_dialog", "Information requested"));
        assert_eq!(add(asks(), &[question]).1.signals[0].text.as_deref(), Some("Which one?"));

        let permission = || report("notification", notice("permission_prompt", "Run command: make"));
        assert!(!add(permission(), &[asked("1")]).0);
        assert!(!add(permission(), &[asked("1"), decided("1", "approved", "human_response")]).0);
        let (is_refused, refused) = add(permission(), &[asked("1"), decided("1", "denied", UNATTENDED)]);
        assert!(is_refused && refused.signals[0].content == SignalContent::UnattendedPermission);
    }
}
