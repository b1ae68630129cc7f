//! Tracks the position in the journal, and whether reading can go on.

use std::time::Duration;

use ringer_core::Message;
use ringer_journal::{Cursor, ReadPosition};

/// Time between attempts after the journal could not be read or written.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The state of reading the journal.
#[derive(Debug)]
pub(super) struct Ingest {
    position: ReadPosition,
    /// Set when the doorbell rang or the last batch was full; cleared by a short read.
    more_to_read: bool,
    /// The batch whose repositories are being probed. Nothing after it is read, which keeps the order.
    pending_batch: Option<Vec<Message>>,
    /// The mark that is being applied in pieces. The position stays before it until it is finished: if the hub ends in between,
    /// the next hub reads it again and applies it to the rest.
    unfinished_mark: Option<Message>,
    /// Until then, nothing is read without a request and nothing is written to the hub store, because the last attempt failed.
    paused_until: Option<Duration>,
    /// When to read the spool again, because it had more events or could not be read.
    spool_due: Option<Duration>,
}

impl Ingest {
    pub(super) fn new(position: ReadPosition) -> Self {
        Self {
            position,
            more_to_read: true,
            pending_batch: None,
            unfinished_mark: None,
            paused_until: None,
            spool_due: None,
        }
    }

    pub(super) fn position(&self) -> &ReadPosition {
        &self.position
    }

    /// Returns the sequence number of the last message that was read.
    pub(super) fn seq(&self) -> i64 {
        self.position.cursor.seq
    }

    /// Continues at another position, because the journal was replaced.
    pub(super) fn move_to(&mut self, position: ReadPosition) {
        self.position = position;
    }

    /// Moves the position past a message.
    pub(super) fn advance(&mut self, message: &Message) {
        self.position.advance(message.seq, &message.id);
    }

    /// Skips the messages up to this sequence number.
    pub(super) fn skip_to(&mut self, seq: i64) {
        let cursor = &mut self.position.cursor;
        if cursor.seq < seq {
            // Without a generation, the position is not compared with the message at it.
            *cursor = Cursor { generation: None, seq, id: None };
        }
    }

    /// Records that the journal may have new messages.
    pub(super) fn schedule(&mut self) {
        self.more_to_read = true;
    }

    pub(super) fn set_more_to_read(&mut self, more: bool) {
        self.more_to_read = more;
    }

    pub(super) fn has_more_to_read(&self) -> bool {
        self.more_to_read
    }

    /// Holds a batch until its repositories are probed.
    pub(super) fn hold(&mut self, batch: Vec<Message>) {
        self.pending_batch = Some(batch);
    }

    pub(super) fn take_pending_batch(&mut self) -> Option<Vec<Message>> {
        self.pending_batch.take()
    }

    pub(super) fn is_probing(&self) -> bool {
        self.pending_batch.is_some()
    }

    /// Holds the position before a mark until it is finished. Messages after it are then read again.
    pub(super) fn hold_mark(&mut self, mark: Message) {
        self.unfinished_mark = Some(mark);
    }

    /// Moves the position past a finished mark. Returns true if there was one.
    pub(super) fn finish_mark(&mut self) -> bool {
        let Some(mark) = self.unfinished_mark.take() else { return false };
        self.advance(&mark);
        self.schedule();
        true
    }

    pub(super) fn has_unfinished_mark(&self) -> bool {
        self.unfinished_mark.is_some()
    }

    /// Returns true if there is more to read and nothing prevents it, apart from a lack of room for new notifications.
    pub(super) fn can_read(&self, now: Duration) -> bool {
        self.more_to_read && !self.is_probing() && !self.has_unfinished_mark() && !self.is_paused(now)
    }

    /// Pauses reading and writing.
    pub(super) fn pause(&mut self, now: Duration) {
        self.paused_until = Some(now + RETRY_AFTER);
    }

    pub(super) fn is_paused(&self, now: Duration) -> bool {
        self.paused_until.is_some_and(|until| until > now)
    }

    /// Ends the pause, because the files can be written again.
    pub(super) fn resume(&mut self) {
        self.paused_until = None;
    }

    /// Clears the deadline, because the spool is read now.
    pub(super) fn clear_spool_deadline(&mut self) {
        self.spool_due = None;
    }

    /// Sets the time to read the spool again.
    pub(super) fn read_spool_at(&mut self, at: Duration) {
        self.spool_due = Some(at);
    }

    /// Returns true if the spool could not be read a moment ago.
    pub(super) fn spool_is_behind(&self, now: Duration) -> bool {
        self.spool_due.is_some_and(|at| at > now)
    }

    /// Handles deadlines that have passed.
    pub(super) fn tick(&mut self, now: Duration) {
        if !self.is_paused(now) {
            self.paused_until = None;
        }
        if self.spool_due.is_some_and(|at| at <= now) {
            self.spool_due = None;
            self.schedule();
        }
    }

    /// Returns true if the hub must not end now.
    pub(super) fn is_busy(&self) -> bool {
        self.is_probing() || self.has_unfinished_mark() || self.spool_due.is_some()
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.paused_until.into_iter().chain(self.spool_due).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_pause_ends_by_itself_and_a_probe_holds_everything_behind_it() {
        let mut ingest = Ingest::new(ReadPosition::default());
        assert!(ingest.can_read(SECOND));
        ingest.pause(SECOND);
        assert!(!ingest.can_read(SECOND) && ingest.can_read(SECOND * 2));
        assert_eq!(ingest.next_deadline(), Some(SECOND * 2));
        ingest.tick(SECOND * 2);
        assert_eq!(ingest.next_deadline(), None);
        ingest.hold(Vec::new());
        assert!(!ingest.can_read(SECOND * 2) && ingest.is_busy());
        assert!(ingest.take_pending_batch().is_some());
        ingest.set_more_to_read(false);
        ingest.read_spool_at(SECOND * 3);
        assert!(ingest.spool_is_behind(SECOND * 2) && !ingest.can_read(SECOND * 4));
        ingest.tick(SECOND * 3);
        assert!(ingest.can_read(SECOND * 3), "the spool is read with the next batch");
    }
}
