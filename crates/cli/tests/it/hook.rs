//! `ringer hook`, as clients call it, with inputs recorded from them.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_support::without_nonces;

use crate::half_printed::HalfPrinted;
use crate::home::{TestEnvironment, lines, texts};
use crate::pty::typed_in_terminal;
use crate::ringer::{check, json, leave_unread_if_it_waits};

pub(crate) const SESSION: &str = "6be1e699-d2b2-442c-995b-a5ac36193cd6";
pub(crate) const AGENT: &str = "claude-6be1e699";

/// A recorded input, of the usual session, in this repository.
pub(crate) fn recorded(environment: &TestEnvironment, name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agents/tests/fixtures/hooks");
    let text = fs::read_to_string(folder.join(format!("{name}.json"))).expect("a recorded input");
    let mut input = json(&text);
    input["session_id"] = json!(SESSION);
    input["cwd"] = json!(environment.repository());
    input
}

/// Runs a hook with this on its input, whether it reads it or not.
pub(crate) fn feed(mut command: Command, input: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    leave_unread_if_it_waits(&mut command);
    let mut child = command.spawn().expect("the hook starts");
    let _ = child.stdin.take().expect("piped").write_all(input);
    child.wait_with_output().expect("it ends")
}

/// What every hook call owes its client: it ends well, and says nothing that the client did not ask for.
#[track_caller]
pub(crate) fn settle(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    text(&output.stdout)
}

#[track_caller]
fn hook_with(environment: &TestEnvironment, name: &str, input: &Value, variables: &[(&str, &str)]) -> String {
    let mut parts = name.split('_');
    let (client, event) = (parts.next().expect("a client"), parts.next().expect("an event"));
    let mut command = environment.hook(client, event);
    command.envs(variables.iter().copied());
    settle(&feed(command, input.to_string().as_bytes()))
}

/// Plays a recorded input; gives the answer.
#[track_caller]
pub(crate) fn play(environment: &TestEnvironment, name: &str) -> String {
    hook_with(environment, name, &recorded(environment, name), &[])
}

/// What entered the turn.
#[track_caller]
fn entered(answer: &str) -> String {
    json(answer)["hookSpecificOutput"]["additionalContext"].as_str().expect("a context").to_owned()
}

fn block(source: &str, text: &str) -> String {
    format!("<notification source=\"{source}\">\n{text}\n</notification>")
}

#[track_caller]
fn send(environment: &TestEnvironment, to: &str, text: &str) -> String {
    let sent = environment.run(&["notify", "--json", "--from", "w1", "--to", to, text]);
    json(&sent)["id"].as_str().expect("an id").to_owned()
}

#[track_caller]
fn receipt(environment: &TestEnvironment, id: &str) -> Value {
    json(&environment.run(&["why", "--json", id]))["receipts"][0].clone()
}

fn hooks_log(environment: &TestEnvironment) -> String {
    fs::read_to_string(environment.home().join("hooks.log")).unwrap_or_default()
}

fn kinds(environment: &TestEnvironment) -> Vec<String> {
    let log = lines(&environment.run(&["log", "--json"]));
    log.iter().map(|message| message["type"].as_str().expect("a kind").to_owned()).collect()
}

#[test]
fn the_life_of_a_session_shows_in_the_status() {
    let environment = TestEnvironment::new();
    let variables = [("RINGER_SURFACE", "ws:1"), ("RINGER_AGENT", "painter")];
    let mut since = Value::Null;
    for (name, state) in [
        ("claude_SessionStart", "ready"),
        ("claude_UserPromptSubmit", "working"),
        ("claude_PreToolUse_Bash", "working"),
        ("claude_PostToolUse_Bash", "working"),
        ("claude_PermissionRequest_Write", "blocked"),
        ("claude_Notification_permission_prompt", "blocked"),
        ("claude_PostToolUse_Write", "working"),
        ("claude_Stop", "done"),
        ("claude_Notification_idle_prompt", "done"),
        ("claude_Notification_idle_prompt", "done"),
        ("claude_SessionEnd", "exited"),
    ] {
        let answer = hook_with(&environment, name, &recorded(&environment, name), &variables);
        if name == "claude_SessionStart" {
            assert!(entered(&answer).contains(" nonce="), "{answer}");
        } else {
            assert_eq!(answer, "", "{name}");
        }
        let status = environment.status();
        let [agent] = &status["agents"].as_array().expect("a list")[..] else { panic!("{status}") };
        let expected = json!({"id": AGENT, "client": "claude", "session_id": SESSION, "state": state,
            "cwd": environment.repository(), "surface": "ws:1", "lead": false, "name": "painter"});
        for (field, value) in expected.as_object().expect("an object") {
            assert_eq!(&agent[field], value, "{field} after {name}");
        }
        assert!(agent["since"].is_string());
        since = agent["since"].clone();
    }
    assert_ne!(since, Value::Null);
    assert_eq!(kinds(&environment), ["waiting", "complete", "waiting"]);
    assert_eq!(hooks_log(&environment), "");
}

