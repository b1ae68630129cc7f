//! `ringer doctor`.

mod agents;
mod channels;
mod hub;
mod hub_view;
mod programs;
mod row;
mod send;
mod settings;
mod terminal;

use std::time::Duration;

use serde_json::json;

use self::row::{Check, Row, Verdict, reason};
use self::settings::Settings;
use crate::context;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::{print_json, print_line, print_text};
use crate::probe::detect_and_ask;

/// How long a check may take. Longer than the timeouts of the hub and of the journal, so that their own error is
/// reported.
const LOOK: Duration = Duration::from_secs(8);
/// How long a test may take that goes all the way; see [`send::SEND_TIMEOUT`], and some time to end a program.
const SEND: Duration = Duration::from_secs(15);

/// Check your setup and suggest fixes
///
/// Checks the terminal, the hub, the journal, the configuration, every channel and
/// every agent. Without --send, nothing is shown, played, run or sent. Untrusted
/// programs of a repository never run.
///
/// Examples:
///   ringer doctor
///   ringer doctor --send     # send a real popup, sound, webhook call, …
///   ringer doctor --json | jq -r '.rows[] | select(.verdict == "broken").fix'
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_help = "Exit codes: 0 if nothing is broken, 1 otherwise.")]
pub(crate) struct Args {
    /// Send a real test through every configured channel
    #[arg(long)]
    send: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    // Before anything is printed: the terminal answers as keyboard input.
    detect_and_ask();
    // All begin at once and are printed in order, so the slowest alone decides how long it takes.
    let checks = begin(arguments.send);
    let mut rows = Vec::new();
    for check in checks {
        for row in check.rows() {
            if !arguments.json {
                print_text(&row.lines())?;
            }
            rows.push(row);
        }
    }
    let count = |verdict| rows.iter().filter(|row: &&Row| row.verdict == verdict).count();
    let (broken, warnings) = (count(Verdict::Broken), count(Verdict::Warn));
    if arguments.json {
        print_json(&json!({ "broken": broken, "warnings": warnings, "rows": rows }))?;
    }
    match broken {
        0 if arguments.json => Ok(()),
        0 => print_line(&match warnings {
            0 => "Everything works.".to_owned(),
            1 => "1 warning. Everything else works.".to_owned(),
            many => format!("{many} warnings. Everything else works."),
        }),
        1 => Err(Failure::new(Exit::Broken, "1 check failed")),
        broken => Err(Failure::new(Exit::Broken, format!("{broken} checks failed"))),
    }
}

fn begin(send: bool) -> Vec<Check> {
    let patience = if send { SEND } else { LOOK };
    let home = context::home();
    let settings = Settings::read(home.as_ref().ok());
    let config = settings.config.clone();
    let mut checks = vec![Check::begin("terminal", LOOK, move || terminal::rows(&config, send))];
    match home {
        Ok(home) => {
            let own = home.clone();
            checks.push(Check::begin("hub", LOOK, move || vec![hub::hub(&own)]));
            checks.push(Check::begin("journal", LOOK, move || hub::journal(&home)));
        }
        Err(failure) => {
            let row = Row::broken("journal", reason(&failure)).fix("RINGER_HOME=/some/directory ringer …");
            checks.push(Check::begin("journal", LOOK, move || vec![row]));
        }
    }
    let (rows, config) = (settings.rows, settings.config);
    checks.push(Check::begin("config", LOOK, move || rows));
    checks.extend(channels::begin(&config, send, patience));
    checks.extend(programs::begin(settings.programs, send, patience));
    checks.push(Check::begin("agents", LOOK, agents::rows));
    checks.push(Check::begin("repository", LOOK, repository));
    checks
}

/// A row only where something is to be said.
fn repository() -> Vec<Row> {
    let Some(repository) = context::repository().filter(|repository| !repository.is_proven()) else {
        return Vec::new();
    };
    let root = repository.worktree.display();
    let what = format!(
        "{root}/.git names a git directory that does not name this worktree, so the worktree has a separate scope"
    );
    vec![Row::warn("repository", what).fix("git worktree repair, or: git config core.worktree \"$PWD\"")]
}
