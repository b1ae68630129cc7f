//! Prompts of Claude Code that are answered from elsewhere.

use std::fs;

use serde_json::{Value, json};
use test_support::{Answer, Messages, Model, until_within};

use crate::environment::{ClientEnvironment, DEADLINE, ended};
use crate::terminal::Terminal;

/// Claude Code in a terminal that shows a dialog for this tool, with a hook that waits beside it.
fn asked(
    model: &Model,
    environment: &ClientEnvironment,
    mode: &str,
    tool: &'static str,
    input: Value,
) -> Terminal {
    let terminal = environment.start_in_terminal("claude", &["--permission-mode", mode, "go on, please"]);
    assert_eq!(model.request().count_new("go on, please"), 1);
    model.answer(Answer::tool(tool, input));
    until_asked(environment);
    terminal
}

/// Waits until a prompt is open and its hook waits for the person.
#[track_caller]
pub(crate) fn until_asked(environment: &ClientEnvironment) {
    environment.until_open(1);
    until_within(DEADLINE, "a hook waits beside the dialog", || {
        let (code, shown) = environment.try_ringer(&["answer", "last", "--json"]);
        code == 0 && shown.contains("\"kind\":\"prompt\"") && !environment.waiting_hooks().is_empty()
    });
}

/// Waits until no hook is left that waits for the person.
#[track_caller]
fn until_none_waits(environment: &ClientEnvironment) {
    until_within(DEADLINE, "the waiting hook has ended", || environment.waiting_hooks().is_empty());
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_permission_is_given_from_another_terminal_and_the_tool_runs() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let file = environment.project().join("made");
    let command = format!("touch '{}'; echo mar\"\"ker", file.display());
    let input = json!({ "command": command, "description": "make a file" });
    let _terminal = asked(&model, &environment, "default", "Bash", input);

    let shown = environment.shown_prompt();
    assert!(shown.contains(&command) && shown.contains("make a file"), "{shown}");
    assert_eq!(environment.try_ringer(&["answer", "last", "yes"]).0, 64);
    assert!(!file.exists());
    // No hub is needed for it.
    environment.ringer(&["hub", "stop"]);
    let (code, said) = environment.try_ringer(&["answer", "last", "allow"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(model.request().count_new("marker"), 1, "the tool ran");
    assert!(file.exists());
    assert_eq!(environment.until_open(0).as_deref(), Some("the agent went on"));
    let (code, said) = environment.try_ringer(&["answer", "last", "allow"]);
    assert!(code == 65 && said.contains("nothing waits for an answer"), "{said}");
    until_none_waits(&environment);
    model.answer(Answer::Text("made"));
    environment.notified("complete");
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn the_model_reads_why_a_permission_is_denied() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let file = environment.project().join("made");
    let input = json!({ "file_path": file, "content": "x" });
    let _terminal = asked(&model, &environment, "default", "Write", input);
    let (code, said) = environment.try_ringer(&["answer", "deny", "not", "on", "a", "Monday"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(model.request().count_new("not on a Monday"), 1);
    assert!(!file.exists());
    environment.until_open(0);
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn what_is_always_allowed_is_not_asked_for_again() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let file = environment.project().join("one");
    let input = json!({ "file_path": file, "content": "x" });
    let _terminal = asked(&model, &environment, "default", "Write", input);
    let shown = environment.shown_prompt();
    assert!(shown.contains("the mode acceptEdits, in this session"), "{shown}");
    let (code, said) = environment.try_ringer(&["answer", "always"]);
    assert_eq!(code, 0, "{said}");
    model.request();
    let file = environment.project().join("two");
    model.answer(Answer::tool("Write", json!({ "file_path": file, "content": "x" })));
    model.request();
    assert!(file.exists());
    model.answer(Answer::Text("made"));
    environment.notified("complete");
    assert_eq!(environment.kinds(), ["waiting", "complete"]);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn questions_of_the_client_are_answered_by_number_and_text() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let option = |label: &str| json!({ "label": label, "description": format!("it is {label}") });
    let input = json!({ "questions": [
        { "question": "Which one?", "header": "Pick", "multiSelect": false, "options": [option("Alpha"), option("Beta")] },
        { "question": "What colours?", "header": "Colour", "multiSelect": true, "options": [option("Red"), option("Blue")] },
    ] });
    let _terminal = asked(&model, &environment, "default", "AskUserQuestion", input);
    let shown = environment.shown_prompt();
    assert!(shown.contains("2  Beta  (it is Beta)") && shown.contains("several: 1,2"), "{shown}");
    assert_eq!(environment.try_ringer(&["answer", "last", "2"]).0, 64, "two questions need two answers");
    let (code, said) = environment.try_ringer(&["answer", "last", "2", "red,blue"]);
    assert_eq!(code, 0, "{said}");
    let request = model.request();
    assert!(request.count_new("Beta") > 0 && request.count_new("Red, Blue") > 0, "{}", request.news());
    environment.until_open(0);
    assert_eq!(environment.ringer(&["questions"]), "");
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_plan_is_approved_from_another_terminal() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let input = json!({ "plan": "# Plan\n1. write the file\n2. test it" });
    let _terminal = asked(&model, &environment, "plan", "ExitPlanMode", input);
    let shown = environment.shown_prompt();
    assert!(shown.contains("approve the plan"), "{shown}");
    let (code, said) = environment.try_ringer(&["answer", "allow"]);
    assert_eq!(code, 0, "{said}");
    let request = model.request();
    assert!(request.count_new("approved") > 0, "{}", request.news());
    environment.until_open(0);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn an_answer_in_the_dialog_ends_the_waiting_and_a_later_one_is_told() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let go_on = environment.project().join("go-on");
    let started = environment.project().join("started");
    // It ends when the test says so: until then no hook does.
    let command =
        format!("touch '{}'; while [ ! -e '{}' ]; do sleep 0.1; done", started.display(), go_on.display());
    let input = json!({ "command": command, "description": "wait" });
    let mut terminal = asked(&model, &environment, "default", "Bash", input);
    let id = environment.ringer(&["list", "--json"]);
    let id: Value = serde_json::from_str(&id).expect("JSON");
    let id = id[0]["short_id"].as_str().expect("a short id").to_owned();
    terminal.press_until("\r", "the tool runs", |_| started.exists());
    environment.until_open(0);
    until_none_waits(&environment);
    let (code, said) = environment.try_ringer(&["answer", &id, "deny"]);
    assert!(code == 65 && said.contains("answered in its own terminal"), "{said}");
    fs::write(&go_on, "").expect("a file");
    model.request();
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn an_agent_that_answers_for_the_person_is_refused_and_the_person_is_told() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let input = json!({ "file_path": environment.project().join("x"), "content": "x" });
    let _asking = asked(&model, &environment, "default", "Write", input);
    // Another agent, in the same repository, whose shell need not ask.
    let other = Model::new(&Messages);
    let command = "env -i PATH=\"$PATH\" HOME=\"$HOME\" RINGER_HOME=\"$RINGER_HOME\" \"$RINGER\" answer last allow; echo \"code-$?\"";
    let _trying =
        environment.start_with_model(&other, "claude", &["-p", "--allowedTools", "Bash", "--", "try it"]);
    other.request();
    other.answer(Answer::tool("Bash", json!({ "command": command, "description": "try" })));
    let request = other.request();
    assert_eq!(request.count_new("code-77"), 1, "{}", request.news());
    let error = environment.notified("error");
    assert!(
        error["msg"].as_str().is_some_and(|text| text.contains("tried to answer what claude-")),
        "{error}"
    );
    let (code, said) = environment.try_ringer(&["answer", "deny"]);
    assert_eq!(code, 0, "the person still can: {said}");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_client_that_is_killed_leaves_no_hook_behind() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let input = json!({ "file_path": environment.project().join("x"), "content": "x" });
    let mut terminal = asked(&model, &environment, "default", "Write", input);
    terminal.kill();
    until_none_waits(&environment);
    environment.until_open(0);
}

/// How often both answer in the next test. `RINGER_ROUNDS` sets another number.
const ROUNDS: usize = 4;

/// The person presses Enter in the dialog at the moment in which they deny it elsewhere, too. Whatever comes first: one
/// decision counts, the command tells the truth about it, and nothing lands in the prompt of the client.
#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn of_two_answers_at_the_same_moment_one_counts() {
    let rounds = std::env::var("RINGER_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS);
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let file = |round: usize| environment.project().join(format!("file-{round}"));
    let write = |round: usize| Answer::tool("Write", json!({ "file_path": file(round), "content": "x" }));
    let mut terminal =
        environment.start_in_terminal("claude", &["--permission-mode", "default", "go on, please"]);
    model.request();
    let (mut by_command, mut in_dialog) = (0, 0);
    for round in 0..rounds {
        model.answer(write(round));
        until_asked(&environment);
        // A dialog takes no key in its first moment; by then it has stood for longer.
        let answer = environment.begin_ringer(&["answer", "last", "deny", "not this one"]);
        // A little later in every round, so that each may be the first.
        let later = u64::try_from(round % 10).unwrap_or(0) * 5;
        std::thread::sleep(std::time::Duration::from_millis(later)); // tidy: sleep is the thing under test
        terminal.press("\r");
        let (code, said) = ended(answer);
        let request = model.request();
        let was_written = file(round).exists();
        assert_eq!(request.count_new("not this one"), usize::from(!was_written), "{}", request.news());
        match code {
            0 => assert!(!was_written, "it says that it was taken: {said}"),
            65 | 69 => assert!(was_written, "it says that it was not: {said}"),
            75 => {}
            _ => panic!("{code}: {said}"),
        }
        if was_written {
            in_dialog += 1;
        } else {
            by_command += 1;
        }
        environment.until_open(0);
    }
    eprintln!("{by_command} by the command, {in_dialog} in the dialog");
    model.answer(Answer::Text("done"));
    environment.notified("complete");
    until_none_waits(&environment);
    assert_eq!(environment.complaints(), "");
}
