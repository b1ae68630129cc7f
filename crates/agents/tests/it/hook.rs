//! Hook calls from input to answer, with a real journal: the agent's state, and the notices.

#![expect(clippy::unwrap_used, reason = "helpers of tests, outside any test function")]

use std::cell::Cell;
use std::fs;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use ringer_agents::client::{Client, ClientPaths};
use ringer_agents::hook::{HookContext, HookError, call};
use ringer_core::agent::{AgentState, AgentTimeouts, BlockedOn};
use ringer_core::conversation::system_prompt;
use ringer_core::message::{Agent, Mark, MessageOrigin, SessionNonce, Tag};
use ringer_core::{Draft, Kind, Message, MessageId, Recipient, Scope, Sender};
use ringer_journal::{Home, IdSource, Journal};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The session of most recorded inputs of Claude Code, and its agent.
pub(crate) const SESSION: &str = "6be1e699-d2b2-442c-995b-a5ac36193cd6";
pub(crate) const AGENT: &str = "claude-6be1e699";
/// Not in a repository.
pub(crate) const NOWHERE: &str = "/nowhere";

/// A home, and a clock that the test moves.
pub(crate) struct TestEnvironment {
    directory: TempDir,
    mono: Cell<Duration>,
    /// `RINGER_MANAGER`.
    pub(crate) manager: Option<&'static str>,
    /// `RINGER_AGENT`.
    pub(crate) name: Option<&'static str>,
    /// A run of `claude -p`.
    unattended: bool,
}

/// Strips what a session's first answer says about notifications, and nonces, which differ.
fn without_nonces(answer: &str) -> String {
    let strip = |text: &str| {
        let mut parts = text.split(" nonce=\\\"");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| text + &part[34..])
    };
    let about = serde_json::to_string(&system_prompt(&SessionNonce::new([0; 16]))).unwrap();
    let about = strip(about.trim_matches('"'));
    let rest = strip(answer).replacen(&format!("{about}\\n\\n"), "", 1).replacen(&about, "", 1);
    if rest != answer && rest.contains("ontext\":\"\"") { String::new() } else { rest }
}

/// A recorded input, with the session replaced.
pub(crate) fn recorded(name: &str, session: &str) -> Value {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hooks");
    let mut input: Value =
        serde_json::from_slice(&fs::read(folder.join(format!("{name}.json"))).unwrap()).unwrap();
    let field = if name == "codex_notify" { "thread-id" } else { "session_id" };
    input[field] = json!(session);
    input
}

