//! `ringer setup`.

use std::env;
use std::path::{Path, PathBuf};

use ringer_agents::setup::{
    BackupTime, Client, ClientPaths, FileChange, ObstacleKind, Plan, RingerProgram, SetupAction, SetupError,
    SetupNote, SetupRecords, SetupScope, apply, find, obstacles, plan, read_files,
};
use ringer_core::{Draft, Kind, Recipient, Scope, Sender};
use ringer_hub::Clock;
use ringer_journal::{IdSource, Journal};
use ringer_platform::path_variable;
use ringer_term::sanitise_line;
use serde_json::{Value, json};

use crate::confirm::confirm;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::{eprint_line, print_json, print_line, print_text};
use crate::probe::detect_and_ask;
use crate::{context, hub_client, origin};

/// What can be done where the person has set aider's notifications themselves.
pub(crate) const TAKEN: &str = "remove that line, or make your notifications-command run: \
     ringer notify --from aider --kind waiting \"aider waits for you\"";

/// Connect your agents: add Ringer's hooks to their settings
///
/// Shows the change, asks, makes a backup and writes. Without a name, sets up every
/// installed agent. Other entries in the files are not changed.
///
/// Examples:
///   ringer setup
///   ringer setup claude codex --dry-run
///   ringer setup --remove
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch on the command line")]
pub(crate) struct Args {
    /// Agents: claude, codex, gemini, opencode; experimental: cursor, copilot, aider [default: all installed]
    #[arg(value_name = "AGENT")]
    clients: Vec<String>,
    /// Skip the confirmation prompt
    #[arg(long)]
    yes: bool,
    /// Show the changes without writing them
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Also turn off Claude Code's popups, so that each notification shows once
    #[arg(long, conflicts_with = "remove")]
    no_client_popups: bool,
    /// Write to this repository's settings, for everyone who works in it
    #[arg(long)]
    project: bool,
    /// Undo: remove Ringer's entries
    #[arg(long)]
    remove: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let client_paths = setup_paths(arguments.project)?;
    let scope = if arguments.project { SetupScope::Project } else { SetupScope::User };
    let state = context::home()?.path().to_owned();
    let clients = clients(arguments, &client_paths)?;
    let action =
        if arguments.remove { SetupAction::Remove } else { SetupAction::Setup(program(arguments.project)?) };
    let records = SetupRecords::load(&state).map_err(|error| failure(&error))?;
    let mut plans = Vec::new();
    for client in &clients {
        let files = read_files(*client, scope, &client_paths, &records).map_err(|error| failure(&error))?;
        match plan(*client, &action, files) {
            Ok(mut plan) => {
                if arguments.no_client_popups {
                    plan.turn_off_client_popups().map_err(|error| failure(&error))?;
                }
                plans.push(plan);
            }
            // This client was not named on the command line, so its error does not stop the others.
            Err(error @ SetupError::Taken { .. }) if arguments.clients.is_empty() => {
                eprint_line(&format!("note: {}\nhint: {TAKEN}", sanitise_line(&error.to_string())));
            }
            Err(error) => return Err(failure(&error)),
        }
    }
    let clients: Vec<Client> = plans.iter().map(|plan| plan.client).collect();
    let changes: Vec<&FileChange> =
        plans.iter().flat_map(|plan| &plan.changes).filter(|change| change.is_change()).collect();
    if !arguments.json {
        show(&plans)?;
    }
    let written = if changes.is_empty() || arguments.dry_run {
        Vec::new()
    } else if arguments.yes || confirm("Write these changes?", "ringer setup --yes")? {
        apply_plans(&plans, &state)?
    } else {
        eprint_line("Nothing was changed.");
        return Ok(());
    };
    let obstacles =
        if arguments.remove { Vec::new() } else { obstacle_notes(&plans, scope, &client_paths, &written) };
    if arguments.json {
        return print_json(&report(&clients, &plans, &written, &obstacles));
    }
    for note in &obstacles {
        eprint_line(&format!("note: {}\nhint: {}", sanitise_line(&note.what), sanitise_line(&note.hint)));
    }
    if changes.is_empty() {
        print_line(if arguments.remove {
            "Ringer is not set up in any agent; nothing to remove."
        } else {
            "Already set up; nothing to change."
        })?;
    }
    if !arguments.remove && !arguments.dry_run && !written.is_empty() {
        // The hub shows the test in this terminal, perhaps, and needs to know what it can show.
        detect_and_ask();
        send_test(&clients)?;
    }
    Ok(())
}

/// Why clients will not run what is set up.
fn obstacle_notes(
    plans: &[Plan],
    scope: SetupScope,
    client_paths: &ClientPaths,
    written: &[PathBuf],
) -> Vec<SetupNote> {
    let was_written =
        |plan: &Plan| plan.changes.iter().any(|change| written.iter().any(|path| path == change.path()));
    let found = plans.iter().flat_map(|plan| {
        let found = obstacles(plan.client, scope, client_paths, None).into_iter();
        // That new hooks have to be trusted is in the notes of the plan already.
        found.filter(|obstacle| obstacle.kind != ObstacleKind::Untrusted || !was_written(plan))
    });
    found.map(|obstacle| obstacle.note).collect()
}

