//! Schedules the maintenance of the files: checkpoints, pruning, and notes of the hub's position.

use std::time::Duration;

use ringer_core::MessageId;
use ringer_journal::HubPruning;

use crate::journal_maintenance::JournalTasks;

/// Changes of the journal between two checkpoints. A message takes some twenty pages, and a writer checkpoints at 512 KiB (127
/// pages) while its sender waits. With this limit the hub does it first in most cases.
const CHECKPOINT_AFTER: usize = 16;
/// Interval of the pruning of old messages.
const PRUNE_EVERY: Duration = Duration::from_hours(4);
/// Messages between two checks of the limits. A tenth of the limit, so at most that many are over it.
const CHECK_LIMIT_AFTER: usize = 20_000;
/// Interval at which the journal gets the hub's position. If the hub store is lost, messages read after the last note are shown
/// again.
const NOTE_POSITION_EVERY: Duration = Duration::from_mins(1);

/// A task that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Note the hub's position in the journal.
    Position,
    /// Maintain the journal.
    Journal(JournalTasks),
}

/// The schedule of the maintenance.
#[derive(Debug, Default)]
pub(super) struct Maintenance {
    changes: usize,
    messages: usize,
    pruned_at: Option<Duration>,
    position_noted_at: Option<Duration>,
    noted_seq: i64,
    /// True while the journal is being maintained. Tasks that become due meanwhile wait.
    is_running: bool,
    /// The rest of the pruning of the hub store.
    hub_pruning: Option<HubPruning>,
    /// True if the files may have records of repairs that the person has not been told about.
    repairs_may_be_untold: bool,
}

impl Maintenance {
    pub(super) fn new() -> Self {
        Self { repairs_may_be_untold: true, ..Self::default() }
    }

    /// Counts changes of the journal.
    pub(super) fn add_changes(&mut self, changes: usize) {
        self.changes += changes;
        self.messages += changes;
    }

    /// Takes the tasks that are due. `seq` is the last message that was read.
    pub(super) fn take_due(&mut self, now: Duration, seq: i64) -> Vec<Due> {
        let has_passed =
            |at: Option<Duration>, time: Duration| at.is_none_or(|at| now.saturating_sub(at) >= time);
        let mut tasks = JournalTasks::default();
        if !self.is_running {
            if self.changes >= CHECKPOINT_AFTER {
                (self.changes, tasks.checkpoint) = (0, true);
            }
            if self.messages >= CHECK_LIMIT_AFTER {
                (self.messages, tasks.limit_check) = (0, true);
            }
            if has_passed(self.pruned_at, PRUNE_EVERY) {
                (self.pruned_at, tasks.pruning) = (Some(now), true);
            }
        }
        let mut due = Vec::new();
        // Always before a pruning, so that no unread message is removed.
        let is_position_due = has_passed(self.position_noted_at, NOTE_POSITION_EVERY) || tasks.pruning;
        if seq != self.noted_seq && is_position_due {
            due.push(Due::Position);
        }
        if tasks != JournalTasks::default() {
            self.is_running = true;
            due.push(Due::Journal(tasks));
        }
        due
    }

    /// Records the end of the journal's maintenance. After a pruning, the hub store is pruned to what the journal keeps.
    pub(super) fn finished(&mut self, kept_from: Option<&MessageId>) {
        self.is_running = false;
        if let Some(oldest) = kept_from {
            self.hub_pruning = Some(HubPruning::of(oldest));
        }
    }

    /// Takes the next piece to prune from the hub store.
    pub(super) fn take_hub_pruning(&mut self) -> Option<HubPruning> {
        self.hub_pruning.take()
    }

    /// Sets the rest of the pruning.
    pub(super) fn continue_hub_pruning(&mut self, left: Option<HubPruning>) {
        self.hub_pruning = left;
    }

    /// Returns zero while the hub store is being pruned, one piece in each turn of the loop.
    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.hub_pruning.as_ref().map(|_| Duration::ZERO)
    }

    /// Records that the hub's position was noted.
    pub(super) fn position_noted(&mut self, now: Duration, seq: i64) {
        (self.position_noted_at, self.noted_seq) = (Some(now), seq);
    }

    /// Records that a file may have been repaired.
    pub(super) fn check_repairs(&mut self) {
        self.repairs_may_be_untold = true;
    }

    /// Returns true if records of repairs must be looked up, once for each [`Maintenance::check_repairs`].
    pub(super) fn take_repairs_check(&mut self) -> bool {
        std::mem::take(&mut self.repairs_may_be_untold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_is_due_once() {
        let mut maintenance = Maintenance::new();
        let now = Duration::from_secs(100);
        let pruning = JournalTasks { pruning: true, ..JournalTasks::default() };
        let checkpoint = JournalTasks { checkpoint: true, ..JournalTasks::default() };
        assert_eq!(maintenance.take_due(now, 7), [Due::Position, Due::Journal(pruning)]);
        maintenance.position_noted(now, 7);
        assert_eq!(maintenance.take_due(now, 7), []);
        maintenance.add_changes(CHECKPOINT_AFTER);
        assert_eq!(maintenance.take_due(now, 8), [], "it is still being pruned");
        maintenance.finished(None);
        assert_eq!(maintenance.next_deadline(), None);
        assert_eq!(maintenance.take_due(now, 8), [Due::Journal(checkpoint)]);
        maintenance.finished(None);
        assert_eq!(maintenance.take_due(now, 8), [], "the position is noted once a minute");
        let later = now + NOTE_POSITION_EVERY;
        assert_eq!(maintenance.take_due(later, 8), [Due::Position]);
        maintenance.position_noted(later, 8);
        let much_later = now + PRUNE_EVERY;
        assert_eq!(maintenance.take_due(much_later, 9), [Due::Position, Due::Journal(pruning)]);
        assert!(maintenance.take_repairs_check() && !maintenance.take_repairs_check());
    }

    #[test]
    fn the_hubs_store_is_pruned_after_the_journal_until_nothing_is_left() {
        let mut maintenance = Maintenance::new();
        let oldest = MessageId::parse("0192f0a1-0000-7000-8000-000000000000").unwrap();
        maintenance.finished(Some(&oldest));
        assert_eq!(maintenance.next_deadline(), Some(Duration::ZERO));
        let pruning = maintenance.take_hub_pruning();
        assert_eq!(pruning, Some(HubPruning::of(&oldest)));
        maintenance.continue_hub_pruning(pruning);
        assert!(maintenance.take_hub_pruning().is_some());
        maintenance.continue_hub_pruning(None);
        assert_eq!(maintenance.next_deadline(), None);
    }
}
