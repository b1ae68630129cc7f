//! `ringer uninstall`. Removes the entries in clients' settings and in tmux, and Ringer's own files.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use ringer_agents::setup::{
    BackupTime, Client, ClientPaths, Entries, Plan, SetupAction, SetupError, SetupRecords, SetupScope,
    Target, apply, backups, plan, read_files, removals_elsewhere,
};
use ringer_config::user_path;
use ringer_hub::Clock;
use ringer_ipc::discovery::directories_outside;
use ringer_journal::{
    Home, HubLock, IdSource, Journal, Leftover, Repository, RunningListener, runtime_directories,
};
use ringer_tmux::{TmuxServer, remove as remove_from_tmux};
use serde::Serialize;

use super::nuke::stop_listener;
use super::{config, hub};
use crate::client_setup::{client_paths, failure, own_path, setup_paths};
use crate::confirm::confirm;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{count, eprint_line, print_json, print_line, print_text, short_path};
use crate::tmux_setup::{ConfigChange, installed_servers};
use crate::{context, guard, panes};

/// Remove everything that Ringer wrote: hooks, backups, the journal, repository ids
///
/// Lists it and asks first. Removes Ringer's entries from the settings of all agents,
/// the backups of those files, the messages and all other state, and the ids in git
/// directories; stops the hub and the listeners. Your config file and the program stay.
///
/// Examples:
///   ringer uninstall
///   ringer uninstall --keep-history
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Keep the messages and the repository ids
    #[arg(long)]
    keep_history: bool,
    /// Skip the confirmation prompt
    #[arg(long)]
    yes: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

struct Traces {
    home: Home,
    plans: Vec<Plan>,
    backups: Vec<PathBuf>,
    hub: Option<u32>,
    listeners: Vec<RunningListener>,
    repositories: Vec<Repository>,
    state: StateFiles,
    tmux_servers: Vec<TmuxServer>,
    tmux_config: ConfigChange,
    /// Running agents, which call their hooks until they end.
    running_agents: usize,
}

/// The most hubs that are ended one after another.
const MAX_HUBS: usize = 10;

#[derive(Serialize)]
struct RemovalReport {
    settings: Vec<PathBuf>,
    backups: Vec<PathBuf>,
    state: Vec<PathBuf>,
    repositories: Vec<PathBuf>,
    kept: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let open = panes::open_count();
    if open > 0 {
        // Their programs would keep running where no command finds them.
        return Err(Failure::new(Exit::Unavailable, format!("panes are open ({open})"))
            .hint("ringer attach   # close them, or end their programs"));
    }
    let traces = Traces::find(arguments.keep_history)?;
    if traces.is_empty() {
        return if arguments.json { print_json(&traces.report()) } else { print_line("Nothing to remove.") };
    }
    if !arguments.json {
        print_text(&traces.lines())?;
    }
    if !arguments.yes && !confirm("Remove all of this?", "ringer uninstall --yes")? {
        eprint_line("Nothing was removed.");
        return Ok(());
    }
    if context::home()?.database().exists() {
        guard::only_a_person_quietly("remove Ringer")?;
    }
    let mut removed = traces.report();
    removed.kept = traces.remove()?;
    for path in &removed.kept {
        let path = short_path(path);
        eprint_line(&format!("note: {path} stays, because it has files that Ringer did not create"));
    }
    if traces.running_agents > 0 {
        eprint_line(&format!(
            "note: sessions that run call Ringer until they end ({})\n\
             hint: end them, then run ringer uninstall again",
            count(traces.running_agents, "agent")
        ));
    }
    if arguments.json {
        return print_json(&removed);
    }
    let program = own_path().map(|path| format!(" To remove the program: rm {}", short_path(&path)));
    print_line(&format!("Done.{}", program.unwrap_or_default()))
}