impl TestEnvironment {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self {
            directory,
            mono: Cell::new(Duration::from_secs(1000)),
            manager: None,
            name: None,
            unattended: false,
        }
    }

    pub(crate) fn home(&self) -> Home {
        Home::new(self.directory.path().join("home"))
    }

    pub(crate) fn journal(&self) -> Journal {
        Journal::open(&self.home()).unwrap()
    }

    pub(crate) fn pass(&self, seconds: u64) {
        self.mono.set(self.mono.get() + Duration::from_secs(seconds));
    }

    /// A hook call that writes to `out`.
    pub(crate) fn call_into(
        &self,
        client: Client,
        event: &str,
        input: &Value,
        out: &mut impl Write,
    ) -> Result<(), HookError> {
        let (_, unread) = io::pipe().unwrap();
        let at = HookContext {
            home: self.home(),
            clock: &|| self.mono.get(),
            origin: &MessageOrigin::default,
            process: None,
            manager: self.manager.map(str::to_owned),
            name: self.name.map(str::to_owned),
            variable: &|name| {
                (self.unattended && name == "CLAUDE_CODE_ENTRYPOINT").then(|| "sdk-cli".to_owned())
            },
            paths: &|| ClientPaths::new(std::path::Path::new(NOWHERE)),
            // No client reads the output, so no hook waits for the person.
            stdout: Some(unread.as_fd()),
            before_wait: &|_| {},
        };
        call(client, event, input.to_string().as_bytes(), out, &at).map(drop)
    }

    /// Calls a hook and returns its answer without the text about notifications and without nonces.
    pub(crate) fn call(&self, client: Client, event: &str, input: &Value) -> String {
        without_nonces(&self.whole_call(client, event, input))
    }

    /// Calls a hook and returns its answer.
    pub(crate) fn whole_call(&self, client: Client, event: &str, input: &Value) -> String {
        let mut out = Vec::new();
        self.call_into(client, event, input, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Replays one recorded input in a session, a second after the last one.
    pub(crate) fn play_in(&self, session: &str, name: &str) -> String {
        self.pass(1);
        let mut parts = name.split('_');
        let (client, event) = (parts.next().unwrap().parse().unwrap(), parts.next().unwrap());
        self.call(client, event, &recorded(name, session))
    }

    pub(crate) fn play(&self, name: &str) -> String {
        self.play_in(SESSION, name)
    }

    /// Replays recorded inputs, none of which is answered.
    #[track_caller]
    pub(crate) fn play_all(&self, names: &[&str]) {
        for name in names {
            assert_eq!(self.play(name), "", "{name}");
        }
    }

    /// All messages except marks that resolve earlier notices.
    pub(crate) fn messages(&self) -> Vec<Message> {
        let mut messages = self.journal().messages_after(0, usize::MAX).unwrap();
        messages.retain(|message| message.draft.tag != Tag::Mark(Mark::Resolve));
        messages
    }

    /// The marks that resolve earlier notices.
    fn ended(&self) -> Vec<String> {
        let messages = self.journal().messages_after(0, usize::MAX).unwrap();
        let ended = messages.into_iter().filter(|message| message.draft.tag == Tag::Mark(Mark::Resolve));
        ended.map(|message| message.draft.body).collect()
    }

    /// The notices, as `kind: text`.
    pub(crate) fn told(&self) -> Vec<String> {
        let words = |message: &Message| format!("{}: {}", message.draft.tag.as_str(), message.draft.body);
        self.messages().iter().map(words).collect()
    }

    pub(crate) fn state(&self) -> AgentState {
        self.journal().agent_state(&agent()).unwrap().unwrap()
    }

    /// Sends a message to an agent.
    pub(crate) fn send(&self, to: &str, text: &str) -> MessageId {
        self.send_to(Recipient::parse(to).unwrap(), "w1", text)
    }

    pub(crate) fn send_to(&self, recipient: Recipient, from: &str, text: &str) -> MessageId {
        let mut draft = Draft::new(Scope::global(), Sender::new(from).unwrap(), Kind::Status, text).unwrap();
        draft.recipient = recipient;
        self.journal().append(&draft, &IdSource::now()).unwrap()
    }

    /// The receipt state of a message.
    pub(crate) fn receipt(&self, id: &MessageId) -> String {
        self.journal().receipts(id.as_str()).unwrap()[0].state.clone()
    }
}

pub(crate) fn agent() -> Agent {
    Agent::new(AGENT).unwrap()
}

/// What entered the turn: the context, or the reason to continue.
#[track_caller]
pub(crate) fn entered(answer: &str) -> String {
    if answer.is_empty() {
        return String::new();
    }
    let answer: Value = serde_json::from_str(answer).unwrap();
    let parts = [&answer["hookSpecificOutput"]["additionalContext"], &answer["reason"]];
    let parts = parts.into_iter().chain([&answer["append"], &answer["prompt"]]);
    parts.filter_map(Value::as_str).collect()
}

/// The text of one block.
pub(crate) fn block(source: &str, text: &str) -> String {
    format!("<notification source=\"{source}\">\n{text}\n</notification>")
}

/// An output that cannot be written to.
pub(crate) struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_whole_session_of_claude_code() {
    use AgentState::{Blocked, Done, Exited, Ready, Working};
    let environment = TestEnvironment::new();
    let permission = Blocked(BlockedOn::Permission);
    for (name, state, told) in [
        ("claude_SessionStart", Ready, 0),
        ("claude_UserPromptSubmit", Working, 0),
        ("claude_PreToolUse_Bash", Working, 0),
        ("claude_PostToolUse_Bash", Working, 0),
        ("claude_PostToolBatch", Working, 0),
        ("claude_PreToolUse_Write", Working, 0),
        ("claude_PermissionRequest_Write", permission, 1),
        ("claude_Notification_permission_prompt", permission, 1),
        ("claude_PostToolUse_Write", Working, 1),
        ("claude_MessageDisplay", Working, 1),
        ("claude_Stop", Done, 2),
        ("claude_Notification_idle_prompt", Done, 3),
        ("claude_Notification_idle_prompt", Done, 3),
        ("claude_SessionEnd", Exited, 3),
    ] {
        assert_eq!(environment.play(name), "", "{name}");
        assert_eq!((environment.state(), environment.messages().len()), (state, told), "{name}");
    }
    assert_eq!(
        environment.told(),
        [
            "waiting: Agent claude-6be1e699 needs permission: Write: out.txt",
            "complete: Manager claude-6be1e699 completed its goal: All finished now, thanks for waiting.",
            "waiting: Manager claude-6be1e699 is waiting: Claude is waiting for your input",
        ]
    );
}

#[test]
fn a_permission_may_be_told_of_late_and_is_told_of_once() {
    let environment = TestEnvironment::new();
    environment.play_all(&[
        "claude_UserPromptSubmit",
        "claude_PreToolUse_Write",
        "claude_PermissionRequest_Write",
    ]);
    environment.pass(6);
    environment.play("claude_Notification_permission_prompt");
    environment.pass(60);
    environment.play("claude_Notification_permission_prompt");
    assert_eq!(environment.told().len(), 1, "{:?}", environment.told());
}

#[test]
fn what_ends_a_turn_is_told_once() {
    let check = |inputs: &[&str], told: &[&str]| {
        let environment = TestEnvironment::new();
        environment.play_all(&["claude_SessionStart", "claude_UserPromptSubmit"]);
        environment.play_all(inputs);
        assert_eq!(environment.told(), told, "{inputs:?}");
    };
    let asks = "question: Agent claude-6be1e699 asks: Which? (A / B)";
    check(&["claude_PreToolUse_AskUserQuestion", "claude_PermissionRequest_AskUserQuestion"], &[asks]);
    check(&["claude_PermissionRequest_AskUserQuestion"], &[asks]);
    let failed = world_error();
    check(&["claude_StopFailure", "claude_SessionEnd"], &[&failed]);
    check(&["claude_SubagentStart", "claude_SubagentStop", "claude_FileChanged"], &[]);
}

/// The notice of the recorded failure, in the words of the core.
fn world_error() -> String {
    let environment = TestEnvironment::new();
    environment.play_all(&["claude_UserPromptSubmit", "claude_StopFailure"]);
    let told = environment.told();
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("error: ") && told[0].contains("API Error: 400 mock bad"), "{told:?}");
    told[0].clone()
}

