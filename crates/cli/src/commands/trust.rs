//! `ringer trust`.

use std::io;
use std::path::{Path, PathBuf};

use ringer_config::{
    HookEntry, REPOSITORY_FILE, RepositorySettings, TrustError, Trustable, Trusted, Watch, load_repository,
};
use ringer_core::Scope;
use ringer_hub::trust_file;
use ringer_journal::{Home, Journal, Repository};
use ringer_term::sanitise_line;
use serde::Serialize;
use serde_json::{Value, json};

use super::config;
use crate::confirm::confirm;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{count, eprint_line, print_json, print_line};
use crate::{context, guard};

/// Allow a repository's .ringer.toml to run programs
///
/// Shows every hook and watch in the file, asks, and trusts exactly these command
/// lines. An entry that changes later needs trust again. Only the command line is
/// pinned, not the script's contents: a script inside the repository can change
/// without being noticed.
///
/// Examples:
///   ringer trust
///   ringer trust ~/work/project --yes
///   ringer trust --list
///   ringer trust --remove
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch on the command line")]
pub(crate) struct Args {
    /// Directory inside the repository [default: the current one]
    directory: Option<PathBuf>,
    /// Skip the confirmation prompt
    #[arg(long, conflicts_with_all = ["list", "remove"])]
    yes: bool,
    /// List the trusted programs of every repository
    #[arg(long, conflicts_with_all = ["directory", "remove"])]
    list: bool,
    /// Stop trusting this repository's programs
    #[arg(long)]
    remove: bool,
    /// Print JSON: an array with --list, else one object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let home = context::home()?;
    if arguments.list {
        return list(&home, arguments.json);
    }
    if arguments.remove {
        return remove(&home, arguments);
    }
    let root = root(arguments.directory.as_deref())?;
    let path = root.join(REPOSITORY_FILE);
    let settings = match load_repository(&root, config::environment().home.as_deref()) {
        Ok(settings) => settings,
        Err(errors) => return config::report_and_fail(&path, errors),
    };
    trust(&home, &path, &settings, arguments)
}

/// Returns the root of the repository around a directory, spelled exactly as a hub will see it.
fn root(directory: Option<&Path>) -> Result<PathBuf, Failure> {
    let repository = match directory {
        None => context::repository(),
        Some(directory) => {
            let name = sanitise_line(&directory.display().to_string());
            let real = directory.canonicalize().map_err(|error| Failure::open(&name, error))?;
            Repository::around(&real)
        }
    };
    repository.map(|repository| repository.worktree).ok_or_else(|| {
        Failure::usage("not a git repository, so there is nothing to trust").hint("ringer trust DIRECTORY")
    })
}

fn trust(home: &Home, path: &Path, settings: &RepositorySettings, arguments: &Args) -> Outcome {
    let trust_path = trust_file(home);
    let before = load(&trust_path)?;
    let new = settings.hooks.iter().filter(|hook| !before.is_trusted(*hook)).count()
        + settings.watches.iter().filter(|watch| !before.is_trusted(*watch)).count();
    show(path, settings, &before);
    if new > 0 {
        if !arguments.yes && !confirm("Allow these programs to run?", "ringer trust --yes")? {
            eprint_line("Nothing was trusted.");
            return report(path, settings, &before, 0, arguments.json);
        }
        // Opening the journal creates the home with permissions for this user only.
        let mut journal = Journal::open(home)?;
        guard::only_a_person(&mut journal, &Scope::global(), "trust programs of a repository")?;
        // Another process may have changed the file while this one waited for the answer.
        let mut now = load(&trust_path)?;
        settings.hooks.iter().for_each(|hook| now.trust(hook));
        settings.watches.iter().for_each(|watch| now.trust(watch));
        now.save(&trust_path).map_err(|error| failure(&error))?;
        eprint_line(&format!("trusted {}; undo with: ringer trust --remove", count(new, "program")));
        return report(path, settings, &now, new, arguments.json);
    }
    report(path, settings, &before, 0, arguments.json)
}