impl Traces {
    fn find(keep_history: bool) -> Result<Self, Failure> {
        let home = context::home()?;
        home.check_owner()?;
        let mut journal = match context::existing_journal() {
            Ok(journal) => journal,
            // A journal need not be readable to be removed.
            Err(failure) => {
                eprint_line(&failure.to_string().replacen("error: ", "warning: ", 1));
                None
            }
        };
        let repositories = repositories(journal.as_mut());
        let records = SetupRecords::load(home.path()).map_err(|error| failure(&error))?;
        let (plans, targets) = settings(&records, &repositories)?;
        let recorded = records.paths().filter(|path| !targets.iter().any(|target| target.path == *path));
        let files = targets.iter().map(|target| target.path.as_path()).chain(recorded);
        let backups = files.flat_map(backups).collect();
        let is_running = |state: Option<&str>| state.is_some_and(|state| state != "exited");
        let agents = journal.as_mut().map(Journal::agent_summaries).transpose().ok().flatten();
        let running_agents =
            agents.unwrap_or_default().iter().filter(|agent| is_running(agent.state.as_deref())).count();
        let hub = HubLock::owner(&home).map(|hub| hub.pid);
        let mut listeners = journal.map(|journal| journal.listeners(None)).unwrap_or_default();
        // The hub also listens, and is ended separately.
        listeners.retain(|listener| Some(listener.owner.pid) != hub);
        Ok(Self {
            plans,
            backups,
            hub,
            listeners,
            repositories: if keep_history { Vec::new() } else { repositories },
            state: StateFiles::find(&home, keep_history),
            tmux_servers: installed_servers(&home),
            tmux_config: ConfigChange::remove()?,
            running_agents,
            home,
        })
    }

    fn is_empty(&self) -> bool {
        self.plans.is_empty()
            && self.backups.is_empty()
            && self.hub.is_none()
            && self.repositories.is_empty()
            && self.state.is_empty()
            && self.tmux_servers.is_empty()
            && !self.tmux_config.is_change()
    }

    fn report(&self) -> RemovalReport {
        let changes = self.plans.iter().flat_map(|plan| &plan.changes).filter(|change| change.is_change());
        let tmux = self.tmux_config.is_change().then(|| self.tmux_config.path.clone());
        RemovalReport {
            settings: changes.map(|change| change.path().to_owned()).chain(tmux).collect(),
            backups: self.backups.clone(),
            state: self.state.paths().map(PathBuf::from).collect(),
            repositories: self.repositories.iter().filter_map(Repository::own_directory).collect(),
            kept: Vec::new(),
        }
    }

    /// Returns true if Ringer has only its MCP server in a settings file.
    fn has_only_mcp_server(&self, path: &Path) -> bool {
        let mut changes = self.plans.iter().flat_map(|plan| &plan.changes);
        changes.any(|change| change.path() == path && change.target.is_for_mcp_only())
    }

    fn lines(&self) -> String {
        let removed = self.report();
        let running: Vec<String> = [
            (!self.tmux_servers.is_empty())
                .then(|| format!("rings in {} of tmux", count(self.tmux_servers.len(), "server"))),
            self.hub.map(|pid| format!("the hub (pid {pid})")),
            (!self.listeners.is_empty()).then(|| count(self.listeners.len(), "listener")),
        ]
        .into_iter()
        .flatten()
        .collect();
        let paths = |paths: &[PathBuf]| paths.iter().map(|path| short_path(path)).collect::<Vec<_>>();
        let (servers, hooks): (Vec<PathBuf>, Vec<PathBuf>) =
            removed.settings.iter().cloned().partition(|path| self.has_only_mcp_server(path));
        let groups = [
            ("hooks in", paths(&hooks)),
            ("MCP in", paths(&servers)),
            ("backups", paths(&removed.backups)),
            ("running", running),
            ("state", paths(&removed.state)),
            ("ids in", paths(&removed.repositories)),
        ];
        let mut lines = "This removes what Ringer wrote:\n".to_owned();
        for (name, entries) in groups {
            for (index, entry) in entries.iter().enumerate() {
                let _ = writeln!(lines, "  {:<8}  {entry}", if index == 0 { name } else { "" });
            }
        }
        let config = user_path(&config::environment()).filter(|path| path.exists());
        if let Some(path) = config {
            let _ = writeln!(lines, "Your settings stay: {}", short_path(&path));
        }
        lines
    }

