//! Writes that the hub makes to the journal by itself. They are retried while the write lock is held or the disk cannot be
//! written.

use std::time::Duration;

use ringer_core::agent::Signal;
use ringer_core::attention::MarkTarget;
use ringer_core::message::{Mark, SurfaceId, Tag};
use ringer_core::{Draft, MessageId, Now, Scope, Sender};
use ringer_ipc::ApiError;
use ringer_journal::Error;

use super::HubState;
use super::disk_outage::JournalWrite;
use super::ingest::RETRY_AFTER;
use crate::hosts::protocol::HostOrder;
use crate::message::{Action, Job};

/// Key of the problem shown during a disk outage.
const DISK: &str = "disk";
const CANNOT_WRITE: &str = "cannot write into the journal";

impl HubState {
    /// Appends a message to the journal, with a new id if it has none. The hub reads it back like every other reader.
    pub(super) fn append(&mut self, now: Now, draft: &Draft, id: Option<MessageId>) -> Result<(), Error> {
        let ids = self.ids(now);
        let (id, unix_ms) = (id.unwrap_or_else(|| ids.message_id()), ids.unix_ms);
        self.write_to_journal(now, JournalWrite::Append { draft: Box::new(draft.clone()), id, unix_ms })
    }

    /// Marks a notification read because the person went to the surface that rang.
    pub(super) fn append_read_mark(&mut self, now: Now, id: &MessageId) -> Result<(), Error> {
        self.append(now, &mark_draft(Mark::Read, &MarkTarget::Message(id.clone())), None)
    }

    /// Applies a terminal's signal to the state of its agent.
    pub(super) fn apply_signal(&mut self, now: Now, surface: &SurfaceId, signal: Signal) {
        let write = JournalWrite::Signal { surface: surface.clone(), signal };
        let written = self.write_to_journal(now, write);
        self.log_unless_passing(&format!("cannot write down what {surface} showed"), written);
    }

    /// Logs an error that a retry cannot fix.
    pub(super) fn log_unless_passing(&mut self, what: &str, written: Result<(), Error>) {
        if let Err(error) = written
            && !error.may_pass()
        {
            self.log(format!("{what}: {error}"));
        }
    }

    /// Retries queued writes in order, for at most `within`. The rest stays queued for the next turn.
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
        if std::mem::take(&mut self.has_refused_reports) {
            let orders = self.surfaces.for_all(&HostOrder::Writable);
            self.tell_hosts(orders);
        }
    }

    /// Refuses a report while the journal cannot be written. A host keeps a report with an id until it is answered, so no such
    /// report has to wait in memory; others do, as long as there is room.
    pub(super) fn refuse_if_unwritable(&mut self, has_id: bool) -> Result<(), ApiError> {
        let queue = &self.journal_write_queue;
        let is_refused = if has_id { !queue.is_empty() } else { queue.is_full() };
        if !is_refused {
            return Ok(());
        }
        self.has_refused_reports = true;
        let why = "the journal cannot be written now: send this report again after the event `writable`";
        Err(ApiError::new("busy", why))
    }

    /// Writes now, or queues the write if a retry may succeed. While the queue is not empty every write is queued, which keeps
    /// the order. An error that a retry cannot mend is returned at once.
    fn write_to_journal(&mut self, now: Now, write: JournalWrite) -> Result<(), Error> {
        if self.is_offline() {
            return Ok(());
        }
        let written = if self.journal_write_queue.is_empty() {
            self.try_to_write(now, &write)
        } else {
            Err(Error::Busy { waited: Duration::ZERO })
        };
        match written {
            Err(error) if error.may_pass() => {
                let has_room = self.journal_write_queue.add(write, now.mono + RETRY_AFTER);
                if has_room && self.journal_write_queue.is_full() {
                    self.log("too much waits for the journal: what the hub has to write from now on is lost");
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

    /// Records that a write was queued. A write lock held by another process is not an outage.
    fn journal_failed(&mut self, now: Now, error: &Error) {
        if !matches!(error, Error::Busy { .. }) {
            self.write_failed(now, CANNOT_WRITE, error);
        }
    }

    /// Records a failed write. A disk outage is logged once and shown to the person until it ends.
    pub(super) fn write_failed(&mut self, now: Now, what: &'static str, error: &Error) {
        let is_disk = error.may_pass() && !matches!(error, Error::Busy { .. });
        if !is_disk || self.outage.record(what, error, now.mono) {
            self.log(format!("{what}: {error}"));
        }
        if is_disk {
            self.show_problem(now, DISK, self.outage.problem());
        }
    }

    /// During an outage, tries once a second whether the disk can be written again.
    pub(super) fn probe_disk(&mut self, now: Now) {
        if !self.outage.should_probe(now.mono) {
            return;
        }
        if self.journal_write_queue.is_empty() {
            // The position serves as the probe; it may be due anyway.
            match self.journal.advance_hub(&self.ingest.position().cursor, now.wall_ms) {
                Ok(()) if self.outage.recover() => self.clear_problem(now, DISK),
                Ok(()) => {}
                Err(error) => self.write_failed(now, CANNOT_WRITE, &error),
            }
        }
    }

    /// Commits to the hub store. Deliveries start only after that.
    pub(crate) fn commit(&mut self, now: Now) -> Vec<Action> {
        self.write_changes(now);
        self.take_actions()
    }

    pub(super) fn write_changes(&mut self, now: Now) {
        if self.is_offline() || self.ingest.is_paused(now.mono) {
            return;
        }
        match self.notifications.commit(self.title_marks.flags()) {
            Ok(None) => {}
            Ok(Some(deliveries)) => {
                self.outage.set_store_failing(false);
                self.ingest.resume();
                for delivery in deliveries {
                    self.start_delivery(delivery);
                }
            }
            Err(error) => {
                self.outage.set_store_failing(true);
                self.write_failed(now, "cannot write down what happened", &error);
                return self.ingest.pause(self.time.mono(now));
            }
        }
        self.start_waiting_deliveries(now);
        for change in std::mem::take(&mut self.title_changes) {
            self.execute(Job::ChangeTitle(change));
        }
    }

    /// Writes everything before the hub ends. Queued writes are only in memory, so they may wait for the write lock as long as a
    /// command does.
    pub(crate) fn end(&mut self, now: Now) -> Vec<Action> {
        if !self.journal_write_queue.is_empty() {
            self.journal.wait_as_command();
            self.retry_journal_writes(now, Duration::MAX);
        }
        match self.journal_write_queue.len() {
            0 => {}
            lost => {
                self.log(format!("writes that the journal did not take before the hub ended: {lost}"));
            }
        }
        self.write_changes(now);
        self.note_position(now);
        self.take_actions()
    }

    /// Saves in the journal how far the hub has read it.
    pub(super) fn note_position(&mut self, now: Now) {
        self.maintenance.position_noted(now.mono, self.ingest.seq());
        // On failure the journal only keeps more than it has to.
        let _ = self.journal.advance_hub(&self.ingest.position().cursor, now.wall_ms);
    }
}

/// The message that carries a mark.
pub(super) fn mark_draft(mark: Mark, target: &MarkTarget) -> Draft {
    let mut draft = Draft::tagged(Scope::global(), Sender::system(), Tag::Mark(mark), "");
    draft.key = Some(target.to_string());
    draft
}
