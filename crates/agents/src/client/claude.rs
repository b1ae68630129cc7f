//! Claude Code: hook inputs and session files, recorded from version 2.1.325, and the output that it accepts.

mod prompt;

use std::path::{Path, PathBuf};

use ringer_core::Kind;
use ringer_core::agent::{AgentState, Authority, BlockedOn, SignalContent};
use ringer_core::conversation::{Injection, escape_attribute, render};
use ringer_core::message::SessionNonce;
use serde::Deserialize;
use serde_json::json;

use super::adapter::{Adapter, PushMethod};
use super::input::HookInput;
use super::json::Value;
use super::reply::{DecisionOutput, HookReply, to_json};
use super::report::{BackgroundTasks, HookPoint, HookReport};
use super::request;
use super::settings::{
    ClientSettings, FilePlace, Format, HookCheck, HookEntryForm, HookFile, InstalledHooks, McpForm,
    PopupSetting, SettingsFile,
};
use crate::client::adapter::{
    SessionActivity, SessionFile, SessionFiles, SessionStatus, Transcripts, TurnEnd,
};
use crate::setup::{Dialect, Obstacle};

pub(crate) use prompt::DENIED;

/// Maximum characters of output per hook. Claude Code puts a longer one into a file, which the model may not read.
pub const CONTEXT_LIMIT: usize = 10_000;

/// A permission notification without a subject; the hook `PermissionRequest` has one.
const PERMISSION_FOR_ANYTHING: &str = "Claude needs your permission";

/// Parts of the type of a notification that is about the client itself, and the source to report.
const ABOUT_ITSELF: [(&str, &str); 4] = [
    ("rate_limit", "rate-limit-warning"),
    ("usage_limit", "rate-limit-warning"),
    ("deprecat", "model-deprecation"),
    ("migrat", "model-migration"),
];

/// The JSON that Claude Code accepts in its settings.
const DIALECT: Dialect = Dialect { comments: false, byte_order_mark: true };

/// Claude Code.
pub(super) const ADAPTER: Adapter = Adapter {
    name: "claude",
    display_name: "Claude Code",
    programs: &["claude"],
    context_limit: Some(CONTEXT_LIMIT),
    session_id_begins_randomly: true,
    leaves_sessions_silently: false,
    outlives_window: false,
    calls_hooks_itself: true,
    read,
    answer: |event, reply| to_json(&answer(event, reply)),
    sessions: Some(FILES),
    prompts: Some(prompt::PROMPTS),
    push: PushMethod::SessionSocket { line: inbox_line },
    settings: ClientSettings {
        user_directory: |paths| paths.named_or_home(paths.claude_dir.as_ref(), ".claude"),
        project_directory: ".claude",
        files: &[
            SettingsFile::new("settings.json", Format::Hooks),
            // Claude Code keeps its own state in this file. Under this lock it reads the file again before it writes, so an entry
            // that was written under the lock stays; others get lost (both observed with 2.1.325, while it starts). `claude mcp
            // add` is no alternative: it shows no diff first, and cannot be undone to the exact bytes.
            SettingsFile {
                place: FilePlace::In(|paths| paths.claude_dir.clone().unwrap_or_else(|| paths.home.clone())),
                lock: Some(".lock"),
                ..SettingsFile::with_mcp_servers(
                    ".claude.json",
                    McpForm::Command { servers: "mcpServers", has_type: true },
                )
            },
        ],
        hooks: Some(HookFile {
            events: &[
                "SessionStart",
                "UserPromptSubmit",
                "PreToolUse",
                "PostToolUse",
                "PostToolUseFailure",
                "PostToolBatch",
                "PermissionRequest",
                "Notification",
                "Stop",
                "StopFailure",
                "SubagentStop",
                "SessionEnd",
            ],
            entry: HookEntryForm::Group { name: None, timeout_per_second: 1 },
            check: Some(HookCheck { dialect: DIALECT, find: find_obstacle }),
            after_change: None,
        }),
        // Observed with 2.1.325 in a terminal that identifies itself as kitty.
        own_popups: Some(PopupSetting {
            key: "preferredNotifChannel",
            off: "notifications_disabled",
            terminals: "kitty, Ghostty and iTerm2",
        }),
    },
};

