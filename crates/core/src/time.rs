//! The time, passed as an argument.

use std::time::Duration;

/// A point in time, in the three clocks that the engine needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// The monotonic clock, for deadlines.
    pub mono: Duration,
    /// Milliseconds since 1970, for records. May jump.
    pub wall_ms: i64,
    /// The person's local time, for quiet hours.
    pub local: TimeOfDay,
}

/// A time of day, to the minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeOfDay(u16);

impl TimeOfDay {
    const MINUTES: u16 = 24 * 60;

    /// `None` if the hour or the minute is out of range.
    pub fn new(hour: u16, minute: u16) -> Option<Self> {
        (hour < 24 && minute < 60).then_some(Self(hour * 60 + minute))
    }

    /// Parses `22:00`.
    pub fn parse(text: &str) -> Option<Self> {
        let (hour, minute) = text.split_once(':')?;
        let number = |digits: &str| {
            let plain = (1..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| digits.parse().ok()).flatten()
        };
        Self::new(number(hour)?, number(minute)?)
    }

    /// Minutes since midnight.
    pub fn minutes(self) -> u16 {
        self.0 % Self::MINUTES
    }
}

/// A span of every day, `22:00-07:00`. It may go over midnight; the end is not part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DailySpan {
    from: TimeOfDay,
    to: TimeOfDay,
}

impl DailySpan {
    /// Parses `22:00-07:00`. A span that ends when it begins is the whole day.
    pub fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once('-')?;
        Some(Self { from: TimeOfDay::parse(from.trim())?, to: TimeOfDay::parse(to.trim())? })
    }

    /// Whether a time of day lies in it.
    pub fn contains(self, time: TimeOfDay) -> bool {
        if self.from < self.to {
            self.from <= time && time < self.to
        } else {
            time >= self.from || time < self.to
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_may_go_over_midnight() {
        let check = |span, time, expected| {
            let contains = DailySpan::parse(span).unwrap().contains(TimeOfDay::parse(time).unwrap());
            assert_eq!(contains, expected, "{time} in {span}");
        };
        check("22:00-07:00", "23:30", true);
        check("22:00-07:00", "06:59", true);
        check("22:00-07:00", "07:00", false);
        check("22:00-07:00", "12:00", false);
        check("12:00-13:00", "12:00", true);
        check("12:00-13:00", "13:00", false);
        check("00:00-00:00", "15:00", true);
    }

    #[test]
    fn what_no_clock_shows_is_refused() {
        for text in ["24:00", "12:60", "12", "a:b", "-1:00", "+1:00", "123:00", ""] {
            assert_eq!(TimeOfDay::parse(text), None, "{text}");
        }
        assert_eq!(TimeOfDay::parse("7:05").map(TimeOfDay::minutes), Some(425));
        assert_eq!(DailySpan::parse("22:00"), None);
    }
}
