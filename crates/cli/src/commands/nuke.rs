//! `ringer nuke`.

use ringer_core::{Message, MessageId, Scope};
use ringer_hub::Clock;
use ringer_ipc::{HubClient, HubClientError};
use ringer_journal::{CLIENT_SERVER, Home, HubStore, Journal, Leftover, RunningListener};
use ringer_term::sanitise_line;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use serde_json::json;

use super::log::text_line;
use crate::confirm::confirm;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{count, eprint_line, print_json};
use crate::{context, guard};

/// Delete this repository's messages and stop its listeners
///
/// Lists the unread messages and asks first. Deletes the repository's messages,
/// questions and read positions and its id in the git directory, and stops its
/// listeners. Files that Ringer did not create stay.
///
/// Examples:
///   ringer nuke
///   ringer nuke --yes
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Skip the confirmation prompt
    #[arg(long)]
    yes: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    scope: &'a str,
    messages_removed: usize,
    listeners_ended: usize,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let Some(repository) = context::repository() else {
        return Err(Failure::usage("not a git repository, so there is nothing to delete")
            .hint("cd REPOSITORY && ringer nuke"));
    };
    let scope = context::scope(Some(&repository));
    let home = context::home()?;
    let mut journal = Journal::open_existing(&home)?;
    let (unread, listeners) = match &mut journal {
        Some(journal) => (journal.never_read(&scope)?, without_servers(journal.listeners(Some(&scope)))),
        None => (Vec::new(), Vec::new()),
    };
    if let Some(journal) = &journal {
        context::warn_if_repaired(journal);
    }
    show(&unread, listeners.len(), &sanitise_line(&repository.worktree.display().to_string()));
    if !arguments.yes && !confirm("Delete?", "ringer nuke --yes")? {
        eprint_line("Nothing was deleted.");
        return Ok(());
    }
    if let Some(journal) = &mut journal {
        // Recorded in the global scope, because the repository's scope is about to be deleted.
        guard::only_a_person(journal, &Scope::global(), "delete the messages of a repository")?;
    }
    let ended = listeners.iter().filter(|listening| stop_listener(listening)).count();
    let removed = journal.map(|mut journal| journal.remove_scope(&scope)).transpose()?.unwrap_or_default();
    remove_notifications(&home, &scope, &removed)?;
    let removed = removed.len();
    let remains = repository.remove_files().map_err(|error| {
        let what = format!("cannot remove the repository's id in {}", repository.worktree.display());
        Failure::new(Exit::NoPermission, what).because(error).hint("ringer nuke --yes")
    })?;
    if let Leftover::Foreign(path) = remains {
        eprint_line(&format!(
            "note: {} stays, because it has files that Ringer did not create",
            sanitise_line(&path.display().to_string())
        ));
    }
    if arguments.json {
        return print_json(&Report {
            scope: scope.as_str(),
            messages_removed: removed,
            listeners_ended: ended,
        });
    }
    eprint_line(&format!("deleted {}, stopped {}", count(removed, "message"), count(ended, "listener")));
    Ok(())
}

/// Removes the messages from the list of a running hub, and from the file in which hubs keep it.
fn remove_notifications(home: &Home, scope: &Scope, removed: &[MessageId]) -> Outcome {
    let response = HubClient::connect(home)
        .and_then(|mut hub| hub.call("notification.forget", &json!({ "scope": scope.as_str() })));
    match response {
        Ok(_) | Err(HubClientError::NoHub) => {}
        Err(error) => eprint_line(&format!(
            "warning: the hub did not get the request and may still list these messages: {error}\nhint: ringer hub stop"
        )),
    }
    if let Some(mut hub_store) = HubStore::open_existing(home)? {
        hub_store.forget(removed)?;
    }
    Ok(())
}

fn show(unread: &[Message], listeners: usize, worktree: &str) {
    let clock = Clock::local();
    if !unread.is_empty() {
        eprint_line("unread:");
        for message in unread {
            eprint_line(&format!("  {}", text_line(message, &clock)));
        }
    }
    eprint_line(&format!(
        "This deletes all messages of {worktree} and stops {}.",
        count(listeners, "listener")
    ));
}

/// Removes the servers of clients from a list of listeners: they keep running.
fn without_servers(listeners: Vec<RunningListener>) -> Vec<RunningListener> {
    let servers: Vec<u32> = listeners
        .iter()
        .filter(|listening| listening.owner.consumer == CLIENT_SERVER)
        .map(|listening| listening.owner.pid)
        .collect();
    listeners.into_iter().filter(|listening| !servers.contains(&listening.owner.pid)).collect()
}

/// Ends a listener. Checks that the process still holds its lock, because pids are reused.
pub(super) fn stop_listener(listening: &RunningListener) -> bool {
    let pid = i32::try_from(listening.owner.pid).ok().and_then(Pid::from_raw);
    listening.owner.is_running() && pid.is_some_and(|pid| kill_process(pid, Signal::TERM).is_ok())
}
