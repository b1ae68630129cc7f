//! Maintains the journal: checkpoints the write-ahead log and removes old messages. Runs outside the loop with its own
//! connection, because it waits for the disk.

use ringer_core::MessageId;
use ringer_journal::{Error, Home, IdSource, Journal, RetentionLimits, Uptime};

/// The tasks that are due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct JournalTasks {
    /// Copy the write-ahead log into the database.
    pub(crate) checkpoint: bool,
    /// Check the number and size of messages.
    pub(crate) limit_check: bool,
    /// Remove old messages.
    pub(crate) pruning: bool,
}

/// The result of the tasks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct JournalTasksDone {
    /// After pruning, the oldest message that the journal keeps.
    pub(crate) kept_from: Option<MessageId>,
    /// Failures, for the log. Failed tasks run again when they are due again.
    pub(crate) problems: Vec<String>,
}

/// Performs the tasks.
#[derive(Debug)]
pub(crate) struct JournalMaintenance {
    home: Home,
    journal: Option<Journal>,
}

impl JournalMaintenance {
    pub(crate) fn new(home: Home) -> Self {
        Self { home, journal: None }
    }

    /// `ids` identifies the message that reports a full journal.
    pub(crate) fn perform(&mut self, tasks: JournalTasks, ids: &IdSource) -> JournalTasksDone {
        let mut done = JournalTasksDone::default();
        let journal = match self.journal() {
            Ok(Some(journal)) => journal,
            Ok(None) => return done,
            Err(error) => {
                done.problems.push(format!("cannot open the journal to tidy it up: {error}"));
                return done;
            }
        };
        if tasks.checkpoint {
            // A checkpoint that fails is retried when it is due again.
            let _ = journal.checkpoint();
        }
        if tasks.limit_check
            && let Err(error) = journal.forget_over_limit(RetentionLimits::default(), ids)
        {
            done.problems.push(format!("cannot make the journal smaller: {error}"));
        }
        if tasks.pruning {
            match journal.prune_if_due(&Uptime::now(), ids).and_then(|()| journal.kept_from()) {
                Ok(kept_from) => done.kept_from = kept_from,
                Err(error) => done.problems.push(format!("cannot remove what is old: {error}")),
            }
        }
        if tasks.limit_check || tasks.pruning {
            // These tasks are rare and read much. Closing the connection frees its page cache.
            self.journal = None;
        }
        done
    }

    fn journal(&mut self) -> Result<Option<&mut Journal>, Error> {
        match &mut self.journal {
            // Another file may have replaced the journal. Its log has the same name and must not be copied into the old file.
            Some(journal) => journal.refresh()?,
            None => self.journal = Journal::open_existing(&self.home)?,
        }
        Ok(self.journal.as_mut())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ringer_core::{Draft, Kind, Scope, Sender};

    use super::*;

    fn append(home: &Home, text: &str) {
        let draft = Draft::new(Scope::global(), Sender::system(), Kind::Status, text).unwrap();
        Journal::open(home).unwrap().append(&draft, &IdSource::now()).unwrap();
    }

    /// The write-ahead log keeps its path, and belongs to the new file from then on.
    #[test]
    fn the_log_is_not_copied_into_a_file_that_was_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let repair = |home: &Home| drop(Journal::open_repaired(home).unwrap());
        let home = Home::new(directory.path()).with_hub_starter(Some(repair));
        let mut maintenance = JournalMaintenance::new(home.clone());
        let checkpoint = JournalTasks { checkpoint: true, ..JournalTasks::default() };
        let mut hub = Journal::open(&home).unwrap();
        append(&home, "before");
        assert_eq!(maintenance.perform(checkpoint, &IdSource::now()), JournalTasksDone::default());
        let (database, copy) = (directory.path().join("ringer.db"), directory.path().join("copy"));
        fs::copy(&database, &copy).unwrap();
        fs::rename(&copy, &database).unwrap();
        hub.refresh().unwrap();
        for number in 0..20 {
            append(&home, &format!("after {number}"));
        }
        assert_eq!(maintenance.perform(checkpoint, &IdSource::now()), JournalTasksDone::default());
        // The next writer overwrites a log that was copied.
        append(&home, "last");
        hub.refresh().unwrap();
        assert_eq!(hub.messages_after(0, usize::MAX).unwrap().len(), 22);
    }

    #[test]
    fn a_journal_that_is_not_there_needs_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path().join("missing"));
        let all = JournalTasks { checkpoint: true, limit_check: true, pruning: true };
        assert_eq!(
            JournalMaintenance::new(home.clone()).perform(all, &IdSource::now()),
            JournalTasksDone::default()
        );
        assert!(!home.path().exists());
    }
}
