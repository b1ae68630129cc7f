//! Codex: inputs of its hooks and its `notify` program, recorded from versions 0.166.0 and 0.169.0, and the output that it accepts.
//!
//! Its hooks report dialogs before they open; its server has them while they are open (`crate::codex_server`).

mod trust;

use ringer_core::agent::{AgentState, AnswerMethod, PermissionRequest, PromptContent, PromptQuestion};
use serde::Deserialize;
use serde_json::{Value, json};
use toml_edit::{Document, Item};

use super::adapter::{
    Adapter, LogPlace, PushMethod, SessionActivity, SessionFiles, SessionStatus, last_status,
};
use super::input::HookInput;
use super::reply::{DecisionOutput, HookReply, to_json};
use super::report::{HookPoint, HookReport};
use super::request;
use super::settings::{
    ClientSettings, Format, HookCheck, HookEntryForm, HookFile, InstalledHooks, McpForm, NextStep,
    SettingsFile,
};
use crate::client::prompt::{self, PromptHooks};
use crate::setup::{Dialect, Obstacle, split_bom};

/// The event name for the JSON of the `notify` program.
pub const NOTIFY: &str = "notify";

/// The beginning of the prompt with which Codex generates a title, in a separate thread. Nothing else distinguishes that thread
/// from the person's.
const TITLE_PROMPT: &str = "Generate a concise, single-line task title";

/// Codex.
pub(super) const ADAPTER: Adapter = Adapter {
    name: "codex",
    display_name: "Codex",
    programs: &["codex"],
    context_limit: None,
    session_id_begins_randomly: false,
    leaves_sessions_silently: true,
    outlives_window: true,
    calls_hooks_itself: true,
    read,
    answer: |event, reply| to_json(&answer(event, reply)),
    // `sessions/2026/11/16/rollout-2026-11-16T07-34-19-SESSION.jsonl`
    sessions: Some(SessionFiles::Logs {
        directory: "sessions",
        place: LogPlace::NameEnd(|session_id| format!("-{session_id}.jsonl")),
        read: |tail| last_status(tail, read_log_line),
        add_detail: None,
    }),
    prompts: Some(HOOKS),
    push: PushMethod::Command {
        program: "codex",
        arguments: |session_id, text| vec!["queue", "--thread", session_id, "--message", text],
    },
    settings: ClientSettings {
        user_directory: |paths| paths.named_or_home(paths.codex_home.as_ref(), ".codex"),
        project_directory: ".codex",
        files: &[
            SettingsFile::new("hooks.json", Format::Hooks),
            // Codex reads `notify` from the person's file only.
            SettingsFile {
                in_projects: false,
                mcp: Some(McpForm::Table),
                ..SettingsFile::new("config.toml", Format::CodexConfig)
            },
        ],
        hooks: Some(HookFile {
            events: &[
                "SessionStart",
                "UserPromptSubmit",
                "PreToolUse",
                "PostToolUse",
                "PermissionRequest",
                "Stop",
                "SessionEnd",
            ],
            entry: HookEntryForm::Group { name: None, timeout_per_second: 1 },
            check: Some(HookCheck {
                dialect: Dialect { comments: false, byte_order_mark: false },
                find: find_obstacle,
            }),
            after_change: Some(NextStep {
                what: "Codex runs new or changed hooks only after you trust them",
                hint: "open codex and type /hooks",
            }),
        }),
        own_popups: None,
    },
};

fn find_obstacle(hooks: &InstalledHooks) -> Option<Obstacle> {
    let config_path = (ADAPTER.settings.user_directory)(hooks.paths).join("config.toml");
    let config = (hooks.read)(&config_path).unwrap_or_default();
    trust::find_obstacle(hooks, &config, &config_path)
}

/// The members of a line of a session log that are read.
#[derive(Deserialize)]
struct LogLine {
    payload: LogEvent,
}

#[derive(Deserialize)]
struct LogEvent {
    #[serde(rename = "type")]
    kind: String,
    reason: Option<String>,
    error: Option<LogError>,
    started_at: Option<i64>,
    completed_at: Option<i64>,
}

#[derive(Deserialize)]
struct LogError {
    message: Option<String>,
}

