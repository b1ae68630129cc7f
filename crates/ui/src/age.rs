//! How long ago something was, as lists show it.

/// `now`, `40s`, `5m`, `3h`, `2d`. A time in the future, as after a change of the clock, is `now`.
pub(crate) fn age(milliseconds: i64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        ..10 => "now".to_owned(),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_and_one_letter() {
        let ages = [i64::MIN, 9_999, 10_000, 59_999, 60_000, 3_599_999, 3_600_000, 86_400_000, 4_000_000_000];
        let expect = ["now", "now", "10s", "59s", "1m", "59m", "1h", "1d", "46d"];
        assert_eq!(ages.map(age), expect);
    }
}
