//! What was damaged and repaired, for `ringer status` and `ringer doctor`.

use ringer_hub::Clock;
use ringer_journal::{Damage, Error, HubStore, Journal, RepairRecord};
use serde::Serialize;

/// Damage that was repaired. It is listed until its damaged copy is removed; rows, until they are pruned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct RepairView {
    /// The file that was damaged.
    pub(crate) file: &'static str,
    /// When that was found.
    pub(crate) ts: String,
    /// Where the damaged copy is; `None` where rows were damaged and not the file.
    pub(crate) aside: Option<String>,
    /// How many messages or notifications were kept; of damaged rows, how many there were.
    pub(crate) count: usize,
    /// The same for people.
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
