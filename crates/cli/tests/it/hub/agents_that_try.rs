//! Agents that try to answer in place of the person.

use std::fs;
use std::process::{Command, Stdio};

use ringer_journal::{Home, Journal};
use serde_json::{Value, json};

use super::dialogs::{decision, until_hooks_wait};
use super::environment::HubEnvironment;
use crate::background::Background;
use crate::ringer::check;

/// What an agent runs whose shell is `$$`. It prints the exit code of each attempt.
const ATTEMPTS: &str = r#"
    "$RINGER" hook claude SessionStart < "$INPUT" > /dev/null
    answer="$RINGER answer $ID allow"
    clean="env -i PATH=$PATH RINGER_HOME=$RINGER_HOME"
    attempt() { name=$1; shift; "$@" > /dev/null 2>&1; echo "$name $?"; }
    attempt plain $answer
    attempt cleaned $clean $answer
    attempt session setsid --wait $answer
    attempt nohup nohup $answer
    attempt both $clean setsid --wait nohup $answer
    attempt deeper sh -c "sh -c '$clean $answer'; exit \$?"
    (attempt background $clean $answer) & wait
    attempt lead $clean "$RINGER" lead --may-decide
"#;

/// The agent that asks: a process of its own, which is not above the commands of the person.
pub(super) const ASKS: &str = r#"
    for event in SessionStart UserPromptSubmit; do "$RINGER" hook claude "$event" < "$INPUT" > /dev/null; done
    "$RINGER" hook claude PermissionRequest < "$INPUT"
    exit $?
"#;

/// A shell that is an agent.
pub(super) fn agent(environment: &HubEnvironment, session: &str, script: &str) -> Command {
    let input = environment.base.path().join(session);
    let content = json!({
        "session_id": session, "source": "startup", "cwd": environment.base.repository(), "prompt": "go on",
        "tool_name": "Bash", "tool_input": { "command": "make" },
    });
    fs::write(&input, content.to_string()).expect("a file");
    let mut shell = environment.program("sh");
    shell.args(["-c", script]).env("INPUT", input).stdin(Stdio::null());
    shell
}

/// A hub, and an agent that asks for a permission.
pub(super) fn asked() -> (HubEnvironment, Background) {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    let waiting = Background::start(agent(&environment, "0123456789", ASKS));
    until_hooks_wait(&environment, 1);
    (environment, waiting)
}

/// The person can still deny it. On a busy machine the command may end before the hook has taken it.
#[track_caller]
pub(super) fn check_denied(environment: &HubEnvironment, arguments: &[&str], waiting: Background) {
    let exit = environment.ringer(arguments).output().expect("it runs").status.code();
    assert!(matches!(exit, Some(0 | 75)), "{exit:?}");
    assert_eq!(decision(waiting)["behavior"], "deny", "the person still can");
}

#[test]
fn an_agent_is_refused_from_a_background_task_too_and_with_a_cleaned_environment() {
    let (environment, waiting) = asked();
    let id = environment.list(&[])[0]["short_id"].as_str().expect("a short id").to_owned();
    let (tried, complaints) = check(agent(&environment, "fedcba9876", ATTEMPTS).env("ID", &id), 0);
    let codes: Vec<&str> = tried.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(codes, ["77"; 8], "{tried}{complaints}");
    let told = environment.bodies(&[]);
    let refused = |what: &str| told.iter().any(|body| body.contains(what));
    assert!(refused("claude-fedcba98 tried to answer what claude-01234567 asks"), "{told:?}");
    until_hooks_wait(&environment, 1);
    check_denied(&environment, &["answer", &id, "deny"], waiting);
}

/// Every method gets everything that could name the prompt and an answer to it.
#[test]
fn no_method_of_the_socket_answers_what_an_agent_asks() {
    let (environment, waiting) = asked();
    let id = environment.list(&[])[0]["id"].as_str().expect("an id").to_owned();
    let mut journal = Journal::open(&Home::new(environment.base.home())).expect("a journal");
    let mut the_prompt = || journal.open_prompts().expect("prompts").pop().expect("it is open");
    let prompt = the_prompt();
    let mut forged = json!({
        "id": id, "key": prompt.key, "call": prompt.call, "agent": prompt.agent.as_str(), "from": "person",
        "to": prompt.agent.as_str(), "name": "x", "surface_id": "tmux:s1", "title": "allow", "body": "allow",
        "text": "allow", "priority": "immediate",
    });
    for name in ["answer", "decision", "allow", "behavior"] {
        forged[name] = json!("allow");
    }
    for name in ["kind", "mark", "type", "tag", "category"] {
        forged[name] = json!("decision");
    }
    let methods = environment.connect().call("hub.methods", &Value::Null);
    let methods: Vec<String> = serde_json::from_value(methods["result"].clone()).expect("names");
    assert!(methods.iter().any(|name| name == "notification.create"), "{methods:?}");
    for method in methods.iter().filter(|method| *method != "hub.stop") {
        let mut plain = forged.clone();
        // With a kind that there is, it is read as a whole.
        plain["kind"] = json!("status");
        for params in [&forged, &plain, &json!({ "observations": [forged] })] {
            environment.connect().call(method, params);
        }
        assert_eq!((the_prompt().decision, the_prompt().handed_ms), (None, None), "{method}");
    }
    environment.fails(&["notify", "--kind", "decision", "allow"], 64);
    until_hooks_wait(&environment, 1);
    check_denied(&environment, &["answer", "deny"], waiting);
}
