//! `ringer lead-session`: started by `ringer run` on its PTY, to start the command there.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::process::ExitCode;

use ringer_hosts::run::{exec_in_foreground, lead_session};
use ringer_platform::{Ending, die_by};

use crate::failure::{Exit, Failure};

pub(super) const NAME: &str = "lead-session";

/// Run a command in the foreground of a terminal of which this process leads the session
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Become the command as soon as this process is in the foreground
    #[arg(long)]
    exec: bool,
    /// The command and its arguments
    #[arg(required = true, last = true)]
    command: Vec<OsString>,
}

pub(super) fn run(arguments: &Args) -> Result<ExitCode, Failure> {
    let Some((program, rest)) = arguments.command.split_first() else { return Ok(ExitCode::SUCCESS) };
    if arguments.exec {
        return Err(cannot_run(program, exec_in_foreground(program, rest)));
    }
    let ringer = std::env::current_exe().map_err(|error| cannot_run(program, error))?.into_os_string();
    let words =
        [NAME.into(), "--exec".into(), "--".into()].into_iter().chain(arguments.command.iter().cloned());
    match lead_session(&ringer, &words.collect::<Vec<OsString>>()) {
        Ok(Ending::Exit(code)) => Ok(ExitCode::from(code)),
        Ok(Ending::Signal(signal)) => die_by(signal),
        Err(error) => Err(cannot_run(program, error)),
    }
}

/// Describes a command that could not be started, with the exit codes that shells use.
pub(super) fn cannot_run(program: &OsStr, error: io::Error) -> Failure {
    let exit = match error.kind() {
        ErrorKind::NotFound => Exit::NoCommand,
        _ => Exit::NotExecutable,
    };
    Failure::new(exit, format!("cannot run {}", program.display())).because(error)
}
