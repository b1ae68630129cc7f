//! Waiting for a condition, with a deadline that a slow machine can meet.

use std::thread;
use std::time::{Duration, Instant};

/// How long a test waits for something that must happen: longer than it takes on the slowest machine.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// How often a condition without an event is checked. Each check may read files or start a process.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Waits until a condition holds.
///
/// # Panics
///
/// If it does not hold within [`DEADLINE`].
#[track_caller]
pub fn until(what: &str, is_so: impl FnMut() -> bool) {
    until_within(DEADLINE, what, is_so);
}

/// Waits until a condition holds, for at most this long.
///
/// # Panics
///
/// If it does not hold in time.
#[track_caller]
pub fn until_within(deadline: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + deadline;
    while !is_so() {
        assert!(Instant::now() < end, "never happened: {what}");
        thread::park_timeout(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, until, until_within};

    #[test]
    fn it_waits_until_the_condition_holds() {
        let mut checks = 0;
        until("the third check", || {
            checks += 1;
            checks == 3
        });
        assert_eq!(checks, 3);
    }

    #[test]
    #[should_panic(expected = "never happened: a miracle")]
    fn it_panics_at_the_deadline() {
        until_within(Duration::ZERO, "a miracle", || false);
    }
}
