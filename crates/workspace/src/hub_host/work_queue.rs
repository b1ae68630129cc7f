//! The queue of the thread that sends to the hub.

use std::collections::VecDeque;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::said::{MAX_WAITING, Said};

/// The most requests about lasting state. One-time reports have a separate limit, so that neither takes the other's room.
const MAX_LASTING: usize = 1024;

/// An item of the queue.
#[derive(Debug)]
pub(super) enum Work {
    Say(Arc<Said>),
    /// The hub may be running.
    Look,
}

/// The queue from the loop to the thread. The loop never waits for room in it.
#[derive(Debug, Default)]
pub(super) struct WorkQueue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    work: VecDeque<Work>,
    /// The numbers of one-time reports and of requests about lasting state.
    said_once: usize,
    lasting: usize,
    has_look: bool,
    is_closed: bool,
}

impl Waiting {
    fn take(&mut self, at: usize) -> Option<Work> {
        let work = self.work.remove(at)?;
        match &work {
            Work::Say(said) if said.is_said_once() => self.said_once -= 1,
            Work::Say(_) => self.lasting -= 1,
            Work::Look => self.has_look = false,
        }
        Some(work)
    }
}

impl WorkQueue {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request. For a one-time report, the oldest one is dropped if necessary. Returns false if there is no room for a
    /// request about lasting state.
    pub(super) fn say(&self, said: Arc<Said>) -> bool {
        let mut waiting = self.waiting();
        if said.is_said_once() {
            if waiting.said_once >= MAX_WAITING {
                let is_said_once = |work: &Work| matches!(work, Work::Say(said) if said.is_said_once());
                let oldest = waiting.work.iter().position(is_said_once);
                drop(oldest.and_then(|at| waiting.take(at)));
            }
            waiting.said_once += 1;
        } else if waiting.lasting < MAX_LASTING {
            waiting.lasting += 1;
        } else {
            return false;
        }
        waiting.work.push_back(Work::Say(said));
        drop(waiting);
        self.changed.notify_all();
        true
    }

    /// Wakes the thread because the hub may be running.
    pub(super) fn look(&self) {
        let mut waiting = self.waiting();
        if !waiting.has_look {
            waiting.has_look = true;
            waiting.work.push_back(Work::Look);
        }
        drop(waiting);
        self.changed.notify_all();
    }

    /// Closes the queue.
    pub(super) fn close(&self) {
        self.waiting().is_closed = true;
        self.changed.notify_all();
    }

    /// Takes the next item, if there is one.
    pub(super) fn take_next(&self) -> Option<Work> {
        self.waiting().take(0)
    }

    /// Waits for the next item, until a deadline.
    pub(super) fn wait_for_next(&self, until: Option<Instant>) -> Result<Work, RecvTimeoutError> {
        let mut waiting = self.waiting();
        loop {
            if let Some(work) = waiting.take(0) {
                return Ok(work);
            }
            if waiting.is_closed {
                return Err(RecvTimeoutError::Disconnected);
            }
            waiting = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                Some(left) if left.is_zero() => return Err(RecvTimeoutError::Timeout),
                Some(left) => {
                    self.changed.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(method: &'static str, number: usize) -> Arc<Said> {
        Arc::new(Said::new(method, json!({ "number": number }), Instant::now()))
    }

    fn number(work: &Work) -> Option<u64> {
        let Work::Say(said) = work else { return None };
        said.params["number"].as_u64()
    }

    #[test]
    fn the_newest_of_what_is_said_once_is_kept_and_takes_no_room_of_what_lasts() {
        let queue = WorkQueue::default();
        queue.look();
        assert!(queue.say(said("surface.opened", 7)));
        for at in 0..MAX_WAITING + 100 {
            assert!(queue.say(said("surface.heard", at)));
        }
        queue.look();
        for at in 1..MAX_LASTING {
            assert!(queue.say(said("surface.changed", at)));
        }
        assert!(!queue.say(said("surface.changed", 0)));
        assert!(matches!(queue.take_next(), Some(Work::Look)));
        assert_eq!(queue.take_next().as_ref().and_then(number), Some(7));
        assert!(queue.say(said("surface.changed", 1)), "there is room again");
        for at in 100..MAX_WAITING + 100 {
            assert_eq!(queue.take_next().as_ref().and_then(number), Some(at as u64));
        }
        let rest = std::iter::from_fn(|| queue.take_next()).count();
        assert_eq!(rest, MAX_LASTING, "the hub was to be looked for once");
    }

    #[test]
    fn what_waits_is_still_given_after_the_end() {
        let queue = WorkQueue::default();
        let now = Some(Instant::now());
        assert_eq!(queue.wait_for_next(now).unwrap_err(), RecvTimeoutError::Timeout);
        queue.say(said("surface.heard", 1));
        queue.close();
        assert!(queue.wait_for_next(now).is_ok());
        assert_eq!(queue.wait_for_next(None).unwrap_err(), RecvTimeoutError::Disconnected);
    }
}
