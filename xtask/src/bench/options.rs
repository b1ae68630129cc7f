use std::time::Duration;

use super::measure::Rounds;
use crate::binary::Profile;
use crate::failure::Failure;
use crate::flags;
use crate::parts::Missing;

/// Options; each benchmark uses the ones that apply to it.
#[derive(PartialEq, Debug)]
pub(super) struct Options {
    /// How long a waiting listener is watched.
    pub(super) idle: Duration,
    /// The duration of random use of panes; zero skips it.
    pub(super) soak: Duration,
    /// The number of measured runs of each process.
    pub(super) measured: usize,
    /// How to handle missing programs to compare with.
    pub(super) missing: Missing,
    pub(super) profile: Profile,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            idle: Duration::from_mins(1),
            soak: Duration::ZERO,
            measured: 500,
            missing: Missing::Install,
            profile: Profile::Dist,
        }
    }
}

impl Options {
    /// Returns the options, and the benchmark names among the arguments.
    pub(super) fn parse(arguments: &[String]) -> Result<(Self, Vec<String>), Failure> {
        let mut options = Self::default();
        let mut names = Vec::new();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--idle-seconds" => {
                    options.idle = Duration::from_secs(flags::value(word, words.next(), 1..=86_400)?);
                }
                "--soak" => options.soak = Duration::from_secs(flags::value(word, words.next(), 1..=86_400)?),
                "--rounds" => options.measured = flags::value(word, words.next(), 1..=1_000_000)?,
                "--no-install" => options.missing = Missing::Report,
                "--installed" => options.profile = Profile::Release,
                flag if flag.starts_with('-') => {
                    return Err(flags::unknown(
                        flag,
                        "names, --idle-seconds N, --soak SECONDS, --rounds N, --no-install, --installed",
                    ));
                }
                _ => names.push(word.clone()),
            }
        }
        Ok((options, names))
    }

    pub(super) fn rounds(&self) -> Rounds {
        Rounds { warm_ups: self.measured.min(20), measured: self.measured, pause: Duration::from_millis(5) }
    }
}

#[cfg(test)]
mod tests {
    use super::Options;
    use crate::binary::Profile;
    use crate::parts::Missing;
    use std::time::Duration;

    #[test]
    fn names_and_options_in_any_order() {
        let parse = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            Options::parse(&words).map_err(|failure| failure.code())
        };
        let chosen = Options {
            idle: Duration::from_secs(5),
            soak: Duration::from_secs(30),
            measured: 9,
            missing: Missing::Report,
            profile: Profile::Release,
        };
        let line = "--idle-seconds 5 notify --soak 30 --rounds 9 start --no-install --installed";
        assert_eq!(parse(line), Ok((chosen, vec!["notify".to_owned(), "start".to_owned()])));
        assert_eq!(parse(""), Ok((Options::default(), Vec::new())));
        for wrong in ["--idle", "--rounds", "--rounds 0", "--idle-seconds x", "--soak 0"] {
            assert_eq!(parse(wrong).err(), Some(64), "{wrong}");
        }
    }
}