/// Reads interruptions and server errors, which no hook reports.
fn read_log_line(line: &[u8]) -> Option<SessionStatus> {
    let LogEvent { kind, reason, error, started_at, completed_at } =
        serde_json::from_slice::<LogLine>(line).ok()?.payload;
    let (activity, seconds) = match kind.as_str() {
        "task_started" => (SessionActivity::Other, started_at),
        "turn_aborted" if reason.as_deref() == Some("interrupted") => {
            (SessionActivity::Interrupted, completed_at)
        }
        "task_complete" => match error {
            Some(error) => {
                let message = error.message.as_deref().and_then(request::shorten);
                (SessionActivity::Failed(message.unwrap_or_else(|| "unknown error".to_owned())), completed_at)
            }
            None => (SessionActivity::Other, completed_at),
        },
        _ => return None,
    };
    // The log has whole seconds, hooks have milliseconds.
    Some(SessionStatus { activity, since_ms: seconds?.saturating_mul(1000).saturating_add(999) })
}

fn read(event: &str, input: &HookInput) -> HookReport {
    if is_title_thread(input) {
        return HookReport::default().into_subagent();
    }
    if event == NOTIFY {
        return notify(input);
    }
    let mut report = HookReport::new(input.text("session_id"), input.text("cwd"));
    report.call_id = input.text("tool_use_id").map(str::to_owned);
    let subagent = input.text("agent_id").is_some() || event.starts_with("Subagent");
    match event {
        "SessionStart" => report.session_starts(input),
        "UserPromptSubmit" => report.prompt_submitted(input),
        "PreToolUse" => report.before_tool(input),
        "PostToolUse" => report.after_tool(input),
        "PermissionRequest" => report.blocked_by_tool(input),
        "Stop" | "SubagentStop" | "SessionEnd" if subagent => report.alive(),
        "Stop" => report.done(input, "last_assistant_message"),
        "PreCompact" if input.text("trigger") == Some("auto") => report.state(AgentState::Compacting),
        "PostCompact" if input.text("trigger") == Some("auto") => report.state(AgentState::Working),
        "PreCompact" | "PostCompact" | "SubagentStart" => report.alive(),
        "SessionEnd" => report.session_ends(input),
        _ => {}
    }
    if subagent { report.into_subagent() } else { report }
}

/// Reads the JSON of the `notify` program. It reports the end of a turn, and is the only report until the hooks are trusted, so
/// it has the authority of a hook. It comes after the Stop hook and cannot be answered.
fn notify(input: &HookInput) -> HookReport {
    let mut report = HookReport::new(input.first_text(&["thread-id", "thread_id"]), input.text("cwd"));
    if input.text("type") == Some("agent-turn-complete") {
        report.done(input, "last-assistant-message");
        report.hook_point = HookPoint::Other;
    }
    report
}

fn is_title_thread(input: &HookInput) -> bool {
    let prompt = input.first_text(&["prompt", "input-messages.0"]);
    prompt.is_some_and(|prompt| prompt.trim_start().starts_with(TITLE_PROMPT))
}

fn answer(event: &str, reply: &HookReply) -> DecisionOutput {
    let context = match event {
        "SessionStart" => reply.start_context(),
        "UserPromptSubmit" | "PostToolUse" => reply.turn_context(),
        _ => None,
    };
    // Only at a Stop: after a tool, `block` would replace the tool's output.
    let reason = reply.reason().filter(|_| event == "Stop");
    DecisionOutput::new(event, context, "block", reason)
}

/// The tool name of a command in hooks.
pub(crate) const COMMAND_TOOL: &str = "Bash";
/// The tool name of a file change in hooks.
pub(crate) const PATCH_TOOL: &str = "apply_patch";

/// Codex's hooks run before the dialog, which opens only when they end: they never wait.
const HOOKS: PromptHooks = PromptHooks {
    events: &["PermissionRequest", "PreToolUse"],
    method: AnswerMethod::ClientServer,
    waiting_events: &[],
    read: read_prompt,
    output: |_, _, _| None,
    results: None,
    answer_events: None,
    unattended: None,
    refuses: Some(refuses_questions),
};

/// The feature that lets the model ask questions in the default mode.
const ASKS_IN_DEFAULT_MODE: &str = "default_mode_request_user_input";

#[derive(Deserialize)]
struct TurnLine {
    payload: TurnContext,
}

#[derive(Deserialize)]
struct TurnContext {
    collaboration_mode: CollaborationMode,
}

#[derive(Deserialize)]
struct CollaborationMode {
    mode: String,
}

