//! `ringer relay serve`: the far end of a link.

use std::io::IsTerminal;
use std::process::Command;
use std::time::Duration;

use ringer_config::user_path;
use ringer_journal::Journal;
use ringer_platform::file_stamp;
use ringer_relay::{
    AnswerHandler, AnswerOutput, AnswerRequest, ConfiguredName, ExchangeSetup, LinkProcess, MachineName,
    RepositoryNames, serve,
};
use ringer_term::sanitise_line;

use crate::client_setup::own_path;
use crate::commands::config::{environment, user_config};
use crate::failure::{Exit, Failure, Outcome};
use crate::{context, guard};

/// The most of the output of `ringer answer` that is sent back. A whole prompt fits: a text has at most 64 KiB, and at most six
/// times as much as JSON. Inside a frame this at most doubles, and a frame has 1 MiB.
const MAX_TEXT: usize = 448 * 1024;
/// Time limit for `ringer answer`: the agent has 2 s, and the journal may be locked for a while. The machine that waits gives
/// up after 15 s.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

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
    // An agent that runs this and poses as another machine must not answer in place of the person.
    let takes_answers = !arguments.no_answers && !guard::is_agent(&mut Journal::open(&home)?)?;
    let setup = ExchangeSetup {
        home,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        is_far_end: true,
        name: name.map(ConfiguredName::for_far_end),
        give_answer: takes_answers.then_some(give_answer as AnswerHandler),
        may_answer: false,
        may_reach_lead: false,
        repository_names: repository_names(),
    };
    serve(&setup).map_err(|error| Failure::new(Exit::Unavailable, error.to_string()))
}

/// Reads the repository names from the settings, again whenever the file changes. A broken file changes nothing.
fn repository_names() -> RepositoryNames {
    let environment = environment();
    let Some(path) = user_path(&environment) else { return RepositoryNames::default() };
    let mut read = None;
    RepositoryNames::read_with(move || {
        let now = file_stamp(&path);
        if read.replace(now) == Some(now) {
            return None;
        }
        Some(user_config(&environment)?.1.ok()?.repositories)
    })
}

/// Answers as the person would on this machine: with `ringer answer`, which applies the rules.
pub(crate) fn give_answer(request: &AnswerRequest) -> AnswerOutput {
    let program = match own_path() {
        Ok(program) => program,
        Err(failure) => return failed(Exit::Unavailable, failure.to_string()),
    };
    let mut command = Command::new(program);
    command.arg("answer").args(request.as_json.then_some("--json")).arg("--");
    command.arg(request.message.as_str()).args(&request.words);
    run_answer(command, request.as_json, ANSWERS_WITHIN)
}

/// Runs the command and returns its output. Truncated JSON is useless, so too much output is a failure.
fn run_answer(command: Command, as_json: bool, within: Duration) -> AnswerOutput {
    let ran = match LinkProcess::run_to_end(command, MAX_TEXT, within) {
        Ok(ran) => ran,
        Err(ringer_relay::Error::Silent(seconds)) => {
            let what = format!("`ringer answer` did not end within {seconds} s, so the answer may not count");
            return failed(Exit::TryAgain, what);
        }
        Err(error) => return failed(Exit::Unavailable, error.to_string()),
    };
    if ran.is_cut && as_json {
        let what = format!("it has more than {} KiB, so it is answered there", MAX_TEXT / 1024);
        return failed(Exit::Unavailable, what);
    }
    let exit = ran.code.and_then(|code| u8::try_from(code).ok()).unwrap_or(Exit::Software as u8);
    AnswerOutput { exit, text: ran.text.trim_end().to_owned(), error: ran.errors.trim_end().to_owned() }
}

fn failed(exit: Exit, error: String) -> AnswerOutput {
    AnswerOutput { exit: exit as u8, error, ..AnswerOutput::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, as_json: bool, within: Duration) -> AnswerOutput {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run_answer(command, as_json, within)
    }

    #[test]
    fn an_answer_that_does_not_end_is_not_waited_for() {
        let late = run("exec sleep 1000", false, Duration::from_secs(1));
        assert_eq!(late.exit, Exit::TryAgain as u8);
        assert!(late.error.contains("did not end within 1 s"), "{late:?}");
    }

    #[test]
    fn what_is_asked_is_sent_whole_or_not_at_all_as_json() {
        let long = format!("head -c {} /dev/zero | tr '\\0' x", MAX_TEXT + 1);
        let within = Duration::from_mins(1);
        let json = run(&long, true, within);
        assert_eq!((json.exit, json.text.as_str()), (Exit::Unavailable as u8, ""));
        assert!(json.error.contains("more than 448 KiB"), "{}", json.error);
        assert_eq!(run(&long, false, within).text.len(), MAX_TEXT, "a person reads the beginning");
        let whole = run(&long.replace(&(MAX_TEXT + 1).to_string(), &MAX_TEXT.to_string()), true, within);
        assert_eq!((whole.exit, whole.text.len()), (0, MAX_TEXT));
    }
}