#[test]
fn an_agent_is_reached_by_its_id_its_session_and_its_name() {
    let environment = TestEnvironment::new();
    let start = recorded(&environment, "claude_SessionStart");
    hook_with(&environment, "claude_SessionStart", &start, &[("RINGER_AGENT", "painter")]);
    play(&environment, "claude_UserPromptSubmit");
    for to in [AGENT, SESSION, "painter"] {
        let id = send(&environment, to, to);
        let queued = receipt(&environment, &id);
        assert_eq!((&queued["agent"], &queued["state"]), (&json!(AGENT), &json!("queued")), "{to}");
        let entered = without_nonces(&entered(&play(&environment, "claude_PostToolUse_Bash")));
        assert_eq!(entered, block("agent:w1", to));
        let delivered = receipt(&environment, &id);
        assert_eq!(delivered["state"], "delivered");
        assert!(delivered["delivered"].is_string() && delivered["seen"].is_null(), "{delivered}");
        assert_eq!(play(&environment, "claude_PostToolUse_Write"), "", "once");
        let seen = receipt(&environment, &id);
        assert_eq!(seen["state"], "seen");
        assert!(["queued", "delivered", "seen"].iter().all(|step| seen[step].is_string()), "{seen}");
        let words = environment.run(&["why", &id]);
        assert!(words.contains(&format!("  seen by {AGENT}\n")), "{words}");
    }
}

#[test]
fn what_was_sent_to_a_name_before_its_session_started_arrives() {
    let environment = TestEnvironment::new();
    let id = send(&environment, "painter", "start with blue");
    assert_eq!(receipt(&environment, &id)["agent"], "painter");
    let start = recorded(&environment, "claude_SessionStart");
    hook_with(&environment, "claude_SessionStart", &start, &[("RINGER_AGENT", "painter")]);
    play(&environment, "claude_UserPromptSubmit");
    play(&environment, "claude_PostToolUse_Bash");
    play(&environment, "claude_PostToolUse_Write");
    let seen = receipt(&environment, &id);
    assert_eq!((&seen["agent"], &seen["state"]), (&json!(AGENT), &json!("seen")));
}