/// The messages whose summaries are at the beginning of a line for the session. The session shows the beginning to its user.
const MAX_SUMMARIES: usize = 5;

/// A line of JSON, in the form that sessions use among each other. It contains the ids, because Claude Code drops a message that
/// equals the last one from the same sender.
fn inbox_line(injections: &[Injection], nonce: Option<&SessionNonce>) -> String {
    let mut ids: Vec<&str> = injections.iter().map(|injection| injection.id.as_str()).collect();
    ids.dedup();
    let ids = escape_attribute(&ids.join(" "));
    let mut summary: Vec<String> = injections.iter().take(MAX_SUMMARIES).map(Injection::summary).collect();
    if let Some(more @ 1..) = injections.len().checked_sub(MAX_SUMMARIES) {
        summary.push(format!("and {more} more"));
    }
    let (summary, blocks) = (summary.join("\n"), render(injections, nonce));
    let content = format!("{FROM_RINGER}{ids}\">\n{summary}\n\n{blocks}\n</cross-session-message>");
    let mut line = json!({ "type": "user", "message": { "role": "user", "content": content } }).to_string();
    line.push('\n');
    line
}

/// `disableAllHooks`: the first file that sets it counts, in Claude Code's order.
fn find_obstacle(hooks: &InstalledHooks) -> Option<Obstacle> {
    let name = ADAPTER.display_name;
    let is_true = |path: &Path, key: &str| DIALECT.boolean(&(hooks.read)(path)?, &[key]);
    let managed = &hooks.paths.claude_managed;
    if is_true(managed, "allowManagedHooksOnly") == Some(true) {
        let what = "only an administrator's hooks are allowed";
        return Some(Obstacle::switched_off(name, managed, what, "ask the administrator of this machine"));
    }
    let local = hooks.repository.map(|root| root.join(ADAPTER.settings.project_directory));
    let of_repository = local
        .iter()
        .flat_map(|directory| [directory.join("settings.local.json"), directory.join("settings.json")]);
    let user = (ADAPTER.settings.user_directory)(hooks.paths).join("settings.json");
    let files: Vec<PathBuf> = [managed.clone()].into_iter().chain(of_repository).chain([user]).collect();
    let (disabled, path) = files.iter().find_map(|path| Some((is_true(path, "disableAllHooks")?, path)))?;
    disabled.then(|| {
        Obstacle::switched_off(name, path, "disableAllHooks is true", "set it to false, or take it out")
    })
}

fn read(event: &str, input: &HookInput) -> HookReport {
    let mut report = HookReport::new(input.text("session_id"), input.text("cwd"));
    report.call_id = input.first_text(&["tool_use_id", "tool_calls.0.tool_use_id"]).map(str::to_owned);
    // `agent_type` alone marks a main session that was started as a custom agent.
    let subagent = input.text("agent_id").is_some() || event.starts_with("Subagent");
    match event {
        "SessionStart" => report.session_starts(input),
        "UserPromptSubmit" => {
            report.prompt_submitted(input);
            report.confirmed_ids = input.text("prompt").map(ringer_message_ids).unwrap_or_default();
        }
        "PreToolUse" => report.before_tool(input),
        // The person pressed Escape: the turn ends without a `Stop`.
        "PostToolUseFailure" if input.flag("is_interrupt") && !subagent => report.interrupted(),
        "PostToolUse" | "PostToolUseFailure" => report.after_tool(input),
        // The end of a subagent is not the agent's, and a background subagent may end after the agent's turn.
        "Stop" | "StopFailure" | "SubagentStop" | "PostToolBatch" if subagent => report.alive(),
        // All tool calls of the message have run, so none of them asks any more.
        "PostToolBatch" => {
            report.state(AgentState::Working);
            report.hook_point = HookPoint::AfterTool;
        }
        "PermissionDenied" | "ElicitationResult" => report.state(AgentState::Working),
        "PermissionRequest" => report.blocked_by_tool(input),
        "Elicitation" => {
            let text = input.text("message").and_then(request::shorten);
            report.state_with(Authority::Hook, AgentState::Blocked(BlockedOn::Question), text);
        }
        "Notification" => notification(input, &mut report),
        "Stop" => {
            report.done(input, "last_assistant_message");
            report.background_tasks(background_tasks(input));
        }
        "StopFailure" => failure(input, &mut report),
        // A manual compaction happens between two turns, and no event would report its end.
        "PreCompact" if input.text("trigger") == Some("auto") => report.state(AgentState::Compacting),
        "PostCompact" if input.text("trigger") == Some("auto") => report.state(AgentState::Working),
        "PreCompact" | "PostCompact" | "SubagentStart" | "MessageDisplay" => report.alive(),
        "SessionEnd" => report.session_ends(input),
        // Other events, such as changed files or settings, say nothing about the agent.
        _ => {}
    }
    if let (Some(from), Some(to)) = (input.text("from_model"), input.text("to_model")) {
        report.observe("model-migration", &format!("model changed from {from} to {to}"), false);
    }
    if subagent {
        return report.into_subagent();
    }
    for signal in &mut report.signals {
        signal.turn = input.text("prompt_id").map(str::to_owned);
    }
    report
}

