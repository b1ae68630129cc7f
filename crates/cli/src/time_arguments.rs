//! Spans of time as people type them, and moments as people read them.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Reads `90`, `1.5` (seconds), `500ms`, `30s`, `10m`, `2h`, `7d`.
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

/// The moment that `--since` names, in milliseconds since 1970: a span ago, a day, or a time.
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
    fn moments_as_people_type_them() {
        assert_eq!(parse_since("2026-02-17T14:30:05-0600", 0), Ok(1_771_360_205_000));
        assert_eq!(parse_since("10m", 1_000_000), Ok(400_000));
        assert!(parse_since("2026-02-17", 0).is_ok() && parse_since("yesterday-ish", 0).is_err());
    }
}
