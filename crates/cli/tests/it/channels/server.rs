//! A hub with an MCP server that pushes what the test tells it to, and the agent that the messages are for.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::{Value, json};
use test_support::{DEADLINE, started, until};

use crate::hub::environment::{HubEnvironment, runs};

/// The server. It writes each line of the FIFO to its client as it is, but for `FLOOD`, `LONG` and `DIE`, and each line of its
/// client to a file. A process that it started holds its output.
const SERVER: &str = r#"
import json, os, subprocess, sys, threading
kind, directory = sys.argv[1:]
child = subprocess.Popen(["sleep", "600"])
open(directory + "/grandchild", "w").write(str(child.pid))
heard = open(directory + "/heard", "a")
write = lambda text: (sys.stdout.write(text + "\n"), sys.stdout.flush())
def control():
    for line in open(os.open(directory + "/control", os.O_RDWR)):
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "FLOOD":
            number, _, text = rest.partition(" ")
            for _ in range(int(number)): write(text)
        elif word == "LONG":
            write("x" * int(rest))
        elif word == "DIE":
            os._exit(int(rest))
        else:
            write(line.rstrip("\n"))
for line in sys.stdin:
    heard.write(line); heard.flush()
    request = json.loads(line)
    if request.get("method") == "initialize":
        experimental = {"claude/channel": {}} if kind in ("channel", "relay") else {}
        if kind == "relay": experimental["claude/channel/permission"] = {}
        write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {
            "protocolVersion": request["params"]["protocolVersion"], "serverInfo": {"name": "chat", "version": "1"},
            "capabilities": {"experimental": experimental}}}))
        threading.Thread(target=control, daemon=True).start()
"#;

/// An agent: it calls its hooks, or the program, as it is told, and prints what comes of it in a line.
const AGENT: &str = r#"
    call() { "$RINGER" hook claude "$1" < "$INPUT"; }
    call SessionStart > /dev/null
    call UserPromptSubmit > /dev/null
    echo ready
    while read -r word rest; do
        case $word in
            run) "$RINGER" $rest > /dev/null 2>&1; echo $? ;;
            *) call "$word"; echo ;;
        esac
    done
"#;

/// The id of the agent: it is made of the session's.
pub(super) const AGENT_ID: &str = "claude-01234567";

/// The line with which a server pushes a message.
pub(super) fn push(content: &str, meta: &Value) -> String {
    let params = json!({ "content": content, "meta": meta });
    json!({ "jsonrpc": "2.0", "method": "notifications/claude/channel", "params": params }).to_string()
}

/// The line with which a server says what was answered to a request for a permission.
pub(super) fn verdict(request_id: &str, behavior: &str) -> String {
    let params = json!({ "request_id": request_id, "behavior": behavior });
    let method = "notifications/claude/channel/permission";
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
}

/// A hub, a server and an agent. All end with it.
pub(super) struct Desk {
    pub(super) agent: TestAgent,
    pub(super) environment: HubEnvironment,
    allow: Vec<String>,
    kind: String,
    /// Held open: what is written before the server opens it would be lost otherwise.
    control: File,
}

impl Desk {
    /// With a server that pushes, and these senders in the settings.
    pub(super) fn open(allow: &[&str]) -> Self {
        Self::open_with(allow, "channel")
    }

    pub(super) fn open_with(allow: &[&str], kind: &str) -> Self {
        let environment = HubEnvironment::with_settings("");
        let directory = environment.base.path();
        let made = Command::new("mkfifo").arg(directory.join("control")).status().expect("mkfifo runs");
        assert!(made.success());
        fs::write(directory.join("server.py"), SERVER).expect("a file");
        fs::create_dir_all(directory.join("person/.claude")).expect("a directory");
        let mut hub = environment.ringer(&["hub", "start"]);
        crate::ringer::check(hub.env("HOME", directory.join("person")), 0);
        let agent = TestAgent::start(&environment);
        let allow = allow.iter().map(|user| (*user).to_owned()).collect();
        let control = OpenOptions::new().read(true).write(true).open(environment.base.path().join("control"));
        let control = control.expect("a FIFO");
        let desk = Self { agent, environment, allow, kind: kind.to_owned(), control };
        desk.sign_in(&json!({ "claudeAiOauth": { "accessToken": "x", "subscriptionType": "max" } }));
        desk.enable(true);
        desk
    }

    /// Writes the settings, with the switch on or off.
    pub(super) fn enable(&self, enabled: bool) {
        self.set(enabled, false);
    }

    /// Writes the settings.
    pub(super) fn set(&self, enabled: bool, may_answer: bool) {
        let directory = self.environment.base.path();
        let script = directory.join("server.py");
        let command = match self.kind.as_str() {
            "missing" => json!(["/no/such/server"]),
            kind => json!(["/usr/bin/python3", script, kind, directory]),
        };
        let (to, allow) = (AGENT_ID, json!(self.allow));
        self.environment.set(&format!(
            "[notify]\npopup = \"off\"\nrate_limit = \"off\"\n[channels]\nenabled = {enabled}\n\
             [[channel]]\nname = \"chat\"\ncommand = {command}\nto = \"{to}\"\nallow = {allow}\n\
             may_answer = {may_answer}\n"
        ));
    }

