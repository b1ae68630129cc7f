//! The terminal's progress indicator, OSC 9;4.

use crate::encode::{Terminator, osc};
use crate::identity::{TerminalIdentity, TerminalProgram, Version};

/// A percentage from 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u8);

impl Percent {
    /// Returns `None` above 100.
    pub fn new(value: u8) -> Option<Self> {
        (value <= 100).then_some(Self(value))
    }

    /// The number.
    pub fn get(self) -> u8 {
        self.0
    }
}

/// The state of the indicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Running, with a percentage. Other programs may leave it out.
    Set(Option<Percent>),
    /// Failed, with the percentage reached.
    Error(Option<Percent>),
    /// Running, with no known percentage.
    Indeterminate,
    /// Paused, with the percentage reached.
    Paused(Option<Percent>),
    /// Not shown: done, or not begun.
    Clear,
}

impl Progress {
    /// The name of the state, as in the output of `ringer term scan`.
    pub fn state(self) -> &'static str {
        match self {
            Self::Set(_) => "set",
            Self::Error(_) => "error",
            Self::Indeterminate => "indeterminate",
            Self::Paused(_) => "paused",
            Self::Clear => "clear",
        }
    }

    /// The percentage, if it is known.
    pub fn value(self) -> Option<Percent> {
        match self {
            Self::Set(value) | Self::Error(value) | Self::Paused(value) => value,
            Self::Indeterminate | Self::Clear => None,
        }
    }

    /// Encodes the sequence. It ends in ST except inside GNU screen, because VTE ignores a progress sequence that ends in BEL.
    /// The states that have a value always carry one, and the others end after the state: kitty rejects `9;4;0;`, whose value
    /// is empty, while kitty, Ghostty, WezTerm, VS Code, Windows Terminal and ConEmu all accept `9;4;0`.
    ///
    /// ```
    /// use ringer_term::{Percent, Progress, Terminator};
    ///
    /// assert_eq!(Progress::Set(Percent::new(42)).encode(Terminator::St), "\x1b]9;4;1;42\x1b\\");
    /// assert_eq!(Progress::Clear.encode(Terminator::St), "\x1b]9;4;0\x1b\\");
    /// ```
    pub fn encode(self, terminator: Terminator) -> String {
        let number = |value: Option<Percent>| value.map_or(0, Percent::get);
        let parameters = match self {
            Self::Clear => "0".to_owned(),
            Self::Set(value) => format!("1;{}", number(value)),
            Self::Error(value) => format!("2;{}", number(value)),
            Self::Indeterminate => "3".to_owned(),
            Self::Paused(value) => format!("4;{}", number(value)),
        };
        osc(&format!("9;4;{parameters}"), terminator)
    }

    /// Parses the text after `9;4;`. `None` if it is not progress.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (state, rest) = text.split_at_checked(1)?;
        let value = match rest.strip_prefix(';') {
            Some(rest) => rest.split(';').next().and_then(parse_clamped),
            None if rest.is_empty() => None,
            None => return None,
        };
        Some(match state {
            "0" => Self::Clear,
            "1" => Self::Set(value),
            "2" => Self::Error(value),
            "3" => Self::Indeterminate,
            "4" => Self::Paused(value),
            _ => return None,
        })
    }
}

/// Limits the value to 100, because programs overshoot and terminals then show a full bar.
fn parse_clamped(digits: &str) -> Option<Percent> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(Percent(digits.parse::<u64>().map_or(100, |value| u8::try_from(value.min(100)).unwrap_or(100))))
}

/// Returns true if a terminal is known to show progress. Do not send progress to others: old kitty and foot show a
/// notification "4;1;50", and the effect in unknown terminals is unknown.
pub fn shows_progress(identity: &TerminalIdentity) -> bool {
    match identity.program {
        TerminalProgram::Ghostty => identity.at_least(Version(1, 2, 0)),
        TerminalProgram::Iterm2 => identity.at_least(Version(3, 6, 6)),
        TerminalProgram::Kitty => identity.at_least(Version(0, 47, 0)),
        TerminalProgram::Vte => identity.at_least(Version(0, 80, 0)),
        TerminalProgram::ConEmu
        | TerminalProgram::Konsole
        | TerminalProgram::WindowsTerminal
        | TerminalProgram::VsCode => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_both_ways() {
        let percent = Percent::new(80);
        for (progress, sequence) in [
            (Progress::Set(percent), "\x1b]9;4;1;80\x1b\\"),
            (Progress::Error(percent), "\x1b]9;4;2;80\x1b\\"),
            (Progress::Indeterminate, "\x1b]9;4;3\x1b\\"),
            (Progress::Paused(percent), "\x1b]9;4;4;80\x1b\\"),
            (Progress::Clear, "\x1b]9;4;0\x1b\\"),
        ] {
            let encoded = progress.encode(Terminator::St);
            assert_eq!(encoded, sequence);
            let text =
                encoded.strip_prefix("\x1b]9;4;").and_then(|rest| rest.strip_suffix("\x1b\\")).unwrap();
            assert_eq!(Progress::parse(text), Some(progress));
        }
        assert_eq!(
            Progress::Error(None).encode(Terminator::Bel),
            "\x1b]9;4;2;0\x07",
            "a value is always present"
        );
    }

    #[test]
    fn progress_of_other_programs() {
        let check = |text, expected| assert_eq!(Progress::parse(text), expected, "{text}");
        check("1;900", Some(Progress::Set(Percent::new(100))));
        check("1;99999999999999999999999", Some(Progress::Set(Percent::new(100))));
        check("0;100;", Some(Progress::Clear));
        check("2", Some(Progress::Error(None)));
        check("1;x", Some(Progress::Set(None)));
        for text in ["", "5", "5a", "12", "x"] {
            check(text, None);
        }
    }

    #[test]
    fn only_known_terminals_get_progress() {
        let check = |program, version, expected| {
            assert_eq!(
                shows_progress(&TerminalIdentity { program, version }),
                expected,
                "{program:?} {version:?}"
            );
        };
        check(TerminalProgram::Ghostty, Some(Version(1, 1, 9)), false);
        check(TerminalProgram::Ghostty, Some(Version(1, 2, 0)), true);
        check(TerminalProgram::Iterm2, Some(Version(3, 6, 5)), false);
        check(TerminalProgram::Iterm2, Some(Version(3, 6, 6)), true);
        check(TerminalProgram::Kitty, Some(Version(0, 37, 0)), false);
        check(TerminalProgram::Kitty, Some(Version(0, 46, 0)), false);
        check(TerminalProgram::Kitty, Some(Version(0, 47, 0)), true);
        check(TerminalProgram::Vte, Some(Version(0, 79, 9)), false);
        check(TerminalProgram::Vte, Some(Version(0, 80, 0)), true);
        for program in [
            TerminalProgram::ConEmu,
            TerminalProgram::Konsole,
            TerminalProgram::WindowsTerminal,
            TerminalProgram::VsCode,
        ] {
            check(program, None, true);
        }
        // kitty 0.26 does not report its version and shows a notification "4;1;42".
        for program in [
            TerminalProgram::Kitty,
            TerminalProgram::Foot,
            TerminalProgram::Ghostty,
            TerminalProgram::Iterm2,
            TerminalProgram::Vte,
            TerminalProgram::Unknown,
        ] {
            check(program, None, false);
        }
    }
}
