//! Hooks that wait beside a dialog, with a real journal: which prompt is answered, by whom, and when a hook gives up.

#![expect(clippy::unwrap_used, reason = "helpers of tests, outside any test function")]

use std::fs::{self, File};
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ringer_agents::answering::{AnswerResult, give_answer};
use ringer_agents::client::{Client, ClientPaths};
use ringer_agents::hook::{HookContext, call};
use ringer_core::Sender;
use ringer_core::agent::{Answer, PromptContent};
use ringer_core::attention::AnsweredWith;
use ringer_core::message::{Mark, MessageOrigin, Tag};
use ringer_journal::{
    DecideOutcome, Decision, Home, HubLock, IdSource, Journal, LockTimeout, StoredPrompt, monotonic,
};
use serde_json::{Value, json};
use test_support::until;

use crate::hook::{NOWHERE, SESSION, recorded};

struct Test {
    directory: tempfile::TempDir,
}

/// A hook process, run as a client would run it.
struct RunningHook {
    thread: JoinHandle<()>,
    output: Option<PipeReader>,
}

impl RunningHook {
    /// Waits until it exits. Returns its output.
    fn printed(mut self) -> String {
        let mut text = String::new();
        self.output.take().unwrap().read_to_string(&mut text).unwrap();
        self.thread.join().unwrap();
        text
    }
}

impl Test {
    fn new() -> Self {
        let test = Self { directory: tempfile::tempdir().unwrap() };
        test.hook("UserPromptSubmit", &json!({ "session_id": SESSION, "cwd": NOWHERE, "prompt": "go" }))
            .printed();
        test
    }

    fn home(&self) -> Home {
        Home::new(self.directory.path().join("home"))
    }

    fn journal(&self) -> Journal {
        Journal::open(&self.home()).unwrap()
    }

    fn hook(&self, event: &'static str, input: &Value) -> RunningHook {
        self.hook_with(event, input, &[])
    }

    fn hook_with(
        &self,
        event: &'static str,
        input: &Value,
        variables: &'static [(&'static str, &'static str)],
    ) -> RunningHook {
        let (output, writer) = io::pipe().unwrap();
        let (home, input) = (self.home(), input.to_string());
        let thread = thread::spawn(move || run(home, event, &input, writer, variables));
        RunningHook { thread, output: Some(output) }
    }

    /// Starts a hook beside a permission dialog. Also returns the prompt, once the hook waits.
    fn asked(&self) -> (RunningHook, StoredPrompt) {
        let hook = self.hook("PermissionRequest", &permission());
        (hook, self.until_waited_for())
    }

    #[track_caller]
    fn until_waited_for(&self) -> StoredPrompt {
        let mut journal = self.journal();
        until("a hook waits", || {
            let open = journal.open_prompts().unwrap();
            open.first().is_some_and(|prompt| journal.is_waited_for(&prompt.key).unwrap())
        });
        journal.open_prompts().unwrap().remove(0)
    }

    fn decide(&self, prompt: &StoredPrompt, answer: Answer, by: &str) -> DecideOutcome {
        let decision = decision(answer, by);
        self.journal().decide(prompt, &decision, &MessageOrigin::default(), &IdSource::now()).unwrap()
    }
}

fn run(home: Home, event: &str, input: &str, mut writer: PipeWriter, variables: &[(&str, &str)]) {
    let stdout = writer.try_clone().unwrap();
    let at = HookContext {
        home,
        clock: &monotonic,
        origin: &MessageOrigin::default,
        process: None,
        manager: None,
        name: None,
        variable: &|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        },
        paths: &|| ClientPaths::new(Path::new(NOWHERE)),
        stdout: Some(stdout.as_fd()),
        before_wait: &|_| {},
    };
    // Only opencode's event names contain a dot.
    let client = if event.contains('.') { Client::Opencode } else { Client::Claude };
    // One case is a client that has exited.
    let _ = call(client, event, input.as_bytes(), &mut writer, &at);
}

fn permission() -> Value {
    recorded("claude_PermissionRequest_Write", SESSION)
}

fn decision(answer: Answer, by: &str) -> Decision {
    Decision { answer, by: Sender::new(by).unwrap(), with: AnsweredWith::Command, at_ms: 1 }
}

fn behaviour(printed: &str) -> String {
    let output: Value = serde_json::from_str(printed).unwrap();
    output["hookSpecificOutput"]["decision"]["behavior"].as_str().unwrap().to_owned()
}

