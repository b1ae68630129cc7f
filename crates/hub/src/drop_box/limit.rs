//! How many claims are applied in what time. The rest waits in the drop box, which is full at 1,000.

use std::time::Duration;

/// Claims that may come at once.
const BURST: u32 = 60;
/// After that, one comes in this time.
const INTERVAL: Duration = Duration::from_secs(1);

/// A token bucket.
#[derive(Debug)]
pub(super) struct ClaimLimit {
    left: u32,
    /// Since when the next token is on its way.
    since: Duration,
}

impl ClaimLimit {
    pub(super) fn new(now: Duration) -> Self {
        Self { left: BURST, since: now }
    }

    /// Takes one. `Err` says how long to wait for the next.
    pub(super) fn take(&mut self, now: Duration) -> Result<(), Duration> {
        let passed = now.saturating_sub(self.since);
        let new = u32::try_from(passed.as_secs() / INTERVAL.as_secs()).unwrap_or(u32::MAX);
        self.since += INTERVAL.saturating_mul(new);
        self.left = self.left.saturating_add(new).min(BURST);
        if self.left == 0 {
            return Err(INTERVAL.saturating_sub(now.saturating_sub(self.since)));
        }
        self.left -= 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_one_a_second() {
        let start = Duration::from_secs(1_000);
        let mut limit = ClaimLimit::new(start);
        for _ in 0..BURST {
            assert_eq!(limit.take(start), Ok(()));
        }
        assert_eq!(limit.take(start + Duration::from_millis(400)), Err(Duration::from_millis(600)));
        assert_eq!(limit.take(start + INTERVAL), Ok(()));
        assert!(limit.take(start + INTERVAL).is_err());
        let later = start + Duration::from_hours(1);
        let passed = (0..1_000).filter(|_| limit.take(later).is_ok()).count();
        assert_eq!(passed, BURST as usize, "what was not used does not add up");
    }
}
