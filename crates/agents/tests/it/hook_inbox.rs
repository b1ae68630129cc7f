//! Pending messages enter an agent's turn: once, in order, within limits, and never counted before the answer is written.

#![expect(clippy::unwrap_used, reason = "helpers of tests, outside any test function")]

use std::collections::BTreeSet;
use std::thread;

use ringer_agents::client::{CLAUDE_CONTEXT_LIMIT, Client, ClientPaths, agent_id};
use ringer_agents::hook::MAX_BLOCKS;
use ringer_core::agent::AgentState;
use ringer_core::message::{MessagePart, Tag};
use ringer_core::{Draft, MessageId, Recipient, Scope, Sender};
use ringer_journal::{CONFIRM_WITHIN, EnteredPart, IdSource, InboxUpdate, LEASE};
use serde_json::{Value, json};

use crate::hook::{AGENT, Closed, NOWHERE, SESSION, TestEnvironment, agent, block, entered, recorded};

/// An environment in which the agent works.
fn working() -> TestEnvironment {
    let environment = TestEnvironment::new();
    environment.play_all(&["claude_SessionStart", "claude_UserPromptSubmit"]);
    environment
}

fn after_tool(call: &str) -> Value {
    let mut input = recorded("claude_PostToolUse_Bash", SESSION);
    input["tool_use_id"] = json!(call);
    input
}

#[test]
fn it_enters_the_next_tool_result_once_and_in_order() {
    for name in ["claude_PostToolUse_Bash", "claude_PostToolUseFailure_Bash", "claude_PostToolBatch"] {
        let environment = working();
        let ids = ["one", "two <b>", "three"].map(|text| environment.send(AGENT, text));
        environment.play_all(&["claude_PreToolUse_Bash"]);
        let expected = ["one", "two &lt;b&gt;", "three"].map(|text| block("agent:w1", text)).join("\n\n");
        assert_eq!(entered(&environment.play(name)), expected, "{name}");
        assert!(ids.iter().all(|id| environment.receipt(id) == "delivered"));
        assert_eq!(environment.play("claude_PostToolUse_Write"), "", "{name}: once");
        assert!(ids.iter().all(|id| environment.receipt(id) == "seen"), "the client went on");
    }
}

#[test]
fn it_enters_with_the_next_prompt() {
    let environment = TestEnvironment::new();
    environment.play("claude_SessionStart");
    let id = environment.send(AGENT, "before you begin");
    assert_eq!(environment.receipt(&id), "queued");
    assert_eq!(entered(&environment.play("claude_UserPromptSubmit")), block("agent:w1", "before you begin"));
    assert_eq!(environment.play("claude_PostToolUse_Bash"), "");
    assert_eq!(environment.receipt(&id), "seen");
}

/// Gemini names no tool calls, and a turn without tools has none.
#[test]
fn an_event_without_a_call_confirms_what_another_without_one_carried() {
    let environment = TestEnvironment::new();
    environment.play("claude_SessionStart");
    let id = environment.send(AGENT, "hello");
    assert_ne!(environment.play("claude_UserPromptSubmit"), "");
    assert_eq!(environment.play("claude_Stop"), "");
    assert_eq!(environment.receipt(&id), "seen");
    let environment = TestEnvironment::new();
    environment.play("gemini_BeforeAgent");
    let id = environment.send("gemini-6be1e699", "hello");
    assert_ne!(environment.play("gemini_AfterTool_run_shell_command"), "");
    assert_eq!(environment.play("gemini_AfterTool_run_shell_command"), "");
    assert_eq!(environment.receipt(&id), "seen");
}

#[test]
fn the_same_call_confirms_nothing() {
    let environment = working();
    let id = environment.send(AGENT, "hello");
    assert_ne!(environment.play("claude_PostToolUse_Bash"), "");
    // The same tool call again: the model has not continued.
    assert_eq!(environment.play("claude_PostToolBatch"), "");
    assert_eq!(environment.receipt(&id), "delivered");
}