    /// Removes everything. Returns the directories that stay because of other files in them.
    fn remove(&self) -> Result<Vec<PathBuf>, Failure> {
        // The order: entries that start Ringer, then running processes, then files.
        let stamp = Clock::local().compact(IdSource::now().unix_ms);
        let time = BackupTime::new(&stamp).map_err(|error| failure(&error))?;
        let mut new_backups = Vec::new();
        for plan in &self.plans {
            let applied = apply(plan, self.home.path(), &time).map_err(|error| failure(&error))?;
            new_backups.extend(applied.backups);
        }
        if self.tmux_config.is_change() {
            self.tmux_config.write()?;
        }
        for server in &self.tmux_servers {
            remove_from_tmux(server).map_err(|error| {
                let what = format!("cannot remove Ringer from tmux at {}", short_path(server.socket()));
                Failure::new(Exit::Unavailable, what).because(error).hint("ringer uninstall")
            })?;
        }
        for backup in self.backups.iter().chain(&new_backups) {
            remove_file(backup)?;
        }
        for listener in &self.listeners {
            stop_listener(listener);
        }
        // Two messages may each have started a hub, and the second one waits for the first.
        for _ in 0..MAX_HUBS {
            hub::end(&self.home)?;
            if HubLock::owner(&self.home).is_none() {
                break;
            }
        }
        let mut kept = Vec::new();
        for repository in &self.repositories {
            let left = repository.remove_files().map_err(|error| {
                let what = format!("cannot remove the id in {}", short_path(&repository.worktree));
                Failure::new(Exit::NoPermission, what).because(error).hint("ringer uninstall")
            })?;
            if let Leftover::Foreign(path) = left {
                kept.push(path);
            }
        }
        kept.extend(self.state.remove()?);
        Ok(kept)
    }
}

/// Returns the repositories that have an id, of those in the journal and the current one.
fn repositories(journal: Option<&mut Journal>) -> Vec<Repository> {
    let known = journal.and_then(|journal| journal.working_directories().ok()).unwrap_or_default();
    let known = known.iter().filter_map(|directory| Repository::around(directory.as_ref()));
    let mut found: Vec<(PathBuf, Repository)> = known
        .chain(context::repository())
        .filter_map(|repository| Some((repository.own_directory()?, repository)))
        .collect();
    found.sort_by(|(one, _), (two, _)| one.cmp(two));
    found.dedup_by(|(one, _), (two, _)| one == two);
    found.into_iter().map(|(_, repository)| repository).collect()
}

/// Plans the removal of Ringer from every client's settings: the person's, those of repositories, and recorded ones elsewhere.
/// Also returns all files that a setup may have written.
fn settings(
    records: &SetupRecords,
    repositories: &[Repository],
) -> Result<(Vec<Plan>, Vec<Target>), Failure> {
    let own = setup_paths(false)?;
    let projects = repositories.iter().map(|repository| repository.worktree.clone());
    let places: Vec<(SetupScope, ClientPaths)> = [(SetupScope::User, own.clone())]
        .into_iter()
        .chain(projects.map(|root| (SetupScope::Project, client_paths(own.home.clone(), Some(root)))))
        .collect();
    let action = SetupAction::Remove(Entries::All);
    let (mut plans, mut targets) = (Vec::new(), Vec::new());
    for (scope, places) in &places {
        for client in Client::ALL {
            targets.extend(places.targets(client, *scope).map_err(|error| failure(&error))?);
            let files =
                read_files(client, &action, *scope, places, records).map_err(|error| failure(&error))?;
            let names_us = files.iter().filter_map(|file| file.bytes.as_deref()).any(names_ringer);
            match plan(client, &action, files) {
                Ok(plan) => plans.push(plan),
                Err(error) if names_us => return Err(refused(&error)),
                // The file cannot be read, and contains nothing of Ringer's.
                Err(_) => {}
            }
        }
    }
    plans.extend(removals_elsewhere(records, &targets).map_err(|error| refused(&error))?);
    plans.retain(|plan| !plan.is_empty());
    Ok((plans, targets))
}

fn names_ringer(bytes: &[u8]) -> bool {
    bytes.windows(6).any(|word| word == b"ringer")
}

fn refused(error: &SetupError) -> Failure {
    failure(error).hint("correct the file, which was not changed, then run: ringer uninstall")
}

