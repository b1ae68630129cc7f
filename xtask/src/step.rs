use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};

use crate::failure::Failure;
use crate::step_times::StepTimes;

/// The features beside the defaults: teams over NATS. All commands use the same ones, so that nothing is built twice.
pub(crate) const FEATURES: [&str; 2] = ["--features", "ringer/nats"];

/// A program that runs in the developer's terminal: printed before it runs, and timed. Its failure is the command's failure.
pub(crate) struct Step {
    name: &'static str,
    command: Command,
}

impl Step {
    pub(crate) fn new(name: &'static str, program: impl AsRef<OsStr>) -> Self {
        Self { name, command: Command::new(program) }
    }

    pub(crate) fn cargo(name: &'static str, arguments: &[&str]) -> Self {
        Self::new(name, cargo()).args(arguments)
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.command.args(arguments);
        self
    }

    pub(crate) fn env(mut self, key: &str, value: &str) -> Self {
        self.command.env(key, value);
        self
    }

    /// Runs it without input and with its output in a file, like a script.
    pub(crate) fn without_terminal(mut self, output: File) -> Self {
        self.command.stdin(Stdio::null()).stdout(output);
        self
    }

    pub(crate) fn run(mut self, times: &mut StepTimes) -> Result<(), Failure> {
        let line = command_line(&self.command);
        times.time(self.name, || {
            eprintln!("$ {line}");
            let status = self.command.status().map_err(|error| Failure::io(&line, &error))?;
            if status.success() { Ok(()) } else { Err(Failure::exited(&line, code(status))) }
        })
    }
}

/// Returns the cargo that started this program, so that all steps use the same toolchain.
pub(crate) fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Returns the exit code. For a program that a signal ended, it is the code of a shell.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Formats an equivalent command line: programs by their name, words with spaces quoted.
fn command_line(command: &Command) -> String {
    let settings = command.get_envs().filter_map(|(key, value)| {
        Some(format!("{}={}", key.to_string_lossy(), quoted(&value?.to_string_lossy())))
    });
    let program = command.get_program();
    let program = std::path::Path::new(program).file_name().unwrap_or(program).to_string_lossy();
    let arguments = command.get_args().map(|argument| quoted(&argument.to_string_lossy()));
    settings.chain([program.into_owned()]).chain(arguments).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Step, command_line};
    use crate::step_times::StepTimes;

    #[test]
    fn shows_what_one_would_type() {
        fn check(step: &Step, expect: &str) {
            assert_eq!(command_line(&step.command), expect);
        }
        check(&Step::new("", "/usr/bin/tmux").args(["-V"]), "tmux -V");
        check(
            &Step::new("", "cargo").args(["doc", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"),
            "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps",
        );
        check(&Step::new("", "echo").args(["it's", ""]), r"echo 'it'\''s' ''");
    }

    #[test]
    fn passes_the_exit_code_on() {
        fn check(script: &str, expect: Option<u8>) {
            let outcome = Step::new("sh", "sh").args(["-c", script]).run(&mut StepTimes::default());
            assert_eq!(outcome.err().map(|failure| failure.code()), expect, "{script}");
        }
        check("exit 0", None);
        check("exit 7", Some(7));
        check("kill -9 $$", Some(137));
    }

    #[test]
    fn a_program_that_is_not_there_is_unavailable() {
        let outcome = Step::new("gone", "ringer-no-such-program").run(&mut StepTimes::default());
        assert_eq!(outcome.expect_err("it cannot run").code(), 69);
    }
}
