use std::fmt::Display;
use std::ops::RangeInclusive;
use std::slice;
use std::str::FromStr;
use std::time::Duration;

use crate::binary::Profile;
use crate::failure::Failure;

/// Iterates over a command line that consists only of flags.
pub(crate) struct Flags<'a> {
    words: slice::Iter<'a, String>,
    /// The current flag.
    name: &'a str,
    /// The flags of the command in addition to [`CommonOptions`].
    known: &'static str,
}

impl<'a> Flags<'a> {
    pub(crate) fn of(arguments: &'a [String], known: &'static str) -> Self {
        Self { words: arguments.iter(), name: "", known }
    }

    pub(crate) fn next_flag(&mut self) -> Option<&'a str> {
        self.name = self.words.next()?;
        Some(self.name)
    }

    /// Parses the number after the current flag.
    pub(crate) fn number<T>(&mut self, bounds: RangeInclusive<T>) -> Result<T, Failure>
    where
        T: FromStr + PartialOrd + Display,
    {
        value(self.name, self.words.next(), bounds)
    }
}

/// The options of every randomised run with a time limit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct CommonOptions {
    /// The same seed produces the same messages and the same kills.
    pub(crate) seed: u64,
    /// Nothing new starts after this time.
    pub(crate) limit: Duration,
    pub(crate) profile: Profile,
}

impl CommonOptions {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, limit: Duration::from_mins(10), profile: Profile::Release }
    }

    /// Parses a flag that is not specific to the command.
    pub(crate) fn parse_flag(&mut self, flags: &mut Flags<'_>) -> Result<(), Failure> {
        match flags.name {
            "--seed" => self.seed = flags.number(0..=u64::MAX)?,
            "--seconds-limit" => self.limit = Duration::from_secs(flags.number(1..=86_400)?),
            "--profile" => self.profile = profile(flags.words.next())?,
            name => {
                let known = format!("{}, --seed N, --seconds-limit N, --profile NAME", flags.known);
                return Err(unknown(name, &known));
            }
        }
        Ok(())
    }
}

/// Parses the value of `--profile`.
pub(crate) fn profile(word: Option<&String>) -> Result<Profile, Failure> {
    let named = word.and_then(|word| Profile::named(word));
    named.ok_or_else(|| Failure::usage("--profile takes dev, release or dist".into()))
}

/// Parses the value of `--name value`. It must be within bounds: a typo should not start a million processes.
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

/// Returns the failure for a word that is not a flag of this command.
pub(crate) fn unknown(word: &str, known: &str) -> Failure {
    Failure::usage(format!("`{word}`: this command takes {known}"))
}

#[cfg(test)]
mod tests {
    use super::{CommonOptions, Flags, value};
    use crate::binary::Profile;
    use std::time::Duration;

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
    #[test]
    fn the_frame_takes_what_is_left() {
        fn check(line: &str, expect: Result<CommonOptions, u8>) {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let mut flags = Flags::of(&words, "--kill");
            let mut common = CommonOptions::new(3);
            let mut taken = Ok(());
            while taken.is_ok() && flags.next_flag().is_some() {
                taken = common.parse_flag(&mut flags);
            }
            assert_eq!(taken.map(|()| common).map_err(|failure| failure.code()), expect, "{line}");
        }
        check("", Ok(CommonOptions::new(3)));
        let chosen = CommonOptions { seed: 9, limit: Duration::from_secs(5), profile: Profile::Dev };
        check("--seed 9 --profile dev --seconds-limit 5", Ok(chosen));
        for wrong in
            ["--seed", "--seed x", "--seconds-limit 0", "--profile fast", "--profile", "--sed 9", "9"]
        {
            check(wrong, Err(64));
        }
    }
}
