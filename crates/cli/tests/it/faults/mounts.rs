//! File systems of a test's own, in a mount namespace that ends with it.

use std::process::{Command, Stdio};

use crate::background::Background;
use crate::home::TestEnvironment;

pub(crate) struct Mounts<'a> {
    environment: &'a TestEnvironment,
    /// Holds the namespace open.
    holder: Background,
}

impl<'a> Mounts<'a> {
    /// Runs a script that mounts; it finds the home as `$RINGER_HOME`. `None` where mounting is not possible: the test is
    /// reported as skipped and has to return.
    pub(crate) fn new(environment: &'a TestEnvironment, script: &str) -> Option<Self> {
        if !test_support::can_mount() {
            return None;
        }
        let mut command = environment.program("unshare");
        command.args(["--mount", "sh", "-ec", &format!("{script}\necho mounted\nexec cat")]);
        let holder = Background::start({
            command.stdin(Stdio::piped());
            command
        });
        assert_eq!(holder.line().as_deref(), Some("mounted"), "{script}");
        Some(Self { environment, holder })
    }

    /// A program inside.
    pub(crate) fn program(&self, program: &str) -> Command {
        let mut command = self.environment.program("nsenter");
        command.args(["--target", &self.holder.pid().to_string(), "--mount", "--", "env", "-C"]);
        command.arg(self.environment.repository()).arg(program);
        command
    }

    /// The binary inside.
    pub(crate) fn ringer(&self, arguments: &[&str]) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_ringer"));
        command.args(arguments);
        command
    }

    /// Runs a script inside that has to succeed.
    #[track_caller]
    pub(crate) fn sh(&self, script: &str) {
        let output = self.program("sh").args(["-ec", script]).output().expect("sh runs");
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
