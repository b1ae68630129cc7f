//! Parses spans of time and moments that people type.

use std::time::Duration;

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, SpanRelativeTo, Timestamp};
use ringer_core::time::TimeOfDay;

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
        .or_else(|_| text.parse::<Date>().and_then(|day| local(day.at(0, 0, 0, 0))))
        .map(Timestamp::as_millisecond)
        .map_err(|_| {
            format!("invalid time {text:?}; examples: 10m, 2h, 2d, 2026-02-17, 2026-02-17T14:30:05-0600")
        })
}

/// Examples for [`parse_until`], in errors and help.
pub(crate) const UNTIL_EXAMPLES: &str =
    "20m, 1h30m, 2 days, 18:00, until 6pm, tonight, tomorrow, until monday";
/// Minutes after midnight.
const MORNING: u16 = 9 * 60;
const NOON: u16 = 12 * 60;
const EVENING: u16 = 20 * 60;

/// Parses the end of a span, in milliseconds since 1970: a span from now (`20m`, `1h30m`, `2 days`), a time of day (`18:00`,
/// `6pm`: the next time the clock shows it), `tonight` (20:00), `tomorrow` or a weekday (09:00). Each may follow `until`.
pub(crate) fn parse_until(text: &str, now_ms: i64) -> Result<i64, String> {
    parse_until_in(text, now_ms, &TimeZone::system())
        .ok_or_else(|| format!("invalid time {text:?}; examples: {UNTIL_EXAMPLES}"))
}

fn parse_until_in(text: &str, now_ms: i64, zone: &TimeZone) -> Option<i64> {
    let text = text.trim().to_ascii_lowercase();
    if let Some(span) = parse_words_of_span(text.strip_prefix("for ").unwrap_or(&text)) {
        return now_ms.checked_add(i64::try_from(span.as_millis()).ok()?).filter(|until| *until > now_ms);
    }
    let after_until = text.strip_prefix("until ").map(str::trim);
    let word = after_until.unwrap_or(&text);
    let today = Timestamp::from_millisecond(now_ms).ok()?.to_zoned(zone.clone()).date();
    let at = |day: Date, minutes: u16| {
        let (hour, minute) = (minutes / 60, minutes % 60);
        let moment = day.at(i8::try_from(hour).ok()?, i8::try_from(minute).ok()?, 0, 0);
        Some(moment.to_zoned(zone.clone()).ok()?.timestamp().as_millisecond())
    };
    let next = |minutes: u16| {
        at(today, minutes).filter(|until| *until > now_ms).or_else(|| at(today.tomorrow().ok()?, minutes))
    };
    match word {
        "tomorrow" => at(today.tomorrow().ok()?, MORNING),
        // In the evening it means midnight.
        "tonight" => at(today, EVENING).filter(|until| *until > now_ms).or_else(|| next(0)),
        "noon" => next(NOON),
        "midnight" => next(0),
        word => match weekday(word) {
            Some(day) => at(today.nth_weekday(1, day).ok()?, MORNING),
            // A bare number could be minutes.
            None if after_until.is_none() && word.parse::<u8>().is_ok() => None,
            None => next(time_of_day(word)?),
        },
    }
}

/// Parses `20m`, `1h30m`, `10min`, `1 hour`, `2 days`.
fn parse_words_of_span(text: &str) -> Option<Duration> {
    let span: Span = text.parse().ok()?;
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    Duration::try_from(length).ok()
}

fn weekday(word: &str) -> Option<Weekday> {
    let days = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let found = days.iter().position(|day| *day == word || day[..3] == *word)?;
    Weekday::from_monday_zero_offset(i8::try_from(found).ok()?).ok()
}

/// Parses `18:00`, `18`, `6pm`, `6:30 pm` into minutes after midnight.
fn time_of_day(word: &str) -> Option<u16> {
    let (clock, half) = match (word.strip_suffix("pm"), word.strip_suffix("am")) {
        (Some(clock), _) => (clock.trim(), Some(NOON)),
        (_, Some(clock)) => (clock.trim(), Some(0)),
        _ => (word, None),
    };
    let with_minutes = if clock.contains(':') { clock.to_owned() } else { format!("{clock}:00") };
    let minutes = TimeOfDay::parse(&with_minutes)?.minutes();
    match half {
        None => Some(minutes),
        Some(half) => (60..NOON + 60).contains(&minutes).then_some(minutes % NOON + half),
    }
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
        for (text, expected) in [
            ("10min", "2026-02-17T11:10:00Z"),
            ("1 hour", "2026-02-17T12:00:00Z"),
            ("1h30m", "2026-02-17T12:30:00Z"),
            ("for 2h", "2026-02-17T13:00:00Z"),
            ("1.5h", "2026-02-17T12:30:00Z"),
            ("2 days", "2026-02-19T11:00:00Z"),
            ("18:00", "2026-02-17T17:00:00Z"),
            ("until 18", "2026-02-17T17:00:00Z"),
            ("until 6pm", "2026-02-17T17:00:00Z"),
            ("6:30 PM", "2026-02-17T17:30:00Z"),
            ("until 12am", "2026-02-17T23:00:00Z"),
            ("12pm", "2026-02-18T11:00:00Z"),
            ("tonight", "2026-02-17T19:00:00Z"),
            ("noon", "2026-02-18T11:00:00Z"),
            ("midnight", "2026-02-17T23:00:00Z"),
            ("until tomorrow", "2026-02-18T08:00:00Z"),
            // It is a Tuesday.
            ("until monday", "2026-02-23T08:00:00Z"),
            ("tuesday", "2026-02-24T08:00:00Z"),
            ("wed", "2026-02-18T08:00:00Z"),
        ] {
            check(text, noon, Some(expected));
        }
        check("tonight", "2026-02-17T21:00:00Z", Some("2026-02-17T23:00:00Z"));
        for wrong in [
            "",
            "90",
            "18",
            "0s",
            "25h:",
            "soon",
            "until",
            "until 24:00",
            "13pm",
            "0am",
            "until 25",
            "-1h",
            "monday 5",
        ] {
            check(wrong, noon, None);
        }
        assert!(parse_until("soon", 0).unwrap_err().contains("tonight, tomorrow"));
    }

    #[test]
    fn moments_as_people_type_them() {
        assert_eq!(parse_since("2026-02-17T14:30:05-0600", 0), Ok(1_771_360_205_000));
        assert_eq!(parse_since("10m", 1_000_000), Ok(400_000));
        assert!(parse_since("2026-02-17", 0).is_ok() && parse_since("yesterday-ish", 0).is_err());
    }
}