fn clients(arguments: &Args, client_paths: &ClientPaths) -> Result<Vec<Client>, Failure> {
    if !arguments.clients.is_empty() {
        return arguments.clients.iter().map(|name| Ok(name.parse::<Client>()?)).collect();
    }
    let found = find(&env::var_os("PATH").unwrap_or_default(), client_paths);
    let here: Vec<Client> =
        found.iter().filter(|found| found.is_installed()).map(|found| found.client).collect();
    if here.is_empty() && !arguments.remove {
        return Err(Failure::new(
            Exit::Unavailable,
            "no supported agent (claude, codex, gemini, opencode, …) is installed",
        )
        .hint("ringer setup claude   # to set one up anyway"));
    }
    Ok(if arguments.remove { Client::ALL.to_vec() } else { here })
}

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
    Ok(crate::client_paths::client_paths(home, root))
}

/// The program that hooks call. In a repository's files a plain name: the path differs between users.
pub(crate) fn program(project: bool) -> Result<RingerProgram, Failure> {
    let path = if project {
        PathBuf::from("ringer")
    } else {
        env::current_exe().map_err(|error| {
            Failure::new(Exit::Unavailable, "cannot find the path of the ringer program").because(error)
        })?
    };
    RingerProgram::new(&path).map_err(|error| failure(&error))
}

fn show(plans: &[Plan]) -> Outcome {
    for change in plans.iter().flat_map(|plan| &plan.changes) {
        if change.is_change() {
            // Line by line: what is in a file may not reach the terminal as it is.
            let diff: String = change.diff().lines().map(|line| sanitise_line(line) + "\n").collect();
            print_text(&diff)?;
        }
        for note in &change.notes {
            eprint_line(&format!("note: {}\nhint: {}", sanitise_line(&note.what), sanitise_line(&note.hint)));
        }
    }
    Ok(())
}

fn apply_plans(plans: &[Plan], state: &Path) -> Result<Vec<PathBuf>, Failure> {
    let stamp = Clock::local().compact(IdSource::now().unix_ms);
    let time = BackupTime::new(&stamp).map_err(|error| failure(&error))?;
    let mut written = Vec::new();
    for plan in plans.iter().filter(|plan| !plan.is_empty()) {
        let applied = apply(plan, state, &time).map_err(|error| failure(&error))?;
        for path in &applied.written {
            eprint_line(&format!("wrote {}", path.display()));
        }
        for path in &applied.deleted {
            eprint_line(&format!("removed {}", path.display()));
        }
        for path in &applied.backups {
            eprint_line(&format!("backup: {}", path.display()));
        }
        written.extend(applied.written);
        written.extend(applied.deleted);
    }
    Ok(written)
}

/// Sends a notification the way an agent does, to show that it works.
fn send_test(clients: &[Client]) -> Outcome {
    let names: Vec<&str> = clients.iter().map(|client| client.as_str()).collect();
    let text = format!("Ringer is connected to {}", names.join(", "));
    let mut draft = Draft::new(Scope::global(), Sender::system(), Kind::Status, &text)?;
    draft.recipient = Recipient::Person;
    draft.title = Some("Ringer".to_owned());
    draft.origin = origin::message_origin();
    let mut journal = Journal::open(&context::home()?)?;
    let id = journal.append(&draft, &IdSource::now())?;
    hub_client::start_if_not_woken(&journal);
    print_line(&format!("Sent a test notification. If you did not see it: ringer why {id}"))
}

fn report(clients: &[Client], plans: &[Plan], written: &[PathBuf], obstacles: &[SetupNote]) -> Value {
    let changes = plans.iter().flat_map(|plan| &plan.changes).map(|change| {
        let notes: Vec<&str> = change.notes.iter().map(|note| note.what.as_str()).collect();
        json!({
            "path": change.path(),
            "changes": change.is_change(),
            "written": written.iter().any(|path| path == change.path()),
            "diff": if change.is_change() { change.diff() } else { String::new() },
            "notes": notes,
        })
    });
    let names: Vec<&str> = clients.iter().map(|client| client.as_str()).collect();
    let obstacles: Vec<&str> = obstacles.iter().map(|note| note.what.as_str()).collect();
    json!({ "clients": names, "files": changes.collect::<Vec<_>>(), "in_the_way": obstacles })
}

fn failure(error: &SetupError) -> Failure {
    let exit = match error {
        SetupError::Jsonc { .. }
        | SetupError::Toml { .. }
        | SetupError::Yaml(_)
        | SetupError::Taken { .. }
        | SetupError::NotText(_) => Exit::Config,
        _ => Exit::CannotCreate,
    };
    let hint = match exit {
        Exit::Config if matches!(error, SetupError::Taken { .. }) => TAKEN,
        Exit::Config => "correct the file, which was not changed, then run: ringer setup",
        _ => "ringer setup --dry-run",
    };
    Failure::new(exit, error.to_string()).hint(hint)
}
