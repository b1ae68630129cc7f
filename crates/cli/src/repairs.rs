//! Repaired damage, for `ringer status` and `ringer doctor`.

use ringer_hub::Clock;
use ringer_journal::{Damage, Error, HubStore, Journal, RepairRecord};
use serde::Serialize;

/// Repaired damage. A damaged file is listed until its copy is removed; damaged rows until they are pruned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct RepairView {
    pub(crate) file: &'static str,
    /// When the damage was found.
    pub(crate) ts: String,
    /// The path of the damaged copy; `None` if only rows were damaged.
    pub(crate) aside: Option<String>,
    /// The number of messages or notifications that were kept; for damaged rows, the number of these rows.
    pub(crate) count: usize,
    #[serde(skip)]
    pub(crate) words: String,
}

/// The repairs of both files, oldest first.
pub(crate) fn of(
    journal: Option<&mut Journal>,
    hub_store: Option<&mut HubStore>,
    clock: &Clock,
) -> Result<Vec<RepairView>, Error> {
    let mut views = Vec::new();
    if let Some(journal) = journal {
        views.extend(view(("ringer.db", "message"), &journal.repairs()?, clock));
    }
    if let Some(hub_store) = hub_store {
        views.extend(view(("hub.db", "notification"), &hub_store.repairs()?, clock));
    }
    Ok(views)
}

fn view((file, rows): (&'static str, &str), repairs: &[RepairRecord], clock: &Clock) -> Vec<RepairView> {
    let counted = |count: usize| if count == 1 { format!("1 {rows}") } else { format!("{count} {rows}s") };
    let mut views = Vec::new();
    for repair in repairs {
        let Damage::File { damaged_copy: aside, rescued_rows: saved } = &repair.damage else { continue };
        let when = clock.short(repair.unix_ms);
        let words = format!(
            "{file} was damaged ({when}): {} kept, the damaged copy is {}",
            counted(*saved),
            aside.display()
        );
        let (ts, aside) = (clock.stamp(repair.unix_ms), Some(aside.display().to_string()));
        views.push(RepairView { file, ts, aside, count: *saved, words });
    }
    let damaged: Vec<&RepairRecord> =
        repairs.iter().filter(|repair| matches!(repair.damage, Damage::Row { .. })).collect();
    if let Some(first) = damaged.first() {
        let (when, count) = (clock.short(first.unix_ms), damaged.len());
        let words =
            format!("{} of {file} could not be read and {} set aside ({when})", counted(count), were(count));
        views.push(RepairView { file, ts: clock.stamp(first.unix_ms), aside: None, count, words });
    }
    views
}

fn were(count: usize) -> &'static str {
    if count == 1 { "was" } else { "were" }
}
