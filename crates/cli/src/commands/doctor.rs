//! `ringer doctor`.

mod agents;
mod channels;
mod hub;
mod panes;
mod row;
mod settings;
mod terminal;

use std::time::Duration;

use ringer_config::RepositoryEntry;
use ringer_journal::{Home, HubLock, HubStore, Journal, Repair, Repository};
use ringer_platform::shell_word;
use serde_json::json;

use self::row::{Check, Row, Verdict, reason};
use self::settings::Settings;
use crate::client_setup::{INSTALL, own_path, passing_place};
use crate::context;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{count, has_unicode, print_json, print_line, print_text};
use crate::probe::detect_and_ask;

/// Timeout of a check. It is longer than the timeouts of the hub and of the journal, so that their own errors are reported.
const LOOK: Duration = Duration::from_secs(8);
/// Timeout of a test that sends: [`channels::SEND_TIMEOUT`], and some time to end a program.
const SEND: Duration = Duration::from_secs(15);

/// Check your setup and suggest fixes
///
/// Checks the terminal, the hub, panes, the journal, the configuration, every channel
/// and every agent. Without --send, nothing is shown, played, run or sent. Untrusted
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
    /// Repair a damaged journal where no hub runs, and check nothing
    #[arg(long, conflicts_with_all = ["send", "json"])]
    repair: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    if arguments.repair {
        return repair();
    }
    // Before anything is printed, because the terminal's reply arrives as keyboard input.
    detect_and_ask();
    // All checks start at once and are printed in order, so the report takes as long as the slowest.
    let checks = begin(arguments.send);
    let unicode = has_unicode();
    let mut rows = Vec::new();
    for check in checks {
        for row in check.rows() {
            if !arguments.json && !row.is_unused {
                print_text(&row.lines(unicode))?;
            }
            rows.push(row);
        }
    }
    let number = |verdict| rows.iter().filter(|row: &&Row| row.verdict == verdict).count();
    let (broken, warnings) = (number(Verdict::Broken), number(Verdict::Warn));
    if arguments.json {
        print_json(&json!({ "broken": broken, "warnings": warnings, "rows": rows }))?;
    } else {
        let unused: Vec<&str> = rows.iter().filter(|row| row.is_unused).map(Row::part).collect();
        if !unused.is_empty() {
            print_text(&Row::ok("not used", unused.join(", ")).lines(unicode))?;
        }
        print_line(&match (broken, warnings) {
            (0, 0) => "Everything works.".to_owned(),
            (0, warnings) => format!("Nothing is broken. {}.", count(warnings, "warning")),
            (broken, 0) => format!("{broken} broken. Everything else works."),
            (broken, warnings) => {
                format!("{broken} broken, {}. Everything else works.", count(warnings, "warning"))
            }
        })?;
    }
    if broken == 0 { Ok(()) } else { Err(Failure::reported(Exit::Broken)) }
}

/// Describes the program that would show a popup; `None` if there is none. Shows nothing.
pub(super) fn desktop_server() -> Option<String> {
    channels::desktop_server().ok()
}

/// Returns the problems of the delivery channels, as lines to print. Shows and sends nothing.
pub(super) fn delivery_problems() -> String {
    let home = context::home();
    let config = Settings::read(home.as_ref().ok()).config;
    let popup = config.notify.popup;
    let mut checks = vec![
        Check::begin("terminal", LOOK, move || terminal::rows(&config, false)),
        Check::begin("desktop", LOOK, move || vec![channels::desktop(popup, false)]),
    ];
    checks.extend(home.ok().map(|home| Check::begin("hub", LOOK, move || vec![hub::hub(&home)])));
    let unicode = has_unicode();
    let rows = checks.into_iter().flat_map(Check::rows).filter(|row| row.verdict != Verdict::Ok);
    rows.map(|row| row.lines(unicode)).collect()
}

/// Returns a row only if this program may soon disappear: hooks refer to it by its path.
fn program() -> Vec<Row> {
    let what = own_path().ok().and_then(|path| passing_place(&path));
    what.map(|what| Row::warn("program", what).fix(INSTALL)).into_iter().collect()
}

