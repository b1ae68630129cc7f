//! Claude Code in a terminal.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use test_support::{Answer, Messages, Model, until_within};

use crate::environment::{ClientEnvironment, DEADLINE, SENDER};
use crate::scenarios::check_waking;
use crate::terminal::Terminal;

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_permission_prompt_is_one_waiting_however_often_the_client_tells_it() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let told = environment.project().join("told");
    environment.add_hook("Notification", &format!("cat >> '{}'", told.display()));
    let mut terminal =
        environment.start_in_terminal("claude", &["--permission-mode", "default", "write a file, please"]);
    assert_eq!(model.request().count_new("write a file, please"), 1);
    let file = environment.project().join("hello.txt");
    model.answer(Answer::tool("Write", json!({ "file_path": file, "content": "hi\n" })));
    let waiting = environment.notified("waiting");
    assert!(waiting["msg"].as_str().is_some_and(|text| text.contains("Write: hello.txt")), "{waiting}");
    // Seconds later the client says it once more, through another hook.
    until_within(DEADLINE, "its notification comes", || {
        fs::read_to_string(&told).is_ok_and(|told| told.contains("permission_prompt"))
    });
    assert_eq!(environment.kinds(), ["waiting"]);
    terminal.press("\r");
    assert_eq!(model.request().count_new("File created successfully"), 1);
    model.answer(Answer::Text("written"));
    environment.notified("complete");
    assert_eq!(environment.kinds(), ["waiting", "complete"]);
    assert_eq!(fs::read_to_string(file).expect("a file"), "hi\n");
    assert_eq!(environment.complaints(), "");
}

/// Claude Code shows no dialog then, or only until that hook has ended, and calls Ringer's hook all the same.
#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_permission_that_another_hook_gives_does_not_stay_open() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let allow =
        r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}"#;
    environment.add_hook("PermissionRequest", &format!("cat > /dev/null; echo '{allow}'"));
    let _terminal =
        environment.start_in_terminal("claude", &["--permission-mode", "default", "write a file, please"]);
    assert_eq!(model.request().count_new("write a file, please"), 1);
    let file = environment.project().join("hello.txt");
    model.answer(Answer::tool("Write", json!({ "file_path": file, "content": "hi\n" })));
    assert_eq!(model.request().count_new("File created successfully"), 1);
    model.answer(Answer::Text("written"));
    environment.notified("complete");
    // On a busy machine the other hook takes so long that the dialog is told of.
    environment.until_open(1);
    assert_eq!(environment.kinds().last().map(String::as_str), Some("complete"));
    until_within(DEADLINE, "no hook waits", || environment.waiting_hooks().is_empty());
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn an_idle_session_is_woken_through_its_inbox() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let terminal = environment.start_in_terminal("claude", &["hello"]);
    check_waking(&environment, &model, |sent| {
        // The session shows the beginning of its prompt: who says what, before any tag.
        terminal.until_drawn(&format!("agent:{SENDER}:"));
        let sent: Value = serde_json::from_str(sent).expect("JSON");
        let why = || environment.ringer(&["why", "--json", sent["id"].as_str().expect("an id")]);
        until_within(DEADLINE, "its prompt says that it arrived", || {
            let why: Value = serde_json::from_str(&why()).expect("JSON");
            why["receipts"][0]["state"] == "seen"
        });
    });
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn an_error_of_the_server_is_one_error_that_says_which() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let _terminal = environment.start_in_terminal("claude", &["hello"]);
    assert_eq!(model.request().count_new("hello"), 1);
    model.answer(Answer::Error { status: 529, kind: "overloaded_error" });
    let error = environment.notified("error");
    assert!(error["msg"].as_str().is_some_and(|text| text.contains("API Error: 529")), "{error}");
    assert_eq!(environment.kinds(), ["error"]);
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn escape_while_the_model_works_leaves_the_agent_idle() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let mut terminal = environment.start_in_terminal("claude", &["hello"]);
    assert_eq!(model.request().count_new("hello"), 1);
    environment.until_state("working");
    terminal.press("\x1b");
    environment.until_state("ready");
    assert!(environment.kinds().is_empty());
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_permission_ends_when_it_is_refused_and_when_its_tool_runs() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let mut terminal =
        environment.start_in_terminal("claude", &["--permission-mode", "default", "make a file, please"]);
    model.request();
    let started = environment.project().join("started");
    // It ends when the test says so: until then no hook does.
    let go_on = environment.project().join("go-on");
    let command =
        format!("touch '{}'; while [ ! -e '{}' ]; do sleep 0.1; done", started.display(), go_on.display());
    model.answer(Answer::tool("Bash", json!({ "command": command, "description": "make a file" })));
    environment.notified("waiting");
    assert_eq!(environment.until_open(1), None);
    until_dialog(&environment);
    terminal.press("\x1b");
    assert_eq!(environment.until_open(0).as_deref(), Some("you interrupted the agent"));
    environment.until_state("ready");

    terminal.press("now, please\r");
    model.request();
    model.answer(Answer::tool("Bash", json!({ "command": command, "description": "make a file" })));
    environment.until_open(1);
    until_dialog(&environment);
    // A dialog takes no key in its first moment, so that it is not answered by accident.
    terminal.press_until("\r", "the tool runs", |_| started.exists());
    assert_eq!(environment.until_open(0).as_deref(), Some("the agent went on"));
    environment.until_state("working");
    fs::write(&go_on, "").expect("a file");
    model.request();
    model.answer(Answer::Text("made"));
    environment.notified("complete");
    assert_eq!(environment.kinds(), ["waiting", "waiting", "complete"]);
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn escape_while_a_tool_runs_leaves_the_agent_idle() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let mut terminal = environment.start_in_terminal("claude", &["--allowedTools", "Bash", "--", "hello"]);
    model.request();
    let started = environment.project().join("started");
    let command = format!("touch '{}'; sleep 300", started.display());
    model.answer(Answer::tool("Bash", json!({ "command": command, "description": "wait" })));
    until_within(DEADLINE, "the tool runs", || started.exists());
    environment.until_state("working");
    terminal.press_until("\x1b", "the agent is idle", |_| environment.is_in_state("ready"));
    assert!(environment.kinds().is_empty());
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_server_that_is_left_running_does_not_hide_the_end_of_the_turn() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let _terminal = environment.start_in_terminal("claude", &["--allowedTools", "Bash", "--", "hello"]);
    model.request();
    let server = json!({ "command": "sleep 300", "description": "serve", "run_in_background": true });
    model.answer(Answer::tool("Bash", server));
    model.request();
    model.answer(Answer::Text("the server runs"));
    let complete = environment.notified("complete");
    let text = complete["msg"].as_str().unwrap_or_default();
    assert!(text.contains("the server runs") && text.contains("1 background task runs on"), "{complete}");
    environment.until_state("done");
    assert_eq!(environment.kinds(), ["complete"]);
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn each_of_two_permissions_at_once_ends_by_itself() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let mut terminal =
        environment.start_in_terminal("claude", &["--permission-mode", "default", "two files, please"]);
    model.request();
    let files = ["one", "two"].map(|name| environment.project().join(name));
    let write = |file: &PathBuf| ("Write", json!({ "file_path": file, "content": "hi\n" }));
    model.answer(Answer::Tools(files.iter().map(write).collect()));
    environment.notified("waiting");
    until_dialog(&environment);
    terminal.press_until("\r", "the first one is written", |_| files[0].exists());
    until_within(DEADLINE, "the second one is asked for", || {
        environment.listed().iter().any(|row| {
            row["is_open"] == true && row["body"].as_str().is_some_and(|text| text.contains("two"))
        })
    });
    let first_is_open = environment
        .listed()
        .iter()
        .any(|row| row["is_open"] == true && row["body"].as_str().is_some_and(|text| text.contains("one")));
    assert!(!first_is_open, "{:?}", environment.listed());
    terminal.press_until("\r", "the second one is written", |_| files[1].exists());
    model.request();
    assert_eq!(environment.until_open(0).as_deref(), Some("the agent went on"));
    model.answer(Answer::Text("written"));
    environment.notified("complete");
    assert_eq!(environment.kinds(), ["waiting", "waiting", "complete"]);
    assert_eq!(environment.complaints(), "");
}