/// The beginning of a message that Ringer put into a session's inbox. The ids of its messages follow.
pub const FROM_RINGER: &str = "<cross-session-message from=\"ringer\" from-name=\"Ringer\" id=\"";

/// The ids of Ringer's messages in a prompt, if Ringer sent the prompt.
fn ringer_message_ids(prompt: &str) -> Vec<String> {
    let ids = prompt.strip_prefix(FROM_RINGER).and_then(|rest| rest.split_once('"'));
    ids.map(|(ids, _)| ids.split(' ').map(str::to_owned).collect()).unwrap_or_default()
}

/// Reports Claude Code's own notifications with the authority of a notification, although they come through a hook: one may come
/// seconds after the permission was given, and none is a sign that a turn ended. `idle_prompt` says that the agent has been
/// waiting, which the core reports once per end of a turn and never in the middle of one.
fn notification(input: &HookInput, report: &mut HookReport) {
    let kind = input.text("notification_type").unwrap_or_default();
    let message = input.text("message");
    let text = message.and_then(request::shorten);
    let blocked = |on| AgentState::Blocked(on);
    let authority = Authority::Notification;
    let about = ABOUT_ITSELF.iter().find(|(words, _)| kind.contains(words));
    if let (Some((_, source)), Some(message)) = (about, message) {
        // The source makes the notification.
        report.alive();
        return report.observe(source, message, false);
    }
    match kind {
        "idle_prompt" => report.notified(SignalContent::Idle, text),
        "elicitation_dialog" | "elicitation_url_dialog" => {
            report.state_with(authority, blocked(BlockedOn::Question), text);
        }
        _ if kind.ends_with("permission_prompt") => {
            let text = text.filter(|text| text != PERMISSION_FOR_ANYTHING);
            report.state_with(authority, blocked(BlockedOn::Permission), text);
        }
        // The view of several agents says this of another session, which reports its own state.
        "agent_needs_input" if message.is_some_and(|message| message.contains(" needs your input")) => {
            report.notified_of_kind(Kind::Waiting, text);
        }
        "agent_needs_input" => report.state_with(authority, blocked(BlockedOn::Input), text),
        "agent_completed" => {
            let has_failed = message.is_some_and(|message| message.ends_with(" failed"));
            report.notified_of_kind(if has_failed { Kind::Error } else { Kind::Complete }, text);
        }
        "auth_success" => report.alive(),
        _ if kind.starts_with("auth") => report.state_with(authority, blocked(BlockedOn::Auth), text),
        _ => report.notified(SignalContent::Notified, text),
    }
}

/// The turn failed. That is an error even if a limit was the reason: the client does not retry by itself, and stopped work is
/// reported.
fn failure(input: &HookInput, report: &mut HookReport) {
    let reason = input.text("error").unwrap_or("unknown");
    let details = input.first_text(&["last_assistant_message", "error_details"]);
    let text = match (reason, details) {
        ("unknown", Some(details)) => details.to_owned(),
        (_, Some(details)) => format!("{reason}: {details}"),
        (_, None) => reason.to_owned(),
    };
    report.state_with(Authority::Hook, AgentState::Error, request::shorten(&text));
    match reason {
        "rate_limit" => report.observe("limit-reached", &text, true),
        "overloaded" => report.observe("rate-limit-warning", &text, true),
        "model_not_found" => report.observe("model-deprecation", &text, true),
        _ => {}
    }
}