#[test]
fn the_waiting_hook_prints_the_answer_and_the_journal_says_who_gave_it() {
    let test = Test::new();
    let (hook, prompt) = test.asked();
    assert_eq!(test.decide(&prompt, Answer::Allow, "person"), DecideOutcome::Accepted);
    assert_eq!(behaviour(&hook.printed()), "allow");
    let mut journal = test.journal();
    let known = journal.prompt(&prompt.key).unwrap().unwrap();
    assert!(known.handed_ms.is_some() && known.ended_ms.is_none(), "handed over, and not over yet");
    let messages = journal.messages_after(0, usize::MAX).unwrap();
    let mark = messages.iter().find(|message| message.draft.tag == Tag::Mark(Mark::Decision)).unwrap();
    assert_eq!((mark.draft.sender.as_str(), mark.draft.body.as_str()), ("person", "allow"));
    assert_eq!(mark.draft.key.as_deref(), Some(prompt.key.as_str()));
    // The tool has run: only now the prompt ends.
    test.hook("PostToolUse", &recorded("claude_PostToolUse_Write", SESSION)).printed();
    assert!(test.journal().prompt(&prompt.key).unwrap().unwrap().ended_ms.is_some());
}

#[test]
fn the_hooks_of_a_person_and_of_a_project_wait_for_the_same_answer() {
    let test = Test::new();
    let (first, prompt) = test.asked();
    let second = test.hook("PermissionRequest", &permission());
    let bells = test.directory.path().join("home/bells");
    until("both wait", || {
        let names = fs::read_dir(&bells).unwrap().flatten().map(|entry| entry.path());
        names.filter(|path| path.extension().is_some_and(|end| end == "fifo")).count() == 2
    });
    assert_eq!(test.journal().open_prompts().unwrap().len(), 1);
    test.decide(&prompt, Answer::Deny { reason: Some("no".into()) }, "person");
    for hook in [first, second] {
        assert_eq!(behaviour(&hook.printed()), "deny");
    }
}

#[test]
fn of_ten_answers_at_once_one_counts_and_the_others_learn_whose() {
    let test = Test::new();
    let (hook, prompt) = test.asked();
    let outcomes: Vec<DecideOutcome> = thread::scope(|scope| {
        let answers = (0..10).map(|number| {
            let (test, prompt) = (&test, &prompt);
            let answer = if number % 2 == 0 { Answer::Allow } else { Answer::Deny { reason: None } };
            scope.spawn(move || test.decide(prompt, answer, &format!("p{number}")))
        });
        let answers: Vec<_> = answers.collect();
        answers.into_iter().map(|answer| answer.join().unwrap()).collect()
    });
    let first = outcomes.iter().position(|outcome| *outcome == DecideOutcome::Accepted).unwrap();
    for (number, outcome) in outcomes.iter().enumerate().filter(|(number, _)| *number != first) {
        let DecideOutcome::AnsweredBefore(before) = outcome else { panic!("{number}: {outcome:?}") };
        assert_eq!(before.by.as_str(), format!("p{first}"));
    }
    assert_eq!(behaviour(&hook.printed()), if first % 2 == 0 { "allow" } else { "deny" });
}

#[test]
fn a_hook_gives_up_in_silence_when_the_session_goes_on() {
    for (event, input) in [
        ("PostToolUse", recorded("claude_PostToolUse_Write", SESSION)),
        ("Stop", json!({ "session_id": SESSION, "cwd": NOWHERE, "last_assistant_message": "done" })),
        ("UserPromptSubmit", json!({ "session_id": SESSION, "cwd": NOWHERE, "prompt": "no, rather" })),
        ("SessionEnd", json!({ "session_id": SESSION, "cwd": NOWHERE, "reason": "other" })),
    ] {
        let test = Test::new();
        let (hook, prompt) = test.asked();
        test.hook(event, &input).printed();
        assert_eq!(hook.printed(), "", "{event}");
        assert_eq!(test.decide(&prompt, Answer::Allow, "person"), DecideOutcome::Over, "{event}");
    }
}

#[test]
fn a_hook_ends_with_its_client_and_then_the_dialog_can_only_be_answered_itself() {
    let test = Test::new();
    let (mut hook, prompt) = test.asked();
    drop(hook.output.take());
    hook.thread.join().unwrap();
    let mut journal = test.journal();
    assert!(!journal.is_waited_for(&prompt.key).unwrap());
    let result = give_answer(
        &mut journal,
        &ClientPaths::new(Path::new(NOWHERE)),
        &prompt,
        &decision(Answer::Allow, "person"),
        &MessageOrigin::default(),
        &monotonic,
    );
    assert!(matches!(result.unwrap(), AnswerResult::DialogOnly(_)));
    assert!(journal.prompt(&prompt.key).unwrap().unwrap().decision.is_none(), "nothing was answered");
}

