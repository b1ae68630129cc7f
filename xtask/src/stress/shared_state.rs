use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::delivery_record::DeliveryRecord;
use super::plan::Plan;
use crate::environment::TestEnvironment;
use crate::process_result::ProcessResult;

/// The timeout of a process that should not be killed. The journal itself gives up after five seconds.
pub(super) const COMMAND_TIMEOUT: Duration = Duration::from_mins(1);

/// The exit code of a process whose wait for the write lock timed out.
const TRY_AGAIN: i32 = 75;

/// State shared by writers and listeners.
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
    /// Processes whose wait for the write lock timed out; they reported it and changed nothing.
    pub(super) busy: u64,
    /// Processes that failed in another way or hung, without having been killed.
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

    /// Counts a process that did not succeed. `time` is the limit that it had; a short one means that the kill was intended.
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

/// Ignores poisoning: a thread that panicked under the lock leaves only complete entries.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