/// Prefixes of file names in the home. Databases have further files beside them, and logs an older one.
const FILES: [&str; 20] = [
    "ringer.db",
    "hub.db",
    "hub.json",
    "hub.lock",
    "hub.log",
    "hub.sock",
    "hub.failed",
    "hooks.log",
    "lost-events",
    "machine-id",
    "panes.json",
    "pty.",
    "relay-",
    "setup.",
    "trusted.json",
    "ui.",
    "channels.json",
    "channels.lock",
    "channel-status.json",
    "write.lock",
];
/// Prefixes of the files that hold the history.
const HISTORY: [&str; 2] = ["ringer.db", "hub.db"];
const DIRECTORIES: [&str; 8] = ["bells", "drop", "locks", "outbox", "screens", "spool", "terminals", "tools"];

struct StateFiles {
    home: PathBuf,
    /// The files in the home to remove.
    own: Vec<PathBuf>,
    /// The home also contains other files; then a directory is not taken for Ringer's because of its name.
    has_others: bool,
    keeps_history: bool,
    /// Directories outside the home.
    outside: Vec<PathBuf>,
}

impl StateFiles {
    fn find(home: &Home, keeps_history: bool) -> Self {
        let entries = fs::read_dir(home.path()).into_iter().flatten().flatten();
        let (mut own, mut has_others) = (Vec::new(), false);
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !is_own(&name) {
                has_others = true;
            } else if !(keeps_history && HISTORY.iter().any(|history| name.starts_with(history))) {
                own.push(entry.path());
            }
        }
        let outside = [directories_outside(home), runtime_directories(home)].concat();
        let outside = outside.into_iter().filter(|path| !path.starts_with(home.path()) && path.is_dir());
        let mut outside: Vec<PathBuf> = outside.collect();
        outside.dedup();
        Self { home: home.path().to_owned(), own, has_others, keeps_history, outside }
    }

    fn is_empty(&self) -> bool {
        self.own.is_empty() && self.outside.is_empty()
    }

    /// Returns the paths to show: the home as a whole, unless something in it stays.
    fn paths(&self) -> impl Iterator<Item = &Path> {
        let is_whole = !self.has_others && !self.keeps_history;
        let home = Some(self.home.as_path()).filter(|home| is_whole && home.is_dir());
        let parts = self.own.iter().filter(move |_| !is_whole).map(PathBuf::as_path);
        home.into_iter().chain(parts).chain(self.outside.iter().map(PathBuf::as_path))
    }

    /// Removes the files. Returns the home if it stays because of other files in it.
    fn remove(&self) -> Result<Option<PathBuf>, Failure> {
        // Listed again, because a hub that exits has written files in the meantime.
        let home = Home::new(&self.home);
        for path in Self::find(&home, self.keeps_history).own {
            match fs::symlink_metadata(&path) {
                Ok(data) if !data.is_dir() => remove_file(&path)?,
                Ok(_) if self.has_others => drop(fs::remove_dir(&path)),
                Ok(_) => ignore_missing(&path, fs::remove_dir_all(&path))?,
                Err(_) => {}
            }
        }
        for path in &self.outside {
            ignore_missing(path, fs::remove_dir_all(path))?;
            // The parent directory of all homes, if this was the last one.
            let _ = path.parent().map(fs::remove_dir);
        }
        if self.keeps_history {
            return Ok(None);
        }
        let is_left = fs::remove_dir(&self.home).is_err_and(|error| error.kind() != ErrorKind::NotFound);
        Ok(is_left.then(|| self.home.clone()))
    }
}

/// Returns true for names that Ringer uses in its home. A file that is being replaced is `.NAME.PID.NUMBER.new`.
fn is_own(name: &str) -> bool {
    let replaced = name.strip_prefix('.').and_then(|name| name.strip_suffix(".new"));
    let name = replaced.unwrap_or(name);
    DIRECTORIES.contains(&name) || FILES.iter().any(|file| name.starts_with(file))
}

/// Removes a file. A missing one is not a failure.
fn remove_file(path: &Path) -> Outcome {
    ignore_missing(path, fs::remove_file(path))
}

fn ignore_missing(path: &Path, removed: io::Result<()>) -> Outcome {
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            let what = format!("cannot remove {}", short_path(path));
            Err(Failure::new(Exit::NoPermission, what).because(error).hint("ringer uninstall"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_copies_of_a_session_of_panes_are_known() {
        let names = ["panes.json", ".panes.json.12.1.new", "panes.json.damaged", "panes.json.newer-8"];
        assert!(names.into_iter().all(is_own));
        assert!(!is_own("panes.txt"));
    }
}
