//! What the hub writes into the journal of its own accord: at once, or when the write lock is free again.

use ringer_core::agent::Signal;
use ringer_core::attention::MarkTarget;
use ringer_core::message::{Mark, SurfaceId, Tag};
use ringer_core::{Draft, MessageId, Now, Scope, Sender};
use ringer_journal::Error;

use super::HubState;
use super::ingest::RETRY_AFTER;
use super::journal_write_queue::JournalWrite;

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
        if let Err(error) = self.write_to_journal(now, write) {
            self.log(format!("cannot write down what {surface} showed: {error}"));
        }
    }

    /// Tries what waits, in its order. What cannot be written yet waits on.
    pub(super) fn retry_journal_writes(&mut self, now: Now) {
        for write in self.journal_write_queue.take() {
            if let Err(error) = self.write_to_journal(now, write) {
                self.log(format!("cannot write into the journal: {error}"));
            }
        }
    }

    /// Writes, or keeps it until the write lock is free. Behind something that waits everything waits, so the order is kept.
    fn write_to_journal(&mut self, now: Now, write: JournalWrite) -> Result<(), Error> {
        let written = if self.journal_write_queue.is_empty() {
            self.try_to_write(now, &write)
        } else {
            Err(Error::Busy { waited: std::time::Duration::ZERO })
        };
        match written {
            Err(error @ Error::Busy { .. }) => {
                if self.journal_write_queue.add(write, now.mono + RETRY_AFTER) { Ok(()) } else { Err(error) }
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
}

/// A mark, as the message that it is.
pub(super) fn mark_draft(mark: Mark, target: &MarkTarget) -> Draft {
    let mut draft = Draft::tagged(Scope::global(), Sender::system(), Tag::Mark(mark), "");
    draft.key = Some(target.to_string());
    draft
}
