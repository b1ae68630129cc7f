//! Copilot CLI in a terminal.

use serde_json::json;
use test_support::{Answer, Model, until_within};

use crate::chat_completions::ChatCompletions;
use crate::environment::{ClientEnvironment, DEADLINE};
use crate::terminal::Terminal;

/// The last line of a permission dialog.
const DIALOG: &str = "No, and tell Copilot";

/// What is shown while no turn runs. A command that is typed before is queued, and stays in the queue.
pub(crate) const BETWEEN_TURNS: &str = "next tab";

/// A session whose first prompt has reached the model.
fn begin(environment: &ClientEnvironment, model: &Model) -> Terminal {
    let terminal = environment.start_in_terminal("copilot", &["-i", "rename the parser"]);
    assert_eq!(model.request().count_new("rename the parser"), 1);
    environment.until_state("working");
    terminal
}

/// Types a prompt, and waits until the model receives it.
#[track_caller]
fn prompt(terminal: &mut Terminal, model: &Model, text: &str) {
    terminal.press(text);
    terminal.until_drawn(text);
    terminal.press_until("\r", "the model is asked", |_| model.has_request());
}

/// Presses Escape, which stops a turn when it is pressed twice.
fn interrupt(terminal: &mut Terminal, environment: &ClientEnvironment) {
    terminal.press_until("\x1b", "the agent is idle", |_| environment.is_in_state("ready"));
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn escape_while_the_model_works_leaves_the_agent_idle() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_copilot(&model);
    let mut terminal = begin(&environment, &model);
    interrupt(&mut terminal, &environment);
    assert!(environment.kinds().is_empty(), "{:?}", environment.kinds());
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn an_error_of_the_server_is_one_error_that_says_which() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_copilot(&model);
    let _terminal = begin(&environment, &model);
    model.answer(Answer::Error { status: 400, kind: "invalid_request_error" });
    let error = environment.notified("error");
    assert!(error["msg"].as_str().is_some_and(|text| text.contains("was told to fail")), "{error}");
    environment.until_state("error");
    assert_eq!(environment.kinds(), ["error"]);
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_permission_is_one_waiting_that_ends_when_it_is_given_or_refused() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_copilot(&model);
    let mut terminal = begin(&environment, &model);
    let tool = |command: &str| Answer::tool("bash", json!({ "command": command, "description": "Make it" }));
    model.answer(tool("touch given"));
    let waiting = environment.notified("waiting");
    assert!(waiting["msg"].as_str().is_some_and(|text| text.contains("touch given")), "{waiting}");
    environment.until_state("blocked");
    terminal.until_drawn(DIALOG);
    terminal.press_until("\r", "the tool has run", |_| model.has_request());
    environment.until_open(0);
    model.answer(Answer::Text("all done"));
    let complete = environment.notified("complete");
    assert!(complete["msg"].as_str().is_some_and(|text| text.ends_with("all done")), "{complete}");

    prompt(&mut terminal, &model, "once-more");
    model.answer(tool("touch refused"));
    environment.until_state("blocked");
    terminal.until_drawn(DIALOG);
    terminal.press_until_drawn("\x1b", "cancelled by user");
    environment.until_state("ready");
    assert_eq!(environment.until_open(0).as_deref(), Some("you interrupted the agent"));
    assert_eq!(environment.kinds(), ["waiting", "complete", "waiting"]);
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_permission_is_over_while_its_tool_runs_and_escape_ends_the_tool() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_copilot(&model);
    let mut terminal = begin(&environment, &model);
    let started = environment.project().join("started");
    let command = format!("touch '{}'; sleep 300", started.display());
    model.answer(Answer::tool("bash", json!({ "command": command, "description": "Wait" })));
    environment.until_state("blocked");
    terminal.until_drawn(DIALOG);
    terminal.press_until("\r", "the tool runs", |_| started.exists());
    environment.until_open(0);
    environment.until_state("working");
    interrupt(&mut terminal, &environment);
    assert_eq!(environment.kinds(), ["waiting"]);
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn of_two_permissions_at_once_each_ends_by_itself() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_copilot(&model);
    let mut terminal = begin(&environment, &model);
    let tool = |name: &str| {
        ("bash", json!({ "command": format!("touch '{name}'"), "description": format!("Make {name}") }))
    };
    model.answer(Answer::Tools(vec![tool("one"), tool("two")]));
    environment.until_open(2);
    terminal.until_drawn(DIALOG);
    let made = || ["one", "two"].map(|name| environment.project().join(name).exists());
    terminal.press_until("\r", "a tool has run", |_| made().contains(&true));
    // A key that was pressed again may have given the other one.
    if made().contains(&false) {
        environment.until_open(1);
        environment.until_state("blocked");
        terminal.press_until("\r", "both have run", |_| !made().contains(&false));
    }
    environment.until_open(0);
    model.request();
    model.answer(Answer::Text("all done"));
    environment.notified("complete");
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_question_is_told_with_its_text() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_copilot(&model);
    let mut terminal = begin(&environment, &model);
    let colors = json!({ "type": "string", "title": "Color", "enum": ["red", "blue"] });
    let schema = json!({ "type": "object", "properties": { "color": colors }, "required": ["color"] });
    let question = json!({ "message": "Which color?", "requestedSchema": schema });
    model.answer(Answer::tool("ask_user", question));
    let asked = environment.notified("question");
    assert!(asked["msg"].as_str().is_some_and(|text| text.ends_with("Which color?")), "{asked}");
    terminal.until_drawn("decline");
    terminal.press_until("\r", "it is answered", |_| model.has_request());
    environment.until_open(0);
    model.answer(Answer::Text("all done"));
    environment.notified("complete");
    assert_eq!(environment.kinds(), ["question", "complete"]);
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn the_agent_ends_with_its_session_or_its_process() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_copilot(&model);
    let mut terminal = begin(&environment, &model);
    terminal.forget_drawn();
    model.answer(Answer::Text("all done"));
    environment.notified("complete");
    terminal.until_drawn(BETWEEN_TURNS);
    terminal.press("/exit");
    terminal.until_drawn("/exit");
    terminal.press_until("\r", "it ends", Terminal::has_ended);
    environment.until_state("exited");

    let mut terminal = environment.start_in_terminal("copilot", &["-i", "once more"]);
    model.request();
    environment.until_state("working");
    terminal.kill();
    until_within(DEADLINE, "it has ended", || environment.states() == ["exited", "exited"]);
    assert_eq!(environment.complaints(), "");
}
