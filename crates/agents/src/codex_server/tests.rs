//! Conversations that were recorded with Codex 0.166.0, and what a server may say instead.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use proptest::prelude::*;
use ringer_core::agent::{AnswerMethod, PermissionRequest, PromptQuestion};
use serde_json::{Value, json};

use super::*;

const COMMAND: &str = "touch made && echo 'a b'";
const PATCH: &str = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch";
const ALWAYS: &str = "commands that start with: touch made";
const ALWAYS_FILES: &str = "changes of the same files, until this session ends: new.txt";

fn permission(tool: &str, request: &str, always: &[&str]) -> PromptContent {
    PromptContent::Permission(PermissionRequest {
        tool: tool.to_owned(),
        request: request.to_owned(),
        whole: true,
        always: always.iter().map(ToString::to_string).collect(),
    })
}

/// The prompt as Ringer's hook stores it.
fn command() -> PromptContent {
    permission("Bash", &format!("{COMMAND}\nWhy: May I touch a file?"), &[])
}

fn question(text: &str) -> PromptContent {
    PromptContent::Questions(vec![PromptQuestion {
        text: text.to_owned(),
        options: vec!["Alpha".to_owned(), "Beta".to_owned()],
        free_text: true,
        ..PromptQuestion::default()
    }])
}

fn recording(name: &str) -> Vec<(bool, Value)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/decide/codex_{name}.json"));
    let text = fs::read_to_string(path).unwrap().replace("VERSION", env!("CARGO_PKG_VERSION"));
    let messages: Vec<Value> = serde_json::from_str(&text).unwrap();
    messages.into_iter().map(|message| (message["dir"] == ">", message["msg"].clone())).collect()
}

fn thread_of(recording: &[(bool, Value)]) -> String {
    let resumed = recording.iter().find(|(_, message)| message["method"] == "thread/resume").unwrap();
    resumed.1["params"]["threadId"].as_str().unwrap().to_owned()
}

fn find_patch(call_id: &str) -> Option<String> {
    call_id.starts_with("call_").then(|| PATCH.to_owned())
}

/// Replays the server's part of a recording. Returns what Ringer sent, and the outcome.
fn play(recording: &[(bool, Value)], purpose: Purpose) -> (Vec<Value>, Result<Outcome, CodexServerError>) {
    let thread = thread_of(recording);
    let (mut conversation, first) = Conversation::begin(&thread, purpose, &find_patch);
    let mut sent = vec![first];
    for (_, message) in recording.iter().filter(|(is_ours, _)| !is_ours) {
        match conversation.receive(message) {
            Ok(Reaction::Send(messages)) => sent.extend(messages),
            Ok(Reaction::End(outcome)) => return (sent, Ok(outcome)),
            Err(error) => return (sent, Err(error)),
        }
    }
    let outcome = conversation.end();
    (sent, outcome)
}

/// Replays a recording of a possible answer: Ringer must send the same messages.
#[track_caller]
fn check(name: &str, shown: &PromptContent, answer: &Answer) {
    let recording = recording(name);
    let (sent, outcome) = play(&recording, Purpose::Answer { shown, answer });
    let recorded: Vec<Value> =
        recording.into_iter().filter(|(is_ours, _)| *is_ours).map(|(_, message)| message).collect();
    assert_eq!(sent, recorded);
    assert_eq!(outcome.unwrap(), Outcome::Taken);
}

/// Replays a recording with another answer, or for another prompt: no answer may be sent.
#[track_caller]
fn check_unanswered(name: &str, shown: &PromptContent, answer: &Answer) -> Result<Outcome, CodexServerError> {
    let (sent, outcome) = play(&recording(name), Purpose::Answer { shown, answer });
    assert!(sent.iter().all(|message| message.get("result").is_none()), "{sent:?}");
    outcome
}

fn deny(reason: Option<&str>) -> Answer {
    Answer::Deny { reason: reason.map(str::to_owned) }
}

#[test]
fn a_command_is_allowed() {
    check("command_allow", &command(), &Answer::Allow);
    check("command_allow", &permission("Bash", COMMAND, &[]), &Answer::Allow);
}

