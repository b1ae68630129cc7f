//! The context of this process: its home, its repository, and the sender of its messages.

use std::env;
use std::path::Path;

use ringer_core::message::Agent;
use ringer_core::{Scope, Sender};
use ringer_guard::OF_CLIENTS;
use ringer_hub::Clock;
use ringer_journal::{
    Caller, Home, HubStarter, IdSource, Journal, Repair, Repository, SenderClaim, SpoolStatus,
};
use ringer_platform::{path_variable, shell_word, variable};
use ringer_term::sanitise_line;

use crate::failure::{Exit, Failure, Outcome};
use crate::hub_start;
use crate::output::eprint_line;

/// Refuses a relative path for the home or the settings. Hooks run in the directories of their agents and a hub runs in `/`, so
/// each of them would use a different one.
pub(crate) fn check_paths() -> Outcome {
    check_home_path()?;
    ["RINGER_CONFIG", "HOME"].into_iter().try_for_each(check_path)
}

/// Checks the home alone: a hook needs nothing else.
pub(crate) fn check_home_path() -> Outcome {
    let is_set = |name: &str| path_variable(name).is_some_and(|path| path.is_absolute());
    check_path("RINGER_HOME")?;
    if is_set("RINGER_HOME") || is_set("XDG_STATE_HOME") { Ok(()) } else { check_path("HOME") }
}

fn check_path(name: &str) -> Outcome {
    match path_variable(name).filter(|path| path.is_relative()) {
        Some(path) => Err(not_absolute(name, &path)),
        None => Ok(()),
    }
}

fn not_absolute(name: &str, path: &Path) -> Failure {
    let failure =
        Failure::usage(format!("{name} is not an absolute path: {}", sanitise_line(&path.to_string_lossy())));
    match std::path::absolute(path) {
        Ok(path) => {
            failure.hint(sanitise_line(&format!("{name}={} ringer …", shell_word(&path.to_string_lossy()))))
        }
        Err(_) => failure,
    }
}

/// Returns the home: `$RINGER_HOME`, else `$XDG_STATE_HOME/ringer`, else `~/.local/state/ringer`.
pub(crate) fn home() -> Result<Home, Failure> {
    let path = path_variable("RINGER_HOME")
        // The XDG specification says that relative paths are ignored.
        .or_else(|| {
            path_variable("XDG_STATE_HOME").filter(|path| path.is_absolute()).map(|path| path.join("ringer"))
        })
        .or_else(|| path_variable("HOME").map(|path| path.join(".local/state/ringer")))
        .ok_or_else(|| {
            Failure::new(Exit::CannotCreate, "no directory for the journal: HOME is not set")
                .hint("RINGER_HOME=/some/directory ringer …")
        })?;
    // Doorbells and the socket are found by this path, so it needs one spelling: without `.` and `//`.
    let path = std::path::absolute(&path).map_err(|error| {
        Failure::new(Exit::CannotCreate, "the state directory has no absolute path").because(error)
    })?;
    let home = Home::new(path).with_runtime(path_variable("XDG_RUNTIME_DIR"));
    Ok(home.with_hub_starter(hub_start::may_start().then_some(hub_start::ensure_hub as HubStarter)))
}

/// Opens the journal, and warns if a damaged one was repaired.
pub(crate) fn journal() -> Result<Journal, Failure> {
    let journal = Journal::open(&home()?)?;
    warn_if_repaired(&journal);
    Ok(journal)
}

/// Opens the journal for reading if there is one, and waits for the spooled events of hooks. Also works on a read-only disk.
pub(crate) fn existing_journal() -> Result<Option<Journal>, Failure> {
    let mut journal = Journal::open_to_read(&home()?)?;
    if let Some(journal) = &mut journal {
        settle_spool(journal);
    }
    Ok(journal)
}