/// The tasks that are still running after the turn. A shell may be a server that never ends; any other task ends and wakes the
/// agent. Ringer's own listener does not count: it always runs.
fn background_tasks(input: &HookInput) -> BackgroundTasks {
    let tasks = input.get("background_tasks").unwrap_or(&Value::Null);
    let runs = |task: &&Value| {
        let over = matches!(task.text("status"), Some("completed" | "failed" | "killed" | "stopped"));
        !over && !task.text("command").is_some_and(|command| command.contains("ringer listen"))
    };
    let is_shell = |task: &&Value| matches!(task.text("type"), Some("shell" | "monitor"));
    let (shells, others): (Vec<&Value>, Vec<&Value>) = tasks.items().iter().filter(runs).partition(is_shell);
    // A long list was truncated.
    let truncated = tasks.seen().saturating_sub(tasks.items().len());
    BackgroundTasks { running: shells.len() + others.len() + truncated, pending: !others.is_empty() }
}

fn answer(event: &str, reply: &HookReply) -> DecisionOutput {
    let context = match event {
        "SessionStart" => reply.start_context(),
        "UserPromptSubmit" | "PostToolUse" | "PostToolUseFailure" | "PostToolBatch" => reply.turn_context(),
        _ => None,
    };
    let reason = reply.reason().filter(|_| event == "Stop");
    let mut output = DecisionOutput::new(event, context, "block", reason);
    output.terminal_sequence = reply.terminal_sequence.clone().filter(|text| is_allowed_sequence(text));
    output
}

/// Maximum output of one hook, in bytes.
const MAX_SEQUENCES: usize = 16 * 1024;

const ALLOWED: [&str; 6] = ["0", "1", "2", "9", "99", "777"];

/// Returns true if Claude Code writes this text to its terminal for a hook. A hook has no terminal there, and the client lets few
/// sequences pass: the title (OSC 0, 1, 2), notifications (OSC 9, 99, 777) and the bell. Anything else would lose the whole
/// output.
///
/// ```
/// use ringer_agents::client::is_allowed_sequence;
///
/// assert!(is_allowed_sequence("\x1b]9;build done\x07\x07"));
/// assert!(!is_allowed_sequence("\x1b]52;c;c3RvbGVu\x07"));
/// ```
pub fn is_allowed_sequence(text: &str) -> bool {
    if text.is_empty() || text.len() > MAX_SEQUENCES {
        return false;
    }
    let mut rest = text;
    while !rest.is_empty() {
        match rest.strip_prefix('\x07').or_else(|| after_osc(rest)) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    true
}

/// The rest of the text after an allowed OSC sequence.
fn after_osc(text: &str) -> Option<&str> {
    let (number, rest) = text.strip_prefix("\x1b]")?.split_once(';')?;
    if !ALLOWED.contains(&number) {
        return None;
    }
    // The first control character must be the terminator: any other could start another sequence.
    let end = rest.find(char::is_control)?;
    rest[end..].strip_prefix('\x07').or_else(|| rest[end..].strip_prefix("\x1b\\"))
}

const FILES: SessionFiles = SessionFiles::StatusFiles {
    directory: "sessions",
    read: read_session,
    transcripts: Transcripts { directory: "projects", read: read_turn_end },
};

/// The members of `sessions/PID.json` that are read.
#[derive(Debug, Deserialize)]
struct Session {
    #[serde(rename = "sessionId")]
    id: String,
    #[serde(rename = "messagingSocketPath")]
    socket: Option<PathBuf>,
    cwd: Option<String>,
    status: Option<String>,
    #[serde(rename = "waitingFor")]
    waiting_for: Option<String>,
    #[serde(rename = "statusUpdatedAt")]
    since_ms: Option<i64>,
}

fn read_session(bytes: &[u8]) -> Option<SessionFile> {
    let session: Session = serde_json::from_slice(bytes).ok()?;
    let activity = match session.status.as_deref() {
        Some("busy") => Some(SessionActivity::Busy),
        Some("waiting") => Some(SessionActivity::Waiting(match session.waiting_for.as_deref() {
            Some("permission prompt" | "sandbox request") => Some(BlockedOn::Permission),
            Some("input needed") => Some(BlockedOn::Question),
            // A dialog that the person opened, such as the list of models.
            _ => None,
        })),
        Some("idle") => Some(SessionActivity::Idle),
        _ => None,
    };
    let status =
        activity.zip(session.since_ms).map(|(activity, since_ms)| SessionStatus { activity, since_ms });
    Some(SessionFile { session_id: session.id, socket: session.socket, cwd: session.cwd, status })
}

/// The members of a line of `projects/DIRECTORY/SESSION.jsonl` that are read.
#[derive(Debug, Deserialize)]
struct TranscriptLine {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, rename = "isSidechain")]
    of_subagent: bool,
    #[serde(default, rename = "isApiErrorMessage")]
    is_error: bool,
    message: Option<TranscriptMessage>,
}