#[test]
fn a_command_is_always_allowed_if_what_that_allows_was_shown() {
    check("command_always", &permission("Bash", COMMAND, &[ALWAYS]), &Answer::AllowAlways);
    for always in [&[][..], &["commands that start with: touch"], &[ALWAYS, ALWAYS]] {
        let shown = permission("Bash", COMMAND, always);
        let outcome = check_unanswered("command_always", &shown, &Answer::AllowAlways);
        assert!(matches!(outcome, Err(CodexServerError::NotOffered)), "{outcome:?}");
    }
}

#[test]
fn the_reason_for_a_refusal_goes_before_it_into_the_same_turn() {
    check("command_deny", &command(), &deny(Some("not today")));
    let (sent, outcome) =
        play(&recording("command_deny"), Purpose::Answer { shown: &command(), answer: &deny(None) });
    assert_eq!(sent.last().unwrap()["result"], json!({ "decision": "decline" }));
    assert_eq!(outcome.unwrap(), Outcome::Taken);
}

#[test]
fn a_reason_that_comes_too_late_is_not_confirmed() {
    let mut recording = recording("command_deny");
    for (_, message) in &mut recording {
        if message["id"] == 4 {
            *message = json!({ "id": 4, "error": { "code": -32600, "message": "no active turn to steer" } });
        }
    }
    let answer = deny(Some("not today"));
    let (_, outcome) = play(&recording, Purpose::Answer { shown: &command(), answer: &answer });
    assert_eq!(outcome.unwrap(), Outcome::NotConfirmed);
}

#[test]
fn what_is_answered_in_the_pane_before_the_refusal_is_not_refused() {
    let mut recording = recording("command_deny");
    let resolved =
        recording.iter().position(|(_, message)| message["method"] == "serverRequest/resolved").unwrap();
    let resolved = recording.remove(resolved);
    let steered = recording.iter().position(|(is_ours, message)| !is_ours && message["id"] == 4).unwrap();
    recording.insert(steered, resolved);
    let answer = deny(Some("not today"));
    let (sent, outcome) = play(&recording, Purpose::Answer { shown: &command(), answer: &answer });
    assert!(sent.iter().all(|message| message.get("result").is_none()), "{sent:?}");
    assert_eq!(outcome.unwrap(), Outcome::NothingPending);
}

#[test]
fn a_change_of_files_is_allowed_by_its_patch() {
    check("file_change_allow", &permission("apply_patch", PATCH, &[]), &Answer::Allow);
    let other = permission("apply_patch", &PATCH.replace("hello", "bye"), &[]);
    assert_eq!(
        check_unanswered("file_change_allow", &other, &Answer::Allow).unwrap(),
        Outcome::NothingPending
    );
}

#[test]
fn changes_of_files_are_always_allowed_if_these_files_were_shown() {
    let always = |shown: &[&str]| {
        let shown = permission("apply_patch", PATCH, shown);
        play(&recording("file_change_allow"), Purpose::Answer { shown: &shown, answer: &Answer::AllowAlways })
    };
    let (sent, outcome) = always(&[ALWAYS_FILES]);
    assert_eq!(sent.last().unwrap()["result"], json!({ "decision": "acceptForSession" }));
    assert_eq!(outcome.unwrap(), Outcome::Taken);
    for shown in [&[][..], &["changes of the same files, until this session ends: other.txt"]] {
        let (sent, outcome) = always(shown);
        assert!(sent.iter().all(|message| message.get("result").is_none()), "{sent:?}");
        assert!(matches!(outcome, Err(CodexServerError::NotOffered)), "{outcome:?}");
    }
}

#[test]
fn a_question_is_answered() {
    let beta = Answer::Choices(vec![vec!["Beta".to_owned()]]);
    check("question", &question("Which one?"), &beta);
    let two = Answer::Choices(vec![vec!["Beta".to_owned()]; 2]);
    for answer in [two, Answer::Allow, deny(Some("no"))] {
        let outcome = check_unanswered("question", &question("Which one?"), &answer);
        assert!(matches!(outcome, Err(CodexServerError::NotOffered)), "{outcome:?}");
    }
}

#[test]
fn what_was_answered_in_the_pane_does_not_wait() {
    assert_eq!(
        check_unanswered("answered_in_pane", &command(), &Answer::Allow).unwrap(),
        Outcome::NothingPending
    );
    assert_eq!(
        play(&recording("answered_in_pane"), Purpose::Show { shown: None }).1.unwrap(),
        Outcome::NothingPending
    );
}

