//! A client of a program that speaks on standard input and output, a message on a line.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use test_support::{DEADLINE, started, until};

use crate::home::TestEnvironment;
use crate::ringer::json;

/// A client behind which an agent is, and the program that it started.
pub(crate) struct StdioClient {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
}

impl StdioClient {
    /// Starts Ringer with these arguments and variables.
    pub(crate) fn start(
        environment: &TestEnvironment,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        // Without `setsid` before it, which would take the signals.
        let mut command = environment.program(env!("CARGO_BIN_EXE_ringer"));
        command.args(arguments).envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = started("ringer", command.spawn());
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut line = Vec::new();
            while output.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                if sender.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        Self { child, input, lines }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("it is open");
        input.write_all(bytes).and_then(|()| input.flush()).expect("it is written");
    }

    /// The end of the program's input.
    pub(crate) fn close(&mut self) {
        self.input = None;
    }

    #[track_caller]
    pub(crate) fn line(&self) -> Vec<u8> {
        self.lines.recv_timeout(DEADLINE).expect("a line")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// The exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        let mut code = None;
        until("the program ends", || {
            code = self.child.try_wait().expect("a child").map(|status| status.code());
            code.is_some()
        });
        code.flatten()
    }
}

impl Drop for StdioClient {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a message to an agent. Gives its id.
pub(crate) fn tell(environment: &TestEnvironment, agent: &str, text: &str) -> String {
    let sent = json(&environment.run(&["notify", "--to", agent, "--json", text]));
    sent["id"].as_str().expect("an id").to_owned()
}

/// How far a message has come on its way to an agent.
pub(crate) fn receipt(environment: &TestEnvironment, id: &str) -> Value {
    json(&environment.run(&["why", "--json", id]))["receipts"][0]["state"].clone()
}
