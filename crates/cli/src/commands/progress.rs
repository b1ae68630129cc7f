//! `ringer progress`.

use ringer_term::{
    Detection, Percent, Progress, TerminalProgram, Terminator, sanitise_line, shows_progress, wrap,
};
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::output::{eprint_line, json, print_bytes, print_json};
use crate::probe::detect_and_ask;
use crate::terminal::write_to_terminal;

/// Show progress in the terminal's tab, title or task bar
///
/// Sent only to terminals that are known to show progress: others would print
/// the escape sequence or show it as a popup.
///
/// Examples:
///   ringer progress 42
///   ringer progress indeterminate
///   ringer progress error 80
///   ringer progress paused 10
///   ringer progress done
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Percentage from 0 to 100, `indeterminate`, `error`, `paused` or `done`
    #[arg(value_name = "STATE", allow_negative_numbers = true)]
    state: String,
    /// Percentage, with `error` and `paused` [default: 100]
    #[arg(value_name = "VALUE", allow_negative_numbers = true)]
    value: Option<String>,
    /// Send it to any terminal
    #[arg(long)]
    force: bool,
    /// Write the escape sequence to standard output, for any terminal
    #[arg(long)]
    stdout: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    sent: bool,
    state: &'static str,
    value: Option<u8>,
    terminal: Option<&'a str>,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let progress = parse(&arguments.state, arguments.value.as_deref())?;
    let detection = detect_and_ask();
    let layers = &detection.multiplexers;
    let sequence = wrap(progress.encode(Terminator::inside(layers)).as_bytes(), layers);
    let unseen = unseen(&detection).filter(|_| !arguments.force && !arguments.stdout);
    if arguments.stdout {
        print_bytes(&sequence)?;
    } else if let Some(why) = &unseen {
        // Nothing is sent, but a missing terminal is still an error.
        write_to_terminal(b"")?;
        let again = sanitise_line(&arguments.state);
        eprint_line(&format!("warning: nothing sent: {why}\nhint: ringer progress --force {again}"));
    } else {
        write_to_terminal(&sequence)?;
    }
    if !arguments.json {
        return Ok(());
    }
    let report = Report {
        sent: unseen.is_none(),
        state: progress.state(),
        value: progress.value().map(Percent::get),
        terminal: detection.terminal.as_deref(),
    };
    if arguments.stdout {
        eprint_line(&json(&report)?);
        return Ok(());
    }
    print_json(&report)
}

/// Returns the reason if the terminal would not show the progress.
fn unseen(detection: &Detection) -> Option<String> {
    if !shows_progress(&detection.identity) {
        let name = match detection.identity.program {
            TerminalProgram::Unknown => {
                detection.terminal.clone().unwrap_or_else(|| "this terminal".to_owned())
            }
            _ => detection.identity.to_string(),
        };
        return Some(format!("{} is not known to show progress", sanitise_line(&name)));
    }
    detection.passthrough_problem().map(str::to_owned)
}

fn parse(state: &str, value: Option<&str>) -> Result<Progress, Failure> {
    let full = || Percent::new(100);
    let given = value.map(percent).transpose()?;
    match (state, value) {
        ("indeterminate", None) => Ok(Progress::Indeterminate),
        ("done" | "clear", None) => Ok(Progress::Clear),
        ("error", _) => Ok(Progress::Error(given.or_else(full))),
        ("paused", _) => Ok(Progress::Paused(given.or_else(full))),
        ("indeterminate" | "done" | "clear", Some(_)) => {
            Err(Failure::usage(format!("{state} takes no value")).hint(format!("ringer progress {state}")))
        }
        (number, None) => Ok(Progress::Set(Some(percent(number)?))),
        (number, Some(_)) => {
            percent(number)?;
            Err(Failure::usage("a percentage takes no second value")
                .hint(format!("ringer progress {number}")))
        }
    }
}

fn percent(text: &str) -> Result<Percent, Failure> {
    let hint = "ringer progress 42   # 0 to 100, or: indeterminate, error 80, paused 10, done";
    match text.parse::<i64>() {
        Ok(number) => u8::try_from(number)
            .ok()
            .and_then(Percent::new)
            .ok_or_else(|| Failure::usage(format!("{number} is not between 0 and 100")).hint(hint)),
        Err(_) => {
            Err(Failure::usage(format!("{:?} is not a percentage or a state", sanitise_line(text)))
                .hint(hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form() {
        let check =
            |state, value, expected| assert_eq!(parse(state, value).ok(), expected, "{state} {value:?}");
        check("42", None, Some(Progress::Set(Percent::new(42))));
        check("0", None, Some(Progress::Set(Percent::new(0))));
        check("indeterminate", None, Some(Progress::Indeterminate));
        check("error", Some("80"), Some(Progress::Error(Percent::new(80))));
        check("error", None, Some(Progress::Error(Percent::new(100))));
        check("paused", Some("10"), Some(Progress::Paused(Percent::new(10))));
        check("done", None, Some(Progress::Clear));
        for (state, value) in
            [("101", None), ("-1", None), ("x", None), ("42", Some("1")), ("done", Some("1"))]
        {
            check(state, value, None);
        }
        check("error", Some("101"), None);
        check("99999999999999999999", None, None);
    }
}
