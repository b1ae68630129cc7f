//! `ringer relay serve`: the far end of a link.

use std::io::IsTerminal;
use std::process::{Command, Stdio};

use ringer_journal::Journal;
use ringer_relay::{AnswerRequest, Answered, ExchangeSetup, GiveAnswer, MachineName, serve};
use ringer_term::sanitise_line;

use crate::client_setup::own_path;
use crate::context;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::guard;

/// The most that is sent back of what `ringer answer` says: a whole prompt fits.
const MAX_SAID: usize = 128 * 1024;

/// Serve another machine on standard input and output; links run this
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Speak on standard input and output
    #[arg(long, required = true)]
    stdio: bool,
    /// Take neither answers nor messages for agents from the other machine
    #[arg(long)]
    no_answers: bool,
    /// Serve only the machine of this name; for a forced command of ssh [default: any, by what it calls itself]
    #[arg(long)]
    name: Option<String>,
}

pub(super) fn run(arguments: &Args) -> Outcome {
    if std::io::stdin().is_terminal() {
        return Err(Failure::usage("this speaks with another machine, and standard input is a terminal")
            .hint("ringer relay add ssh HOST   # on the other machine"));
    }
    let name = arguments.name.as_deref().map(|name| {
        MachineName::parse(name).ok_or_else(|| {
            Failure::usage(format!("{:?} cannot be the name of a machine", sanitise_line(name)))
                .hint("ringer relay serve --stdio --name laptop")
        })
    });
    let name = name.transpose()?;
    let home = context::home()?;
    // An agent that runs this and speaks for another machine must not answer in place of the person.
    let takes_answers = !arguments.no_answers && !guard::is_agent(&mut Journal::open(&home)?)?;
    let setup = ExchangeSetup {
        home,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        is_far_end: true,
        name,
        give_answer: takes_answers.then_some(give_answer as GiveAnswer),
        may_answer: false,
        may_reach_lead: false,
    };
    serve(&setup).map_err(|error| Failure::new(Exit::Unavailable, error.to_string()))
}

/// Answers as the person would here: with `ringer answer`, which has the rules.
pub(crate) fn give_answer(request: &AnswerRequest) -> Answered {
    let failed = |error: String| Answered { exit: Exit::Unavailable as u8, error, ..Answered::default() };
    let program = match own_path() {
        Ok(program) => program,
        Err(failure) => return failed(failure.to_string()),
    };
    let mut command = Command::new(program);
    command.arg("answer").args(request.as_json.then_some("--json")).arg("--");
    command.arg(request.message.as_str()).args(&request.words).stdin(Stdio::null());
    match command.output() {
        Ok(output) => Answered {
            exit: output
                .status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .unwrap_or(Exit::Software as u8),
            text: said(&output.stdout),
            error: said(&output.stderr),
        },
        Err(error) => failed(format!("ringer answer cannot be started: {error}")),
    }
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_SAID)]).trim_end().to_owned()
}
