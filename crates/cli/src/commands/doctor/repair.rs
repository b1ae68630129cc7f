//! `ringer doctor --repair`: repairs the files as a starting hub does, for when no hub can be started.

use ringer_journal::{Home, HubLock, HubStore, Journal, Repair};

use crate::context;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{count, print_line};

pub(super) fn run() -> Outcome {
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
        journal.repair().map(|repair| said(repair, ("journal", "message"))),
        store
            .as_ref()
            .and_then(HubStore::repair)
            .map(|repair| said(repair, ("list of notifications", "notification"))),
    ];
    Ok(said.into_iter().flatten().collect())
}

fn said(repair: &Repair, (file, row): (&str, &str)) -> String {
    format!(
        "The {file} was damaged: {} kept. The damaged copy is {}.",
        count(repair.rescued_rows, row),
        repair.damaged_copy.display()
    )
}
