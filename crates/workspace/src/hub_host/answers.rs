//! Tracks which requests of a connection the hub has answered.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::said::{MAX_WAITING, Said};

/// Counts answers. The reading thread updates it, and the writing thread reads it.
#[derive(Debug, Default)]
pub(super) struct Answers {
    counted: Mutex<Counted>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Counted {
    answers: u64,
    is_over: bool,
    /// One-time reports without an answer, by the number of their request: a hub that ends may have received but not read them.
    unanswered: VecDeque<(u64, Arc<Said>)>,
}

impl Answers {
    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an answer. Returns true if it answers a one-time report.
    pub(super) fn add(&self) -> bool {
        let mut counted = self.counted();
        counted.answers += 1;
        let is_said_once = counted.unanswered.front().is_some_and(|(number, _)| *number <= counted.answers);
        if is_said_once {
            counted.unanswered.pop_front();
        }
        drop(counted);
        self.changed.notify_all();
        is_said_once
    }

    /// Records that a request is a one-time report. Returns false if there is no room for it.
    pub(super) fn expect(&self, number: u64, said: &Arc<Said>) -> bool {
        let mut counted = self.counted();
        let has_room = counted.unanswered.len() < MAX_WAITING;
        if has_room {
            counted.unanswered.push_back((number, Arc::clone(said)));
        }
        has_room
    }

    /// Returns the one-time reports without an answer.
    pub(super) fn take_unanswered(&self) -> Vec<Arc<Said>> {
        self.counted().unanswered.drain(..).map(|(_, said)| said).collect()
    }

    /// Records the end of the connection.
    pub(super) fn end(&self) {
        self.counted().is_over = true;
        self.changed.notify_all();
    }

    pub(super) fn is_over(&self) -> bool {
        self.counted().is_over
    }

    /// Waits until `sent` requests are answered, the connection ends, or the time is over.
    pub(super) fn wait_for(&self, sent: u64, within: Duration) {
        let is_waiting = |counted: &mut Counted| counted.answers < sent && !counted.is_over;
        drop(self.changed.wait_timeout_while(self.counted(), within, is_waiting));
    }
}
