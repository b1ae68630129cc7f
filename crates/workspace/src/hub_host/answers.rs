//! What the hub has answered on a connection.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many requests were answered, and whether more can come: written by the thread that reads, read by the one that writes.
#[derive(Debug, Default)]
pub(super) struct Answers {
    counted: Mutex<Counted>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Counted {
    answers: u64,
    is_over: bool,
}

impl Answers {
    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self) {
        self.counted().answers += 1;
        self.changed.notify_all();
    }

    /// The connection has ended.
    pub(super) fn end(&self) {
        self.counted().is_over = true;
        self.changed.notify_all();
    }

    pub(super) fn count(&self) -> u64 {
        self.counted().answers
    }

    pub(super) fn is_over(&self) -> bool {
        self.counted().is_over
    }

    /// Waits until so many requests are answered, none more will be, or the time is over.
    pub(super) fn wait_for(&self, sent: u64, within: Duration) {
        let is_waiting = |counted: &mut Counted| counted.answers < sent && !counted.is_over;
        drop(self.changed.wait_timeout_while(self.counted(), within, is_waiting));
    }
}
