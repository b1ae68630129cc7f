//! opencode in which a session goes on after its turn, `opencode serve`.

use serde_json::json;
use test_support::{Answer, Model, until_within};

use crate::chat_completions::ChatCompletions;
use crate::environment::{ClientEnvironment, DEADLINE, SENDER, ended};
use crate::opencode_server::Server;

const TEXT: &str = "please also update the docs";
const BLOCK: &str = "<notification source=\"agent:builder\">\nplease also update the docs\n</notification>";

/// A session that has asked the model for its first step.
fn begin(environment: &ClientEnvironment, model: &Model) -> (Server, String) {
    let server = Server::start(environment);
    let session = server.begin();
    server.say(&session, "do it");
    let first = model.request();
    assert_eq!(first.count_new("do it"), 1, "{}", first.news());
    (server, session)
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_permission_prompt_is_one_waiting() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_opencode(&model);
    let (server, session) = begin(&environment, &model);
    model.answer(Answer::tool("bash", json!({ "command": "touch hello.txt", "description": "Touch" })));
    let waiting = environment.notified("waiting");
    assert!(waiting["msg"].as_str().is_some_and(|text| text.contains("touch hello.txt")), "{waiting}");
    assert_eq!(environment.kinds(), ["waiting"]);
    assert!(!environment.project().join("hello.txt").exists(), "it waits");
    server.allow();
    model.request();
    model.answer(Answer::Text("touched"));
    environment.notified("complete");
    server.settle(&session);
    assert_eq!(environment.kinds(), ["waiting", "complete"]);
    assert!(environment.project().join("hello.txt").exists());
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn what_comes_too_late_for_a_tool_is_its_next_message_and_is_still_one_complete() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_opencode(&model);
    let (server, session) = begin(&environment, &model);
    environment.ringer(&["notify", "--from", SENDER, "--to", &environment.agent(), TEXT]);
    model.answer(Answer::Text("all done"));
    let next = model.request();
    assert_eq!(next.count_new(BLOCK), 1, "{}", next.news());
    model.answer(Answer::Text("the docs are done too"));
    environment.notified("complete");
    server.settle(&session);
    assert_eq!(environment.kinds(), ["complete"]);
    assert!(!model.has_request(), "it was told once");
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_turn_that_is_ended_in_a_tool_or_while_the_model_works_is_no_complete() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_opencode(&model);
    let (server, session) = begin(&environment, &model);
    let started = environment.project().join("started");
    let command = format!(": > '{}'; sleep 300", started.display());
    model.answer(Answer::tool("bash", json!({ "command": command, "description": "Wait" })));
    until_within(DEADLINE, "the tool runs", || started.exists());
    server.abort(&session);
    environment.until_state("ready");

    server.say(&session, "again");
    model.request();
    environment.until_state("working");
    server.abort(&session);
    environment.until_state("ready");
    server.settle(&session);
    assert!(environment.kinds().is_empty(), "{:?}", environment.kinds());
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn an_idle_session_is_woken() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_opencode(&model);
    let (server, session) = begin(&environment, &model);
    model.answer(Answer::Text("all done"));
    environment.notified("complete");
    let until_it_listens = || {
        until_within(DEADLINE, "one hook waits", || environment.listening_hooks().len() == 1);
        environment.until_state("done");
    };
    // The model is asked then, so the session works.
    let until_none_listens =
        || until_within(DEADLINE, "no hook waits", || environment.listening_hooks().is_empty());
    until_it_listens();
    let agent = environment.agent();
    // It comes while the hook waits, and once more while the next one does.
    for text in [TEXT, "and the tests"] {
        let sent = environment.ringer(&["notify", "--from", SENDER, "--to", &agent, text, "--json"]);
        let next = model.request();
        assert_eq!(next.count_new(text), 1, "{}", next.news());
        until_none_listens();
        let sent: serde_json::Value = serde_json::from_str(&sent).expect("JSON");
        let why = || environment.ringer(&["why", sent["id"].as_str().expect("an id")]);
        until_within(DEADLINE, "it was seen", || why().contains("seen"));
        model.answer(Answer::Text("the docs are done too"));
        until_it_listens();
    }
    assert!(!model.has_request(), "each was told once");
    // What the person says ends the waiting, too.
    server.say(&session, "go on");
    model.request();
    until_none_listens();
    model.answer(Answer::Text("gone on"));
    until_it_listens();
    server.settle(&session);
    until_none_listens();
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_session_that_has_just_begun_is_woken_and_a_killed_client_leaves_no_hook_behind() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_opencode(&model);
    let server = Server::start(&environment);
    server.begin();
    until_within(DEADLINE, "a hook waits", || environment.listening_hooks().len() == 1);
    environment.ringer(&["notify", "--from", SENDER, "--to", &environment.agent(), TEXT]);
    let first = model.request();
    assert_eq!(first.count_new(BLOCK), 1, "{}", first.news());
    model.answer(Answer::Text("done"));
    until_within(DEADLINE, "a hook waits", || environment.listening_hooks().len() == 1);
    drop(server);
    until_within(DEADLINE, "it ends with its client", || environment.listening_hooks().is_empty());
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn an_error_of_the_server_is_one_error_that_says_which() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_opencode(&model);
    let (server, session) = begin(&environment, &model);
    model.answer(Answer::Error { status: 400, kind: "invalid_request_error" });
    let error = environment.notified("error");
    assert!(error["msg"].as_str().is_some_and(|text| text.contains("told to fail")), "{error}");
    server.settle(&session);
    assert_eq!(environment.kinds(), ["error"]);
    assert_eq!(environment.complaints(), "");
}

