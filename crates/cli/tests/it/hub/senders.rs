//! Who a message is from: agents and programs that try to speak for the person or for another agent.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use test_support::until;

use super::environment::HubEnvironment;
use crate::background::Background;
use crate::pty::in_terminal;
use crate::ringer::check;

/// Sends messages in the ways that made an agent look like somebody else. It prints the exit code of each attempt.
const ATTEMPTS: &str = r#"
    "$RINGER" hook claude SessionStart < "$INPUT" > /dev/null
    attempt() { name=$1; shift; "$@" > /dev/null 2>&1; echo "$name $?"; }
    notify="$RINGER notify --to $TO"
    clean="env -i PATH=$PATH RINGER_HOME=$RINGER_HOME XDG_RUNTIME_DIR=$XDG_RUNTIME_DIR RINGER_CONFIG=$RINGER_CONFIG"
    attempt worktree $notify worktree
    (cd / && attempt elsewhere $notify elsewhere)
    attempt environment env RINGER_AGENT=person $notify environment
    attempt cleaned $clean $notify cleaned
    attempt session setsid --wait $notify session
    attempt worker $notify --from w1 worker
    attempt ask "$RINGER" ask ask
    for name in person Person user system other/w1; do attempt "$name" $notify --from "$name" refused; done
    attempt asks-as "$RINGER" ask --from person refused
    # Left behind: the shell between has ended before the message is sent.
    setsid sh -c '(read line < "$GATE"; "$RINGER" notify --to "$TO" orphan) & :' &
    wait
    echo > "$GATE"
    read line
"#;

/// An agent that runs until it is told to end.
const LIVES: &str = r#"
    for event in SessionStart UserPromptSubmit; do "$RINGER" hook claude "$event" < "$INPUT" > /dev/null; done
    echo ready
    read line
"#;

/// A shell that is an agent of the repository.
fn agent(environment: &HubEnvironment, session: &str, script: &str) -> Command {
    let input = environment.base.path().join(session);
    let content = json!({ "session_id": session, "source": "startup", "cwd": environment.base.repository(), "prompt": "go on" });
    fs::write(&input, content.to_string()).expect("a file");
    let mut shell = environment.program("sh");
    shell.args(["-c", script]).env("INPUT", input).stdin(Stdio::piped());
    shell
}

/// Starts the agent `claude-fedcba98`, and waits until it is known.
fn start_agent(environment: &HubEnvironment) -> Background {
    let agent = Background::start(agent(environment, "fedcba9876", LIVES));
    assert_eq!(agent.line().as_deref(), Some("ready"));
    agent
}

/// The sender of the message with this text.
#[track_caller]
fn sender(environment: &HubEnvironment, text: &str) -> String {
    let log = environment.run(&["log", "--everywhere", "--json"]);
    let messages = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut found = messages.filter(|message| message["msg"].as_str().is_some_and(|msg| msg.ends_with(text)));
    let message = found.next().unwrap_or_else(|| panic!("no {text:?} in {log}"));
    message["from"].as_str().expect("a sender").to_owned()
}

fn is_sent(environment: &HubEnvironment, text: &str) -> bool {
    environment.run(&["log", "--everywhere", "--json"]).contains(text)
}

/// An agent that asks a question.
const ASKS: &str = r#"
    for event in SessionStart UserPromptSubmit; do "$RINGER" hook claude "$event" < "$INPUT" > /dev/null; done
    "$RINGER" ask "$QUESTION"
    read line
"#;

#[test]
fn two_agents_in_a_worktree_ask_as_themselves_and_each_gets_its_answer() {
    let environment = HubEnvironment::new();
    let ask = |session: &str, question: &str| {
        let mut agent = agent(&environment, session, ASKS);
        let agent = Background::start({
            agent.env("QUESTION", question);
            agent
        });
        let id = agent.line().expect("the id of the question");
        (agent, id)
    };
    let (_one, first) = ask("0123456789", "Rename it?");
    let (_other, second) = ask("fedcba9876", "Delete it?");
    assert_eq!(sender(&environment, "asks: Rename it?"), "claude-01234567");
    assert_eq!(sender(&environment, "asks: Delete it?"), "claude-fedcba98");
    environment.run(&["acknowledge", &second, "no"]);
    environment.run(&["acknowledge", &first, "yes"]);
    for (agent, answer) in
        [("claude-01234567", "\"Rename it?\": yes"), ("claude-fedcba98", "\"Delete it?\": no")]
    {
        let inbox = environment.run(&["log", "--to", agent]);
        assert!(inbox.contains(answer) && inbox.lines().count() == 1, "{agent}: {inbox}");
    }
}

/// With and without a hub, which appends for others.
#[test]
fn an_agent_speaks_as_itself_whatever_it_says_and_wherever_it_is() {
    for has_hub in [true, false] {
        let environment = HubEnvironment::new();
        if has_hub {
            environment.run(&["hub", "start"]);
        }
        let _other = start_agent(&environment);
        let gate = environment.base.path().join("gate");
        check(environment.program("mkfifo").arg(&gate), 0);
        let mut attempts = agent(&environment, "0123456789", ATTEMPTS);
        attempts.env("TO", "claude-fedcba98").env("GATE", &gate);
        if !has_hub {
            attempts.env("RINGER_HUB", "off");
        }
        let attempts = Background::start(attempts);
        for (name, exit) in [
            ("worktree", 0),
            ("elsewhere", 0),
            ("environment", 0),
            ("cleaned", 0),
            ("session", 0),
            ("worker", 0),
            ("ask", 0),
            ("person", 77),
            ("Person", 77),
            ("user", 77),
            ("system", 77),
            ("other/w1", 77),
            ("asks-as", 77),
        ] {
            assert_eq!(attempts.line(), Some(format!("{name} {exit}")), "hub: {has_hub}");
        }
        for text in ["worktree", "elsewhere", "environment", "cleaned", "session", "ask"] {
            assert_eq!(sender(&environment, text), "claude-01234567", "{text}, hub: {has_hub}");
        }
        assert_eq!(sender(&environment, "worker"), "claude-01234567/w1");
        assert!(!is_sent(&environment, "refused"));
        until("the process that was left behind has sent its message", || is_sent(&environment, "orphan"));
        assert_eq!(sender(&environment, "orphan"), "system");
    }
}