/// Waits until the client shows a dialog: its hook runs before that, and what is pressed then is lost.
#[track_caller]
fn until_dialog(environment: &ClientEnvironment) {
    let sessions = environment.home().join(".claude/sessions");
    let waits = |path| fs::read_to_string(path).is_ok_and(|text| text.contains(r#""status":"waiting""#));
    until_within(DEADLINE, "the client shows a dialog", || {
        fs::read_dir(&sessions).is_ok_and(|files| files.flatten().any(|file| waits(file.path())))
    });
}

/// Types a prompt while the first turn works. No hook tells that the client begins a turn with it.
fn queue_prompt(environment: &ClientEnvironment, terminal: &mut Terminal, text: &str) {
    let told = environment.project().join("prompts");
    terminal.press(text);
    terminal.until_drawn(text);
    terminal.press_until("\r", "the client takes the prompt", |_| {
        fs::read_to_string(&told).is_ok_and(|told| told.contains(text))
    });
}

fn start_with_prompts_recorded(environment: &ClientEnvironment) -> Terminal {
    let told = environment.project().join("prompts");
    environment.add_hook("UserPromptSubmit", &format!("cat >> '{}'", told.display()));
    environment.start_in_terminal("claude", &["--allowedTools", "Bash", "--", "hello"])
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_queued_prompt_begins_a_turn_that_is_seen_and_whose_end_is_told() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let mut terminal = start_with_prompts_recorded(&environment);
    assert_eq!(model.request().count_new("hello"), 1);
    queue_prompt(&environment, &mut terminal, "second-question");
    model.answer(Answer::Text("the first answer"));
    assert_eq!(model.request().count_new("second-question"), 1);
    environment.notified("complete");
    environment.until_state("working");
    assert_eq!(environment.kinds(), ["complete"]);
    model.answer(Answer::Text("the second answer"));
    until_within(DEADLINE, "the second end is told", || environment.kinds() == ["complete", "complete"]);
    environment.until_state("done");
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_queued_prompt_that_enters_the_turn_leaves_the_agent_done() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let mut terminal = start_with_prompts_recorded(&environment);
    model.request();
    let (started, go_on) = (environment.project().join("started"), environment.project().join("go-on"));
    let command =
        format!("touch '{}'; while [ ! -e '{}' ]; do sleep 0.1; done", started.display(), go_on.display());
    model.answer(Answer::tool("Bash", json!({ "command": command, "description": "wait" })));
    until_within(DEADLINE, "the tool runs", || started.exists());
    queue_prompt(&environment, &mut terminal, "one-more-thing");
    fs::write(&go_on, "").expect("a file");
    assert_eq!(model.request().count_new("one-more-thing"), 1);
    model.answer(Answer::Text("both answers"));
    environment.notified("complete");
    environment.until_state("done");
    assert_eq!(environment.kinds(), ["complete"]);
    assert_eq!(environment.complaints(), "");
}
