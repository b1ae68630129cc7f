//! Arbitrary inputs, and all possible answers.

use std::collections::BTreeSet;

use proptest::prelude::*;
use ringer_agents::client::{
    Client, HookInput, HookPoint, HookReply, MAX_LINE, agent_id, answer, read, read_bytes,
};
use ringer_core::toast::{Sources, source_names};

const EVENTS: [&str; 43] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "PermissionRequest",
    "Notification",
    "Elicitation",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
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
    "session.deleted",
    "permission.asked",
    "question.asked",
    "tool.execute.before",
    "tool.execute.after",
    "sessionStart",
    "beforeSubmitPrompt",
    "userPromptSubmitted",
    "postToolUse",
    "postToolUseFailure",
    "notification",
    "stop",
    "agentStop",
    "errorOccurred",
    "sessionEnd",
    "waiting",
    "",
    "weather",
];

fn event() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&EVENTS[..])
}

/// Every path in a value, such as `hookSpecificOutput.hookEventName`.
fn paths(value: &serde_json::Value, prefix: &str) -> BTreeSet<String> {
    let Some(members) = value.as_object() else { return BTreeSet::from([prefix.to_owned()]) };
    let dot = if prefix.is_empty() { "" } else { "." };
    members.iter().flat_map(|(name, value)| paths(value, &format!("{prefix}{dot}{name}"))).collect()
}

/// The members of Ringer's output that each client's schema allows.
fn closed_set(client: Client) -> BTreeSet<String> {
    let context = ["hookSpecificOutput.hookEventName", "hookSpecificOutput.additionalContext"];
    let block = ["decision", "reason"];
    let keys: Vec<&str> = match client {
        Client::Claude => [&context[..], &block, &["terminalSequence"]].concat(),
        Client::Codex | Client::Gemini => [context, block].concat(),
        Client::Opencode => vec!["append", "prompt"],
        Client::Copilot => [&block[..], &["additionalContext"]].concat(),
        _ => Vec::new(),
    };
    keys.into_iter().map(str::to_owned).collect()
}

fn client() -> impl Strategy<Value = Client> {
    prop::sample::select(&Client::ALL[..])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_bytes_make_it_panic(client in client(), event in event(), bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read_bytes(client, event, &bytes);
    }

    /// Known members with arbitrary values, which reach deeper than arbitrary bytes.
    #[test]
    fn no_fields_make_it_panic(client in client(), event in event(), fields in fields()) {
        let input = HookInput::read(serde_json::to_vec(&fields).unwrap().as_slice()).unwrap();
        let report = read(client, event, &input);
        if let Some(id) = &report.session_id {
            agent_id(client, id);
        }
        prop_assert!(!report.subagent || report.hook_point == HookPoint::Other);
        for observation in &report.observations {
            prop_assert!(source_names().any(|name| name == observation.source));
            prop_assert!(Sources::default().observe(observation).is_ok());
        }
        for text in report.signals.iter().filter_map(|signal| signal.text.as_ref()).chain(&report.text) {
            prop_assert!(!text.contains('\n') && text.chars().count() <= MAX_LINE);
        }
    }

    #[test]
    fn no_answer_has_a_key_outside_the_closed_set(
        client in client(),
        event in event(),
        texts in prop::array::uniform4(prop::option::of("(?s).{0,20}")),
        bell in any::<bool>(),
    ) {
        let [context, block, sequence, session_context] = texts;
        let terminal_sequence = if bell { Some("\x07".to_owned()) } else { sequence };
        let reply = HookReply { context, stop_reason: block, terminal_sequence, session_context };
        if let Some(output) = answer(client, event, &reply) {
            let value: serde_json::Value = serde_json::from_str(&output).unwrap();
            let found = paths(&value, "");
            prop_assert!(!found.is_empty() && found.is_subset(&closed_set(client)), "{}", output);
            prop_assert_eq!(found.contains("decision"), found.contains("reason"));
        }
    }
}

fn fields() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value;
    let names = [
        "session_id",
        "sessionId",
        "parentAgentId",
        "toolName",
        "toolArgs",
        "reason",
        "agent_id",
        "tool_name",
        "tool_input",
        "message",
        "notification_type",
        "background_tasks",
        "session_crons",
        "last_assistant_message",
        "prompt",
        "error",
        "details",
        "properties",
        "questions",
        "options",
        "question",
        "command",
        "input-messages",
        "type",
        "status",
        "metadata",
        "patterns",
        "trigger",
        "source",
        "title",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "(?s).{0,30}".prop_map(Value::from),
        prop::sample::select(vec![
            "ToolPermission",
            "idle_prompt",
            "auto",
            "retry",
            "rate_limit",
            "AskUserQuestion",
            "permission_prompt",
            "elicitation_dialog",
            "aborted"
        ])
        .prop_map(Value::from),
    ];
    let name = prop::sample::select(names.to_vec()).prop_map(str::to_owned);
    let values = leaf.prop_recursive(3, 24, 5, move |inner| {
        let name = prop::sample::select(names.to_vec()).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..5).prop_map(|map| map.into_iter().collect::<Value>()),
        ]
    });
    prop::collection::btree_map(name, values, 0..8).prop_map(|map| map.into_iter().collect::<Value>())
}

#[test]
fn the_exact_keys_that_codex_gets() {
    for (event, reply, expected) in [
        (
            "PostToolUse",
            HookReply::with_context("x"),
            "hookSpecificOutput.additionalContext hookSpecificOutput.hookEventName",
        ),
        ("Stop", HookReply::with_stop_reason("x"), "decision reason"),
    ] {
        let everything =
            HookReply { terminal_sequence: Some("\x07".into()), session_context: Some("s".into()), ..reply };
        let output = answer(Client::Codex, event, &everything).unwrap();
        let found = paths(&serde_json::from_str(&output).unwrap(), "");
        assert_eq!(found.into_iter().collect::<Vec<_>>().join(" "), expected);
    }
}