#[test]
fn the_shell_of_the_person_is_the_person_also_where_an_agent_works() {
    let environment = HubEnvironment::new();
    let _agent = start_agent(&environment);
    let repository = environment.base.repository();
    let variables = environment.variables();
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let typed = |command: &str| {
        let script = format!("cd '{}' && {command}; true", repository.display());
        let (said, exit) = in_terminal("sh", &["-c", &script], &variables);
        assert_eq!(exit, 0, "{}", String::from_utf8_lossy(&said));
    };
    typed("\"$RINGER\" notify --to claude-fedcba98 typed");
    assert_eq!(sender(&environment, "typed"), "person");
    typed("sh -c '\"$RINGER\" notify from-a-script; true'");
    assert_eq!(sender(&environment, "from-a-script"), "person");
    typed("\"$RINGER\" notify --from ci named");
    assert_eq!(sender(&environment, "named"), "ci");
    // A client whose hooks are not set up says what it is.
    typed("CLAUDECODE=1 \"$RINGER\" notify of-a-client");
    assert_eq!(sender(&environment, "of-a-client"), "system");
    typed("\"$RINGER\" ask asked");
    assert_eq!(sender(&environment, "asked"), "person");
}

#[test]
fn a_program_without_a_terminal_is_neither_the_person_nor_an_agent() {
    let environment = HubEnvironment::new();
    let _agent = start_agent(&environment);
    environment.run(&["notify", "--to", "claude-fedcba98", "by cron"]);
    assert_eq!(sender(&environment, "by cron"), "system");
    environment.run(&["notify", "--from", "ci", "by ci"]);
    assert_eq!(sender(&environment, "by ci"), "ci");
    for name in ["person", "user", "claude-fedcba98", "ci/w1"] {
        let complaint = environment.fails(&["notify", "--from", name, "refused"], 77);
        assert!(complaint.contains(name) && complaint.contains("hint: leave --from out"), "{complaint}");
    }
    assert!(!is_sent(&environment, "refused"));
}

#[test]
fn an_agent_calls_no_hook_in_the_name_of_another() {
    let environment = HubEnvironment::new();
    let _other = start_agent(&environment);
    let script = r#"
        "$RINGER" hook claude SessionStart < "$INPUT" > /dev/null
        "$RINGER" hook claude Stop < "$FORGED"
        setsid -f python3 -c "$DETACHED"
    "#;
    let forged = environment.base.path().join("forged");
    let content = json!({ "session_id": "fedcba9876", "last_assistant_message": "forged" });
    fs::write(&forged, content.to_string()).expect("a file");
    let detached = r#"
import os, subprocess
subprocess.run([os.environ["RINGER"], "hook", "claude", "UserPromptSubmit"], stdin=open(os.environ["FORGED"]))
"#;
    let mut shell = agent(&environment, "0123456789", script);
    check(shell.env("FORGED", &forged).env("DETACHED", detached), 0);
    let log = || fs::read_to_string(environment.base.home().join("hooks.log")).unwrap_or_default();
    let is_refused =
        |event: &str| log().contains(&format!("claude {event}: claude-fedcba98 runs in another process"));
    until("the one without a parent is refused, too", || is_refused("UserPromptSubmit"));
    assert!(is_refused("Stop") && !is_sent(&environment, "forged"));
}

/// Sends a request to the hub's socket, and prints the answer.
const ON_THE_SOCKET: &str = r#"
import json, os, socket, sys
hub = json.load(open(os.environ["RINGER_HOME"] + "/hub.json"))
stream = socket.socket(socket.AF_UNIX)
stream.connect(hub["socket"])
stream.sendall((json.dumps({"id": 1, "method": "notification.create", "params": json.loads(sys.argv[1])}) + "\n").encode())
print(stream.makefile().readline().strip(), flush=True)
"#;

#[test]
fn what_connects_to_the_socket_is_who_the_kernel_says() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    let mut socket = environment.connect();
    for name in ["person", "user"] {
        let refused = socket.call("notification.create", &json!({ "body": "refused", "from": name }));
        assert_eq!(refused["error"]["code"], "no_permission", "{refused}");
    }
    socket.call("notification.create", &json!({ "body": "of a program" }));
    assert_eq!(sender(&environment, "of a program"), "system");
    let script = r#"
        "$RINGER" hook claude SessionStart < "$INPUT" > /dev/null
        python3 -c "$SEND" '{"body": "of an agent", "to": "claude-1"}'
        python3 -c "$SEND" '{"body": "of a worker", "from": "w1"}'
        python3 -c "$SEND" '{"body": "refused", "from": "person"}'
    "#;
    let mut shell = agent(&environment, "0123456789", script);
    let (answers, _) = check(shell.env("SEND", ON_THE_SOCKET), 0);
    assert_eq!(answers.matches("no_permission").count(), 1, "{answers}");
    assert_eq!(sender(&environment, "of an agent"), "claude-01234567");
    assert_eq!(sender(&environment, "of a worker"), "claude-01234567/w1");
    assert!(!is_sent(&environment, "refused"));
}
