//! Dialogs of Codex in a terminal that are answered from elsewhere, through its server.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use ringer_agents::client::ClientPaths;
use ringer_agents::codex_server::pending_prompt;
use serde_json::{Value, json};
use test_support::{Answer, Model, until_within};

use crate::codex_in_terminal::trust_hooks;
use crate::environment::{ClientEnvironment, DEADLINE};
use crate::responses::Responses;
use crate::terminal::Terminal;

pub(crate) const ASKING: [&str; 5] = ["--ask-for-approval", "on-request", "--sandbox", "read-only", "hello"];

/// A session in Codex's server, with hooks that the person trusts.
struct ServedSession {
    environment: ClientEnvironment,
    model: Model,
    terminal: Terminal,
}

impl ServedSession {
    fn open() -> Self {
        let model = Model::new(&Responses);
        let environment = ClientEnvironment::for_codex(&model);
        let mut terminal = environment.start_in_terminal("codex", &ASKING);
        trust_hooks(&mut terminal);
        assert_eq!(model.request().count_new("hello"), 1);
        Self { environment, model, terminal }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.environment.project().join(name)
    }

    /// Has the model use a tool, and waits for the dialog. Its hook tells of it before it opens.
    #[track_caller]
    fn ask(&self, tool: &'static str, input: Value) {
        self.model.answer(Answer::tool(tool, input));
        until_asked(&self.environment);
    }

    #[track_caller]
    fn answer(&self, words: &[&str]) {
        let (code, said) = self.environment.try_ringer(&[&["answer", "last"], words].concat());
        assert_eq!(code, 0, "{said}");
    }
}

/// Waits until a dialog is open. Its hook tells of it before.
#[track_caller]
pub(crate) fn until_asked(environment: &ClientEnvironment) {
    environment.until_open(1);
    let home = environment.home();
    let thread = thread_of(&session_log(environment)).expect("a session");
    until_within(DEADLINE, "the dialog is open", || {
        pending_prompt(&ClientPaths::new(&home), &thread).is_ok_and(|found| found.is_some())
    });
}

/// The input of a tool that makes a file outside the sandbox.
pub(crate) fn making(file: &Path) -> Value {
    let command = format!("touch {}", file.display());
    json!({ "cmd": command, "sandbox_permissions": "require_escalated", "justification": "May I?" })
}

/// The log of the only session.
#[track_caller]
pub(crate) fn session_log(environment: &ClientEnvironment) -> PathBuf {
    file_in(&environment.home().join(".codex/sessions")).expect("a session")
}

fn file_in(directory: &Path) -> Option<PathBuf> {
    let mut paths = fs::read_dir(directory).ok()?.flatten().map(|entry| entry.path());
    paths.find_map(|path| if path.is_dir() { file_in(&path) } else { Some(path) })
}

