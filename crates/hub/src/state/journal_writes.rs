//! What the hub writes of its own accord: at once, or when the write lock is free again and the disk can be written.

use std::time::Duration;

use ringer_core::agent::Signal;
use ringer_core::attention::MarkTarget;
use ringer_core::message::{Mark, SurfaceId, Tag};
use ringer_core::{Draft, MessageId, Now, Scope, Sender};
use ringer_journal::Error;

use super::HubState;
use super::ingest::RETRY_AFTER;
use super::journal_write_queue::JournalWrite;
use crate::message::{Action, Job};

/// The key of the problem that the disk cannot be written.
const DISK: &str = "disk";
const CANNOT_WRITE: &str = "cannot write into the journal";

impl HubState {
    /// Appends a message to the journal, with its id if it has one. The hub reads it there, like every reader.
    pub(super) fn append(&mut self, now: Now, draft: &Draft, id: Option<MessageId>) -> Result<(), Error> {
        let ids = self.ids(now);
        let (id, unix_ms) = (id.unwrap_or_else(|| ids.message_id()), ids.unix_ms);
        self.write_to_journal(now, JournalWrite::Append { draft: Box::new(draft.clone()), id, unix_ms })
    }

    /// A notification is read, because the person went to where it rang.
    pub(super) fn append_read_mark(&mut self, now: Now, id: &MessageId) -> Result<(), Error> {
        self.append(now, &mark_draft(Mark::Read, &MarkTarget::Message(id.clone())), None)
    }

    /// An agent's terminal showed what the agent does.
    pub(super) fn apply_signal(&mut self, now: Now, surface: &SurfaceId, signal: Signal) {
        let write = JournalWrite::Signal { surface: surface.clone(), signal };
        let written = self.write_to_journal(now, write);
        self.log_unless_passing(&format!("cannot write down what {surface} showed"), written);
    }

    /// Says in the log that something can never be written. What was lost for want of room is counted instead.
    pub(super) fn log_unless_passing(&mut self, what: &str, written: Result<(), Error>) {
        if let Err(error) = written
            && !error.may_pass()
        {
            self.log(format!("{what}: {error}"));
        }
    }

    /// Tries what waits, in its order and for this long at most. What cannot be written yet waits on; what there was no time for
    /// is tried in the next turn.
    pub(super) fn retry_journal_writes(&mut self, now: Now, within: Duration) {
        while let Some(write) = self.journal_write_queue.take_first() {
            match self.try_to_write(now, &write) {
                Err(error) if error.may_pass() => {
                    self.journal_write_queue.put_back(write, self.time.mono(now) + RETRY_AFTER);
                    return self.journal_failed(now, &error);
                }
                written => self.log_unless_passing(CANNOT_WRITE, written),
            }
            if !self.journal_write_queue.is_empty() && self.is_late(now, within) {
                return;
            }
        }
        if let Some(notice) = self.write_failures.take_lost_notice() {
            let written = self.append(now, &notice, None);
            self.log_unless_passing("cannot tell what was lost", written);
        }
    }

    /// Writes, or keeps it until that works. Behind something that waits everything waits, so the order is kept. What can never
    /// be written is an error at once, and nothing waits behind it.
    fn write_to_journal(&mut self, now: Now, write: JournalWrite) -> Result<(), Error> {
        let written = if self.journal_write_queue.is_empty() {
            self.try_to_write(now, &write)
        } else {
            Err(Error::Busy { waited: Duration::ZERO })
        };
        match written {
            Err(error) if error.may_pass() => {
                let has_room = self.journal_write_queue.add(write, now.mono + RETRY_AFTER);
                if !has_room && self.write_failures.add_lost() {
                    self.log("too many messages wait to be written: newer ones are lost");
                }
                self.journal_failed(now, &error);
                if has_room { Ok(()) } else { Err(error) }
            }
            written => written,
        }
    }