#[test]
fn a_turn_that_ends_without_a_word_ended_badly() {
    let environment = TestEnvironment::new();
    environment.play_all(&["claude_UserPromptSubmit", "claude_SessionEnd"]);
    assert_eq!(environment.messages().len(), 1);
    assert_eq!(environment.messages()[0].draft.category.as_deref(), Some("abnormal_stop"));
}

#[test]
fn work_that_goes_on_and_a_marker_are_no_completion() {
    let stop = |field: &str, value: Value| {
        let environment = TestEnvironment::new();
        environment.play("claude_UserPromptSubmit");
        let mut input = recorded("claude_Stop", SESSION);
        input[field] = value;
        environment.call(Client::Claude, "Stop", &input);
        (environment.told(), environment.state())
    };
    let subagent = json!([{"id": "b1", "type": "subagent", "status": "running"}]);
    assert_eq!(stop("background_tasks", subagent), (vec![], AgentState::Done));
    let server = json!([{"id": "b1", "type": "shell", "status": "running", "command": "npm run dev"}]);
    let (told, state) = stop("background_tasks", server);
    assert!(told[0].contains("completed its goal (1 background task runs on): "), "{told:?}");
    assert_eq!(state, AgentState::Done);
    let listener = json!([{"type": "shell", "status": "running", "command": "ringer listen --timeout 300"}]);
    assert_eq!(stop("background_tasks", listener).0.len(), 1, "our own listener does not count");
    let (told, state) = stop("last_assistant_message", json!("Which port?\n\nWAITING"));
    assert_eq!(told, ["waiting: Manager claude-6be1e699 is waiting: Which port?"]);
    assert_eq!(state, AgentState::Blocked(BlockedOn::Input));
}

