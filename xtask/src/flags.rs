use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::failure::Failure;

/// The value of `--name value`, checked against what makes sense: a typing mistake should not start a million processes.
pub(crate) fn value<T>(name: &str, word: Option<&String>, bounds: RangeInclusive<T>) -> Result<T, Failure>
where
    T: FromStr + PartialOrd + Display,
{
    let range = || format!("{name} takes a number from {} to {}", bounds.start(), bounds.end());
    let word = word.ok_or_else(|| Failure::usage(range()))?;
    let number = word.parse().map_err(|_| Failure::usage(format!("{}, not `{word}`", range())))?;
    if bounds.contains(&number) {
        Ok(number)
    } else {
        Err(Failure::usage(format!("{}, not {number}", range())))
    }
}

/// For a word that is no flag of this command.
pub(crate) fn unknown(word: &str, known: &str) -> Failure {
    Failure::usage(format!("`{word}`: this command takes {known}"))
}

#[cfg(test)]
mod tests {
    use super::value;

    #[test]
    fn numbers_have_bounds() {
        fn check(word: Option<&str>, expect: Result<u32, &str>) {
            let word = word.map(str::to_owned);
            let found = value("--writers", word.as_ref(), 1..=9).map_err(|failure| failure.to_string());
            assert_eq!(found.as_ref().map_err(String::as_str), expect.as_ref().map_err(|error| *error));
        }
        check(Some("4"), Ok(4));
        check(Some("10"), Err("--writers takes a number from 1 to 9, not 10"));
        check(Some("-1"), Err("--writers takes a number from 1 to 9, not `-1`"));
        check(None, Err("--writers takes a number from 1 to 9"));
    }
}