/// The id at the end of the name of a session's log.
fn thread_of(log: &Path) -> Option<String> {
    let name = log.file_stem()?.to_str()?;
    Some(name[name.len().checked_sub(36)?..].to_owned())
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_command_is_allowed_or_refused_with_a_reason() {
    let session = ServedSession::open();
    let (allowed, refused) = (session.file("allowed"), session.file("refused"));
    session.ask("exec_command", making(&allowed));
    let shown = session.environment.shown_prompt();
    assert!(shown.contains(&format!("touch {}", allowed.display())) && shown.contains("May I?"), "{shown}");
    session.answer(&["allow"]);
    session.model.request();
    assert!(allowed.exists());
    session.environment.until_open(0);

    session.ask("exec_command", making(&refused));
    session.answer(&["deny", "use", "the", "other", "folder"]);
    let next = session.model.request();
    assert_eq!(next.count_new("rejected by user"), 1, "{}", next.news());
    assert_eq!(next.count_new("use the other folder"), 1, "{}", next.news());
    session.environment.until_open(0);
    session.model.answer(Answer::Text("all done"));
    session.environment.notified("complete");
    assert!(!refused.exists() && !session.model.has_request());
    assert_eq!(session.environment.kinds(), ["waiting", "waiting", "complete"]);
    assert_eq!(session.environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn what_was_decided_in_its_dialog_does_not_wait() {
    let mut session = ServedSession::open();
    let (started, go_on) = (session.file("started"), session.file("go-on"));
    // It ends when the test says so: until then no hook does.
    let command =
        format!("touch '{}'; while [ ! -e '{}' ]; do sleep 0.1; done", started.display(), go_on.display());
    session.ask(
        "exec_command",
        json!({ "cmd": command, "sandbox_permissions": "require_escalated", "justification": "May I?" }),
    );
    // It opens no dialog while keys are pressed.
    session.terminal.until_drawn(" to cancel");
    session.terminal.press_until("y", "it runs", |_| started.exists());
    let (code, said) = session.environment.try_ringer(&["answer", "last", "deny", "too", "late"]);
    assert!(code == 65 && said.contains("answered in its own terminal"), "{code}: {said}");
    fs::write(&go_on, "").expect("a file");
    assert_eq!(session.model.request().count_new("too late"), 0);
    session.environment.until_open(0);
    session.model.answer(Answer::Text("all done"));
    session.environment.notified("complete");
    assert!(!session.model.has_request(), "the model is not told");
    assert_eq!(session.environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn what_it_would_always_allow_is_shown_and_then_not_asked_again() {
    let session = ServedSession::open();
    let file = session.file("made");
    session.ask("exec_command", making(&file));
    let shown = session.environment.shown_prompt();
    let always = format!("commands that start with: touch {}", file.display());
    assert!(shown.contains(&always), "{shown}");
    session.answer(&["always"]);
    session.model.request();
    fs::remove_file(&file).expect("it was made");
    session.model.answer(Answer::tool("exec_command", making(&file)));
    session.model.request();
    assert!(file.exists(), "it was not asked again");
}

/// The input of a tool that changes files.
fn patching(change: &str) -> Value {
    json!({ "cmd": format!("apply_patch <<'EOF'\n*** Begin Patch\n{change}\n*** End Patch\nEOF\n") })
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn changes_of_the_files_that_were_shown_are_not_asked_again() {
    let session = ServedSession::open();
    session.ask("exec_command", patching("*** Add File: new.txt\n+hello"));
    let shown = session.environment.shown_prompt();
    assert!(shown.contains("changes of the same files, until this session ends: new.txt"), "{shown}");
    session.answer(&["always"]);
    session.model.request();
    session.environment.until_open(0);
    let again = patching("*** Update File: new.txt\n@@\n-hello\n+bye");
    session.model.answer(Answer::tool("exec_command", again));
    session.model.request();
    assert_eq!(
        fs::read_to_string(session.file("new.txt")).expect("the file"),
        "bye\n",
        "it was not asked again"
    );

    session.ask("exec_command", patching("*** Add File: other.txt\n+hello"));
    assert!(!session.file("other.txt").exists(), "another file is asked for");
    session.answer(&["deny"]);
    session.model.request();
    assert_eq!(session.environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_change_of_files_and_a_question_are_answered() {
    let session = ServedSession::open();
    let patch = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch";
    session.ask("exec_command", json!({ "cmd": format!("apply_patch <<'EOF'\n{patch}\nEOF\n") }));
    let shown = session.environment.shown_prompt();
    assert!(shown.contains("+hello"), "{shown}");
    session.answer(&["allow"]);
    session.model.request();
    assert_eq!(fs::read_to_string(session.file("new.txt")).expect("the file"), "hello\n");
    session.environment.until_open(0);

    let option = |label: &str| json!({ "label": label, "description": format!("it is {label}") });
    let options = [option("Alpha"), option("Beta")];
    let asked = json!({ "id": "q1", "header": "Pick", "question": "Which one?", "options": options });
    session.ask("request_user_input", json!({ "questions": [asked] }));
    let shown = session.environment.shown_prompt();
    assert!(shown.contains("2  Beta  (it is Beta)"), "{shown}");
    session.answer(&["2"]);
    let next = session.model.request();
    assert_eq!(next.count_new("Beta"), 1, "{}", next.news());
    session.environment.until_open(0);
    assert_eq!(session.environment.complaints(), "");
}

/// In its default mode Codex offers the tool only if a feature is on. Its hook runs before the refusal.
#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_question_that_it_refuses_by_itself_is_not_told() {
    let model = Model::new(&Responses);
    let environment = ClientEnvironment::for_codex(&model);
    let settings = environment.home().join(".codex/config.toml");
    let text = fs::read_to_string(&settings).expect("the settings");
    fs::write(&settings, text.replace("default_mode_request_user_input = true\n", "")).expect("a file");
    let arguments = ["--no-daemon", "--dangerously-bypass-hook-trust", "hello"];
    let _terminal = environment.start_in_terminal("codex", &arguments);
    assert_eq!(model.request().count_new("hello"), 1);
    let option = |label: &str| json!({ "label": label, "description": label });
    let options = [option("Alpha"), option("Beta")];
    let asked = json!({ "id": "q1", "header": "Pick", "question": "Which one?", "options": options });
    model.answer(Answer::tool("request_user_input", json!({ "questions": [asked] })));
    let next = model.request();
    assert_eq!(next.count_new("request_user_input is unavailable in Default mode"), 1, "{}", next.news());
    assert_eq!(environment.states(), ["working"]);
    model.answer(Answer::Text("all done"));
    environment.notified("complete");
    assert_eq!(environment.kinds(), ["complete"]);
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn without_its_server_it_can_only_be_answered_in_its_terminal() {
    let model = Model::new(&Responses);
    let environment = ClientEnvironment::for_codex(&model);
    let arguments = [&["--no-daemon", "--dangerously-bypass-hook-trust"], &ASKING[..]].concat();
    let _terminal = environment.start_in_terminal("codex", &arguments);
    model.request();
    model.answer(Answer::tool("exec_command", making(&environment.project().join("made"))));
    environment.until_open(1);
    let (code, said) = environment.try_ringer(&["answer", "last", "allow"]);
    assert!(code == 69 && said.contains("--no-daemon") && said.contains("ringer jump"), "{code}: {said}");
    environment.until_open(1);
}

/// An MCP server that pushes messages.
struct ChatServer {
    directory: PathBuf,
}

impl ChatServer {
    /// Sets it for the agent, and waits until it is connected.
    fn start(environment: &ClientEnvironment) -> Self {
        let directory = environment.home().join("chat");
        fs::create_dir(&directory).expect("a folder");
        let made = Command::new("mkfifo").arg(directory.join("control")).status().expect("mkfifo runs");
        assert!(made.success());
        let script = directory.join("server.py");
        fs::write(&script, include_str!("channel_server.py")).expect("a file");
        let (command, to) = (json!(["/usr/bin/python3", script, directory]), environment.agent());
        environment.add_settings(&format!(
            "[channels]\nenabled = true\n[[channel]]\nname = \"chat\"\ncommand = {command}\nto = \"{to}\"\n\
             allow = [\"alice\"]\nmay_answer = true\n"
        ));
        until_within(DEADLINE, "the server is connected", || {
            environment.ringer(&["mcp", "status"]).contains("connected")
        });
        Self { directory }
    }

    /// The requests for a permission that it was told of.
    fn requests(&self) -> Vec<Value> {
        let heard = fs::read_to_string(self.directory.join("heard")).unwrap_or_default();
        let lines = heard.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let method = "notifications/claude/channel/permission_request";
        lines.filter(|line| line["method"] == method).map(|line| line["params"].clone()).collect()
    }

    /// Alice writes this.
    fn write(&self, text: &str) {
        let params = json!({ "content": text, "meta": { "user": "alice" } });
        let line = json!({ "jsonrpc": "2.0", "method": "notifications/claude/channel", "params": params });
        let fifo = OpenOptions::new().read(true).write(true).open(self.directory.join("control"));
        writeln!(fifo.expect("a FIFO"), "{line}").expect("it is written");
    }
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_command_is_allowed_and_another_refused_from_a_chat() {
    let session = ServedSession::open();
    let (allowed, refused) = (session.file("allowed"), session.file("refused"));
    let chat = ChatServer::start(&session.environment);
    session.ask("exec_command", making(&allowed));
    until_within(DEADLINE, "the chat is told", || chat.requests().len() == 1);
    let request = &chat.requests()[0];
    let preview = request["input_preview"].as_str().expect("a text");
    assert!(preview.contains(&format!("touch {}", allowed.display())), "{request}");
    chat.write(&format!("yes {}", request["request_id"].as_str().expect("an id")));
    session.model.request();
    assert!(allowed.exists());
    session.environment.until_open(0);

    session.ask("exec_command", making(&refused));
    until_within(DEADLINE, "the chat is told", || chat.requests().len() == 2);
    chat.write(&format!("no {}", chat.requests()[1]["request_id"].as_str().expect("an id")));
    let next = session.model.request();
    assert_eq!(next.count_new("rejected by user"), 1, "{}", next.news());
    session.environment.until_open(0);
    // Anything else is a message for the agent.
    chat.write("is main green?");
    session.model.answer(Answer::Text("all done"));
    let next = session.model.request();
    assert_eq!(next.count_new("is main green?"), 1, "{}", next.news());
    session.model.answer(Answer::Text("it is"));
    session.environment.notified("complete");
    assert!(!refused.exists());
}
