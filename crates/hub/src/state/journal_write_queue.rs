//! What the hub could not write into the journal, because another process held the write lock or the disk was full, read-only or
//! failing. It is tried again.

use std::collections::VecDeque;
use std::time::Duration;

use ringer_core::agent::Signal;
use ringer_core::message::SurfaceId;
use ringer_core::{Draft, MessageId};

/// Writes that may wait. More are refused: at the usual rate, nothing could be written for minutes then.
pub(super) const MAX_WAITING: usize = 1024;
/// How long the loop writes what has waited before it handles other events. Each write is one wait for the disk.
pub(super) const WRITE_FOR: Duration = Duration::from_millis(4);

/// Something that the hub writes into the journal of its own accord. What a client asks for is answered with `busy` instead.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum JournalWrite {
    /// A message. It has its id before it is written, so that it is one message however often it is tried.
    Append { draft: Box<Draft>, id: MessageId, unix_ms: i64 },
    /// What a terminal showed of the agent in it.
    Signal { surface: SurfaceId, signal: Signal },
}

/// Writes that wait, in their order.
#[derive(Debug, Default)]
pub(super) struct JournalWriteQueue {
    waiting: VecDeque<JournalWrite>,
    retry_at: Option<Duration>,
}

impl JournalWriteQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a write behind the others, to be tried then. Gives whether there was room for it.
    pub(super) fn add(&mut self, write: JournalWrite, retry_at: Duration) -> bool {
        let has_room = self.waiting.len() < MAX_WAITING;
        if has_room {
            self.waiting.push_back(write);
            self.retry_at.get_or_insert(retry_at);
        }
        has_room
    }

    /// Takes the oldest one out, to try it now. The others stay due.
    pub(super) fn take_first(&mut self) -> Option<JournalWrite> {
        let first = self.waiting.pop_front();
        if self.waiting.is_empty() {
            self.retry_at = None;
        }
        first
    }

    /// Puts the oldest one back: it cannot be written yet, and is tried again then.
    pub(super) fn put_back(&mut self, first: JournalWrite, retry_at: Duration) {
        self.waiting.push_front(first);
        self.retry_at = Some(retry_at);
    }

    pub(super) fn is_due(&self, now: Duration) -> bool {
        self.retry_at.is_some_and(|at| at <= now)
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.retry_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringer_core::message::Tag;
    use ringer_core::{Kind, Scope, Sender};

    #[test]
    fn writes_keep_their_order_and_there_is_a_limit() {
        let write = |number: u64| JournalWrite::Append {
            draft: Box::new(Draft::tagged(Scope::global(), Sender::system(), Tag::Notice(Kind::Status), "x")),
            id: MessageId::new(number, [0; 10]),
            unix_ms: 0,
        };
        let mut backlog = JournalWriteQueue::default();
        let second = Duration::from_secs(1);
        for number in 0..MAX_WAITING as u64 {
            assert!(backlog.add(write(number), second * 2));
        }
        assert!(!backlog.add(write(7), second * 3));
        assert_eq!(backlog.next_deadline(), Some(second * 2), "the first one decides");
        assert!(!backlog.is_due(second) && backlog.is_due(second * 2));
        assert_eq!(backlog.take_first(), Some(write(0)));
        backlog.put_back(write(0), second * 3);
        assert_eq!(backlog.next_deadline(), Some(second * 3));
        for number in 0..MAX_WAITING as u64 {
            assert_eq!(backlog.take_first(), Some(write(number)));
        }
        assert!(backlog.is_empty() && backlog.next_deadline().is_none());
    }
}
