use super::{Client, HookReply, answer};

#[track_caller]
fn check(client: Client, event: &str, reply: &HookReply, expected: &str) {
    assert_eq!(answer(client, event, reply).unwrap_or_default(), expected);
}

#[test]
fn a_reason_to_go_on() {
    let reply = HookReply::with_stop_reason("look");
    check(Client::Claude, "Stop", &reply, r#"{"decision":"block","reason":"look"}"#);
    check(Client::Codex, "Stop", &reply, r#"{"decision":"block","reason":"look"}"#);
    check(Client::Gemini, "AfterAgent", &reply, r#"{"decision":"deny","reason":"look"}"#);
    check(Client::Opencode, "session.idle", &reply, r#"{"prompt":"look"}"#);
    check(Client::Cursor, "stop", &reply, r#"{"followup_message":"look"}"#);
    check(Client::Copilot, "agentStop", &reply, r#"{"decision":"block","reason":"look"}"#);
    // In Codex it would take the place of the tool's output.
    for client in Client::ALL {
        for event in
            ["PostToolUse", "AfterTool", "tool.execute.after", "postToolUse", "SubagentStop", "notify"]
        {
            check(client, event, &reply, "");
        }
    }
}

#[test]
fn a_session_begins_with_instructions_and_what_waits() {
    let reply = HookReply { session_context: Some("listen".into()), ..HookReply::with_context("hello") };
    let expected = |context: &str| {
        let start = r#"{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":""#;
        format!("{start}{context}\"}}}}")
    };
    for client in [Client::Claude, Client::Codex, Client::Gemini] {
        check(client, "SessionStart", &reply, &expected("listen\\n\\nhello"));
        check(client, "SessionStart", &HookReply::with_context("hello"), &expected("hello"));
    }
    check(Client::Opencode, "session.created", &reply, "");
    check(Client::Opencode, "session.context", &reply, r#"{"system":"listen\n\nhello"}"#);
    check(Client::Cursor, "sessionStart", &reply, r#"{"additional_context":"listen\n\nhello"}"#);
    check(Client::Copilot, "sessionStart", &reply, r#"{"additionalContext":"listen\n\nhello"}"#);
}

#[test]
fn a_terminal_sequence_goes_through_claude_code_only_and_only_a_harmless_one() {
    let reply =
        |sequence: &str| HookReply { terminal_sequence: Some(sequence.into()), ..HookReply::default() };
    let bell = reply("\x1b]9;done\x07");
    check(Client::Claude, "Stop", &bell, "{\"terminalSequence\":\"\\u001b]9;done\\u0007\"}");
    check(Client::Claude, "Stop", &reply("\x1b[2J"), "");
    for client in Client::ALL.into_iter().filter(|client| *client != Client::Claude) {
        for event in ["Stop", "stop", "agentStop"] {
            check(client, event, &bell, "");
        }
    }
}

#[test]
fn nothing_to_say_is_not_a_byte() {
    let blank = HookReply {
        context: Some(" \n".into()),
        stop_reason: Some(String::new()),
        terminal_sequence: Some(String::new()),
        session_context: Some(String::new()),
    };
    for client in Client::ALL {
        for event in [
            "Stop",
            "PostToolUse",
            "SessionStart",
            "AfterAgent",
            "session.idle",
            "stop",
            "agentStop",
            "",
            "x",
        ] {
            check(client, event, &HookReply::default(), "");
            check(client, event, &blank, "");
        }
    }
}
