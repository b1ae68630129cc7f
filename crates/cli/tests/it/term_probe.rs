//! Asking the terminal which program it is: real PTYs with something at their other end that answers as real terminals do
//! (recorded from kitty 0.26.5 and 0.48.2 and from foot 1.13.1), or does not.

use std::io::{Read, Write};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use serde_json::Value;

use crate::home::TestEnvironment;
use crate::ringer::json;

/// The beginning of the question.
const QUESTION: &str = "\x1b[>q";

/// What is at the other end of a PTY.
struct Answers {
    term: &'static str,
    /// To XTVERSION.
    name: &'static str,
    /// To the query of OSC 99, behind its id.
    osc99: Option<&'static str>,
    /// To DA1, which ends the question.
    attributes: &'static str,
}

const KITTY_26: Answers =
    Answers { term: "xterm-kitty", name: "kitty(0.26.5)", osc99: None, attributes: "\x1b[?62;c" };
const KITTY_48: Answers = Answers {
    term: "xterm-kitty",
    name: "kitty(0.48.2)",
    osc99: Some(":p=?;a=focus,report:o=always,unfocused,invisible:u=0,1,2:p=title,body,?,close,alive"),
    attributes: "\x1b[?62;52;c",
};
const FOOT_13: Answers =
    Answers { term: "foot", name: "foot(1.13.1)", osc99: None, attributes: "\x1b[?62;4;22c" };
/// One that takes every question and says nothing.
const SILENT: Answers = Answers { term: "xterm-256color", name: "", osc99: None, attributes: "" };

impl Answers {
    fn reply(&self, asked: &str) -> String {
        let id = asked.split("\x1b]99;i=").nth(1).and_then(|rest| rest.split(':').next()).unwrap_or_default();
        let osc99 = self.osc99.map(|keys| format!("\x1b]99;i={id}{keys}\x1b\\")).unwrap_or_default();
        let name = if self.name.is_empty() { String::new() } else { format!("\x1bP>|{}\x1b\\", self.name) };
        format!("{name}{osc99}{}", self.attributes)
    }
}

/// Runs a script in a terminal that answers, with this typed ahead. Gives everything that was written to the terminal.
fn run(environment: &TestEnvironment, terminal: &Answers, script: &str, typed: &str) -> String {
    let pty = native_pty_system().openpty(PtySize::default()).expect("a PTY");
    let mut command = CommandBuilder::new("sh");
    command.args(["-c", script]);
    command.env_clear();
    for (name, value) in environment.program("true").get_envs() {
        command.env(name, value.expect("a value"));
    }
    command.env("TERM", terminal.term);
    command.cwd(environment.repository());
    let mut reader = pty.master.try_clone_reader().expect("a reader");
    let mut keyboard = pty.master.take_writer().expect("a writer");
    keyboard.write_all(typed.as_bytes()).expect("the terminal takes it");
    let mut shell = pty.slave.spawn_command(command).expect("a shell");
    drop(pty.slave);
    let (mut written, mut piece, mut answered) = (String::new(), [0; 4096], 0);
    // On Linux a PTY without a process at its other end reads as an error, after all its bytes.
    while let Ok(read @ 1..) = reader.read(&mut piece) {
        written += &String::from_utf8_lossy(&piece[..read]);
        // DA1 is the end of a question.
        while let Some(end) = written[answered..].find("\x1b[c") {
            let reply = terminal.reply(&written[answered..]);
            answered += end + 3;
            keyboard.write_all(reply.as_bytes()).expect("the terminal takes it");
        }
    }
    shell.wait().expect("it ends");
    written
}

/// What `ringer term detect --json` printed.
fn report(written: &str) -> Value {
    let line = written.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{written:?}"));
    json(line)
}

fn questions(written: &str) -> usize {
    written.matches(QUESTION).count()
}

const COMMANDS: &str =
    "\"$RINGER\" progress 42; \"$RINGER\" term notify hello; \"$RINGER\" term detect --json | cat";

#[test]
fn a_terminal_is_asked_once_and_then_told_in_a_way_that_it_knows() {
    for (terminal, version, channel, notification, progress) in [
        (KITTY_26, "0.26.5", "ghostty", "\x1b]777;notify;;hello", false),
        (KITTY_48, "0.48.2", "kitty", "p=body;hello", true),
        (FOOT_13, "1.13.1", "ghostty", "\x1b]777;notify;;hello", false),
    ] {
        let environment = TestEnvironment::new();
        let written = run(&environment, &terminal, COMMANDS, "");
        assert_eq!(questions(&written), 1, "{written:?}");
        assert_eq!(written.contains("\x1b]9;4;1;42"), progress, "{written:?}");
        assert!(written.contains(notification), "{written:?}");
        let report = report(&written);
        assert_eq!((&report["version"], &report["channel"]), (&version.into(), &channel.into()), "{report}");
        // Another terminal is another one to ask.
        assert_eq!(questions(&run(&environment, &terminal, COMMANDS, "")), 1);
    }
}

#[test]
fn a_terminal_that_does_not_answer_is_waited_for_once() {
    let environment = TestEnvironment::new();
    let written = run(&environment, &SILENT, COMMANDS, "");
    assert_eq!(questions(&written), 1, "{written:?}");
    assert!(written.contains("terminal_bell") && !written.contains("\x1b]9;4"), "{written:?}");
}

#[test]
fn nothing_is_asked_where_the_answer_would_be_another_programs_input() {
    let environment = TestEnvironment::new();
    for script in [
        "\"$RINGER\" term notify hello | cat",
        "echo | \"$RINGER\" progress 42",
        "set -m; \"$RINGER\" progress 42 & wait",
        "TERM=dumb \"$RINGER\" term detect",
        "TERM=linux \"$RINGER\" term detect",
        "ZELLIJ=0 \"$RINGER\" term detect",
        "\"$RINGER\" list; \"$RINGER\" status; \"$RINGER\" notify hello; TERM=dumb \"$RINGER\"",
    ] {
        let written = run(&environment, &KITTY_26, script, "");
        assert_eq!(questions(&written), 0, "{script}: {written:?}");
    }
}

#[test]
fn what_was_typed_ahead_reaches_the_next_reader() {
    let environment = TestEnvironment::new();
    // The shell takes a moment to start: both lines are typed long before the command runs.
    let script = "read first; \"$RINGER\" term detect >/dev/null; \"$RINGER\" progress 42; read line; echo \"got <$line>\"";
    let written = run(&environment, &KITTY_26, script, "go\nls -l\n");
    assert!(written.contains("got <ls -l>"), "{written:?}");
    assert_eq!(questions(&written), 0, "{written:?}");
}

#[test]
fn the_terminal_is_as_it_was_whatever_happened() {
    let environment = TestEnvironment::new();
    let script = "before=$(stty -g); \"$RINGER\" term detect; echo \"exit $?\"; test \"$before\" = \"$(stty -g)\" && echo same";
    let interrupted = Answers { attributes: "\x03", ..SILENT };
    let stopped = Answers { attributes: "\x1c", ..SILENT };
    for (terminal, exit) in
        [(KITTY_26, "exit 0"), (SILENT, "exit 0"), (interrupted, "exit 130"), (stopped, "exit 131")]
    {
        // The shell itself would end with its command.
        let script = format!("trap : INT QUIT; {script}");
        let written = run(&environment, &terminal, &script, "");
        assert_eq!(questions(&written), 1, "{written:?}");
        assert!(written.contains(exit) && written.contains("same"), "{written:?}");
    }
}
