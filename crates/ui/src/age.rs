//! How long ago something was, as lists show it.

/// `now`, `40s`, `5m`, `3h`, `2d`. A time in the future, as after a change of the clock, is `now`.
pub fn age(milliseconds: i64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        ..10 => "now".to_owned(),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86400),
    }
}

/// In how many milliseconds that text changes.
pub(crate) fn age_changes_in(milliseconds: i64) -> i64 {
    let unit = match milliseconds {
        ..10_000 => return 10_000_i64.saturating_sub(milliseconds),
        10_000..60_000 => 1000,
        60_000..3_600_000 => 60_000,
        3_600_000..86_400_000 => 3_600_000,
        _ => 86_400_000,
    };
    unit - milliseconds % unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_known_when_the_text_changes() {
        for start in
            [-5, 0, 9_999, 10_000, 10_001, 59_999, 61_234, 3_599_999, 3_600_001, 86_400_000, 90_000_000]
        {
            let change = start + age_changes_in(start);
            assert_eq!(age(change - 1), age(start), "{start}");
            assert_ne!(age(change), age(start), "{start}");
        }
    }

    #[test]
    fn one_number_and_one_letter() {
        let ages = [i64::MIN, 9_999, 10_000, 59_999, 60_000, 3_599_999, 3_600_000, 86_400_000, 4_000_000_000];
        let expect = ["now", "now", "10s", "59s", "1m", "59m", "1h", "1d", "46d"];
        assert_eq!(ages.map(age), expect);
    }
}
