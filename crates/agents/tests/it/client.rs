//! Every recorded hook input, and the report it yields.

#![expect(clippy::unwrap_used, reason = "helpers of tests, outside any test function")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use ringer_agents::client::{Client, HookPoint, HookReply, HookReport, agent_id, answer, read_bytes};
use ringer_core::Kind;
use ringer_core::agent::{AgentMachine, AgentState, AgentTimeouts, Authority, Signal, SignalContent};

/// One row: the fixture, its signals as words, the hook point, the text, and the answer to a context of `hello`.
type Row = (&'static str, &'static str, HookPoint, Option<&'static str>, bool);

const NOT_BLOCKED: HookPoint = HookPoint::Stopping { already_blocked: false };

/// The last column: true if a context of `hello` is accepted.
const ROWS: &[Row] = &[
    ("claude_SessionStart", "ready", HookPoint::SessionStarts, None, true),
    ("claude_UserPromptSubmit", "working", HookPoint::PromptSubmitted, Some("please do the thing"), true),
    ("claude_PreToolUse_Bash", "working", HookPoint::BeforeTool, None, false),
    ("claude_PostToolUse_Bash", "working", HookPoint::AfterTool, None, true),
    ("claude_PostToolBatch", "working", HookPoint::AfterTool, None, true),
    ("claude_PostToolUseFailure_Bash", "working", HookPoint::AfterTool, None, true),
    ("claude_PreToolUse_Write", "working", HookPoint::BeforeTool, None, false),
    ("claude_PostToolUse_Write", "working", HookPoint::AfterTool, None, true),
    ("claude_PostToolUse_Agent", "working", HookPoint::AfterTool, None, true),
    (
        "claude_PermissionRequest_Write",
        "blocked on a permission",
        HookPoint::Other,
        Some("Write: out.txt"),
        false,
    ),
    (
        "claude_Notification_permission_prompt",
        "blocked on a permission (notification)",
        HookPoint::Other,
        None,
        false,
    ),
    (
        "claude_Notification_idle_prompt",
        "idle (notification)",
        HookPoint::Other,
        Some("Claude is waiting for your input"),
        false,
    ),
    (
        "claude_PreToolUse_AskUserQuestion",
        "blocked on a question",
        HookPoint::BeforeTool,
        Some("Which? (A / B)"),
        false,
    ),
    (
        "claude_PermissionRequest_AskUserQuestion",
        "blocked on a question",
        HookPoint::Other,
        Some("Which? (A / B)"),
        false,
    ),
    ("claude_Stop", "done", NOT_BLOCKED, Some("All finished now, thanks for waiting."), false),
    ("claude_StopFailure", "error", HookPoint::Other, Some("API Error: 400 mock bad"), false),
    ("claude_MessageDisplay", "alive", HookPoint::Other, None, false),
    ("claude_FileChanged", "", HookPoint::Other, None, false),
    ("claude_SubagentStart", "alive, subagent", HookPoint::Other, None, false),
    ("claude_SubagentStop", "alive, subagent", HookPoint::Other, None, false),
    ("claude_SessionEnd", "exited", HookPoint::Other, None, false),
    ("codex_UserPromptSubmit", "working", HookPoint::PromptSubmitted, Some("say hello"), true),
    ("codex_PreToolUse_Bash", "working", HookPoint::BeforeTool, None, false),
    ("codex_PostToolUse_Bash", "working", HookPoint::AfterTool, None, true),
    (
        "codex_PermissionRequest_Bash",
        "blocked on a permission",
        HookPoint::Other,
        Some("Bash: touch zz-file (May I touch a file?)"),
        false,
    ),
    ("codex_Stop", "done", NOT_BLOCKED, Some("All finished now."), false),
    ("codex_notify", "done", HookPoint::Other, Some("after stop"), false),
    ("gemini_SessionStart", "ready", HookPoint::SessionStarts, None, true),
    ("gemini_BeforeAgent", "working", HookPoint::PromptSubmitted, Some("say hello"), true),
    ("gemini_PreCompress", "alive", HookPoint::Other, None, false),
    ("gemini_BeforeTool_run_shell_command", "working", HookPoint::BeforeTool, None, false),
    ("gemini_AfterTool_run_shell_command", "working", HookPoint::AfterTool, None, true),
    ("gemini_AfterAgent", "done", NOT_BLOCKED, Some("All finished now."), false),
    (
        "gemini_Notification_ToolPermission",
        "blocked on a permission",
        HookPoint::Other,
        Some("Write: o.txt"),
        false,
    ),
    ("gemini_SessionEnd", "exited", HookPoint::Other, None, false),
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hooks")
}

fn client_and_event(name: &str) -> (Client, &str) {
    let mut parts = name.split('_');
    (parts.next().unwrap().parse().unwrap(), parts.next().unwrap())
}

fn report(name: &str) -> HookReport {
    let (client, event) = client_and_event(name);
    read_bytes(client, event, &fs::read(folder().join(format!("{name}.json"))).unwrap()).unwrap()
}

fn words(report: &HookReport) -> String {
    let word = |signal: &Signal| {
        let content = match signal.content {
            SignalContent::State(state) => state.as_str(),
            SignalContent::Alive => "alive",
            SignalContent::TurnEnded => "turn ended",
            SignalContent::Notified => "notified",
            SignalContent::Idle => "idle",
            SignalContent::Interrupted => "interrupted",
            SignalContent::UnattendedPermission => "unattended permission",
        };
        let authority = if signal.authority == Authority::Notification { " (notification)" } else { "" };
        format!("{content}{authority}{}", if signal.pending { " pending" } else { "" })
    };
    let mut words: Vec<String> = report.signals.iter().map(word).collect();
    if report.subagent {
        words.push("subagent".to_owned());
    }
    words.join(", ")
}

#[test]
fn every_recorded_input() {
    for (name, signals, hook_point, text, takes_context) in ROWS {
        let report = report(name);
        assert_eq!((words(&report).as_str(), report.hook_point), (*signals, *hook_point), "{name}");
        assert_eq!(report.text.as_deref(), *text, "{name}");
        assert_eq!(report.cwd.as_deref(), Some("/home/user/project"), "{name}");
        assert!(report.session_id.is_some() && report.observations.is_empty(), "{name}");
        let (client, event) = client_and_event(name);
        let expected = takes_context.then(|| {
            format!(r#"{{"hookSpecificOutput":{{"hookEventName":"{event}","additionalContext":"hello"}}}}"#)
        });
        assert_eq!(answer(client, event, &HookReply::with_context("hello")), expected, "{name}");
    }
}

#[test]
fn the_table_has_every_fixture() {
    let files: BTreeSet<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap().replace(".json", ""))
        .collect();
    let rows: BTreeSet<String> = ROWS.iter().map(|row| row.0.to_owned()).collect();
    assert_eq!(files, rows);
}

#[test]
fn ids_of_turns_and_calls() {
    let check = |name: &str, turn: Option<&str>, call: Option<&str>| {
        let report = report(name);
        let of_signals: Vec<_> = report.signals.iter().map(|signal| signal.turn.as_deref()).collect();
        assert_eq!((of_signals, report.call_id.as_deref()), (vec![turn], call), "{name}");
    };
    let (prompt, call) = (Some("710193cd-fe05-45f5-83fe-a09dad20b7c4"), Some("toolu_95b519e4315b4fab9312"));
    check("claude_PreToolUse_Bash", prompt, call);
    check("claude_PostToolUse_Bash", prompt, call);
    check("claude_PostToolBatch", prompt, call);
    check("claude_Stop", prompt, None);
    check("codex_PostToolUse_Bash", None, Some("call_db3701cf8c7a"));
    check("codex_notify", None, None);
    check("gemini_AfterTool_run_shell_command", None, None);
}

#[test]
fn a_hook_and_notify_of_one_session_are_one_agent() {
    let id = |name| agent_id(Client::Codex, &report(name).session_id.unwrap()).unwrap();
    assert_eq!(id("codex_Stop"), id("codex_notify"));
    assert_ne!(id("codex_Stop").as_str(), "codex-01a1dca1", "its beginning is the time");
}

/// Replays recorded inputs into the core, a second apart by default. Returns the notices, and the state at the end.
fn play(inputs: &[(u64, &str)]) -> (Vec<(Kind, Option<String>)>, AgentState) {
    let at = std::time::Duration::from_secs;
    let mut machine = AgentMachine::new(at(0), AgentTimeouts::default());
    let mut told = Vec::new();
    for (second, name) in inputs {
        for signal in &report(name).signals {
            told.extend(
                machine
                    .apply(at(*second), signal)
                    .notices
                    .into_iter()
                    .map(|notice| (notice.kind, notice.text)),
            );
        }
    }
    (told, machine.state())
}

#[test]
fn a_recorded_session_of_claude_code_tells_three_things() {
    let (told, state) = play(&[
        (1, "claude_SessionStart"),
        (2, "claude_UserPromptSubmit"),
        (3, "claude_PreToolUse_Bash"),
        (6, "claude_PostToolUse_Bash"),
        (6, "claude_PostToolBatch"),
        (7, "claude_PreToolUse_Write"),
        (7, "claude_PermissionRequest_Write"),
        (13, "claude_Notification_permission_prompt"),
        (14, "claude_PostToolUse_Write"),
        (15, "claude_Stop"),
        (75, "claude_Notification_idle_prompt"),
        (80, "claude_SessionEnd"),
    ]);
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        told,
        [
            (Kind::Waiting, text("Write: out.txt")),
            (Kind::Complete, text("All finished now, thanks for waiting.")),
            (Kind::Waiting, None),
        ]
    );
    assert_eq!(state, AgentState::Exited);
}