/// Shows the programs that the file would run. The file is untrusted; [`Trustable::what`] escapes its contents.
fn show(path: &Path, settings: &RepositorySettings, trusted: &Trusted) {
    let name = sanitise_line(&path.display().to_string());
    if settings.hooks.is_empty() && settings.watches.is_empty() {
        let why = if path.exists() { "names no programs" } else { "does not exist" };
        eprint_line(&format!("nothing to trust: {name} {why}"));
        return;
    }
    eprint_line(&format!("{name} names programs that run with your permissions:"));
    let line = |is_trusted: bool, what: String| {
        let word = if is_trusted { "trusted" } else { "not trusted" };
        eprint_line(&format!("  {word:<11}  {}", sanitise_line(&what)));
    };
    for hook in &settings.hooks {
        line(trusted.is_trusted(hook), hook_text(hook));
    }
    for watch in &settings.watches {
        line(trusted.is_trusted(watch), watch_text(watch));
    }
}

fn hook_text(hook: &HookEntry) -> String {
    format!("{}{}", hook.what(), if hook.enabled { "" } else { " (switched off)" })
}

/// Describes a watch with everything that its digest covers: where it runs, and who receives its output.
fn watch_text(watch: &Watch) -> String {
    let agent = watch.agent.as_ref().map(|agent| format!(", output goes to {agent:?}")).unwrap_or_default();
    format!("{} in {:?}{agent}", watch.what(), watch.working_directory().to_string_lossy())
}

fn report(
    path: &Path,
    settings: &RepositorySettings,
    trusted: &Trusted,
    new: usize,
    as_json: bool,
) -> Outcome {
    if !as_json {
        return Ok(());
    }
    let hooks = settings.hooks.iter().map(|hook| row(hook, trusted));
    let watches = settings.watches.iter().map(|watch| row(watch, trusted));
    let programs: Vec<Value> = hooks.chain(watches).collect();
    print_json(&json!({ "path": path.display().to_string(), "newly_trusted": new, "programs": programs }))
}

fn row(entry: &impl Trustable, trusted: &Trusted) -> Value {
    json!({ "what": entry.what(), "digest": entry.digest(), "trusted": trusted.is_trusted(entry) })
}

fn remove(home: &Home, arguments: &Args) -> Outcome {
    let path = match (root(arguments.directory.as_deref()), &arguments.directory) {
        (Ok(root), _) => root.join(REPOSITORY_FILE),
        // The checkout is gone; its programs can still be removed.
        (Err(_), Some(directory)) => std::path::absolute(directory)
            .map_err(|error| Failure::usage("the directory has no absolute path").because(error))?
            .join(REPOSITORY_FILE),
        (Err(failure), None) => return Err(failure),
    };
    let trust_path = trust_file(home);
    let mut trusted = load(&trust_path)?;
    let removed = trusted.distrust_file(&path);
    if removed > 0 {
        trusted.save(&trust_path).map_err(|error| failure(&error))?;
    }
    if arguments.json {
        return print_json(&json!({ "path": path.display().to_string(), "removed": removed }));
    }
    let name = sanitise_line(&path.display().to_string());
    if removed == 0 {
        eprint_line(&format!("no program in {name} was trusted"));
    } else {
        eprint_line(&format!("removed trust from {} in {name}", count(removed, "program")));
    }
    Ok(())
}

#[derive(Serialize)]
struct TrustedView<'a> {
    digest: &'a str,
    path: &'a str,
    what: &'a str,
}

fn list(home: &Home, as_json: bool) -> Outcome {
    let trusted = load(&trust_file(home))?;
    let mut rows: Vec<TrustedView<'_>> =
        trusted.entries().map(|(digest, what, path)| TrustedView { digest, path, what }).collect();
    rows.sort_by(|left, right| (left.path, left.what).cmp(&(right.path, right.what)));
    if as_json {
        return print_json(&rows);
    }
    if rows.is_empty() {
        eprint_line("No trusted programs.");
    }
    rows.iter().try_for_each(|row| print_line(&sanitise_line(&format!("{}  {}", row.path, row.what))))
}

fn load(path: &Path) -> Result<Trusted, Failure> {
    Trusted::load(path).map_err(|error| failure(&error))
}

fn failure(error: &TrustError) -> Failure {
    match error {
        TrustError::Io { source, .. } => {
            let exit = match source.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Exit::NoPermission,
                _ => Exit::InputOutput,
            };
            Failure::new(exit, error.to_string())
        }
        TrustError::Broken { path, .. } => {
            let hint = format!("rm {}   # then run ringer trust again", path.display());
            Failure::new(Exit::Data, error.to_string()).hint(sanitise_line(&hint))
        }
        _ => Failure::new(Exit::Unavailable, error.to_string())
            .hint("upgrade ringer to the version that wrote it"),
    }
}
