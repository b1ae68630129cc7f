//! When the files are tidied up: their logs copied, what is old removed, the hub's position noted.

use std::time::Duration;

use ringer_core::MessageId;
use ringer_journal::HubPruning;

use crate::journal_maintenance::JournalTasks;

/// Changes of the journal after which the hub copies its log into the database. A message takes some twenty pages, and
/// a writer copies the log at 512 KiB (127 pages) while its sender waits, so the hub does it earlier than most writers
/// would.
const CHECKPOINT_AFTER: usize = 16;
/// How often old messages are looked for.
const PRUNE_EVERY: Duration = Duration::from_hours(4);
/// Messages after which it is looked whether there are too many. A tenth of those over the limit at most, then.
const CHECK_LIMIT_AFTER: usize = 20_000;
/// How often the hub's position is noted in the journal. If the hub's own store is lost, what was read since is shown again.
const NOTE_POSITION_EVERY: Duration = Duration::from_mins(1);

/// Something that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// The hub's position is noted in the journal.
    Position,
    /// These are done for the journal.
    Journal(JournalTasks),
}

/// What was done, and when.
#[derive(Debug, Default)]
pub(super) struct Maintenance {
    changes: usize,
    messages: usize,
    pruned_at: Option<Duration>,
    position_noted_at: Option<Duration>,
    noted_seq: i64,
    /// Whether something is being done for the journal. One at a time: what becomes due meanwhile comes after it.
    is_running: bool,
    /// What is left to be removed from the hub's store.
    hub_pruning: Option<HubPruning>,
    /// Whether repairs may be noted in the files that the person was not told of.
    repairs_may_be_untold: bool,
}

impl Maintenance {
    pub(super) fn new() -> Self {
        Self { repairs_may_be_untold: true, ..Self::default() }
    }

    /// The journal was found changed this many times.
    pub(super) fn add_changes(&mut self, changes: usize) {
        self.changes += changes;
        self.messages += changes;
    }

    /// What is due now, with the journal read up to that number. It counts as done.
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
        // Before a pruning always, so that nothing goes that was not read.
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

    /// What was due for the journal is done. After a pruning, the hub's store is pruned to what the journal keeps.
    pub(super) fn finished(&mut self, kept_from: Option<&MessageId>) {
        self.is_running = false;
        if let Some(oldest) = kept_from {
            self.hub_pruning = Some(HubPruning::of(oldest));
        }
    }

    /// The next piece that is to be removed from the hub's store.
    pub(super) fn take_hub_pruning(&mut self) -> Option<HubPruning> {
        self.hub_pruning.take()
    }

    /// This is left to be removed from it.
    pub(super) fn continue_hub_pruning(&mut self, left: Option<HubPruning>) {
        self.hub_pruning = left;
    }

    /// The loop goes on with the hub's store at once, a piece in each turn.
    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.hub_pruning.as_ref().map(|_| Duration::ZERO)
    }

    /// The hub's position was noted.
    pub(super) fn position_noted(&mut self, now: Duration, seq: i64) {
        (self.position_noted_at, self.noted_seq) = (Some(now), seq);
    }

    /// A repair may have been noted.
    pub(super) fn check_repairs(&mut self) {
        self.repairs_may_be_untold = true;
    }

    /// Whether repairs are to be looked for. From then on they are told, unless [`Maintenance::check_repairs`] is called.
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
