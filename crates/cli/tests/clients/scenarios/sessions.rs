//! Sessions that are cleared, resumed or forked, in a terminal.

use serde_json::Value;
use test_support::{Answer, Model, until_within};

use crate::environment::{ClientEnvironment, DEADLINE, SENDER};
use crate::terminal::Terminal;

use super::{BLOCK, TEXT};

/// How a client is told to change its session.
pub(crate) struct SessionCommands {
    pub(crate) client: &'static str,
    /// The arguments that start one with the prompt `hello`.
    pub(crate) first: &'static [&'static str],
    /// A text that the client shows between turns, if it queues a command that is typed before.
    pub(crate) between_turns: Option<&'static str>,
    /// What a person types.
    pub(crate) clear: &'static str,
    /// A text that the client shows then.
    pub(crate) cleared: &'static str,
    /// Whether a session calls its hooks when it is opened, and not only with its first prompt.
    pub(crate) calls_hooks_at_once: bool,
    /// The arguments before the session's id.
    pub(crate) resume: &'static [&'static str],
    pub(crate) fork: &'static [&'static str],
}

/// An agent as `ringer status` lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Listed {
    id: String,
    session: String,
    state: String,
}

impl SessionCommands {
    /// A session that has done its first turn. Gives its agent.
    #[track_caller]
    fn start(&self, environment: &ClientEnvironment, model: &Model) -> (Terminal, Listed) {
        let terminal = environment.start_in_terminal(self.client, self.first);
        assert_eq!(model.request().count_new("hello"), 1);
        terminal.forget_drawn();
        model.answer(Answer::Text("good morning"));
        environment.notified("complete");
        if let Some(text) = self.between_turns {
            terminal.until_drawn(text);
        }
        let agents = agents(environment);
        assert_eq!(agents.len(), 1, "{agents:?}");
        (terminal, agents[0].clone())
    }

    #[track_caller]
    fn start_again(&self, environment: &ClientEnvironment, how: &[&str], session: &str) -> Terminal {
        environment.start_in_terminal(self.client, &[how, &[session]].concat())
    }
}

fn agents(environment: &ClientEnvironment) -> Vec<Listed> {
    let status: Value = serde_json::from_str(&environment.ringer(&["status", "--json"])).expect("JSON");
    let agents = status["agents"].as_array().expect("a list").iter();
    let text = |agent: &Value, name: &str| agent[name].as_str().map(str::to_owned);
    let listed = |agent| {
        Some(Listed {
            id: text(agent, "id")?,
            session: text(agent, "session_id")?,
            state: text(agent, "state")?,
        })
    };
    agents.filter_map(listed).collect()
}

fn state(environment: &ClientEnvironment, id: &str) -> Option<String> {
    agents(environment).into_iter().find(|agent| agent.id == id).map(|agent| agent.state)
}

/// The agent that is not this one, if there is one.
fn other(environment: &ClientEnvironment, id: &str) -> Option<Listed> {
    agents(environment).into_iter().find(|agent| agent.id != id)
}

/// Types a prompt. Its agent works then.
#[track_caller]
fn prompt(terminal: &mut Terminal, environment: &ClientEnvironment, text: &str) {
    terminal.press(text);
    terminal.until_drawn(text);
    terminal.press_until("\r", "it works", |_| environment.is_in_state("working"));
}

/// What is cleared has ended, with what it told; a new agent is in its place.
#[track_caller]
pub(crate) fn check_clear(environment: &ClientEnvironment, model: &Model, commands: &SessionCommands) {
    let (mut terminal, first) = commands.start(environment, model);
    terminal.press(commands.clear);
    terminal.until_drawn(commands.clear);
    terminal.press_until_drawn("\r", commands.cleared);
    prompt(&mut terminal, environment, "start-over");
    assert_eq!(model.request().count_new("start-over"), 1);
    model.answer(Answer::Text("good evening"));
    environment.notified("complete");
    let second = other(environment, &first.id).expect("another agent");
    assert_ne!(second.session, first.session);
    until_within(DEADLINE, "it is done", || state(environment, &second.id).as_deref() == Some("done"));
    assert_eq!(state(environment, &first.id).as_deref(), Some("exited"));
    assert_eq!(agents(environment).len(), 2);
    let is_read: Vec<bool> = environment.listed().iter().map(|row| row["is_read"] == true).collect();
    assert_eq!(is_read, [true, false], "what the first one told is over");
    assert_eq!(environment.kinds(), ["complete"; 2]);
    assert_eq!(environment.complaints(), "");
}

/// A session that was killed and is resumed reads what was sent to it meanwhile, once.
#[track_caller]
pub(crate) fn check_resume(environment: &ClientEnvironment, model: &Model, commands: &SessionCommands) {
    let (mut terminal, first) = commands.start(environment, model);
    terminal.kill();
    environment.until_state("exited");
    environment.ringer(&["notify", "--from", SENDER, "--to", &first.id, TEXT]);
    let mut terminal = commands.start_again(environment, commands.resume, &first.session);
    // One that calls its hooks at once may be in its next turn before it has drawn the last one.
    if !commands.calls_hooks_at_once {
        terminal.until_drawn("morning");
        prompt(&mut terminal, environment, "continue");
    }
    let mut request = model.request();
    if request.count_new(BLOCK) == 0 && !commands.calls_hooks_at_once {
        // It was pushed before the turn began, and is the next one.
        model.answer(Answer::Text("I continue"));
        request = model.request();
    }
    assert_eq!(request.count_new(BLOCK), 1, "{}", request.news());
    model.answer(Answer::Text("the docs are written"));
    until_within(DEADLINE, "it is done", || {
        let kinds = environment.kinds();
        environment.is_in_state("done") && !model.has_request() && kinds.iter().all(|kind| kind == "complete")
    });
    assert_eq!(agents(environment), [Listed { state: "done".to_owned(), ..first }]);
    assert_eq!(environment.complaints(), "");
}

/// A fork is an agent of its own; the one that it came from goes on, and its messages are its own.
#[track_caller]
pub(crate) fn check_fork(environment: &ClientEnvironment, model: &Model, commands: &SessionCommands) {
    let (_terminal, first) = commands.start(environment, model);
    let mut fork = commands.start_again(environment, commands.fork, &first.session);
    fork.until_drawn("morning");
    prompt(&mut fork, environment, "otherwise");
    assert_eq!(model.request().count_new("otherwise"), 1);
    let second = other(environment, &first.id).expect("another agent");
    assert_eq!(state(environment, &first.id).as_deref(), Some("done"), "it was not in that turn");
    model.answer(Answer::Text("here it is"));
    environment.notified("complete");
    until_within(DEADLINE, "it is done", || state(environment, &second.id).as_deref() == Some("done"));
    environment.ringer(&["notify", "--from", SENDER, "--to", &first.id, TEXT]);
    let request = model.request();
    assert_eq!(request.count_new(BLOCK), 1, "{}", request.news());
    assert_eq!(request.count_new("here it is"), 0);
    until_within(DEADLINE, "it works", || state(environment, &first.id).as_deref() == Some("working"));
    assert_eq!(state(environment, &second.id).as_deref(), Some("done"));
    model.answer(Answer::Text("the docs are written"));
    environment.notified("complete");
    assert_eq!(agents(environment).len(), 2);
    assert_eq!(environment.kinds(), ["complete"; 3]);
    assert_eq!(environment.complaints(), "");
}