fn begin(send: bool) -> Vec<Check> {
    let patience = if send { SEND } else { LOOK };
    let home = context::home();
    let settings = Settings::read(home.as_ref().ok());
    let config = settings.config.clone();
    let mut checks = vec![Check::begin("terminal", LOOK, move || terminal::rows(&config, send))];
    #[cfg(target_os = "linux")]
    checks.push(Check::begin("window", LOOK, terminal::window_rows));
    match home {
        Ok(home) => {
            let own = home.clone();
            checks.push(Check::begin("tmux", LOOK, move || terminal::tmux_rows(&own)));
            let own = home.clone();
            checks.push(Check::begin("hub", LOOK, move || {
                let mut rows = vec![hub::hub(&own)];
                rows.extend(hub::failing_hooks(&own));
                rows
            }));
            let own = home.clone();
            checks.push(Check::begin("panes", LOOK, move || panes::rows(&own)));
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
    checks.extend(channels::begin_programs(settings.programs, send, patience));
    for relay in config.relays.clone() {
        let Ok(home) = context::home() else { break };
        let part = format!("machine {}", relay.machine());
        checks.push(Check::begin(part, patience, move || hub::machine_rows(&home, &relay, send)));
    }
    let named = config.repositories.clone();
    checks.push(Check::begin("repository names", LOOK, move || named.iter().filter_map(unnamed).collect()));
    if let Ok(home) = context::home()
        && !config.channel_servers.is_empty()
    {
        checks.push(Check::begin("channels", LOOK, move || agents::channel_rows(&home, &config)));
    }
    checks.push(Check::begin("program", LOOK, program));
    checks.push(Check::begin("agents", LOOK, agents::rows));
    checks.push(Check::begin("repository", LOOK, repository));
    checks
}

/// A row for a configured name without a repository.
fn unnamed(RepositoryEntry { path, name }: &RepositoryEntry) -> Option<Row> {
    let is_root = Repository::around(path).is_some_and(|repository| repository.worktree == *path);
    let what = format!("the settings name {}, which is not the root of a repository", path.display());
    let fix = format!("git -C {} rev-parse --show-toplevel", shell_word(&path.to_string_lossy()));
    (!is_root).then(|| Row::warn(format!("repository {name}"), what).fix(fix))
}

/// Returns a row only if there is something to report.
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

fn repair() -> Outcome {
    let home = context::home()?.with_hub_starter(None);
    home.check_owner()?;
    if !home.path().exists() {
        return print_line("There is no journal yet.");
    }
    // A running hub has the files open, and repairs them when it starts again.
    let Some(_lock) = HubLock::acquire(&home)? else {
        let pid = HubLock::owner(&home).map(|hub| format!(" (pid {})", hub.pid)).unwrap_or_default();
        return Err(Failure::new(Exit::TryAgain, format!("the hub is running{pid}"))
            .hint("ringer hub stop && ringer doctor --repair"));
    };
    let repairs = repairs(&home)?;
    if repairs.is_empty() {
        return print_line("Nothing is damaged.");
    }
    repairs.iter().try_for_each(|line| print_line(line))
}

/// Repairs both files. Returns a line for each repair.
fn repairs(home: &Home) -> Result<Vec<String>, Failure> {
    let journal = Journal::open_repaired(home)?;
    let store = HubStore::open_existing(home);
    let store = match store {
        Ok(None) => None,
        _ => Some(HubStore::open_repaired(home)?),
    };
    let said = [
        journal.repair().map(|repair| repair_line(repair, ("journal", "message"))),
        store
            .as_ref()
            .and_then(HubStore::repair)
            .map(|repair| repair_line(repair, ("list of notifications", "notification"))),
    ];
    Ok(said.into_iter().flatten().collect())
}

fn repair_line(repair: &Repair, (file, row): (&str, &str)) -> String {
    format!(
        "The {file} was damaged: {} kept. The damaged copy is {}.",
        count(repair.rescued_rows, row),
        repair.damaged_copy.display()
    )
}
