//! What a command asked the kernel for, told by strace.

use std::process::Command;

use crate::home::TestEnvironment;

pub(crate) struct Trace {
    /// One call a line, with the path of each descriptor, in the order in which they were made.
    pub(crate) calls: Vec<String>,
    pub(crate) exit: Option<i32>,
}

impl Trace {
    /// Runs a command of the binary and keeps the calls of these names.
    #[track_caller]
    pub(crate) fn of(environment: &TestEnvironment, names: &str, arguments: &[&str]) -> Self {
        let is_here = Command::new("strace").arg("--version").output().is_ok();
        assert!(is_here, "strace is not here: `cargo xtask test` installs it");
        let record = tempfile::NamedTempFile::new().expect("a file");
        let mut strace = environment.program("strace");
        strace.args(["-f", "-y", "-qq", "-s", "64", "-o"]).arg(record.path());
        strace.args(["-e", &format!("trace={names}"), env!("CARGO_BIN_EXE_ringer")]).args(arguments);
        let output = strace.output().expect("strace runs");
        let text = std::fs::read_to_string(record.path()).expect("a record");
        let calls = text.lines().map(|line| without_pid(line).to_owned()).collect();
        Self { calls, exit: output.status.code() }
    }

    /// Where the first call is that has all of these in it.
    #[track_caller]
    pub(crate) fn first(&self, parts: &[&str]) -> usize {
        let found = self.calls.iter().position(|call| has_all(call, parts));
        found.unwrap_or_else(|| panic!("no call with {parts:?}:\n{}", self.calls.join("\n")))
    }

    /// Where the last such call is.
    #[track_caller]
    pub(crate) fn last(&self, parts: &[&str]) -> usize {
        let found = self.calls.iter().rposition(|call| has_all(call, parts));
        found.unwrap_or_else(|| panic!("no call with {parts:?}:\n{}", self.calls.join("\n")))
    }

    /// How many such calls there are.
    pub(crate) fn count(&self, parts: &[&str]) -> usize {
        self.calls.iter().filter(|call| has_all(call, parts)).count()
    }
}

fn has_all(call: &str, parts: &[&str]) -> bool {
    parts.iter().all(|part| call.contains(part))
}

fn without_pid(line: &str) -> &str {
    line.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start()
}