#[test]
fn what_does_not_fit_goes_into_the_next_one() {
    let environment = working();
    let texts: Vec<String> = (0..30).map(|number| format!("{number:02} {}", "&".repeat(200))).collect();
    for text in &texts {
        environment.send(AGENT, text);
    }
    let mut got = Vec::new();
    for call in 0..texts.len() {
        let answer = environment.call(Client::Claude, "PostToolUse", &after_tool(&format!("t{call}")));
        if answer.is_empty() {
            break;
        }
        let context = entered(&answer);
        assert!(context.len() <= CLAUDE_CONTEXT_LIMIT, "{}", context.len());
        got.extend(context.split("\n\n").map(str::to_owned));
    }
    let expected: Vec<String> =
        texts.iter().map(|text| block("agent:w1", &text.replace('&', "&amp;"))).collect();
    assert_eq!(got, expected, "all of them, in order");
}

#[test]
fn a_storm_of_the_same_stays_in_bounds() {
    let environment = working();
    for _ in 0..40 {
        environment.send(AGENT, &"x".repeat(900));
    }
    let (mut calls, mut times) = (0, 0);
    loop {
        let answer = environment.call(Client::Claude, "PostToolUse", &after_tool(&format!("t{calls}")));
        if answer.is_empty() {
            break;
        }
        let context = entered(&answer);
        assert!(context.len() <= CLAUDE_CONTEXT_LIMIT, "{} in call {calls}", context.len());
        let folded = context.split("(came ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
        times += folded.unwrap_or_else(|| context.matches("<notification").count());
        calls += 1;
    }
    assert_eq!(times, 40);
}

/// Returns true for `(part 7 of 7)`.
fn is_last_part(block: &str) -> bool {
    let numbers = block.split_once("(part ").and_then(|(_, rest)| rest.split_once(')'));
    numbers.and_then(|(numbers, _)| numbers.split_once(" of ")).is_some_and(|(number, of)| number == of)
}

#[test]
fn a_long_message_enters_in_parts_and_is_seen_with_the_last() {
    let environment = working();
    let lines: Vec<String> =
        (0..1500).map(|number| format!("line {number} with <markup> & \"quotes\"")).collect();
    let long = lines.join("\n");
    let (id, after) = (environment.send(AGENT, &long), environment.send(AGENT, "and then"));
    let mut got = Vec::new();
    for call in 0..20 {
        let context =
            entered(&environment.call(Client::Claude, "PostToolUse", &after_tool(&format!("t{call}"))));
        assert!(context.len() <= CLAUDE_CONTEXT_LIMIT, "{} in call {call}", context.len());
        let blocks = context.split("\n</notification>").map(str::trim_start);
        got.extend(blocks.filter(|block| !block.is_empty()).map(str::to_owned));
        let is_whole = got.iter().any(|block| is_last_part(block));
        assert_eq!(environment.receipt(&id) == "queued", !is_whole, "call {call}");
        if got.last().is_some_and(|block| block.contains("and then")) {
            break;
        }
    }
    let parts = got.len() - 1;
    assert!(parts > 5, "{parts}");
    let mut joined = String::new();
    for (number, block) in got[..parts].iter().enumerate() {
        let begin = format!("<notification source=\"agent:w1\">\n(part {} of {parts})\n", number + 1);
        joined.push_str(block.strip_prefix(&begin).unwrap_or_else(|| panic!("part {number}: {block}")));
    }
    let unescaped =
        joined.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
    assert_eq!(unescaped, long);
    environment.call(Client::Claude, "PostToolUse", &after_tool("last"));
    assert_eq!((environment.receipt(&id), environment.receipt(&after)), ("seen".into(), "seen".into()));
}

#[test]
fn what_is_for_all_reaches_every_agent_of_the_repository_once() {
    let environment = working();
    environment.play_in("77777777-d2b2-442c-995b-a5ac36193cd6", "claude_UserPromptSubmit");
    environment.send_to(Recipient::All, "claude-77777777", "main is frozen");
    let told = block("agent:claude-77777777", "status: main is frozen");
    assert_eq!(entered(&environment.play("claude_PostToolUse_Bash")), told);
    assert_eq!(environment.play("claude_PostToolUse_Write"), "");
    assert_eq!(environment.play_in("77777777-d2b2-442c-995b-a5ac36193cd6", "claude_PostToolUse_Bash"), "");
}

#[test]
fn a_stop_is_blocked_three_times_and_a_prompt_begins_anew() {
    let environment = working();
    for _turn in 0..2 {
        for number in 0..MAX_BLOCKS {
            environment.send(AGENT, "look");
            let mut stop = recorded("claude_Stop", SESSION);
            stop["stop_hook_active"] = json!(number > 0);
            let answer = environment.call(Client::Claude, "Stop", &stop);
            let expected = json!({"decision": "block", "reason": block("agent:w1", "look")});
            assert_eq!(serde_json::from_str::<Value>(&answer).unwrap(), expected);
            assert_eq!(environment.state(), AgentState::Working, "its turn goes on");
        }
        let waits = environment.send(AGENT, "once more");
        let mut stop = recorded("claude_Stop", SESSION);
        stop["stop_hook_active"] = json!(true);
        assert_eq!(environment.call(Client::Claude, "Stop", &stop), "");
        assert_eq!((environment.state(), environment.receipt(&waits).as_str()), (AgentState::Done, "queued"));
        assert_eq!(entered(&environment.play("claude_UserPromptSubmit")), block("agent:w1", "once more"));
    }
    let complete = environment.told().iter().filter(|told| told.starts_with("complete")).count();
    assert_eq!(complete, 2, "one for each turn");
}

#[test]
fn who_does_not_read_gets_it_later() {
    let environment = working();
    let id = environment.send(AGENT, "hello");
    assert!(environment.call_into(Client::Claude, "PostToolUse", &after_tool("t1"), &mut Closed).is_err());
    assert_eq!(environment.receipt(&id), "queued", "given back at once");
    assert_eq!(
        entered(&environment.call(Client::Claude, "PostToolUse", &after_tool("t2"))),
        block("agent:w1", "hello")
    );
}

fn ids(parts: &[MessagePart]) -> Vec<MessageId> {
    parts.iter().map(|part| part.message.id.clone()).collect()
}

fn millis(time: std::time::Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap()
}

/// A hook that died this many milliseconds ago, between its claim and its output.
fn die_half_way(environment: &TestEnvironment, milliseconds_ago: i64) {
    let stamp = IdSource::now();
    let stamp = IdSource { unix_ms: stamp.unix_ms - milliseconds_ago, ..stamp };
    let all = |pending: &[MessagePart], _: &[EnteredPart]| (0..pending.len()).collect();
    let claim = InboxUpdate { call_id: Some("t0"), choose: Some(&all), ..InboxUpdate::default() };
    assert!(environment.journal().claim_for(&agent(), &claim, &stamp).unwrap().is_some());
}

#[test]
fn a_hook_that_was_killed_half_way_leaves_it_pending() {
    let environment = working();
    let id = environment.send(AGENT, "hello");
    die_half_way(&environment, 0);
    assert_eq!(environment.play("claude_PostToolUse_Bash"), "", "its lease holds");
    assert_eq!(environment.receipt(&id), "leased");
    let environment = working();
    let id = environment.send(AGENT, "hello");
    die_half_way(&environment, millis(LEASE) + 1000);
    assert_eq!(entered(&environment.play("claude_PostToolUse_Bash")), block("agent:w1", "hello"));
    assert_eq!(environment.messages().len(), 1, "one id");
    assert_eq!(environment.receipt(&id), "delivered");
}

#[test]
fn what_was_handed_over_and_never_confirmed_comes_again() {
    let environment = working();
    let id = environment.send(AGENT, "hello");
    environment.play("claude_PostToolUse_Bash");
    let later = IdSource::now().unix_ms + millis(CONFIRM_WITHIN) + 1000;
    assert_eq!(ids(&environment.journal().pending_for(&agent(), later).unwrap()), [id]);
}

/// Claude Code runs the hooks of parallel tool calls at the same time.
#[test]
fn of_many_hooks_at_once_one_gets_it() {
    let environment = working();
    let texts: Vec<String> = (0..6).map(|number| format!("number {number}")).collect();
    for text in &texts {
        environment.send(AGENT, text);
    }
    let home = environment.home();
    let answers: Vec<String> = thread::scope(|scope| {
        let call = |number: usize| {
            let home = home.clone();
            move || {
                let at = ringer_agents::hook::HookContext {
                    home,
                    clock: &|| std::time::Duration::from_secs(2000),
                    origin: &ringer_core::message::MessageOrigin::default,
                    process: None,
                    manager: None,
                    name: None,
                    variable: &|_| None,
                    paths: &|| ClientPaths::new(std::path::Path::new(NOWHERE)),
                    stdout: None,
                    before_wait: &|_| {},
                };
                let input = after_tool(&format!("t{number}")).to_string();
                let mut out = Vec::new();
                // A hook that finds the journal busy gives up; the others get the message then.
                let _ =
                    ringer_agents::hook::call(Client::Claude, "PostToolUse", input.as_bytes(), &mut out, &at);
                String::from_utf8(out).unwrap()
            }
        };
        let threads: Vec<_> = (0..8).map(|number| scope.spawn(call(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let all: String = answers.iter().map(|answer| entered(answer)).collect();
    let all = all + &entered(&environment.call(Client::Claude, "PostToolUse", &after_tool("t9")));
    for text in &texts {
        assert_eq!(all.matches(text.as_str()).count(), 1, "{text}: {answers:?}");
    }
}

/// Each hook is a separate process; the rates must not start over with each.
#[test]
fn what_is_over_the_rate_of_its_source_waits_also_for_the_next_hook() {
    let environment = working();
    let ids: Vec<MessageId> =
        (0..70).map(|number| environment.send(AGENT, &format!("number {number}"))).collect();
    let next = |call: &str| entered(&environment.call(Client::Claude, "PostToolUse", &after_tool(call)));
    assert_eq!(next("t0").matches("<notification ").count(), 30);
    environment.send_to(Recipient::Agent(agent()), "w2", "another source");
    assert_eq!(next("t1"), block("agent:w2", "another source"));
    assert_eq!(next("t2"), "");
    assert_eq!(environment.receipt(&ids[30]), "queued");
}

#[test]
fn each_client_gets_what_it_takes_and_nothing_else() {
    let fields = |value: &Value| -> BTreeSet<String> { value.as_object().unwrap().keys().cloned().collect() };
    let expected = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    for (client, event, out) in [
        ("claude", "PostToolUse", &["hookSpecificOutput"][..]),
        ("claude", "UserPromptSubmit", &["hookSpecificOutput"]),
        ("claude", "Stop", &["decision", "reason"]),
        ("codex", "PostToolUse", &["hookSpecificOutput"]),
        ("codex", "UserPromptSubmit", &["hookSpecificOutput"]),
        ("codex", "Stop", &["decision", "reason"]),
        ("gemini", "AfterTool", &["hookSpecificOutput"]),
        ("gemini", "BeforeAgent", &["hookSpecificOutput"]),
        ("gemini", "AfterAgent", &["decision", "reason"]),
        ("opencode", "tool.execute.after", &["append"]),
        ("opencode", "session.idle", &["prompt"]),
    ] {
        let environment = TestEnvironment::new();
        let id = environment.send(&format!("{client}-12345678"), "hello");
        let input = json!({"session_id": "12345678", "cwd": NOWHERE, "tool_use_id": "t1", "prompt": "go"});
        let answer = environment.call(client.parse().unwrap(), event, &input);
        let value: Value =
            serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{client} {event}: {answer:?}"));
        assert_eq!(fields(&value), expected(out), "{client} {event}");
        if let Some(inner) = value.get("hookSpecificOutput") {
            assert_eq!(fields(inner), expected(&["hookEventName", "additionalContext"]));
            assert_eq!(inner["hookEventName"], *event);
        }
        assert_eq!(entered(&answer).trim(), block("agent:w1", "hello"), "{client} {event}");
        assert_eq!(environment.receipt(&id), "delivered");
    }
}

/// Every client that accepts context at the start of a session is told the nonce of its notifications there.
#[test]
fn a_session_is_told_its_nonce_and_keeps_it() {
    for (client, start, after) in [
        (Client::Claude, "SessionStart", "PostToolUse"),
        (Client::Codex, "SessionStart", "PostToolUse"),
        (Client::Gemini, "SessionStart", "AfterTool"),
        (Client::Copilot, "sessionStart", "postToolUse"),
        (Client::Opencode, "session.context", "tool.execute.after"),
    ] {
        let environment = TestEnvironment::new();
        let agent = agent_id(client, SESSION).unwrap();
        let call = |event: &str, call: usize| {
            let input = json!({"session_id": SESSION, "sessionId": SESSION,
                "cwd": NOWHERE, "tool_name": "Bash", "tool_use_id": format!("t{call}"), "source": "startup"});
            environment.pass(1);
            environment.whole_call(client, event, &input)
        };
        let nonce = |answer: &str| {
            let (_, rest) = answer.split_once(" nonce=\\\"").unwrap_or_else(|| panic!("{client}: {answer}"));
            rest[..32].to_owned()
        };
        let told = nonce(&call(start, 0));
        assert_eq!(nonce(&call(start, 1)), told, "{client}: resumed");
        environment.send(agent.as_str(), "hello");
        assert_eq!(nonce(&call(after, 2)), told, "{client}");
    }
}

#[test]
fn an_event_that_carries_nothing_takes_nothing() {
    for (client, event) in [
        ("claude", "SessionStart"),
        ("claude", "PreToolUse"),
        ("claude", "PermissionRequest"),
        ("claude", "Notification"),
        ("claude", "SubagentStop"),
        ("claude", "SessionEnd"),
        ("claude", "SomethingNew"),
        ("codex", "notify"),
        ("gemini", "BeforeTool"),
        ("opencode", "chat.message"),
        ("opencode", "tool.execute.before"),
        ("opencode", "session.status"),
    ] {
        let environment = TestEnvironment::new();
        let id = environment.send(&format!("{client}-12345678"), "hello");
        let input = json!({"session_id": "12345678", "thread-id": "12345678", "cwd": NOWHERE, "prompt": "go",
            "type": "agent-turn-complete"});
        assert_eq!(environment.call(client.parse().unwrap(), event, &input), "", "{client} {event}");
        assert_eq!(environment.receipt(&id), "queued", "{client} {event}");
    }
}

#[test]
fn a_subagent_gets_nothing_of_its_agents_mail() {
    let environment = working();
    let id = environment.send(AGENT, "hello");
    let mut input = after_tool("t1");
    input["agent_id"] = json!("a1");
    assert_eq!(environment.call(Client::Claude, "PostToolUse", &input), "");
    assert_eq!(environment.receipt(&id), "queued");
    environment.send_to(Recipient::Person, "w1", "for the person");
    assert_eq!(entered(&environment.play("claude_PostToolUse_Bash")), block("agent:w1", "hello"));
}

/// A message that was pending when the hook looked may be delivered otherwise before it claims: a mark is pending, and never
/// enters.
#[test]
fn a_stop_that_nothing_keeps_is_an_end() {
    let environment = working();
    let mut draft =
        Draft::tagged(Scope::global(), Sender::system(), Tag::Mark(ringer_core::message::Mark::Read), "m1");
    draft.recipient = Recipient::Agent(agent());
    environment.journal().append(&draft, &IdSource::now()).unwrap();
    assert_eq!(environment.journal().pending_for(&agent(), IdSource::now().unix_ms).unwrap().len(), 1);
    assert_eq!(environment.play("claude_Stop"), "");
    assert_eq!(environment.state(), AgentState::Done);
    assert!(environment.told().last().unwrap().starts_with("complete: "), "{:?}", environment.told());
}
