//! A process that is an agent: it calls hooks as long as it runs, and is not above the commands of the test.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::{Value, json};

use super::environment::HubEnvironment;

/// Reads an event and the file of its input from each line, and says when the hook has ended.
const SHELL: &str = r#"
    while read -r event input; do "$RINGER" hook claude "$event" < "$input" > /dev/null; echo; done
"#;

/// The agent `claude-01234567`.
pub(super) struct AgentShell<'a> {
    environment: &'a HubEnvironment,
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl<'a> AgentShell<'a> {
    pub(super) fn start(environment: &'a HubEnvironment) -> Self {
        let mut shell = environment.program("sh");
        shell.args(["-c", SHELL]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = shell.spawn().expect("a shell");
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        Self { environment, child, answers }
    }

    /// Calls a hook, and waits until it has ended.
    #[track_caller]
    pub(super) fn hook(&mut self, event: &str, more: &Value) {
        let mut input = json!({
            "hook_event_name": event, "session_id": "0123456789", "cwd": self.environment.base.repository(),
            "prompt": "go on", "source": "startup",
        });
        for (key, value) in more.as_object().expect("an object") {
            input[key] = value.clone();
        }
        let path = self.environment.base.path().join("hook.json");
        fs::write(&path, input.to_string()).expect("a file");
        let commands = self.child.stdin.as_mut().expect("piped");
        writeln!(commands, "{event} {}", path.display()).expect("it reads");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("text");
        assert_eq!(line, "\n", "it runs");
    }
}

impl Drop for AgentShell<'_> {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It may have ended by itself.
        let _ = self.child.wait();
    }
}
