//! What is done for the journal now and then: its log copied, what is old removed. Off the loop, because it waits for the disk,
//! and with a connection of its own.

use ringer_core::MessageId;
use ringer_journal::{Error, Home, IdSource, Journal, RetentionLimits, Uptime};

/// What is due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct JournalTasks {
    /// The log is copied into the database.
    pub(crate) checkpoint: bool,
    /// It is looked whether there are too many messages.
    pub(crate) limit_check: bool,
    /// What is old is removed.
    pub(crate) pruning: bool,
}

/// What came of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct JournalTasksDone {
    /// After a pruning: the oldest message that the journal keeps.
    pub(crate) kept_from: Option<MessageId>,
    /// What could not be done, for the log. It is tried again when it is due again.
    pub(crate) problems: Vec<String>,
}

/// Does these tasks, one after the other.
#[derive(Debug)]
pub(crate) struct JournalMaintenance {
    home: Home,
    journal: Option<Journal>,
}

impl JournalMaintenance {
    pub(crate) fn new(home: Home) -> Self {
        Self { home, journal: None }
    }

    /// `ids` is for the message that the journal was full.
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
            // If it cannot be done now, then another time.
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
            // These are rare, and read much: what they read need not stay in memory.
            self.journal = None;
        }
        done
    }

    fn journal(&mut self) -> Result<Option<&mut Journal>, Error> {
        if self.journal.is_none() {
            self.journal = Journal::open_existing(&self.home)?;
        }
        Ok(self.journal.as_mut())
    }
}
