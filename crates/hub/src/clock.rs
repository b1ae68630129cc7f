//! Reads the monotonic, wall and local clocks, and formats times for people.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ringer_core::Now;
use ringer_core::time::TimeOfDay;
pub use ringer_journal::monotonic;

/// Reads the clocks.
#[derive(Debug, Clone)]
pub struct Clock {
    zone: TimeZone,
}

impl Clock {
    /// A clock in the time zone of this process: that of `TZ`, which a hub inherits, or the system's.
    pub fn local() -> Self {
        Self { zone: TimeZone::system() }
    }

    /// Reads all three clocks.
    pub fn now(&self) -> Now {
        let moment = Timestamp::now();
        let local = moment.to_zoned(self.zone.clone());
        let (hour, minute) = (local.hour().unsigned_abs().into(), local.minute().unsigned_abs().into());
        Now {
            mono: monotonic(),
            wall_ms: moment.as_millisecond(),
            local: TimeOfDay::new(hour, minute).unwrap_or_default(),
        }
    }

    /// Formats a time as `listen` prints it: `2026-02-17T14:30:05-0600`.
    pub fn stamp(&self, unix_ms: i64) -> String {
        self.format(unix_ms, "%Y-%m-%dT%H:%M:%S%z")
    }

    /// Parses a time that [`Self::stamp`] formatted. Returns milliseconds since 1970.
    pub fn parse_stamp(&self, stamp: &str) -> Option<i64> {
        Timestamp::strptime("%Y-%m-%dT%H:%M:%S%z", stamp).ok().map(Timestamp::as_millisecond)
    }

    /// Formats a time for people: `02-17 14:30:05`.
    pub fn short(&self, unix_ms: i64) -> String {
        self.format(unix_ms, "%m-%d %H:%M:%S")
    }

    /// Formats the time of day: `14:30`.
    pub fn time_of_day(&self, unix_ms: i64) -> String {
        self.format(unix_ms, "%H:%M")
    }

    /// Formats a time close to `now_ms`: `14:30`, or `02-18 09:00` on another day.
    pub fn near(&self, unix_ms: i64, now_ms: i64) -> String {
        let is_today = self.format(unix_ms, "%Y-%m-%d") == self.format(now_ms, "%Y-%m-%d");
        self.format(unix_ms, if is_today { "%H:%M" } else { "%m-%d %H:%M" })
    }

    /// Formats a time for a file name: `20260217-143005`.
    pub fn compact(&self, unix_ms: i64) -> String {
        self.format(unix_ms, "%Y%m%d-%H%M%S")
    }

    fn format(&self, unix_ms: i64, form: &str) -> String {
        // A time outside the calendar's range is shown as the epoch.
        let moment = Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::UNIX_EPOCH);
        moment.to_zoned(self.zone.clone()).strftime(form).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_no_calendar_knows_is_shown_all_the_same() {
        let clock = Clock { zone: TimeZone::UTC };
        assert_eq!(clock.stamp(1_771_338_605_000), "2026-02-17T14:30:05+0000");
        assert_eq!(clock.parse_stamp("2026-02-17T08:30:05-0600"), Some(1_771_338_605_000));
        assert_eq!(clock.near(1_771_338_605_000, 1_771_330_000_000), "14:30");
        assert_eq!(clock.near(1_771_338_605_000, 1_771_230_000_000), "02-17 14:30");
        assert_eq!(clock.stamp(i64::MAX), "1970-01-01T00:00:00+0000");
    }
}