#[test]
fn a_subagent_neither_speaks_nor_ends_the_turn() {
    let environment = TestEnvironment::new();
    environment.play("claude_UserPromptSubmit");
    for event in ["PostToolUse", "Stop", "SubagentStop", "StopFailure"] {
        let input = json!({"session_id": SESSION, "cwd": NOWHERE, "agent_id": "a1", "tool_name": "Bash"});
        assert_eq!(environment.call(Client::Claude, event, &input), "", "{event}");
    }
    assert_eq!((environment.told(), environment.state()), (vec![], AgentState::Working));
}

#[test]
fn the_other_clients() {
    for (names, told) in [
        (
            &[
                "codex_UserPromptSubmit",
                "codex_PreToolUse_Bash",
                "codex_PermissionRequest_Bash",
                "codex_PostToolUse_Bash",
                "codex_Stop",
                "codex_notify",
            ][..],
            ["waiting", "complete"],
        ),
        (
            &[
                "gemini_SessionStart",
                "gemini_BeforeAgent",
                "gemini_BeforeTool_run_shell_command",
                "gemini_Notification_ToolPermission",
                "gemini_AfterTool_run_shell_command",
                "gemini_AfterAgent",
                "gemini_SessionEnd",
            ],
            ["waiting", "complete"],
        ),
    ] {
        let environment = TestEnvironment::new();
        environment.play_all(names);
        let kinds: Vec<String> =
            environment.messages().iter().map(|message| message.draft.tag.as_str().to_owned()).collect();
        assert_eq!(kinds, told, "{names:?}");
        assert_eq!(environment.ended(), ["went_on"], "the permission was given");
    }
}

#[test]
fn a_worker_reports_to_its_manager_and_to_the_rest() {
    let mut environment = TestEnvironment::new();
    environment.manager = Some("boss");
    environment.play_all(&["claude_SessionStart", "claude_UserPromptSubmit", "claude_Stop"]);
    let recipients: Vec<String> =
        environment.messages().iter().map(|message| message.draft.recipient.to_string()).collect();
    assert_eq!(recipients, ["agent:boss", "default"]);
}

#[test]
fn what_changes_nothing_writes_nothing() {
    let environment = TestEnvironment::new();
    environment.play_all(&["claude_UserPromptSubmit", "claude_PostToolUse_Bash"]);
    let size = |environment: &TestEnvironment| {
        let path = environment.home().path().join("ringer.db-wal");
        fs::metadata(path).map(|data| (data.len(), data.modified().unwrap())).unwrap()
    };
    let before = size(&environment);
    environment.play_all(&["claude_PreToolUse_Bash", "claude_PostToolUse_Bash", "claude_PostToolBatch"]);
    assert_eq!(size(&environment), before);
}

