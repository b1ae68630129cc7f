//! The time, passed as an argument.

use std::time::Duration;

/// A point in time, as read from the three clocks that the engine needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// The monotonic clock, for deadlines.
    pub mono: Duration,
    /// The wall clock, in milliseconds since 1970, for records. May jump.
    pub wall_ms: i64,
    /// The person's local time, for quiet hours.
    pub local: TimeOfDay,
}

impl Now {
    /// Converts a wall clock time to the monotonic clock, assuming that the wall clock does not jump. Past times become now.
    pub(crate) fn mono_at(self, wall_ms: i64) -> Duration {
        let left = u64::try_from(wall_ms.saturating_sub(self.wall_ms)).unwrap_or(0);
        self.mono.saturating_add(Duration::from_millis(left))
    }
}

/// The longest span in the settings.
const MAX_SPAN: Duration = Duration::from_hours(24);

/// Parses `500ms`, `90s`, `20m` or `2h`, up to a day.
///
/// ```
/// use std::time::Duration;
/// use ringer_core::time::{parse_span, span_text};
///
/// assert_eq!(parse_span("90s"), Some(Duration::from_secs(90)));
/// assert_eq!(span_text(Duration::from_secs(120)), "2m");
/// assert_eq!(parse_span("90"), None);
/// ```
pub fn parse_span(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_ms = UNITS.iter().find(|(unit, _)| *unit == &text[digits.len()..])?.1;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = is_number.then(|| digits.parse().ok()).flatten()?;
    let span = Duration::from_millis(number.checked_mul(unit_ms)?);
    (span <= MAX_SPAN).then_some(span)
}

/// Formats a span as people write it: `10s`, `60s`, `2m`. Uses the largest unit of which it is a whole number; a single minute
/// or hour is written in the next smaller unit.
pub fn span_text(span: Duration) -> String {
    let ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let fits = |unit_ms: u64| ms > 0 && ms.is_multiple_of(unit_ms) && (unit_ms <= 1000 || ms > unit_ms);
    match UNITS.iter().find(|(_, unit_ms)| fits(*unit_ms)) {
        Some((unit, unit_ms)) => format!("{}{unit}", ms / unit_ms),
        None => "0s".to_owned(),
    }
}

/// Formats a span approximately: in hours from two hours on, in minutes from two minutes on, else in seconds.
///
/// ```
/// use std::time::Duration;
/// use ringer_core::time::rounded_span_text;
///
/// assert_eq!(rounded_span_text(Duration::from_millis(1_199_400)), "20m");
/// assert_eq!(rounded_span_text(Duration::from_secs(16 * 3600 + 120)), "16h");
/// ```
pub fn rounded_span_text(span: Duration) -> String {
    let seconds = (span + Duration::from_millis(500)).as_secs();
    let unit = match seconds {
        7200.. => 3600,
        120.. => 60,
        _ => 1,
    };
    span_text(Duration::from_secs((seconds + unit / 2) / unit * unit))
}

/// The units of spans in milliseconds, the largest first.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// A time of day, to the minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeOfDay(u16);

impl TimeOfDay {
    const MINUTES: u16 = 24 * 60;

    /// Returns `None` if the hour or the minute is out of range.
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

/// A daily time span, `22:00-07:00`. It may cross midnight; the end is not part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DailySpan {
    from: TimeOfDay,
    to: TimeOfDay,
}

impl DailySpan {
    /// Parses `22:00-07:00`. Equal ends mean the whole day.
    pub fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once('-')?;
        Some(Self { from: TimeOfDay::parse(from.trim())?, to: TimeOfDay::parse(to.trim())? })
    }

    /// Returns true if the span contains a time of day.
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
    fn a_span_reads_as_it_is_written() {
        for text in ["0s", "1ms", "1500ms", "1s", "10s", "60s", "90s", "2m", "60m", "61m", "2h", "24h"] {
            assert_eq!(parse_span(text).map(span_text).as_deref(), Some(text));
        }
        assert_eq!(parse_span("1m").map(span_text).as_deref(), Some("60s"));
        for wrong in ["", "s", "10", "1.5s", "-1s", "+1s", " 1s", "25h", "1d", "99999999999999999999h", "1 s"]
        {
            assert_eq!(parse_span(wrong), None, "{wrong}");
        }
    }

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