/// Opens the journal for a command that only reads it, and creates it if there is none.
pub(crate) fn journal_to_read() -> Result<Journal, Failure> {
    match Journal::open_to_read(&home()?)? {
        Some(journal) => {
            warn_if_repaired(&journal);
            Ok(journal)
        }
        None => journal(),
    }
}

/// Waits at most one second until the hub has applied the spooled hook events. Events that are not applied by then stay in the
/// spool, and `ringer status` counts them.
pub(crate) fn settle_spool(journal: &mut Journal) {
    let _ = journal.settle_spool();
}

/// Describes the state of the spool; `None` if it is empty and nothing was lost.
pub(crate) fn spool_text(status: &SpoolStatus, clock: &Clock) -> Option<String> {
    let mut words = Vec::new();
    if status.waiting > 0 {
        words.push(format!("{} waiting to be stored", status.waiting));
    }
    if status.unreadable > 0 {
        words.push(format!("{} unreadable, moved aside", status.unreadable));
    }
    if let Some(lost) = &status.lost {
        words.push(format!("{} lost since {} ({})", lost.count, clock.short(lost.since_ms), lost.why));
    }
    (!words.is_empty()).then(|| words.join("; "))
}

/// Warns if a damaged database was repaired.
pub(crate) fn warn_if_repaired(journal: &Journal) {
    if let Some(repair) = journal.repair() {
        warn_of_repair(repair);
    }
}

/// Warns that a damaged database was repaired.
pub(crate) fn warn_of_repair(repair: &Repair) {
    eprint_line(&format!(
        "warning: the journal was damaged; a new one was created with the {} readable messages, the damaged copy is {}",
        repair.rescued_rows,
        repair.damaged_copy.display()
    ));
}

/// Returns the repository around the current directory.
pub(crate) fn repository() -> Option<Repository> {
    Repository::around(&env::current_dir().ok()?)
}

pub(crate) fn scope(repository: Option<&Repository>) -> Scope {
    repository.map_or_else(Scope::global, |repository| repository.scope(IdSource::now().number()))
}

/// Returns the name that this process was given in `RINGER_AGENT`.
pub(crate) fn given_name() -> Option<String> {
    env::var("RINGER_AGENT").ok().filter(|name| !name.is_empty())
}

/// Returns the agent whose inbox this process reads: the one whose client started it. A client without hooks is identified by
/// its name or by its worktree.
pub(crate) fn agent_of_client(journal: &mut Journal) -> Option<Agent> {
    if let Ok(Caller::Agent(agent)) = journal.caller(std::process::id()) {
        return Some(agent);
    }
    if let Some(name) = given_name() {
        return Agent::new(&name).ok().filter(|_| !Sender::is_reserved(&name));
    }
    let agent = journal.agent_of_worktree(&worktree(&repository()?)).ok().flatten()?;
    Agent::new(&agent).ok()
}

/// Returns true if a variable shows that a client started this process, even one without hooks.
fn is_in_environment_of_agent() -> bool {
    let mut names = OF_CLIENTS.iter().map(|(name, _)| *name).chain(["RINGER_AGENT"]);
    names.any(|name| variable(name).is_some())
}

/// Returns a command's claim about the sender of its message. The process tree decides whether it is true.
pub(crate) fn claim(from: Option<&str>) -> SenderClaim {
    SenderClaim {
        from: from.map(str::to_owned),
        inherited: given_name(),
        is_program: is_in_environment_of_agent(),
    }
}

/// The same for messages that no person types: from a tool that a client calls, or at the end of a command.
pub(crate) fn claim_of_program(from: Option<&str>) -> SenderClaim {
    SenderClaim { is_program: true, ..claim(from) }
}

pub(crate) fn sender(claim: &SenderClaim, journal: &mut Journal) -> Result<Sender, Failure> {
    Ok(journal.sender(Some(std::process::id()), claim)?)
}

/// Returns the worktree in the form that identifies agents.
pub(crate) fn worktree(repository: &Repository) -> String {
    repository.worktree.to_string_lossy().into_owned()
}