#[test]
fn a_tool_that_runs_for_long_is_not_stuck_and_silence_after_it_is() {
    let environment = TestEnvironment::new();
    environment.play_all(&["claude_UserPromptSubmit", "claude_PreToolUse_Bash"]);
    let tick = |environment: &TestEnvironment| {
        environment.pass(11 * 60);
        let (mono, timeouts) = (environment.mono.get(), AgentTimeouts::default());
        environment.journal().tick_agents(mono, timeouts, &IdSource::now()).unwrap();
        environment.state()
    };
    assert_eq!(tick(&environment), AgentState::Working);
    assert_eq!(tick(&environment), AgentState::Working);
    environment.play_all(&["claude_PostToolUse_Bash"]);
    assert_eq!(tick(&environment), AgentState::Stuck);
    assert!(environment.told().last().unwrap().starts_with("stuck"));
    // A call that never ended is forgotten with its turn.
    environment.play_all(&["claude_PreToolUse_Bash", "claude_Stop", "claude_UserPromptSubmit"]);
    assert_eq!(tick(&environment), AgentState::Stuck);
}

#[test]
fn what_is_refused_because_nobody_attends_is_told_and_what_a_program_allows_is_not() {
    let environment = TestEnvironment { unattended: true, ..TestEnvironment::new() };
    environment.play_all(&["claude_UserPromptSubmit", "claude_PreToolUse_Bash"]);
    let mut request = recorded("claude_PreToolUse_Bash", SESSION);
    request["hook_event_name"] = json!("PermissionRequest");
    environment.call(Client::Claude, "PermissionRequest", &request);
    assert_eq!((environment.state(), environment.told()), (AgentState::Working, Vec::new()));
    environment.play_all(&["claude_PostToolUse_Bash", "claude_PostToolBatch"]);
    assert_eq!(environment.told(), Vec::<String>::new(), "it ran");
    environment.call(Client::Claude, "PermissionRequest", &request);
    environment.play_all(&["claude_PostToolBatch", "claude_PostToolBatch"]);
    let told = environment.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("was refused permission: Bash: "), "{told:?}");
}

#[test]
fn a_named_session_has_one_identity() {
    let environment = TestEnvironment { name: Some("worker-2"), ..TestEnvironment::new() };
    environment.send_to(Recipient::Agent(Agent::new("worker-2").unwrap()), "boss", "begin with the parser");
    environment.play_all(&["claude_SessionStart"]);
    assert!(environment.play("claude_UserPromptSubmit").contains("begin with the parser"), "it has the name");
    environment.play_all(&["claude_Stop"]);
    let complete = environment.messages().into_iter().next_back().unwrap().draft;
    assert_eq!(complete.sender.as_str(), "worker-2");
    assert!(complete.body.starts_with("Manager worker-2 completed its goal"), "{}", complete.body);
    // A message by `ringer notify` comes from the same agent.
    environment.send_to(Recipient::Default, "worker-2", "half done");
    let agents = environment.journal().stats(None, 0).unwrap().agents;
    let ids: Vec<_> = agents.iter().map(|agent| agent.id.as_str()).filter(|id| *id != "boss").collect();
    assert_eq!(ids, [AGENT]);
    // The person's next prompt resolves it under that name, too.
    environment.play_all(&["claude_UserPromptSubmit"]);
    assert_eq!(environment.ended(), ["prompted"]);
}

#[test]
fn input_that_says_nothing_touches_nothing() {
    let environment = TestEnvironment::new();
    for (event, input) in [
        ("PostToolUse", json!({})),
        ("PostToolUse", json!({"session_id": ""})),
        ("PostToolUse", json!({"session_id": "///"})),
        ("PostToolUse", json!({"session_id": 7})),
    ] {
        assert_eq!(environment.call(Client::Claude, event, &input), "");
        assert!(!environment.home().database().exists(), "{input}");
    }
    let title = json!({"session_id": "t", "prompt": "Generate a concise, single-line task title for this"});
    assert_eq!(environment.call(Client::Codex, "UserPromptSubmit", &title), "");
    assert!(!environment.home().database().exists());
}