#[test]
fn an_event_that_is_in_the_spool_is_waited_for_all_the_same() {
    let test = Test::new();
    let lock = File::options().append(true).open(test.directory.path().join("home/write.lock")).unwrap();
    lock.lock().unwrap();
    let hook = test.hook("PermissionRequest", &permission());
    let spool = test.directory.path().join("home/spool");
    until("it is spooled", || fs::read_dir(&spool).is_ok_and(|mut files| files.next().is_some()));
    lock.unlock().unwrap();
    let prompt = test.until_waited_for();
    test.decide(&prompt, Answer::Allow, "person");
    assert_eq!(behaviour(&hook.printed()), "allow");
}

/// A running hub may take a moment.
#[test]
fn an_event_that_only_the_hub_may_apply_is_waited_for() {
    let test = Test::new();
    let lock = File::options().append(true).open(test.directory.path().join("home/write.lock")).unwrap();
    lock.lock().unwrap();
    let hub = HubLock::acquire(&test.home()).unwrap().unwrap();
    let hook = test.hook("PermissionRequest", &permission());
    let mut journal = test.journal();
    until("it is spooled", || journal.has_spooled_events().unwrap());
    lock.unlock().unwrap();
    thread::sleep(Duration::from_millis(200)); // tidy: sleep is the thing under test
    assert!(journal.open_prompts().unwrap().is_empty(), "the hook does not apply it");
    journal.apply_spool(&hub.spool_lock(), &monotonic, LockTimeout::COMMAND).unwrap();
    let prompt = test.until_waited_for();
    test.decide(&prompt, Answer::Allow, "person");
    assert_eq!(behaviour(&hook.printed()), "allow");
}

#[test]
fn a_subagent_and_a_run_without_a_person_are_never_waited_for() {
    let test = Test::new();
    let mut input = permission();
    input["agent_id"] = json!("a77b74993763e8a33");
    assert_eq!(test.hook("PermissionRequest", &input).printed(), "");
    assert_eq!(test.journal().open_prompts().unwrap().len(), 1, "it is told, and can be shown");
    let test = Test::new();
    let unattended = &[("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")];
    assert_eq!(test.hook_with("PermissionRequest", &permission(), unattended).printed(), "");
    assert!(
        test.journal().open_prompts().unwrap().is_empty(),
        "it is refused, so there is nothing to answer"
    );
    let waiting = &[("CLAUDE_CODE_ENTRYPOINT", "sdk-cli"), ("RINGER_WAIT_PERMISSION", "1h")];
    let hook = test.hook_with("PermissionRequest", &permission(), waiting);
    let prompt = test.until_waited_for();
    test.decide(&prompt, Answer::Allow, "person");
    assert_eq!(behaviour(&hook.printed()), "allow");
    let short = &[("CLAUDE_CODE_ENTRYPOINT", "sdk-cli"), ("RINGER_WAIT_PERMISSION", "10ms")];
    let test = Test::new();
    assert_eq!(test.hook_with("PermissionRequest", &permission(), short).printed(), "");
}

#[test]
fn an_answer_that_no_hook_took_is_taken_back() {
    let test = Test::new();
    let (mut hook, prompt) = test.asked();
    assert_eq!(test.decide(&prompt, Answer::Allow, "person"), DecideOutcome::Accepted);
    drop(hook.output.take());
    hook.thread.join().unwrap();
    let mut journal = test.journal();
    journal.withdraw_decision(&prompt).unwrap();
    let known = journal.prompt(&prompt.key).unwrap().unwrap();
    // It may have been written before the client went.
    assert_eq!(known.decision.is_none(), known.handed_ms.is_none());
}

#[test]
fn a_home_that_is_removed_ends_the_hook() {
    let test = Test::new();
    let (hook, _) = test.asked();
    let home = test.directory.path().join("home");
    // The hook may be about to write there, and then the directory is not empty at once.
    until("the home is removed", || fs::remove_dir_all(&home).is_ok());
    assert_eq!(hook.printed(), "");
    assert!(!home.exists(), "and nothing is made anew");
}