    /// The person's own directory.
    pub(super) fn person(&self) -> PathBuf {
        self.environment.base.path().join("person")
    }

    /// Writes what Claude Code keeps of the person's account.
    pub(super) fn sign_in(&self, credentials: &Value) {
        fs::write(self.person().join(".claude/.credentials.json"), credentials.to_string()).expect("a file");
    }

    #[track_caller]
    pub(super) fn status(&self) -> Value {
        self.environment.json(&["mcp", "status", "--json"])
    }

    /// What is said of the server.
    #[track_caller]
    pub(super) fn server(&self) -> Value {
        self.status()["servers"][0].clone()
    }

    /// Waits until it is connected. Gives its process.
    #[track_caller]
    pub(super) fn until_connected(&self) -> u32 {
        let mut pid = None;
        until("the server is connected", || {
            let server = self.server();
            pid = server["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
            server["state"] == "connected" && pid.is_some_and(runs)
        });
        pid.expect("a process")
    }

    #[track_caller]
    pub(super) fn until_count(&self, what: &str, count: u64) {
        until(&format!("{count} {what}"), || self.server()[what] == count);
    }

    /// Lets the server write this line.
    pub(super) fn send(&self, line: &str) {
        let mut control = &self.control;
        control.write_all(format!("{line}\n").as_bytes()).expect("it is written");
    }

    /// The requests for a permission that the server was told of: the id and what is to be done.
    pub(super) fn requests(&self) -> Vec<(String, String)> {
        let heard = self.heard();
        let lines = heard.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let method = "notifications/claude/channel/permission_request";
        let requests = lines.filter(|line| line["method"] == method).map(|line| line["params"].clone());
        let text = |params: &Value, name: &str| params[name].as_str().unwrap_or_default().to_owned();
        requests.map(|params| (text(&params, "request_id"), text(&params, "input_preview"))).collect()
    }

    /// What the server read.
    pub(super) fn heard(&self) -> String {
        fs::read_to_string(self.environment.base.path().join("heard")).unwrap_or_default()
    }

    /// The process that the server started.
    pub(super) fn grandchild(&self) -> u32 {
        let pid = fs::read_to_string(self.environment.base.path().join("grandchild")).expect("a file");
        pid.parse().expect("a number")
    }

    pub(super) fn grandchild_ended(&self) -> bool {
        !runs(self.grandchild())
    }
}

/// A shell that is an agent.
pub(super) struct TestAgent {
    shell: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl TestAgent {
    fn start(environment: &HubEnvironment) -> Self {
        let input = environment.base.path().join("input.json");
        let content = json!({
            "session_id": "0123456789", "source": "startup", "cwd": environment.base.repository(), "prompt": "go on",
            "tool_name": "Bash", "tool_input": { "command": "make" }, "tool_use_id": "t1",
        });
        fs::write(&input, content.to_string()).expect("a file");
        let mut shell = environment.program("sh");
        shell.args(["-c", AGENT]).env("INPUT", input).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = started("sh", shell.spawn());
        let (input, output) = (shell.stdin.take(), shell.stdout.take().expect("a pipe"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let agent = Self { shell, input, lines };
        assert_eq!(agent.line(), "ready");
        agent
    }

    #[track_caller]
    fn line(&self) -> String {
        self.lines.recv_timeout(DEADLINE).expect("a line")
    }

    /// Calls a hook. Gives what it printed.
    #[track_caller]
    pub(super) fn call(&mut self, event: &str) -> String {
        self.begin(event);
        self.line()
    }

    /// Calls a hook that waits.
    #[track_caller]
    pub(super) fn begin(&mut self, event: &str) {
        writeln!(self.input.as_mut().expect("it runs"), "{event}").expect("it reads");
    }

    /// What the hook decided that waits.
    #[track_caller]
    pub(super) fn decision(&mut self) -> Value {
        let output: Value = serde_json::from_str(&self.line()).unwrap_or_default();
        output["hookSpecificOutput"]["decision"]["behavior"].clone()
    }

    /// Runs Ringer with these arguments. Gives the exit code.
    #[track_caller]
    pub(super) fn run(&mut self, arguments: &str) -> String {
        self.call(&format!("run {arguments}"))
    }

    /// What enters its conversation with the result of a tool.
    #[track_caller]
    pub(super) fn inbox(&mut self) -> String {
        let output = self.call("PostToolUse");
        let output: Value = serde_json::from_str(&output).unwrap_or_default();
        output["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default().to_owned()
    }

    /// The same, of something that is there. A hook that finds the journal busy leaves it to the next one.
    #[track_caller]
    pub(super) fn until_inbox(&mut self) -> String {
        let mut text = String::new();
        until("something waits", || {
            text = self.inbox();
            !text.is_empty()
        });
        text
    }

    pub(super) fn end(&mut self) {
        self.input = None;
        self.shell.wait().expect("it ends");
    }
}

impl Drop for TestAgent {
    fn drop(&mut self) {
        // A hook that waits for an answer waits on.
        if thread::panicking() {
            let _ = self.shell.kill();
        }
        self.end();
    }
}