/// Returns true if Codex does not show a question: in its default mode it refuses the tool, unless a feature is on, but its hook
/// runs before that. The log names the mode of each turn.
fn refuses_questions(event: &str, log: &[u8], settings: &str) -> bool {
    if event != "PreToolUse" {
        return false;
    }
    let read = |line: &[u8]| serde_json::from_slice::<TurnLine>(line).ok();
    let turn = log.rsplit(|byte| *byte == b'\n').find_map(read);
    if turn.is_none_or(|turn| turn.payload.collaboration_mode.mode != "default") {
        return false;
    }
    let Ok(settings) = Document::parse(split_bom(settings).1) else { return false };
    let feature = settings.as_table().get("features").and_then(|features| features.get(ASKS_IN_DEFAULT_MODE));
    feature.and_then(Item::as_bool) != Some(true)
}

/// Reads the prompts that can be answered through the server. Other tools ask in another form.
fn read_prompt(event: &str, input: &Value) -> Option<PromptContent> {
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
    use ringer_core::agent::{BlockedOn, SignalContent};
    use serde_json::json;

    use super::*;

    fn report(event: &str, input: &Value) -> HookReport {
        read(event, &HookInput::read(input.to_string().as_bytes()).unwrap())
    }

    #[test]
    fn the_thread_that_makes_a_title_is_nobody() {
        let prompt = format!("{TITLE_PROMPT} for this conversation.");
        for (event, input) in [
            (NOTIFY, json!({"type": "agent-turn-complete", "thread-id": "t", "input-messages": [prompt]})),
            ("UserPromptSubmit", json!({"session_id": "t", "prompt": prompt})),
        ] {
            let found = report(event, &input);
            assert_eq!(found, HookReport::default().into_subagent(), "{event}");
        }
    }

    #[test]
    fn a_person_may_ask_for_a_title() {
        let words = format!("Write a function for this: {TITLE_PROMPT}");
        let input = json!({"type": "agent-turn-complete", "thread-id": "t", "input-messages": [words]});
        let found = report(NOTIFY, &input);
        assert_eq!(found.signals[0].content, SignalContent::State(AgentState::Done));
        assert_eq!(found.session_id.as_deref(), Some("t"));
    }

    #[test]
    fn another_kind_of_notify_says_nothing() {
        assert_eq!(report(NOTIFY, &json!({"type": "agent-turn-start", "thread-id": "t"})).signals, []);
    }

    #[test]
    fn its_question_tool_blocks() {
        let input =
            json!({"tool_name": "request_user_input", "tool_input": {"questions": [{"question": "Which?"}]}});
        let found = report("PreToolUse", &input);
        assert_eq!(found.signals[0].content, SignalContent::State(AgentState::Blocked(BlockedOn::Question)));
        assert_eq!(found.text.as_deref(), Some("Which?"));
    }

    #[test]
    fn in_the_default_mode_it_asks_only_if_a_feature_is_on() {
        let turn =
            |mode: &str| format!("{{\"payload\":{{\"collaboration_mode\":{{\"mode\":\"{mode}\"}}}}}}\n");
        let check = |modes: &[&str], settings: &str, expected: bool| {
            let log: String = modes.iter().map(|mode| turn(mode) + "{\"payload\":{}}\n").collect();
            assert_eq!(
                refuses_questions("PreToolUse", log.as_bytes(), settings),
                expected,
                "{modes:?} {settings}"
            );
            assert!(!refuses_questions("PermissionRequest", log.as_bytes(), settings));
        };
        check(&["default"], "", true);
        check(&["default"], "[features]\ndefault_mode_request_user_input = false", true);
        check(&["default"], "[features]\ndefault_mode_request_user_input = true", false);
        check(&["default"], "not TOML", false);
        check(&["default", "plan"], "", false);
        check(&["plan", "default"], "", true);
        check(&[], "", false);
    }

    #[test]
    fn a_subagent_does_not_end_its_session() {
        let ended = report("SessionEnd", &json!({"session_id": "t", "reason": "other"}));
        ended.assert_only_signal(AgentState::Exited, HookPoint::Other, None);
        let subagent = report("SessionEnd", &json!({"session_id": "t", "agent_id": "a", "reason": "other"}));
        assert_eq!(subagent.signals[0].content, SignalContent::Alive);
    }

    #[test]
    fn its_hooks_tell_what_its_server_asks() {
        let read = |event: &str, tool: &str, input: Value| {
            read_prompt(event, &json!({ "tool_name": tool, "tool_input": input }))
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
        assert_eq!(read_prompt("PermissionRequest", &input), None);
        let input = json!({ "tool_name": "Bash", "tool_input": { "command": "make" } });
        assert_eq!(read_prompt("PreToolUse", &input), None);
        assert_eq!(read_prompt("PermissionRequest", &json!({ "tool_name": "Bash" })), None);
    }
}
