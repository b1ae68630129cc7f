//! The command that `ringer run` or `ringer mcp-proxy` runs, as the last words of theirs.

use std::ffi::{OsStr, OsString};

use clap::ValueHint;

use crate::failure::Failure;

// No documentation of the struct: it would be taken for that of the command that it is a part of.
#[derive(Debug, clap::Args)]
pub(super) struct CommandWords {
    /// The command and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND",
        value_hint = ValueHint::CommandWithArguments
    )]
    command: Vec<OsString>,
}

impl CommandWords {
    /// The program and its arguments.
    pub(super) fn split(&self) -> Result<(&OsStr, &[OsString]), Failure> {
        let (program, rest) = self.command.split_first().ok_or_else(|| Failure::usage("which command?"))?;
        Ok((program, rest))
    }

    pub(super) fn all(&self) -> &[OsString] {
        &self.command
    }
}
