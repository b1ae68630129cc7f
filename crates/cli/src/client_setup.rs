//! Locates the clients' settings, and describes what a setup writes there.

use std::env;
use std::path::{Path, PathBuf};

use ringer_agents::setup::{
    Client, ClientPaths, Entries, FileChange, Format, Plan, RingerProgram, SetupAction, SetupError,
    SetupRecords, SetupScope, plan, read_files,
};
use ringer_platform::path_variable;

use crate::context;
use crate::failure::{Exit, Failure};
use crate::output::{count, short_path};

/// Returns the paths of the person's client settings, with `project` also of those in this repository.
pub(crate) fn setup_paths(project: bool) -> Result<ClientPaths, Failure> {
    let home = path_variable("HOME").ok_or_else(|| Failure::new(Exit::CannotCreate, "HOME is not set"))?;
    let root = if project {
        let repository = context::repository().ok_or_else(|| {
            Failure::usage("not a git repository, so --project has no settings to write").hint("ringer setup")
        })?;
        Some(repository.worktree)
    } else {
        None
    };
    Ok(client_paths(home, root))
}

/// Returns the program that hooks call. In a repository's files it is a plain name, because the path differs between users.
pub(crate) fn program(project: bool) -> Result<RingerProgram, Failure> {
    let path = if project { PathBuf::from("ringer") } else { own_path()? };
    RingerProgram::new(&path).map_err(|error| failure(&error))
}

/// Plans the setup of a client for this person. The plan is empty if its entries already call this program.
pub(crate) fn user_plan(client: Client, entries: Entries) -> Result<Result<Plan, SetupError>, Failure> {
    let action = SetupAction::Setup(program(false)?, entries);
    let records = SetupRecords::load(context::home()?.path()).map_err(|error| failure(&error))?;
    let files = read_files(client, &action, SetupScope::User, &setup_paths(false)?, &records);
    Ok(files.and_then(|files| plan(client, &action, files)))
}

pub(crate) fn own_path() -> Result<PathBuf, Failure> {
    env::current_exe().map_err(|error| {
        Failure::new(Exit::Unavailable, "cannot find the path of the ringer program").because(error)
    })
}

/// Returns a sentence with the path if the program lies in a build or temporary directory, and so may disappear.
pub(crate) fn passing_place(program: &Path) -> Option<String> {
    let directory = program.parent()?;
    let path = short_path(program);
    let is_profile = |name: &str| matches!(name, "debug" | "release");
    let names: Vec<&str> = directory.iter().filter_map(|name| name.to_str()).collect();
    let in_target = names.last().copied().is_some_and(is_profile) && names.contains(&"target");
    // Cargo creates this directory beside its output, whatever the target directory is called.
    if in_target || directory.join(".fingerprint").is_dir() {
        return Some(format!("{path} is in a build directory: it is gone after cargo clean"));
    }
    let temporary = [env::temp_dir(), "/tmp".into(), "/var/tmp".into(), "/dev/shm".into()];
    let is_temporary = temporary.iter().any(|temporary| directory.starts_with(temporary));
    is_temporary.then(|| format!("{path} is in a temporary directory: it may be gone soon"))
}

/// The fix for a program in such a directory.
pub(crate) const INSTALL: &str = "cargo install --path crates/cli, then: ringer setup";

/// Describes Ringer's entries in a client's files: `12 hooks in ~/.claude/settings.json`. Empty if there are none.
pub(crate) fn entries(plan: &Plan) -> String {
    let mut directory = None;
    let parts = plan.changes.iter().filter_map(|change| {
        let what = entry(plan, change)?;
        let parent = change.path().parent();
        // A second file in the same directory goes by its file name.
        let place = match change.path().file_name() {
            Some(name) if directory == parent => name.to_string_lossy().into_owned(),
            _ => short_path(change.path()),
        };
        directory = parent;
        Some(format!("{what} in {place}"))
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// The same without the files: `12 hooks`.
pub(crate) fn entries_in_short(plan: &Plan) -> String {
    let parts: Vec<String> = plan.changes.iter().filter_map(|change| entry(plan, change)).collect();
    parts.join(" and ")
}

fn entry(plan: &Plan, change: &FileChange) -> Option<String> {
    let entries = plan.action.entries();
    let hooks = match change.target.format {
        _ if !entries.has_hooks() => None,
        Format::Hooks => Some(count(plan.client.hook_events().len(), "hook")),
        // The person's own `notify` stays; the notes mention it.
        Format::CodexConfig => change.notes.is_empty().then(|| "notify".to_owned()),
        Format::OpencodePlugin => Some("a plugin".to_owned()),
        _ => None,
    };
    let has_server = entries.has_mcp_server() && change.target.mcp.is_some();
    let server = has_server.then(|| "the MCP server".to_owned());
    let parts: Vec<String> = hooks.into_iter().chain(server).collect();
    (!parts.is_empty()).then(|| parts.join(" and "))
}

pub(crate) fn failure(error: &SetupError) -> Failure {
    let exit = match error {
        SetupError::Jsonc { .. } | SetupError::Toml { .. } | SetupError::NotText(_) => Exit::Config,
        _ => Exit::CannotCreate,
    };
    let hint = match exit {
        Exit::Config => "correct the file, which was not changed, then run: ringer setup",
        _ => "ringer setup --dry-run",
    };
    Failure::new(exit, error.to_string()).hint(hint)
}

/// Returns the client directories below a home, or where environment variables place them.
pub(crate) fn client_paths(home: PathBuf, project: Option<PathBuf>) -> ClientPaths {
    ClientPaths {
        config_home: path_variable("XDG_CONFIG_HOME"),
        claude_dir: path_variable("CLAUDE_CONFIG_DIR"),
        codex_home: path_variable("CODEX_HOME"),
        copilot_home: path_variable("COPILOT_HOME"),
        project,
        ..ClientPaths::new(home)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_may_be_gone_soon() {
        let check = |path: &str, expected: Option<&str>| {
            let found = passing_place(Path::new(path));
            assert_eq!(found.is_some(), expected.is_some(), "{path}: {found:?}");
            assert!(found.is_none_or(|found| found.contains(expected.unwrap_or_default())), "{path}");
        };
        check("/people/ada/ringer/target/release/ringer", Some("build directory"));
        check("/people/ada/ringer/target/x86_64-unknown-linux-musl/debug/ringer", Some("build directory"));
        check("/tmp/download/ringer", Some("temporary directory"));
        check("/people/ada/.cargo/bin/ringer", None);
        check("/people/ada/release/ringer", None);
        check("/usr/bin/ringer", None);
    }

    #[test]
    fn a_build_directory_of_another_name_is_known_by_what_cargo_puts_there() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let program = directory.path().join("ringer");
        assert_eq!(passing_place(&program), None);
        std::fs::create_dir(directory.path().join(".fingerprint")).unwrap();
        assert!(passing_place(&program).unwrap().contains("build directory"));
    }
}
