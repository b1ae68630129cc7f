//! The lead: which agent it is, which instructions it gets, and what reaches it through its hooks.

#![expect(clippy::unwrap_used, reason = "helpers of tests, outside any test function")]

use ringer_agents::client::{CLAUDE_CONTEXT_LIMIT, Client};
use ringer_agents::hook::lead_instructions;
use ringer_core::message::{Agent, MAX_BODY};
use ringer_core::{Message, Recipient, Scope};
use ringer_journal::{Consumer, Error, ListenOutcome, Listener, OnParentExit};
use serde_json::json;
use std::time::Instant;

use crate::hook::{AGENT, NOWHERE, SESSION, TestEnvironment, agent, block, entered, recorded};

const OTHER: &str = "77777777-d2b2-442c-995b-a5ac36193cd6";

/// An environment whose lead is the usual agent, at work.
fn led() -> TestEnvironment {
    let environment = TestEnvironment::new();
    environment.journal().want_lead(&Scope::global(), true).unwrap();
    assert_ne!(environment.play("claude_SessionStart"), "");
    environment.play_all(&["claude_UserPromptSubmit"]);
    environment
}

fn lead_of(environment: &TestEnvironment) -> Option<String> {
    environment.journal().lead(&Scope::global()).unwrap().agent
}

/// The output of a listener for the lead.
fn listen(environment: &TestEnvironment) -> Vec<String> {
    let mut journal = environment.journal();
    let consumer = Consumer::new(Consumer::LEAD, Scope::global()).unwrap();
    let mut listener =
        Listener::begin(&mut journal, consumer, Some(AGENT.to_owned()), false, OnParentExit::Continue)
            .unwrap();
    let mut heard = Vec::new();
    let done = listener.next(Some(Instant::now()), 100, |messages: &[Message]| {
        heard.extend(messages.iter().map(|message| message.draft.body.clone()));
        Ok::<usize, Error>(messages.len())
    });
    assert!(matches!(done.unwrap(), ListenOutcome::Delivered(_) | ListenOutcome::TimedOut));
    heard
}

#[test]
fn the_first_session_is_told_to_listen_and_the_second_is_not() {
    let environment = TestEnvironment::new();
    assert_eq!(environment.play("claude_SessionStart"), "", "no lead was asked for");
    environment.journal().want_lead(&Scope::global(), true).unwrap();
    assert_eq!(entered(&environment.play("claude_SessionStart")), lead_instructions(&agent()));
    assert_eq!(environment.play_in(OTHER, "claude_SessionStart"), "");
    assert_eq!(lead_of(&environment).as_deref(), Some(AGENT));
    // After a compaction the model has forgotten the instructions.
    let mut compacted = recorded("claude_SessionStart", SESSION);
    compacted["source"] = json!("compact");
    let answer = environment.call(Client::Claude, "SessionStart", &compacted);
    assert_eq!(entered(&answer), lead_instructions(&agent()));
    environment.journal().want_lead(&Scope::global(), false).unwrap();
    assert_eq!(environment.play("claude_SessionStart"), "");
}

#[test]
fn when_the_lead_has_gone_the_next_session_takes_its_place() {
    let environment = led();
    environment.play("claude_Stop");
    environment.play("claude_SessionEnd");
    let other = Agent::new("claude-77777777").unwrap();
    assert_eq!(entered(&environment.play_in(OTHER, "claude_SessionStart")), lead_instructions(&other));
    assert_eq!(lead_of(&environment).as_deref(), Some(other.as_str()));
    assert_eq!(environment.play("claude_SessionStart"), "", "the old one comes back as one of many");
}

#[test]
fn a_worker_never_becomes_the_lead() {
    let mut environment = TestEnvironment::new();
    environment.journal().want_lead(&Scope::global(), true).unwrap();
    environment.manager = Some("boss");
    assert_eq!(environment.play("claude_SessionStart"), "");
    assert_eq!(lead_of(&environment), None);
}

#[test]
fn clients_that_cannot_be_told_at_the_beginning_still_lead() {
    let environment = TestEnvironment::new();
    environment.journal().want_lead(&Scope::global(), true).unwrap();
    let input = json!({"session_id": "ses_12345678", "cwd": NOWHERE});
    assert_eq!(environment.call(Client::Opencode, "session.created", &input), "");
    assert_eq!(lead_of(&environment).as_deref(), Some("opencode-12345678"));
}