#[derive(Debug, Deserialize)]
struct TranscriptMessage {
    #[serde(default)]
    content: serde_json::Value,
    stop_reason: Option<String>,
}

fn read_turn_end(line: &[u8]) -> Option<TurnEnd> {
    let line: TranscriptLine = serde_json::from_slice(line).ok()?;
    let message = line.message.filter(|_| !line.of_subagent)?;
    let parts = message.content.as_array().map_or(&[][..], Vec::as_slice);
    let text = || {
        let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
        texts.join("\n")
    };
    match line.kind.as_str() {
        "assistant" if line.is_error => Some(TurnEnd::Failed(text())),
        "assistant" if message.stop_reason.as_deref() == Some("tool_use") => Some(TurnEnd::Interrupted),
        "assistant" => Some(TurnEnd::Complete(text())),
        "user" => Some(TurnEnd::Interrupted),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ringer_core::toast::Observation;
    use serde_json::json;

    use super::*;

    fn report(event: &str, input: &serde_json::Value) -> HookReport {
        read(event, &HookInput::read(input.to_string().as_bytes()).unwrap())
    }

    #[test]
    fn a_shell_runs_on_after_the_turn_and_anything_else_goes_on_with_it() {
        let check = |tasks: serde_json::Value, running: usize, pending: bool| {
            let stop = report("Stop", &json!({"background_tasks": tasks, "last_assistant_message": "x"}));
            assert_eq!((stop.signals[0].running, stop.signals[0].pending), (running, pending), "{tasks}");
        };
        let listener = json!({"id": "b1", "type": "shell", "status": "running",
            "command": "/usr/bin/ringer listen --timeout 300"});
        let server = json!({"id": "b2", "type": "shell", "status": "running", "command": "npm run dev"});
        let subagent = json!({"type": "subagent", "status": "running"});
        check(json!([]), 0, false);
        check(json!(null), 0, false);
        check(json!([listener]), 0, false);
        check(json!([listener, server]), 1, false);
        check(json!([server, subagent]), 2, true);
        check(json!([subagent]), 1, true);
        check(json!([{"type": "shell", "status": "completed", "command": "make"}]), 0, false);
    }

    #[test]
    fn the_person_ends_a_session_and_a_run_without_one_ends_by_itself() {
        for (reason, by_person) in
            [("prompt_input_exit", true), ("clear", true), ("logout", true), ("other", false)]
        {
            let end = report("SessionEnd", &json!({"reason": reason}));
            assert_eq!(end.signals[0].by_person, by_person, "{reason}");
        }
    }

    #[test]
    fn a_prompt_is_the_persons_unless_a_program_sent_it() {
        let by_person =
            |prompt: &str| report("UserPromptSubmit", &json!({"prompt": prompt})).signals[0].by_person;
        assert!(by_person("fix it"));
        assert!(!by_person(&format!("{FROM_RINGER}1\">\nhello\n</cross-session-message>")));
        assert!(!by_person("<task-notification>\n<status>completed</status>\n</task-notification>"));
    }

    #[test]
    fn a_permission_is_about_the_call_that_goes_on() {
        let tool = json!({"tool_name": "Write", "tool_input": {"file_path": "/p/a", "content": "x"}});
        let calls = ["PreToolUse", "PermissionRequest", "PostToolUse"]
            .map(|event| report(event, &tool).signals[0].call.clone());
        assert!(calls[0].is_some() && calls.iter().all(|call| *call == calls[0]));
        let interrupted = json!({"tool_name": "Bash", "is_interrupt": true});
        assert_eq!(report("PostToolUseFailure", &interrupted).signals[0].content, SignalContent::Interrupted);
    }

    #[test]
    fn a_limit_that_stopped_the_turn_is_an_error_and_an_observation() {
        let limit = report("StopFailure", &json!({"error": "rate_limit", "last_assistant_message": "429"}));
        assert_eq!(limit.signals[0].content, SignalContent::State(AgentState::Error));
        assert_eq!(limit.text.as_deref(), Some("rate_limit: 429"));
        let expected = Observation { error: true, ..Observation::new("limit-reached", "rate_limit: 429") };
        assert_eq!(limit.observations, [expected]);
    }

    #[test]
    fn a_session_that_needs_input_and_one_that_the_view_of_agents_is_about() {
        let signal = |kind: &str, message: &str| {
            report("Notification", &json!({"notification_type": kind, "message": message})).signals.remove(0)
        };
        let notice = "Auto mode has a classifier billing notice to acknowledge";
        let blocked = SignalContent::State(AgentState::Blocked(BlockedOn::Input));
        assert_eq!(signal("agent_needs_input", notice).content, blocked);
        for (kind, message, expected) in [
            ("agent_needs_input", "docs needs your input: which branch?", Kind::Waiting),
            ("agent_completed", "docs finished", Kind::Complete),
            ("agent_completed", "docs failed", Kind::Error),
        ] {
            let signal = signal(kind, message);
            assert_eq!((signal.content, signal.kind), (SignalContent::Notified, Some(expected)), "{message}");
        }
    }

    #[test]
    fn notifications_that_were_not_recorded() {
        let check = |kind: &str, content: SignalContent| {
            let found = report("Notification", &json!({"notification_type": kind, "message": "m"}));
            assert_eq!(found.signals[0].content, content, "{kind}");
        };
        check("auth_required", SignalContent::State(AgentState::Blocked(BlockedOn::Auth)));
        check("auth_success", SignalContent::Alive);
        check("elicitation_dialog", SignalContent::State(AgentState::Blocked(BlockedOn::Question)));
        check("elicitation_url_dialog", SignalContent::State(AgentState::Blocked(BlockedOn::Question)));
        check("worker_permission_prompt", SignalContent::State(AgentState::Blocked(BlockedOn::Permission)));
        check("agent_completed", SignalContent::Notified);
        let warning =
            report("Notification", &json!({"notification_type": "rate_limit_warning", "message": "80 %"}));
        assert_eq!(warning.observations, [Observation::new("rate-limit-warning", "80 %")]);
        assert_eq!(warning.signals[0].content, SignalContent::Alive, "the source makes the notification");
    }

    #[test]
    fn a_subagents_tools_show_work_but_carry_nothing() {
        let tool = report("PostToolUse", &json!({"agent_id": "a1", "tool_name": "Bash"}));
        assert_eq!((tool.subagent, tool.hook_point), (true, HookPoint::Other));
        assert_eq!(tool.signals[0].content, SignalContent::State(AgentState::Working));
        let asks = report("PermissionRequest", &json!({"agent_id": "a1", "tool_name": "Bash"}));
        assert_eq!(asks.signals[0].content, SignalContent::State(AgentState::Blocked(BlockedOn::Permission)));
        assert_eq!(report("Stop", &json!({"agent_id": "a1"})).signals[0].content, SignalContent::Alive);
        assert!(!report("Stop", &json!({"agent_type": "reviewer"})).subagent);
    }

    #[test]
    fn compaction() {
        let check = |event: &str, input: serde_json::Value, content: SignalContent| {
            assert_eq!(report(event, &input).signals[0].content, content, "{event} {input}");
        };
        check("PreCompact", json!({"trigger": "auto"}), SignalContent::State(AgentState::Compacting));
        check("PreCompact", json!({"trigger": "manual"}), SignalContent::Alive);
        check("PostCompact", json!({"trigger": "auto"}), SignalContent::State(AgentState::Working));
        check("SessionStart", json!({"source": "compact"}), SignalContent::Alive);
        check("SessionStart", json!({"source": "resume"}), SignalContent::State(AgentState::Ready));
    }

    #[test]
    fn what_passes() {
        for text in [
            "\x07",
            "\x1b]0;title\x07",
            "\x1b]1;t\x1b\\",
            "\x1b]2;\x07",
            "\x1b]9;text ä\x1b\\\x07",
            "\x1b]99;i=1:d=0:p=title;a\x1b\\\x1b]99;i=1:d=1:a=focus;\x1b\\",
            "\x1b]777;notify;title;body\x07",
        ] {
            assert!(is_allowed_sequence(text), "{text:?}");
        }
    }

    #[test]
    fn what_does_not() {
        for text in [
            "",
            "text",
            "\x1b]9;text\x07text",
            "\x1b]9;text",
            "\x1b]9\x07",
            "\x1b]52;c;x\x07",
            "\x1b]7501;state=done\x1b\\",
            "\x1b]09;x\x07",
            "\x1b]9;a\x1b[2J\x07",
            "\x1b]9;a\nb\x07",
            "\x1b]9;a\u{9b}2J\x07",
            "\x1b[2J",
            "\x1bPtmux;x\x1b\\",
            "\u{9d}9;x\x07",
        ] {
            assert!(!is_allowed_sequence(text), "{text:?}");
        }
        assert!(!is_allowed_sequence(&"\x07".repeat(MAX_SEQUENCES + 1)));
    }

    proptest! {
        #[test]
        fn no_other_control_passes(text in "[\u{1b}\u{7}\\]\\\\;0129a\n\u{9c}]{0,12}") {
            let harmless = !text.contains(['\n', '\u{9c}']) && text.ends_with(['\u{7}', '\\']);
            prop_assert!(harmless || !is_allowed_sequence(&text));
        }
    }

    #[test]
    fn the_last_message_of_a_transcript_says_how_the_turn_ended() {
        let check = |line: &str, expected: Option<TurnEnd>| {
            assert_eq!(read_turn_end(line.as_bytes()), expected, "{line}");
        };
        let said = r#"{"type":"assistant","message":{"role":"assistant","stop_reason":"end_turn","content":[{"type":"text","text":"all done"}]}}"#;
        check(said, Some(TurnEnd::Complete("all done".into())));
        let failed = r#"{"type":"assistant","isApiErrorMessage":true,"message":{"content":[{"type":"text","text":"API Error: 529"}]}}"#;
        check(failed, Some(TurnEnd::Failed("API Error: 529".into())));
        let tool =
            r#"{"type":"assistant","message":{"stop_reason":"tool_use","content":[{"type":"tool_use"}]}}"#;
        check(tool, Some(TurnEnd::Interrupted));
        check(r#"{"type":"user","message":{"role":"user","content":"again"}}"#, Some(TurnEnd::Interrupted));
        check(r#"{"type":"user","isSidechain":true,"message":{"role":"user","content":"look"}}"#, None);
        check(r#"{"type":"system","subtype":"turn_duration"}"#, None);
        check("{", None);
    }

    #[test]
    fn a_dialog_that_the_person_opened_is_no_prompt() {
        let activity = |waits: &str| {
            let text = format!(
                r#"{{"sessionId":"a","status":"waiting","waitingFor":"{waits}","statusUpdatedAt":7}}"#
            );
            read_session(text.as_bytes()).unwrap().status.unwrap().activity
        };
        assert_eq!(activity("permission prompt"), SessionActivity::Waiting(Some(BlockedOn::Permission)));
        assert_eq!(activity("input needed"), SessionActivity::Waiting(Some(BlockedOn::Question)));
        assert_eq!(activity("dialog open"), SessionActivity::Waiting(None));
    }
}
