//! Codex' sessions that no window shows any more: they go on in its server, which ends them after a minute.

use std::fs;

use serde_json::Value;
use test_support::{Answer, Model};

use crate::codex_answers::session_log;
use crate::codex_in_terminal::trust_hooks;
use crate::environment::{ClientEnvironment, SENDER};
use crate::responses::Responses;
use crate::terminal::Terminal;

/// A session in Codex's server that has done its first turn.
struct ServedSession {
    environment: ClientEnvironment,
    model: Model,
    terminal: Terminal,
}

impl ServedSession {
    #[track_caller]
    fn open() -> Self {
        let model = Model::new(&Responses);
        let environment = ClientEnvironment::for_codex(&model);
        let mut terminal = environment.start_in_terminal("codex", &["hello"]);
        trust_hooks(&mut terminal);
        assert_eq!(model.request().count_new("hello"), 1);
        model.answer(Answer::Text("good morning"));
        environment.notified("complete");
        environment.until_state("done");
        Self { environment, model, terminal }
    }

    /// Sends the agent a message. Returns what Ringer says of it.
    #[track_caller]
    fn tell(&self, agent: &str, text: &str) -> String {
        let (code, said) = self.environment.try_ringer(&["notify", "--from", SENDER, "--to", agent, text]);
        assert_eq!(code, 0, "{said}");
        said
    }
}

/// Types a prompt into a window, and returns when its agent works.
#[track_caller]
fn prompt(terminal: &mut Terminal, environment: &ClientEnvironment, text: &str) {
    terminal.press(text);
    terminal.until_drawn(text);
    terminal.press_until("\r", "it works", |_| environment.is_in_state("working"));
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_session_whose_window_is_closed_is_not_woken_and_reads_its_messages_when_it_is_resumed() {
    let mut session = ServedSession::open();
    let agent = session.environment.agent();
    let id = session.environment.of_agents("session_id").remove(0);
    session.terminal.press_until("\x03", "the window is closed", Terminal::has_ended);
    let status: Value =
        serde_json::from_str(&session.environment.ringer(&["status", "--json"])).expect("JSON");
    assert_eq!(status["agents"][0]["has_window"], false, "{status}");
    let said = session.tell(&agent, "the docs moved");
    assert!(said.contains(&format!("note: no window shows {agent}")), "{said}");

    session.environment.until_state("exited");
    let said = session.tell(&agent, "the tests are green");
    assert!(said.contains(&format!("note: {agent} has ended")), "{said}");
    assert!(!session.model.has_request(), "no turn began that nobody sees");
    let rows = session.environment.listed();
    let is_unread = rows.iter().any(|row| row["kind"] == "complete" && row["is_read"] == false);
    assert!(is_unread, "nobody has seen that it is done: {rows:?}");

    let mut terminal = session.environment.start_in_terminal("codex", &["resume", &id]);
    terminal.until_drawn("morning");
    prompt(&mut terminal, &session.environment, "continue");
    let mut request = session.model.request();
    if request.count_new("the docs moved") == 0 {
        // They were pushed before the turn began, and are the next one.
        session.model.answer(Answer::Text("I continue"));
        request = session.model.request();
    }
    for text in ["the docs moved", "the tests are green"] {
        assert_eq!(request.count_new(text), 1, "{}", request.news());
    }
    session.model.answer(Answer::Text("good evening"));
    session.environment.notified("complete");
    session.environment.until_state("done");
    assert_eq!(session.environment.of_agents("session_id"), [id], "it is the same agent");
    assert_eq!(session.environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_session_that_is_left_for_a_new_one_ends_without_a_prompt() {
    let mut session = ServedSession::open();
    session.terminal.press("/new");
    session.terminal.until_drawn("/new");
    session.terminal.press_until_drawn("\r", "OpenAI");
    session.environment.until_state("exited");
    assert_eq!(session.environment.states(), ["exited"]);
    // After a minute without a prompt, Ringer also reports that it is idle.
    let mut kinds = session.environment.kinds();
    kinds.retain(|kind| kind != "waiting");
    assert_eq!(kinds, ["complete"]);
    assert_eq!(session.environment.complaints(), "");
}

/// Threads are paged since Codex 0.153, and their logs are still complete.
#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn the_log_of_a_paged_thread_says_how_each_turn_ended() {
    let ServedSession { environment, model, mut terminal } = ServedSession::open();
    prompt(&mut terminal, &environment, "go on");
    model.request();
    environment.until_state("working");
    terminal.press("\x1b");
    environment.until_state("ready");
    prompt(&mut terminal, &environment, "again");
    model.request();
    model.answer(Answer::Error { status: 500, kind: "server_error" });
    environment.notified("error");

    let log = fs::read_to_string(session_log(&environment)).expect("the log");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines[0]["payload"]["history_mode"], "paginated");
    let kinds = lines.iter().filter_map(|line| line["payload"]["type"].as_str());
    let of_turns = ["task_started", "task_complete", "turn_aborted"];
    let turns: Vec<&str> = kinds.filter(|kind| of_turns.contains(kind)).collect();
    assert_eq!(
        turns,
        ["task_started", "task_complete", "task_started", "turn_aborted", "task_started", "task_complete"]
    );
    assert_eq!(environment.complaints(), "");
}