    fn try_to_write(&mut self, now: Now, write: &JournalWrite) -> Result<(), Error> {
        match write {
            JournalWrite::Append { draft, id, unix_ms } => self.journal.append_as(draft, id, *unix_ms)?,
            JournalWrite::Signal { surface, signal } => self.update_agent_on(now, surface, signal)?,
        }
        self.ingest.schedule();
        Ok(())
    }

    /// A write into the journal waits. While another process holds the write lock, that is no failure.
    fn journal_failed(&mut self, now: Now, error: &Error) {
        if !matches!(error, Error::Busy { .. }) {
            self.write_failed(now, CANNOT_WRITE, error);
        }
    }

    /// Something could not be written. If the disk is the reason, the log says so once, and the person is told until it can be
    /// written again.
    pub(super) fn write_failed(&mut self, now: Now, what: &'static str, error: &Error) {
        let is_disk = error.may_pass() && !matches!(error, Error::Busy { .. });
        if !is_disk || self.write_failures.add(what, error, now.mono) {
            self.log(format!("{what}: {error}"));
        }
        if is_disk {
            self.show_problem(now, DISK, self.write_failures.problem());
        }
    }

    /// Looks whether the disk can be written again, if it could not be a second ago.
    pub(super) fn check_write_failures(&mut self, now: Now) {
        if !self.write_failures.take_due(now.mono) {
            return;
        }
        if self.journal_write_queue.is_empty() {
            // Written for the check, and because it may be due.
            match self.journal.advance_hub(&self.ingest.position().cursor, now.wall_ms) {
                Ok(()) if self.write_failures.end() => return self.clear_problem(now, DISK),
                Ok(()) => {}
                Err(error) => return self.write_failed(now, CANNOT_WRITE, &error),
            }
        }
        // What was lost since is counted there.
        self.show_problem(now, DISK, self.write_failures.problem());
    }

    /// Writes what happened. Then, and only then, deliveries start.
    pub(crate) fn commit(&mut self, now: Now) -> Vec<Action> {
        self.write_changes(now);
        self.take_actions()
    }

    pub(super) fn write_changes(&mut self, now: Now) {
        if self.ingest.is_paused(now.mono) {
            return;
        }
        match self.notifications.commit(self.title_marks.flags()) {
            Ok(None) => {}
            Ok(Some(deliveries)) => {
                self.write_failures.set_store_failing(false);
                self.ingest.resume();
                for delivery in deliveries {
                    self.start_delivery(delivery);
                }
            }
            Err(error) => {
                self.write_failures.set_store_failing(true);
                self.write_failed(now, "cannot write down what happened", &error);
                return self.ingest.pause(self.time.mono(now));
            }
        }
        self.start_waiting_deliveries(now);
        for change in std::mem::take(&mut self.title_changes) {
            self.execute(Job::ChangeTitle(change));
        }
    }

    /// The hub ends: its position is noted. What waits to be written is only in memory, so the write lock is waited for longer.
    pub(crate) fn end(&mut self, now: Now) -> Vec<Action> {
        if !self.journal_write_queue.is_empty() {
            self.journal.wait_as_command();
            self.retry_journal_writes(now, Duration::MAX);
        }
        match self.journal_write_queue.len() {
            0 => {}
            lost => {
                self.log(format!("messages that could not be written and are lost with this hub: {lost}"));
            }
        }
        self.write_changes(now);
        self.note_position(now);
        self.take_actions()
    }

    /// Notes in the journal how far it is read.
    pub(super) fn note_position(&mut self, now: Now) {
        self.maintenance.position_noted(now.mono, self.ingest.seq());
        // If that cannot be written, the journal keeps more than it has to.
        let _ = self.journal.advance_hub(&self.ingest.position().cursor, now.wall_ms);
    }
}

/// A mark, as the message that it is.
pub(super) fn mark_draft(mark: Mark, target: &MarkTarget) -> Draft {
    let mut draft = Draft::tagged(Scope::global(), Sender::system(), Tag::Mark(mark), "");
    draft.key = Some(target.to_string());
    draft
}
