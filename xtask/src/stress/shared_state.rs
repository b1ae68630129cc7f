use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::delivery_record::DeliveryRecord;
use super::plan::Plan;
use crate::environment::TestEnvironment;
use crate::process_result::ProcessResult;

/// For a process that is not meant to be killed. The journal itself gives up after five seconds.
pub(super) const COMMAND_TIMEOUT: Duration = Duration::from_mins(1);

/// The exit code of a process that waited for its turn as long as it may.
const TRY_AGAIN: i32 = 75;

/// What writers and listeners share while they run.
pub(super) struct SharedState<'a> {
    pub(super) plan: &'a Plan,
    pub(super) environment: TestEnvironment,
    record: Mutex<DeliveryRecord>,
    writers_are_done: AtomicBool,
    process_failures: Mutex<ProcessFailures>,
}

/// Processes that did not succeed.
#[derive(Default, Clone, Copy)]
pub(super) struct ProcessFailures {
    pub(super) kills: u64,
    /// They waited for their turn as long as they may, said so, and did nothing.
    pub(super) busy: u64,
    /// They failed in another way, or hung, without having been killed.
    pub(super) failures: u64,
}

impl<'a> SharedState<'a> {
    pub(super) fn new(plan: &'a Plan, environment: TestEnvironment) -> Self {
        Self {
            plan,
            environment,
            record: Mutex::new(DeliveryRecord::new(plan.common.seed)),
            writers_are_done: AtomicBool::new(false),
            process_failures: Mutex::new(ProcessFailures::default()),
        }
    }

    pub(super) fn record(&self) -> MutexGuard<'_, DeliveryRecord> {
        lock(&self.record)
    }

    pub(super) fn process_failures(&self) -> ProcessFailures {
        *lock(&self.process_failures)
    }

    pub(super) fn end_writing(&self) {
        self.writers_are_done.store(true, Ordering::Relaxed);
    }

    pub(super) fn writing_has_ended(&self) -> bool {
        self.writers_are_done.load(Ordering::Relaxed)
    }

    /// Counts a process that did not succeed, and had been given this much time.
    pub(super) fn count(&self, ending: &ProcessResult, time: Duration) {
        let mut process_failures = lock(&self.process_failures);
        if ending.is_kill() && time < COMMAND_TIMEOUT {
            process_failures.kills += 1;
        } else if ending.status().code() == Some(TRY_AGAIN) {
            process_failures.busy += 1;
        } else {
            process_failures.failures += 1;
        }
    }
}

/// A thread that panicked while it held one of ours left whole entries behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