/// Waits until a hook waits beside the dialog.
#[track_caller]
fn until_asked(environment: &ClientEnvironment) {
    until_within(DEADLINE, "a hook waits beside the dialog", || !environment.waiting_hooks().is_empty());
    until_within(DEADLINE, "it can be answered", || environment.try_ringer(&["answer", "last"]).0 == 64);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_permission_is_given_or_denied_from_another_terminal() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_opencode(&model);
    let (server, session) = begin(&environment, &model);
    model.answer(Answer::tool("bash", json!({ "command": "touch hello.txt", "description": "Touch" })));
    until_asked(&environment);
    let shown = environment.shown_prompt();
    assert!(shown.contains("touch hello.txt") && shown.contains("bash: touch *"), "{shown}");
    let (code, said) = environment.try_ringer(&["answer", "allow"]);
    assert_eq!(code, 0, "{said}");
    model.request();
    assert!(environment.project().join("hello.txt").exists());
    model.answer(Answer::tool("bash", json!({ "command": "touch other.txt", "description": "Touch" })));
    until_asked(&environment);
    let (code, said) = environment.try_ringer(&["answer", "deny", "use", "mkdir"]);
    assert_eq!(code, 0, "{said}");
    let request = model.request();
    assert_eq!(request.count_new("use mkdir"), 1, "{}", request.news());
    assert!(!environment.project().join("other.txt").exists());
    model.answer(Answer::Text("as you wish"));
    environment.notified("complete");
    server.settle(&session);
    assert!(environment.waiting_hooks().is_empty());
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn an_answer_in_its_own_dialog_ends_the_waiting() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_opencode(&model);
    let (server, _session) = begin(&environment, &model);
    model.answer(Answer::tool("bash", json!({ "command": "touch hello.txt", "description": "Touch" })));
    until_asked(&environment);
    server.allow();
    until_within(DEADLINE, "the hook ends", || environment.waiting_hooks().is_empty());
    let (code, said) = environment.try_ringer(&["answer", "deny"]);
    assert!(code == 65 && said.contains("nothing waits for an answer"), "{said}");
    model.request();
}

/// How often both answer in the next test. `RINGER_ROUNDS` sets another number.
const ROUNDS: u64 = 6;

/// The person allows in the dialog what they deny elsewhere, at about the same moment. The command says which one counted.
#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn of_two_answers_at_the_same_moment_the_command_knows_which_one_counts() {
    let rounds = std::env::var("RINGER_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS);
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_opencode(&model);
    let (server, session) = begin(&environment, &model);
    let (mut by_command, mut in_dialog) = (0, 0);
    for round in 0..rounds {
        let command = format!("touch file-{round}");
        model.answer(Answer::tool("bash", json!({ "command": command, "description": "Touch" })));
        until_asked(&environment);
        let id = server.asked();
        let answer = environment.begin_ringer(&["answer", "last", "deny", "not this one"]);
        // A little later in every round, so that each may be the first.
        let later = std::time::Duration::from_millis(round % 10 * 20);
        std::thread::sleep(later); // tidy: sleep is the thing under test
        let is_allowed = server.allow_in_time(&id);
        let (code, said) = ended(answer);
        let request = model.request();
        assert_eq!(request.count_new("not this one"), usize::from(!is_allowed), "{}", request.news());
        assert_eq!(environment.project().join(format!("file-{round}")).exists(), is_allowed);
        match code {
            0 => assert!(!is_allowed, "it says that it was taken: {said}"),
            65 | 69 => assert!(is_allowed, "it says that it was not: {said}"),
            75 => {}
            _ => panic!("{code}: {said}"),
        }
        *(if is_allowed { &mut in_dialog } else { &mut by_command }) += 1;
        environment.until_open(0);
    }
    eprintln!("{by_command} by the command, {in_dialog} in the dialog");
    model.answer(Answer::Text("done"));
    environment.notified("complete");
    server.settle(&session);
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_question_is_answered_from_another_terminal() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_opencode(&model);
    let (_server, _session) = begin(&environment, &model);
    let option = |label: &str| json!({ "label": label, "description": format!("it is {label}") });
    let question =
        json!({ "question": "Which one?", "header": "Pick", "options": [option("Alpha"), option("Beta")] });
    model.answer(Answer::tool("question", json!({ "questions": [question] })));
    until_asked(&environment);
    let (code, said) = environment.try_ringer(&["answer", "2"]);
    assert_eq!(code, 0, "{said}");
    let request = model.request();
    assert!(request.count_new("Beta") > 0, "{}", request.news());
    assert_eq!(environment.complaints(), "");
}
