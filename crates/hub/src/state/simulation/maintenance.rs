//! Maintenance of the journal while the hub runs. The hub gets the result later, or ends before.

use ringer_journal::IdSource;

use super::Simulation;
pub(super) use crate::journal_maintenance::JournalTasksDone as Done;
use crate::journal_maintenance::{JournalMaintenance, JournalTasks};
use crate::message::LoopEvent;

impl Simulation {
    pub(super) fn maintain_journal(&mut self, tasks: JournalTasks, ids: &IdSource) {
        assert!(self.maintained.is_none(), "one after the other");
        self.maintained = Some(JournalMaintenance::new(self.home()).perform(tasks, ids));
    }

    pub(super) fn finish_maintenance(&mut self) {
        let Some(done) = self.maintained.take() else { return };
        assert_eq!(done.problems, [""; 0]);
        self.handle(LoopEvent::JournalMaintained(done));
    }
}