#[test]
fn hooks_and_the_listener_share_one_place() {
    let environment = led();
    environment.send_to(Recipient::Default, "w1", "one");
    environment.send_to(Recipient::Lead, "w2", "two");
    environment.send_to(Recipient::Person, "w2", "for the person alone");
    let expected = [block("agent:w1", "status: one"), block("agent:w2", "status: two")].join("\n\n");
    assert_eq!(entered(&environment.play("claude_PostToolUse_Bash")), expected);
    assert_eq!(listen(&environment), Vec::<String>::new(), "nothing twice");
    environment.send_to(Recipient::All, "w1", "three");
    assert_eq!(listen(&environment), ["three"]);
    assert_eq!(environment.play("claude_PostToolUse_Write"), "");
}

#[test]
fn its_own_mail_and_the_leads_come_together() {
    let environment = led();
    let id = environment.send(AGENT, "for you");
    environment.send_to(Recipient::Default, "w1", "for the lead");
    let expected = [block("agent:w1", "for you"), block("agent:w1", "status: for the lead")].join("\n\n");
    assert_eq!(entered(&environment.play("claude_PostToolUse_Bash")), expected);
    assert_eq!(environment.receipt(&id), "delivered");
}

#[test]
fn nobody_is_told_of_himself() {
    let environment = led();
    environment.send_to(Recipient::Default, AGENT, "I said this");
    environment.play_all(&["claude_PostToolUse_Bash", "claude_Stop"]);
    assert_eq!(
        environment.messages().last().unwrap().draft.recipient,
        Recipient::Person,
        "its end is the person's"
    );
    environment.play_all(&["claude_UserPromptSubmit"]);
    assert_eq!(listen(&environment), Vec::<String>::new());
    // The end of another agent is reported to the lead.
    environment.play_in(OTHER, "claude_UserPromptSubmit");
    environment.play_in(OTHER, "claude_Stop");
    let told = entered(&environment.play("claude_PostToolUse_Bash"));
    assert!(told.contains("complete: Agent claude-77777777 completed (worker of claude-6be1e699)"), "{told}");
}

#[test]
fn only_the_lead_gets_what_is_for_the_lead() {
    let environment = led();
    environment.play_in(OTHER, "claude_UserPromptSubmit");
    environment.send_to(Recipient::Default, "w1", "hello");
    assert_eq!(environment.play_in(OTHER, "claude_PostToolUse_Bash"), "");
    assert_ne!(environment.play("claude_PostToolUse_Bash"), "");
}

#[test]
fn what_is_for_the_lead_stays_in_bounds_and_in_order() {
    let environment = led();
    let texts: Vec<String> = (0..12).map(|number| format!("{number:02} {}", "z".repeat(3_000))).collect();
    for text in &texts {
        environment.send_to(Recipient::Default, "w1", text);
    }
    let mut got = Vec::new();
    for call in 0..texts.len() {
        let mut input = recorded("claude_PostToolUse_Bash", SESSION);
        input["tool_use_id"] = json!(format!("t{call}"));
        let context = entered(&environment.call(Client::Claude, "PostToolUse", &input));
        assert!(context.len() <= CLAUDE_CONTEXT_LIMIT, "{}", context.len());
        got.extend(context.split("\n\n").filter(|block| !block.is_empty()).map(str::to_owned));
    }
    let expected: Vec<String> =
        texts.iter().map(|text| block("agent:w1", &format!("status: {text}"))).collect();
    assert_eq!(got, expected);
}

#[test]
fn the_longest_message_is_not_lost_on_the_lead() {
    let environment = led();
    let text = "w".repeat(MAX_BODY);
    environment.send_to(Recipient::Default, "w1", &text);
    let mut got = String::new();
    for call in 0..20 {
        let mut input = recorded("claude_PostToolUse_Bash", SESSION);
        input["tool_use_id"] = json!(format!("t{call}"));
        let context = entered(&environment.call(Client::Claude, "PostToolUse", &input));
        assert!(context.len() <= CLAUDE_CONTEXT_LIMIT, "{}", context.len());
        got.push_str(&context);
    }
    assert_eq!(got.matches('w').count() - got.matches("agent:w1").count(), MAX_BODY);
    assert_eq!(listen(&environment), Vec::<String>::new(), "nothing twice");
}

#[test]
fn what_a_client_cannot_be_given_stays_for_the_listener() {
    let environment = TestEnvironment::new();
    environment.journal().want_lead(&Scope::global(), true).unwrap();
    environment.call(Client::Opencode, "session.created", &json!({"session_id": "12345678", "cwd": NOWHERE}));
    environment.send_to(Recipient::Default, "w1", "hello");
    let prompt = json!({"session_id": "12345678", "cwd": NOWHERE, "prompt": "go"});
    assert_eq!(environment.call(Client::Opencode, "chat.message", &prompt), "");
    assert_eq!(listen(&environment), ["hello"]);
}
