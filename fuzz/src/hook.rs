//! Arbitrary input of a client's hook: no panic, whatever it says is bounded, and no answer but one that can be read.

use ringer_agents::client::{Client, HookPoint, HookReply, MAX_LINE, agent_id, answer, read_bytes};

/// Every event that is read differently, and one that no client has.
const EVENTS: [&str; 39] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "PermissionRequest",
    "PermissionDenied",
    "Elicitation",
    "Notification",
    "Stop",
    "StopFailure",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "SessionEnd",
    "notify",
    "BeforeAgent",
    "BeforeTool",
    "AfterTool",
    "AfterAgent",
    "PreCompress",
    "session.created",
    "session.idle",
    "session.error",
    "session.status",
    "chat.message",
    "tool.execute.after",
    "permission.asked",
    "question.asked",
    "question.replied",
    "sessionStart",
    "postToolUse",
    "notification",
    "stop",
    "agentStop",
    "errorOccurred",
    "sessionEnd",
    "never.heard.of",
];

pub fn run(data: &[u8]) {
    // The first byte picks the event, and the second the client: all pairs, also those that do not belong together.
    let Some((&[event, client], input)) = data.split_first_chunk() else { return };
    let event = EVENTS[usize::from(event) % EVENTS.len()];
    let client = Client::ALL[usize::from(client) % Client::ALL.len()];
    let Ok(report) = read_bytes(client, event, input) else { return };
    for text in report.signals.iter().filter_map(|signal| signal.text.as_ref()).chain(&report.text) {
        assert!(text.chars().count() <= MAX_LINE + 1, "{} characters", text.chars().count());
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
    assert!(!report.subagent || report.hook_point == HookPoint::Other);
    if let Some(agent) = report.session_id.as_deref().and_then(|id| agent_id(client, id)) {
        assert!(agent.as_str().len() <= "opencode-".len() + 8);
    }
    let said = report.text.unwrap_or_else(|| "x".to_owned());
    let reply = HookReply {
        stop_reason: Some(said.clone()),
        session_context: Some(said.clone()),
        ..HookReply::with_context(said)
    };
    if let Some(answer) = answer(client, event, &reply) {
        assert!(answer.starts_with('{') && answer.ends_with('}') && !answer.contains('\n'), "{answer}");
    }
}
