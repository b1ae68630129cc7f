//! Parses spans of time and moments that people type.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ringer_core::time::{TimeOfDay, parse_span};

/// Parses `90`, `1.5` (seconds), `500ms`, `30s`, `10m`, `2h`, `7d`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        other => return Err(format!("unknown unit {other:?}; examples: 500ms, 30s, 10m, 2h, 7d")),
    };
    let number: f64 = digits
        .parse()
        .map_err(|_| format!("{digits:?} is not a number; examples: 500ms, 30s, 10m, 2h, 7d"))?;
    Duration::try_from_secs_f64(number * unit)
        .map_err(|_| "out of range; examples: 500ms, 30s, 10m, 2h, 7d".to_owned())
}

/// Parses the argument of `--since`, a span ago, a day, or a time, into milliseconds since 1970.
pub(crate) fn parse_since(text: &str, now_ms: i64) -> Result<i64, String> {
    if let Ok(ago) = parse_duration(text) {
        return Ok(now_ms.saturating_sub(i64::try_from(ago.as_millis()).unwrap_or(i64::MAX)));
    }
    let zone = TimeZone::system();
    let local = |moment: jiff::civil::DateTime| moment.to_zoned(zone.clone()).map(|zoned| zoned.timestamp());
    text.parse::<Timestamp>()
        .or_else(|_| Timestamp::strptime("%Y-%m-%dT%H:%M:%S%z", text))
        .or_else(|_| text.parse::<jiff::civil::DateTime>().and_then(local))
        .or_else(|_| text.parse::<jiff::civil::Date>().and_then(|day| local(day.at(0, 0, 0, 0))))
        .map(Timestamp::as_millisecond)
        .map_err(|_| {
            format!("invalid time {text:?}; examples: 10m, 2h, 2d, 2026-02-17, 2026-02-17T14:30:05-0600")
        })
}

/// Examples for [`parse_until`], in errors and help.
pub(crate) const UNTIL_EXAMPLES: &str = "90s, 20m, 2h, until 18:00, tomorrow";
const MORNING_HOUR: i8 = 9;

/// Parses the end of a span, in milliseconds since 1970: `90s`, `20m`, `2h` from now, `until 18:00` (the next time the clock
/// shows that), or `tomorrow` (09:00).
pub(crate) fn parse_until(text: &str, now_ms: i64) -> Result<i64, String> {
    parse_until_in(text, now_ms, &TimeZone::system())
        .ok_or_else(|| format!("invalid time {text:?}; examples: {UNTIL_EXAMPLES}"))
}

fn parse_until_in(text: &str, now_ms: i64, zone: &TimeZone) -> Option<i64> {
    if let Some(span) = parse_span(text) {
        return now_ms.checked_add(i64::try_from(span.as_millis()).ok()?).filter(|until| *until > now_ms);
    }
    let today = Timestamp::from_millisecond(now_ms).ok()?.to_zoned(zone.clone()).date();
    let at = |day: jiff::civil::Date, hour: i8, minute: i8| {
        Some(day.at(hour, minute, 0, 0).to_zoned(zone.clone()).ok()?.timestamp().as_millisecond())
    };
    if text == "tomorrow" {
        return at(today.tomorrow().ok()?, MORNING_HOUR, 0);
    }
    let minutes = TimeOfDay::parse(text.strip_prefix("until ")?.trim())?.minutes();
    let (hour, minute) = (i8::try_from(minutes / 60).ok()?, i8::try_from(minutes % 60).ok()?);
    at(today, hour, minute)
        .filter(|until| *until > now_ms)
        .or_else(|| at(today.tomorrow().ok()?, hour, minute))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_as_people_type_them() {
        let check = |text, ms: u64| assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
        check("300", 300_000);
        check("0.25", 250);
        check("500ms", 500);
        check("30s", 30_000);
        check("10m", 600_000);
        check("2h", 7_200_000);
        check("7d", 604_800_000);
        check("0", 0);
        for wrong in ["", "-1", "x", "10 m", "5y", "1e400", "nan", "inf"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn moments_until_which_something_lasts() {
        let zone = TimeZone::get("Europe/Berlin").expect("the time zones are there");
        let ms = |stamp: &str| stamp.parse::<Timestamp>().unwrap().as_millisecond();
        let check = |text: &str, now: &str, expected: Option<&str>| {
            let found =
                parse_until_in(text, ms(now), &zone).map(|ms| Timestamp::from_millisecond(ms).unwrap());
            assert_eq!(found, expected.map(|stamp| stamp.parse().unwrap()), "{text} at {now}");
        };
        let noon = "2026-02-17T11:00:00Z";
        check("90s", noon, Some("2026-02-17T11:01:30Z"));
        check("20m", noon, Some("2026-02-17T11:20:00Z"));
        check("2h", noon, Some("2026-02-17T13:00:00Z"));
        check("until 18:00", noon, Some("2026-02-17T17:00:00Z"));
        check("until 9:30", noon, Some("2026-02-18T08:30:00Z"));
        check("until 12:00", noon, Some("2026-02-18T11:00:00Z"));
        check("tomorrow", noon, Some("2026-02-18T08:00:00Z"));
        // Daylight saving begins in this night: 02:30 does not exist, and the morning comes an hour sooner.
        check("tomorrow", "2026-03-28T12:00:00Z", Some("2026-03-29T07:00:00Z"));
        check("until 02:30", "2026-03-28T12:00:00Z", Some("2026-03-29T01:30:00Z"));
        for wrong in
            ["", "90", "0s", "25h", "7d", "1.5h", "soon", "18:00", "until", "until 24:00", "until tomorrow"]
        {
            check(wrong, noon, None);
        }
        assert!(parse_until("soon", 0).unwrap_err().contains("until 18:00, tomorrow"));
    }

    #[test]
    fn moments_as_people_type_them() {
        assert_eq!(parse_since("2026-02-17T14:30:05-0600", 0), Ok(1_771_360_205_000));
        assert_eq!(parse_since("10m", 1_000_000), Ok(400_000));
        assert!(parse_since("2026-02-17", 0).is_ok() && parse_since("yesterday-ish", 0).is_err());
    }
}