#[test]
fn confirmed_only_when_the_session_goes_on() {
    let test = Test::new();
    let (hook, prompt) = test.asked();
    let answering = {
        let (home, prompt) = (test.home(), prompt.clone());
        thread::spawn(move || {
            let mut journal = Journal::open(&home).unwrap();
            let paths = ClientPaths::new(Path::new(NOWHERE));
            let decision = decision(Answer::Allow, "person");
            give_answer(&mut journal, &paths, &prompt, &decision, &MessageOrigin::default(), &monotonic)
                .unwrap()
        })
    };
    assert_eq!(behaviour(&hook.printed()), "allow");
    test.hook("PostToolUse", &recorded("claude_PostToolUse_Write", SESSION)).printed();
    assert_eq!(answering.join().unwrap(), AnswerResult::Taken);
    let test = Test::new();
    let (hook, prompt) = test.asked();
    let mut journal = test.journal();
    let paths = ClientPaths::new(Path::new(NOWHERE));
    let decision = decision(Answer::Allow, "person");
    let result = give_answer(&mut journal, &paths, &prompt, &decision, &MessageOrigin::default(), &monotonic);
    assert_eq!(result.unwrap(), AnswerResult::NotConfirmed, "the client says nothing");
    assert_eq!(behaviour(&hook.printed()), "allow");
}

/// The notification is sent then, so that a popup can offer the options.
#[test]
fn a_question_is_known_from_the_hook_before_its_dialog_and_answered_beside_it() {
    let test = Test::new();
    let before = test.hook("PreToolUse", &recorded("claude_PreToolUse_AskUserQuestion", SESSION));
    assert_eq!(before.printed(), "");
    let open = test.journal().open_prompts().unwrap();
    assert!(matches!(open[0].prompt.content, PromptContent::Questions(_)), "{open:?}");
    let hook = test.hook("PermissionRequest", &recorded("claude_PermissionRequest_AskUserQuestion", SESSION));
    let prompt = test.until_waited_for();
    assert_eq!(prompt.key, open[0].key);
    let PromptContent::Questions(questions) = &prompt.prompt.content else { panic!("questions") };
    let choices = questions.iter().map(|question| vec![question.options[0].clone()]).collect();
    test.decide(&prompt, Answer::Choices(choices), "person");
    assert!(hook.printed().contains("\"answers\""));
    let other = test.hook("PreToolUse", &recorded("claude_PreToolUse_Bash", SESSION));
    assert_eq!(other.printed(), "");
    assert_eq!(test.journal().open_prompts().unwrap().len(), 1, "only questions are known before");
}

/// Both are calls of one tool for one file, so they share a notification: only what it shows can be allowed.
#[test]
fn an_answer_is_not_given_to_another_call_that_looks_alike() {
    let test = Test::new();
    let (hook, prompt) = test.asked();
    let mut other = permission();
    other["tool_input"]["content"] = json!("something else");
    assert_eq!(test.hook("PermissionRequest", &other).printed(), "", "it is left to its own dialog");
    assert_eq!(test.decide(&prompt, Answer::Allow, "person"), DecideOutcome::Accepted);
    assert_eq!(behaviour(&hook.printed()), "allow");
}

#[test]
fn an_answer_was_too_late_if_opencode_says_that_it_took_another_one() {
    for (reply, expected) in [("reject", AnswerResult::Taken), ("once", AnswerResult::Over)] {
        let test = Test::new();
        let asked = json!({ "session_id": "ses_0123456789abcdef", "cwd": NOWHERE, "properties": {
            "id": "per_1", "permission": "bash", "metadata": { "command": "touch a" } } });
        test.hook("permission.asked", &asked).printed();
        let hook = test.hook("permission.waiting", &asked);
        let prompt = test.until_waited_for();
        let result = thread::scope(|scope| {
            let answered = scope.spawn(|| {
                let deny = decision(Answer::Deny { reason: None }, "person");
                let paths = ClientPaths::new(Path::new(NOWHERE));
                let origin = MessageOrigin::default();
                give_answer(&mut test.journal(), &paths, &prompt, &deny, &origin, &monotonic).unwrap()
            });
            assert_eq!(hook.printed(), r#"{"permission":{"reply":"reject"}}"#);
            let replied = json!({ "session_id": "ses_0123456789abcdef", "cwd": NOWHERE,
                "properties": { "requestID": "per_1", "reply": reply } });
            test.hook("permission.replied", &replied).printed();
            answered.join().unwrap()
        });
        assert_eq!(result, expected, "{reply}");
    }
}
