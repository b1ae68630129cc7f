use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::ledger::Ledger;
use super::plan::Plan;
use crate::ending::Ending;
use crate::scene::Scene;

/// For a process that is not meant to be killed. The journal itself gives up after five seconds.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// The exit code of a process that waited for its turn as long as it may.
const TRY_AGAIN: i32 = 75;

/// What writers and listeners share while they run.
pub(super) struct Course<'a> {
    pub(super) plan: &'a Plan,
    pub(super) scene: Scene,
    ledger: Mutex<Ledger>,
    writers_are_done: AtomicBool,
    deaths: Mutex<Deaths>,
}

/// Processes that did not succeed.
#[derive(Default, Clone, Copy)]
pub(super) struct Deaths {
    pub(super) kills: u64,
    /// They waited for their turn as long as they may, said so, and did nothing.
    pub(super) busy: u64,
    /// They failed in another way, or hung, without having been killed.
    pub(super) failures: u64,
}

impl<'a> Course<'a> {
    pub(super) fn new(plan: &'a Plan, scene: Scene) -> Self {
        Self {
            plan,
            scene,
            ledger: Mutex::new(Ledger::new(plan.frame.seed)),
            writers_are_done: AtomicBool::new(false),
            deaths: Mutex::new(Deaths::default()),
        }
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        lock(&self.ledger)
    }

    pub(super) fn deaths(&self) -> Deaths {
        *lock(&self.deaths)
    }

    pub(super) fn end_writing(&self) {
        self.writers_are_done.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.writers_are_done.load(Ordering::Relaxed)
    }

    /// Counts a process that did not succeed, and had been given this much time.
    pub(super) fn count(&self, ending: &Ending, time: Duration) {
        let mut deaths = lock(&self.deaths);
        if ending.is_kill() && time < PATIENCE {
            deaths.kills += 1;
        } else if ending.status().code() == Some(TRY_AGAIN) {
            deaths.busy += 1;
        } else {
            deaths.failures += 1;
        }
    }
}

/// A thread that panicked while it held one of ours left whole entries behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
