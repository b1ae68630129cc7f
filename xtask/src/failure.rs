use std::fmt;
use std::io;
use std::process::ExitCode;

/// `EX_USAGE` of sysexits.h.
const USAGE: u8 = 64;
/// `EX_UNAVAILABLE`: this machine lacks something.
const UNAVAILABLE: u8 = 69;
const COMPLAINTS: u8 = 1;

/// Why a command failed, and its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    pub(crate) fn usage(message: String) -> Self {
        Self { code: USAGE, message }
    }

    pub(crate) fn unavailable(message: String) -> Self {
        Self { code: UNAVAILABLE, message }
    }

    pub(crate) fn complaints(message: String) -> Self {
        Self { code: COMPLAINTS, message }
    }

    /// Fails if a count is not 0. The message names these problems, then the details.
    pub(crate) fn unless_zero(problems: &[(u64, &str)], details: &str) -> Result<(), Self> {
        let problems: Vec<String> = problems
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if problems.is_empty() {
            return Ok(());
        }
        Err(Self::complaints(format!("{}\n{details}", problems.join(", ")).trim_end().to_owned()))
    }

    pub(crate) fn io(what: &str, error: &io::Error) -> Self {
        Self { code: UNAVAILABLE, message: format!("{what}: {error}") }
    }

    /// For a program that failed. xtask exits with the same code.
    pub(crate) fn exited(command: &str, code: u8) -> Self {
        Self { code, message: format!("`{command}` failed with exit code {code}") }
    }

    /// For commands that take no arguments.
    pub(crate) fn unless_empty(arguments: &[String]) -> Result<(), Self> {
        match arguments.first() {
            None => Ok(()),
            Some(first) => Err(Self::usage(format!("`{first}`: this command takes no arguments"))),
        }
    }

    pub(crate) fn is_code(&self, code: u8) -> bool {
        self.code == code
    }

    #[cfg(test)]
    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