#[test]
fn a_manager_is_reached_by_the_name_it_was_given() {
    let environment = TestEnvironment::new();
    let boss = json!({"hook_event_name": "SessionStart", "session_id": "b0b0b0b0-1", "source": "startup",
        "cwd": environment.repository()});
    hook_with(&environment, "claude_SessionStart", &boss, &[("RINGER_AGENT", "boss")]);
    let worker = [("RINGER_MANAGER", "boss")];
    for name in ["claude_SessionStart", "claude_UserPromptSubmit", "claude_Stop"] {
        hook_with(&environment, name, &recorded(&environment, name), &worker);
    }
    let log = environment.run(&["log", "--to", "boss", "--json"]);
    let id = json(log.lines().next().expect("a message for the manager"))["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert_eq!(receipt(&environment, &id)["agent"], "claude-b0b0b0b0");
}

#[test]
fn a_stop_with_something_waiting_goes_on() {
    let environment = TestEnvironment::new();
    play(&environment, "claude_UserPromptSubmit");
    send(&environment, AGENT, "one more thing");
    let answer = json(&play(&environment, "claude_Stop"));
    assert_eq!(answer, json!({"decision": "block", "reason": block("agent:w1", "one more thing")}));
    assert_eq!(environment.status()["agents"][0]["state"], "working");
    assert_eq!(play(&environment, "claude_Stop"), "");
    assert_eq!(environment.status()["agents"][0]["state"], "done");
}

/// A hook in the middle of its output, which is longer than its pipe holds.
#[cfg(target_os = "linux")]
fn half_way(environment: &TestEnvironment) -> std::process::Child {
    use std::io::Read;
    let mut command = environment.program(env!("CARGO_BIN_EXE_ringer"));
    command.args(["hook", "claude", "PostToolUse"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::null()).spawn().expect("the hook starts");
    rustix::pipe::fcntl_setpipe_size(child.stdout.as_ref().expect("piped"), 4096).expect("a small pipe");
    let input = recorded(environment, "claude_PostToolUse_Bash").to_string();
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("it reads");
    let mut first = [0];
    child.stdout.as_mut().expect("piped").read_exact(&mut first).expect("it begins to answer");
    child
}

/// What waits for the agent, so many milliseconds from now.
#[cfg(target_os = "linux")]
fn pending(environment: &TestEnvironment, milliseconds: u128) -> Vec<String> {
    use ringer_core::message::Agent;
    use ringer_journal::{Home, IdSource, Journal};
    let mut journal = Journal::open(&Home::new(environment.home())).expect("a journal");
    let at = IdSource::now().unix_ms + i64::try_from(milliseconds).expect("a short time");
    let agent = Agent::new(AGENT).expect("a name");
    let parts = journal.pending_for(&agent, at).expect("it reads");
    parts.iter().map(|part| part.message.id.to_string()).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn a_hook_that_dies_or_is_not_read_leaves_it_pending() {
    for killed in [true, false] {
        let environment = TestEnvironment::new();
        play(&environment, "claude_UserPromptSubmit");
        let id = send(&environment, AGENT, &"y".repeat(7_000));
        let mut child = half_way(&environment);
        if killed {
            child.kill().expect("it runs");
            child.wait().expect("it is dead");
        } else {
            drop(child.stdout.take());
            assert_eq!(child.wait().expect("it ends").code(), Some(0));
            assert!(hooks_log(&environment).contains("claude PostToolUse: the hook's output"));
        }
        if !killed {
            assert_eq!(receipt(&environment, &id)["state"], "queued", "given back at once");
            assert_eq!(pending(&environment, 0), [id]);
            continue;
        }
        assert_eq!(receipt(&environment, &id)["state"], "leased");
        assert_eq!(play(&environment, "claude_PostToolUse_Bash"), "", "its lease holds");
        assert_eq!(pending(&environment, 0), Vec::<String>::new());
        assert_eq!(
            pending(&environment, ringer_journal::LEASE.as_millis() + 1),
            [id],
            "and then it is pending, under one id"
        );
    }
}

/// A program without a standard output gets `/dev/null` in its place, and its writes succeed.
#[test]
fn a_hook_without_a_standard_output_hands_nothing_over() {
    let environment = TestEnvironment::new();
    play(&environment, "claude_UserPromptSubmit");
    let id = send(&environment, AGENT, "hello");
    let mut command = environment.program("sh");
    command.args(["-c", "exec \"$RINGER\" hook claude PostToolUse >&-"]);
    settle(&feed(command, recorded(&environment, "claude_PostToolUse_Bash").to_string().as_bytes()));
    assert_eq!(receipt(&environment, &id)["delivered"], Value::Null, "its output was closed");
}

#[test]
fn the_lead_is_told_to_listen_and_its_hooks_share_the_listeners_place() {
    let environment = TestEnvironment::new();
    environment.run(&["lead", "on"]);
    let told = entered(&play(&environment, "claude_SessionStart"));
    assert!(told.contains("ringer listen --timeout 300") && told.contains(AGENT), "{told}");
    let mut second = recorded(&environment, "claude_SessionStart");
    second["session_id"] = json!("77777777-aaaa");
    let follows = entered(&hook_with(&environment, "claude_SessionStart", &second, &[]));
    assert!(!follows.contains("ringer listen"), "{follows}");
    let status = environment.status();
    let leads = status["agents"].as_array().expect("a list").iter();
    let leads: Vec<&Value> = leads.filter(|agent| agent["lead"] == true).map(|agent| &agent["id"]).collect();
    assert_eq!(leads, [AGENT]);

    play(&environment, "claude_UserPromptSubmit");
    environment.run(&["notify", "--from", "w1", "one"]);
    environment.run(&["notify", "--from", AGENT, "said by the lead itself"]);
    let one = without_nonces(&entered(&play(&environment, "claude_PostToolUse_Bash")));
    assert_eq!(one, block("agent:w1", "status: one"));
    let listen = |environment: &TestEnvironment| {
        let mut command = environment.ringer(&["listen", "--as", "lead", "--timeout", "0"]);
        texts(&lines(&check(command.env("RINGER_AGENT", AGENT), 0).0))
    };
    assert_eq!(listen(&environment), Vec::<String>::new());
    environment.run(&["notify", "--from", "w1", "two"]);
    assert_eq!(listen(&environment), ["two"]);
    assert_eq!(play(&environment, "claude_PostToolUse_Write"), "", "nothing twice");

    play(&environment, "claude_SessionEnd");
    second["session_id"] = json!("88888888-aaaa");
    let told = entered(&hook_with(&environment, "claude_SessionStart", &second, &[]));
    assert!(told.contains("claude-88888888"), "{told}");
}

/// A listener that is stuck in its output holds the lead's place.
#[test]
fn the_leads_hook_does_not_wait_for_a_listener_that_is_stuck() {
    let environment = TestEnvironment::new();
    environment.run(&["lead", "on"]);
    play(&environment, "claude_SessionStart");
    play(&environment, "claude_UserPromptSubmit");
    let listener = HalfPrinted::begin(&environment);
    // It waits for 20 ms; without that limit it would wait until the listener ends.
    let begun = Instant::now();
    assert_eq!(play(&environment, "claude_PostToolUse_Bash"), "");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(listener.finish().contains("\\\"\\\""));
    assert_eq!(play(&environment, "claude_PostToolUse_Bash"), "", "the listener had it");
}

#[test]
fn codex_passes_its_notification_as_an_argument() {
    let environment = TestEnvironment::new();
    let mut input = recorded(&environment, "codex_notify");
    input["thread-id"] = json!("abcdefgh");
    check(&mut environment.ringer(&["hook", "codex", "notify", &input.to_string()]), 0);
    assert_eq!(kinds(&environment), ["complete"]);
    assert_eq!(environment.status()["agents"][0]["id"], "codex-abcdefgh");
}

#[test]
fn whatever_comes_it_ends_well_and_says_nothing() {
    let environment = TestEnvironment::new();
    let good = recorded(&environment, "claude_Stop").to_string();
    for (arguments, input, logged) in [
        (["claude", "Stop"], "not json", true),
        (["claude", "Stop"], "", true),
        (["claude", "Stop"], "[1]", true),
        (["claude", "Stop"], "{\"session_id\": \"\u{0}\"}", true),
        (["claude", "Stop"], "{}", false),
        (["claude", "SomethingNew"], &good, false),
        (["claude", "--help-me"], &good, false),
        (["claude", "../../etc"], &good, false),
        (["emacs", "Stop"], &good, true),
        (["", ""], &good, true),
    ] {
        let _ = fs::remove_file(environment.home().join("hooks.log"));
        let command = environment.ringer(&["hook", "--", arguments[0], arguments[1]]);
        assert_eq!(settle(&feed(command, input.as_bytes())), "", "{arguments:?} {input}");
        if environment.home().exists() {
            assert_eq!(!hooks_log(&environment).is_empty(), logged, "{arguments:?} {input}");
        }
    }
}

#[test]
fn without_an_input_or_a_place_it_ends_well() {
    let environment = TestEnvironment::new();
    let stop = recorded(&environment, "claude_Stop").to_string();
    let run = |script: &str| {
        let mut command = environment.program("sh");
        command.args(["-c", script]);
        settle(&feed(command, stop.as_bytes()))
    };
    fs::write(environment.path().join("file"), "precious").expect("a file");
    for script in [
        "exec \"$RINGER\" hook claude Stop <&-",
        "exec \"$RINGER\" hook claude Stop 2>&-",
        "RINGER_HOME=/proc/nowhere exec \"$RINGER\" hook claude Stop",
        "RINGER_HOME=../file exec \"$RINGER\" hook claude Stop",
        "RINGER_HOME=/dev/null/x exec \"$RINGER\" hook claude Stop",
        "unset RINGER_HOME HOME XDG_STATE_HOME; exec \"$RINGER\" hook claude Stop",
        "mkdir gone; cd gone; rmdir ../gone; exec \"$RINGER\" hook claude Stop",
        "exec env -i RINGER_HUB=off \"$RINGER\" hook claude Stop",
    ] {
        assert_eq!(run(script), "", "{script}");
    }
    assert_eq!(fs::read_to_string(environment.path().join("file")).expect("a file"), "precious");
}

#[test]
fn a_read_only_home_is_nothing_to_an_agent() {
    if !test_support::can_mount() {
        return;
    }
    let environment = TestEnvironment::new();
    play(&environment, "claude_UserPromptSubmit");
    let mut command = environment.program("unshare");
    let script = "mount --bind \"$RINGER_HOME\" \"$RINGER_HOME\"
        mount -o remount,bind,ro \"$RINGER_HOME\"; exec \"$RINGER\" hook claude Stop";
    command.args(["--mount", "sh", "-ec", script]);
    let output = feed(command, recorded(&environment, "claude_Stop").to_string().as_bytes());
    assert_eq!(settle(&output), "");
    assert_eq!(environment.status()["agents"][0]["state"], "working");
}

#[test]
fn an_input_that_stays_open_is_not_waited_for() {
    let environment = TestEnvironment::new();
    let mut command = environment.ringer(&["hook", "claude", "UserPromptSubmit"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the hook starts");
    let mut input = child.stdin.take().expect("piped");
    let prompt = recorded(&environment, "claude_UserPromptSubmit").to_string();
    input.write_all(prompt.as_bytes()).expect("it reads");
    // It ends although the pipe is open: what was written is complete.
    assert!(child.wait().expect("it ends").success());
    drop(input);
    assert_eq!(environment.status()["agents"][0]["state"], "working");
}

#[test]
fn an_input_that_never_comes_is_given_up() {
    let environment = TestEnvironment::new();
    let mut command = environment.ringer(&["hook", "claude", "Stop"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the hook starts");
    let input = child.stdin.take().expect("piped");
    // It ends although the pipe is open.
    assert!(child.wait().expect("it ends").success());
    drop(input);
}

#[test]
fn a_person_who_tries_it_is_told_what_it_reads() {
    let (environment, variables) = (TestEnvironment::new(), [("HOME", "/nowhere")]);
    let run = |arguments: &[&str]| typed_in_terminal(arguments, &variables, environment.path(), "");
    let (shown, exit) = run(&["hook", "claude", "Stop"]);
    assert!(exit == 64 && shown.contains("ringer hook claude Stop < input.json"), "{shown}");
    let (shown, exit) = run(&["hook", "emacs", "Stop"]);
    assert!(exit == 64 && shown.contains("known: claude, codex, gemini, opencode"), "{shown}");
}

/// The greatest size of a process so far, in bytes.
#[cfg(target_os = "linux")]
fn greatest_size(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("Linux tells");
    line.split_whitespace().nth(1).and_then(|size| size.parse::<u64>().ok()).expect("a number") * 1024
}

#[test]
#[cfg(target_os = "linux")]
fn a_great_tool_result_takes_little_memory() {
    let environment = TestEnvironment::new();
    let mut command = environment.program(env!("CARGO_BIN_EXE_ringer"));
    command.args(["hook", "claude", "PostToolUse"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the hook starts");
    let mut input = child.stdin.take().expect("piped");
    let mut write = |bytes: &[u8]| input.write_all(bytes).expect("it reads");
    let piece = vec![b'x'; 256 * 1024];
    write(format!("{{\"session_id\": \"{SESSION}\", \"tool_response\": {{\"stdout\": \"").as_bytes());
    // More than a pipe holds: once it is written, the program is up and reads.
    write(&piece);
    let before = greatest_size(child.id());
    for _ in 0..200 {
        write(&piece);
    }
    let grown = greatest_size(child.id()) - before;
    write(b"\"}, \"tool_use_id\": \"t1\"}");
    drop(input);
    assert_eq!(settle(&child.wait_with_output().expect("it ends")), "");
    assert!(grown < 4 * 1024 * 1024, "grew by {grown} bytes");
    assert_eq!(environment.status()["agents"][0]["state"], "working");
}