#[test]
fn only_what_was_shown_is_answered() {
    for shown in [
        permission("Bash", "touch made", &[]),
        permission("Bash", &format!("{COMMAND} && make deploy"), &[]),
        permission("Bash", "", &[]),
        permission("apply_patch", COMMAND, &[]),
        question("Which one?"),
    ] {
        for answer in [Answer::Allow, Answer::AllowAlways, deny(Some("no"))] {
            let outcome = check_unanswered("command_allow", &shown, &answer);
            assert_eq!(outcome.unwrap(), Outcome::NothingPending, "{shown:?}");
        }
    }
}

#[test]
fn what_was_not_shown_in_full_can_only_be_refused() {
    let PromptContent::Permission(mut request) = command() else { panic!("a permission") };
    request.request.truncate(10);
    request.whole = false;
    let shown = PromptContent::Permission(request);
    let outcome = check_unanswered("command_allow", &shown, &Answer::Allow);
    assert!(matches!(outcome, Err(CodexServerError::NotOffered)), "{outcome:?}");
    check("command_deny", &shown, &deny(Some("not today")));
}

#[test]
fn what_asks_for_more_than_a_command_is_left_to_its_dialog() {
    for (name, value) in [
        ("kind", json!("writeStdin")),
        ("networkApprovalContext", json!({ "host": "example.com", "protocol": "https" })),
        ("additionalPermissions", json!({ "network": { "enabled": true } })),
        ("availableDecisions", json!(["cancel"])),
    ] {
        let mut recording = recording("command_allow");
        for (_, message) in
            recording.iter_mut().filter(|(_, message)| message["params"]["command"].is_string())
        {
            message["params"][name] = value.clone();
        }
        let answer = Purpose::Answer { shown: &command(), answer: &Answer::Allow };
        let (sent, outcome) = play(&recording, answer);
        assert!(sent.iter().all(|message| message.get("result").is_none()), "{name}");
        assert!(matches!(outcome, Err(CodexServerError::DialogOnly)), "{name}: {outcome:?}");
        let Outcome::Pending(prompt) = play(&recording, Purpose::Show { shown: None }).1.unwrap() else {
            panic!("{name}")
        };
        assert_eq!(prompt.method, AnswerMethod::DialogOnly, "{name}");
    }
}

#[test]
fn what_waits_is_shown() {
    let waits = |name: &str| play(&recording(name), Purpose::Show { shown: None }).1.unwrap();
    let prompt = |content: PromptContent| {
        let method = AnswerMethod::ClientServer;
        Outcome::Pending(Prompt { content, method, transcript: None })
    };
    let shown = format!("{COMMAND}\nWhy: May I touch a file?");
    assert_eq!(waits("command_allow"), prompt(permission("Bash", &shown, &[ALWAYS])));
    assert_eq!(waits("file_change_allow"), prompt(permission("apply_patch", PATCH, &[ALWAYS_FILES])));
    let Outcome::Pending(asked) = waits("question") else { panic!("a question") };
    let Ok(choices) = asked.content.read_answer(&["2"]) else { panic!("an answer") };
    assert_eq!(choices, Answer::Choices(vec![vec!["Beta".to_owned()]]));
}

#[test]
fn what_was_shown_is_found_again_with_what_it_would_always_allow() {
    let show =
        |shown: &PromptContent| play(&recording("command_allow"), Purpose::Show { shown: Some(shown) }).1;
    let Outcome::Pending(prompt) = show(&command()).unwrap() else { panic!("it waits") };
    let PromptContent::Permission(request) = prompt.content else { panic!("a permission") };
    assert_eq!(request.always, [ALWAYS]);
    assert_eq!(show(&permission("Bash", "touch other", &[])).unwrap(), Outcome::NothingPending);
}

#[test]
fn another_session_is_not_loaded() {
    let recording = recording("command_allow");
    let (mut conversation, _) = Conversation::begin("another", Purpose::Show { shown: None }, &find_patch);
    let outcome = recording.iter().find_map(|(_, message)| conversation.receive(message).err());
    assert!(matches!(outcome, Some(CodexServerError::OtherSession)), "{outcome:?}");
}