#[test]
fn sessions_of_the_others() {
    let (told, state) = play(&[
        (1, "codex_UserPromptSubmit"),
        (2, "codex_PreToolUse_Bash"),
        (3, "codex_PermissionRequest_Bash"),
        (4, "codex_PostToolUse_Bash"),
        (5, "codex_Stop"),
        (5, "codex_notify"),
    ]);
    assert_eq!(told.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [Kind::Waiting, Kind::Complete]);
    assert_eq!(state, AgentState::Done);
    let (told, state) = play(&[
        (1, "gemini_SessionStart"),
        (2, "gemini_BeforeAgent"),
        (2, "gemini_PreCompress"),
        (3, "gemini_BeforeTool_run_shell_command"),
        (3, "gemini_Notification_ToolPermission"),
        (4, "gemini_AfterTool_run_shell_command"),
        (5, "gemini_AfterAgent"),
        (6, "gemini_SessionEnd"),
    ]);
    assert_eq!(told.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [Kind::Waiting, Kind::Complete]);
    assert_eq!(state, AgentState::Exited);
}

#[test]
fn an_idle_notification_ends_no_turn() {
    let (told, state) = play(&[(1, "claude_UserPromptSubmit"), (70, "claude_Notification_idle_prompt")]);
    assert_eq!((told, state), (Vec::new(), AgentState::Working));
}
