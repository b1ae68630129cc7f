//! What the hub has answered on a connection.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::said::{MAX_WAITING, Said};

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
    /// What was said once and is not answered yet, by the number of its request: a hub that ends may have taken it and not read it.
    unanswered: VecDeque<(u64, Arc<Said>)>,
}

impl Answers {
    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request is answered. Gives whether that was something that is said once.
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

    /// The request of this number is said once. Gives whether there is room for it.
    pub(super) fn expect(&self, number: u64, said: &Arc<Said>) -> bool {
        let mut counted = self.counted();
        let has_room = counted.unanswered.len() < MAX_WAITING;
        if has_room {
            counted.unanswered.push_back((number, Arc::clone(said)));
        }
        has_room
    }

    /// What was said once, and is not answered.
    pub(super) fn take_unanswered(&self) -> Vec<Arc<Said>> {
        self.counted().unanswered.drain(..).map(|(_, said)| said).collect()
    }

    /// The connection has ended.
    pub(super) fn end(&self) {
        self.counted().is_over = true;
        self.changed.notify_all();
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
