//! What is printed of times that were measured.

use std::time::Duration;

/// The nearest rank: always a time that was measured. `times` are sorted.
pub(crate) fn percentile(times: &[Duration], percent: usize) -> f64 {
    let rank = (times.len() * percent).div_ceil(100);
    times.get(rank.saturating_sub(1)).map_or(0.0, Duration::as_secs_f64)
}

pub(crate) fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    percentile(times, 50)
}