#[test]
fn without_a_server_the_error_says_where_to_answer() {
    let home = tempfile::tempdir().unwrap();
    let paths = ClientPaths::new(home.path());
    let ask = || pending_prompt(&paths, "thread").unwrap_err();
    assert!(matches!(ask(), CodexServerError::NoServer));
    assert!(ask().to_string().contains("--no-daemon"));

    let directory = home.path().join(".codex/app-server-control");
    let socket = directory.join("app-server-control.sock");
    fs::create_dir_all(&directory).unwrap();
    fs::write(&socket, "").unwrap();
    assert!(matches!(ask(), CodexServerError::UntrustedSocket(_)));
    fs::remove_file(&socket).unwrap();
    symlink(home.path().join("gone"), &socket).unwrap();
    assert!(matches!(ask(), CodexServerError::NoServer), "temporary files were cleared");
    fs::remove_file(&socket).unwrap();
    drop(UnixListener::bind(&socket).unwrap());
    assert!(matches!(ask(), CodexServerError::NoServer), "its process was killed");
    if test_support::is_root() {
        std::os::unix::fs::chown(&socket, Some(65_534), None).unwrap();
        assert!(matches!(ask(), CodexServerError::UntrustedSocket(_)), "another user's");
    }
}

#[test]
fn a_server_that_is_stopped_is_not_waited_for() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join(".codex/app-server-control");
    fs::create_dir_all(&directory).unwrap();
    let _listener = UnixListener::bind(directory.join("app-server-control.sock")).unwrap();
    let begin = Instant::now();
    let error = pending_prompt(&ClientPaths::new(home.path()), "thread").unwrap_err();
    assert!(matches!(error, CodexServerError::Timeout), "{error:?}");
    assert!(begin.elapsed() < TIME_TO_FIND * 3);
}

/// Any messages built from the server's own words, but not the command that was shown.
fn garbage() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "thread",
        "turn",
        "initialize",
        "active",
        "waitingOnApproval",
        "item/commandExecution/requestApproval",
        "item/fileChange/requestApproval",
        "item/tool/requestUserInput",
        "serverRequest/resolved",
        "thread/status/changed",
        "accept",
        "/bin/bash -lc 'touch other'",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..6_u64).prop_map(Value::from),
        words.prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let keys = prop::sample::select(vec![
        "id",
        "method",
        "params",
        "result",
        "error",
        "message",
        "data",
        "thread",
        "threadId",
        "turnId",
        "itemId",
        "status",
        "type",
        "activeFlags",
        "command",
        "questions",
        "question",
        "options",
        "requestId",
        "availableDecisions",
    ]);
    leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(keys.clone(), inner, 0..7).prop_map(|members| {
                Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn garbage_is_never_answered(
        messages in prop::collection::vec(garbage(), 1..12), recorded in 0..12_usize, allows: bool
    ) {
        let recording = recording("command_allow");
        let thread = thread_of(&recording);
        let answer = if allows { Answer::Allow } else { deny(Some("no")) };
        let shown = command();
        let purpose = Purpose::Answer { shown: &shown, answer: &answer };
        let (mut conversation, _) = Conversation::begin(&thread, purpose, &find_patch);
        // Up to the request that waits.
        let begin = recording.iter().filter(|(is_ours, _)| !is_ours).map(|(_, message)| message);
        let begin = begin.take_while(|message| !message["params"]["command"].is_string()).take(recorded);
        for message in begin.chain(&messages) {
            match conversation.receive(message) {
                Ok(Reaction::Send(sent)) => {
                    prop_assert!(sent.iter().all(|message| message.get("result").is_none()), "{sent:?}");
                }
                Ok(Reaction::End(_)) | Err(_) => break,
            }
            prop_assert!(!conversation.has_answered());
        }
    }

    #[test]
    fn a_request_with_anything_else_in_it_is_not_allowed(
        key in prop::sample::select(vec!["command", "threadId", "turnId", "itemId", "kind"]), value in garbage()
    ) {
        let mut recording = recording("command_allow");
        let mut is_same = false;
        let thread = thread_of(&recording);
        for (_, message) in recording.iter_mut().filter(|(_, message)| message["params"]["command"].is_string()) {
            is_same = message["params"][key] == value;
            message["params"][key] = value.clone();
        }
        // The ids of the turn and of the call say nothing of what is asked.
        let is_harmless = is_same || (matches!(key, "turnId" | "itemId") && value.is_string())
            || (key == "kind" && value.is_null());
        prop_assume!(!is_harmless && value != json!(thread));
        let (sent, _) = play(&recording, Purpose::Answer { shown: &command(), answer: &Answer::Allow });
        prop_assert!(sent.iter().all(|message| message.get("result").is_none()));
    }
}
