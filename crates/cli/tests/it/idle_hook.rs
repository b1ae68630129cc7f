//! The hook that waits beside an idle session of opencode for messages.

use std::fs::{self, File};

use ringer_journal::{Home, Journal};
use serde_json::{Value, json};

use crate::background::Background;
use crate::home::TestEnvironment;
use crate::ringer::{check, check_with_input, json};

/// A session of opencode that has ended a turn.
struct IdleSession {
    environment: TestEnvironment,
    journal: Journal,
    agent: String,
}

impl IdleSession {
    fn new() -> Self {
        let environment = TestEnvironment::new();
        tell(&environment, "session.created", &json!({}));
        tell(&environment, "chat.message", &json!({ "prompt": "go on" }));
        tell(&environment, "session.idle", &json!({}));
        let journal = Journal::open(&Home::new(environment.home())).expect("a journal");
        let agent = json(&environment.run(&["status", "--json"]))["agents"][0]["id"].clone();
        Self { environment, journal, agent: agent.as_str().expect("an id").to_owned() }
    }

    /// Starts the hook, and waits until it sleeps.
    fn wait(&self) -> Background {
        let input = self.environment.path().join("waiting.json");
        fs::write(&input, input_of(&self.environment, &json!({})).to_string()).expect("a file");
        let mut command = self.environment.ringer(&["hook", "opencode", "session.waiting"]);
        command.stdin(File::open(input).expect("a file"));
        self.environment.start(command)
    }

    fn send(&self, text: &str) -> String {
        let sent =
            self.environment.run(&["notify", "--json", "--from", "builder", "--to", &self.agent, text]);
        json(&sent)["id"].as_str().expect("an id").to_owned()
    }

    /// How far a message has come.
    fn state_of(&mut self, id: &str) -> String {
        self.journal.receipts(id).expect("receipts").pop().expect("one").state
    }
}

fn input_of(environment: &TestEnvironment, more: &Value) -> Value {
    let mut input = json!({ "session_id": "ses_0123456789abcdef", "cwd": environment.repository() });
    for (key, value) in more.as_object().expect("an object") {
        input[key] = value.clone();
    }
    input
}

fn tell(environment: &TestEnvironment, event: &str, more: &Value) -> String {
    let input = input_of(environment, more).to_string();
    check_with_input(&mut environment.hook("opencode", event), input.as_bytes())
}

#[test]
fn what_comes_for_an_idle_session_is_its_next_message_once() {
    let mut session = IdleSession::new();
    let waiting = session.wait();
    waiting.until_small();
    let id = session.send("look here");
    let (lines, exit) = waiting.end();
    assert_eq!(exit, Some(0));
    let prompt = json(&lines.join("\n"))["prompt"].as_str().expect("a text").to_owned();
    assert_eq!(prompt, "<notification source=\"agent:builder\">\nlook here\n</notification>");
    assert_eq!(session.state_of(&id), "delivered");
    tell(&session.environment, "chat.message", &json!({ "prompt": prompt }));
    assert_eq!(session.state_of(&id), "seen");
    assert_eq!(tell(&session.environment, "session.idle", &json!({})), "", "it was told");
}

#[test]
fn what_came_before_it_waited_is_printed_at_once_and_another_agents_message_wakes_it_for_nothing() {
    let session = IdleSession::new();
    let waiting = session.wait();
    session.environment.run(&["notify", "--from", "builder", "--to", "claude-00000000", "for another one"]);
    session.environment.run(&["notify", "--from", "builder", "for the lead, which it is not"]);
    session.send("look here");
    assert!(waiting.end().0.join("\n").contains("look here"));
    let session = IdleSession::new();
    session.send("it was here before");
    let printed = tell(&session.environment, "session.waiting", &json!({}));
    assert!(printed.contains("it was here before"), "{printed}");
}

#[test]
fn a_session_that_works_takes_messages_with_its_tools() {
    let mut session = IdleSession::new();
    let waiting = session.wait();
    tell(&session.environment, "chat.message", &json!({ "prompt": "go on" }));
    let id = session.send("look here");
    assert_eq!(waiting.end(), (Vec::new(), Some(0)));
    assert_eq!(session.state_of(&id), "queued");
    let result = json!({ "tool": "bash", "callID": "c1" });
    assert!(tell(&session.environment, "tool.execute.after", &result).contains("look here"));
}

#[test]
fn the_status_says_which_idle_agents_no_message_wakes() {
    let session = IdleSession::new();
    let start = json!({ "session_id": "8d0c4e3a-0000", "cwd": session.environment.repository() }).to_string();
    for (client, event) in [("gemini", "SessionStart"), ("claude", "SessionStart")] {
        let mut hook = session.environment.ringer(&["hook", client, event]);
        check_with_input(&mut hook, start.as_bytes());
    }
    let status = session.environment.run(&["status"]);
    let reads_later = |agent: &str| {
        let (_, after) = status.split_once(&format!("{agent} (")).unwrap_or_else(|| panic!("{status}"));
        after.split(')').next().is_some_and(|words| words.contains("reads messages with its next prompt"))
    };
    assert!(reads_later("gemini-8d0c4e3a"), "{status}");
    assert!(!reads_later("claude-8d0c4e3a") && !reads_later(&session.agent), "{status}");
    let note = |agent: &str| check(&mut session.environment.ringer(&["notify", "--to", agent, "hello"]), 0).1;
    assert_eq!(
        note("gemini-8d0c4e3a"),
        "note: gemini-8d0c4e3a is idle, and Gemini CLI cannot be woken: it reads this with its next prompt\n"
    );
    assert_eq!(note("claude-8d0c4e3a"), "");
}

#[test]
fn telling_an_agent_says_when_it_reads_it() {
    let environment = TestEnvironment::new();
    let hook = |event: &str| {
        let input = json!({
            "hook_event_name": event, "session_id": "8d0c4e3a-1", "cwd": environment.repository(),
            "tool_name": "Bash", "tool_use_id": "t1", "tool_input": { "command": "make" }, "tool_response": {},
            "prompt": "go", "reason": "other",
        });
        check_with_input(&mut environment.ringer(&["hook", "claude", event]), input.to_string().as_bytes())
    };
    let tell =
        |exit: i32| check(&mut environment.ringer(&["tell", "claude-8d0c4e3a", "pull", "first"]), exit);
    hook("SessionStart");
    assert_eq!(tell(0).0, "repository: idle, and gets it as its next prompt\n");
    hook("UserPromptSubmit");
    assert_eq!(tell(0).0, "repository: reads it with its next tool result\n");
    assert_eq!(hook("PostToolUse").matches("pull first").count(), 1, "the first came with the prompt");
    hook("SessionEnd");
    let (out, err) = tell(69);
    assert!(out.is_empty() && err.contains("repository has ended"), "{err}");
}
