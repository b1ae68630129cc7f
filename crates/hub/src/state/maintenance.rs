//! When the files are tidied up: their logs copied, what is old removed, the hub's position noted.

use std::time::Duration;

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
    /// The journal's log is copied into its database.
    Checkpoint,
    /// It is looked whether there are too many messages.
    LimitCheck,
    /// The hub's position is noted in the journal.
    Position,
    /// What is old is removed.
    Pruning,
}

/// What was done, and when.
#[derive(Debug, Default)]
pub(super) struct Maintenance {
    changes: usize,
    messages: usize,
    pruned_at: Option<Duration>,
    position_noted_at: Option<Duration>,
    noted_seq: i64,
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
        let mut due = Vec::new();
        if self.changes >= CHECKPOINT_AFTER {
            self.changes = 0;
            due.push(Due::Checkpoint);
        }
        if self.messages >= CHECK_LIMIT_AFTER {
            self.messages = 0;
            due.push(Due::LimitCheck);
        }
        if seq != self.noted_seq && has_passed(self.position_noted_at, NOTE_POSITION_EVERY) {
            due.push(Due::Position);
        }
        if has_passed(self.pruned_at, PRUNE_EVERY) {
            self.pruned_at = Some(now);
            due.push(Due::Pruning);
        }
        due
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
        assert_eq!(maintenance.take_due(now, 7), [Due::Position, Due::Pruning]);
        maintenance.position_noted(now, 7);
        assert_eq!(maintenance.take_due(now, 7), []);
        maintenance.add_changes(CHECKPOINT_AFTER);
        assert_eq!(maintenance.take_due(now, 8), [Due::Checkpoint]);
        assert_eq!(maintenance.take_due(now, 8), [], "the position is noted once a minute");
        let later = now + NOTE_POSITION_EVERY;
        assert_eq!(maintenance.take_due(later, 8), [Due::Position]);
        assert!(maintenance.take_repairs_check() && !maintenance.take_repairs_check());
    }
}
