//! Identifies the program that draws the terminal, and its version. They determine what it can show.

use std::fmt;

use crate::env::Env;

/// A terminal program that Ringer knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TerminalProgram {
    /// kitty.
    Kitty,
    /// Ghostty.
    Ghostty,
    /// foot.
    Foot,
    /// Konsole, and programs that embed it (Dolphin, Kate).
    Konsole,
    /// The terminal inside VS Code. Its forks lag behind it and are not counted here.
    VsCode,
    /// WezTerm.
    WezTerm,
    /// Warp.
    Warp,
    /// iTerm2.
    Iterm2,
    /// Terminal.app.
    AppleTerminal,
    /// Anything built on VTE: GNOME Terminal, Ptyxis, Tilix, Terminator.
    Vte,
    /// Alacritty.
    Alacritty,
    /// Windows Terminal.
    WindowsTerminal,
    /// ConEmu and Cmder.
    ConEmu,
    /// Not known, or not knowable from here.
    #[default]
    Unknown,
}

/// The names of programs in `TERM_PROGRAM`, in `TERM`, in the 27 rows and in XTVERSION replies. Compared without case.
const NAMES: [(&str, TerminalProgram); 26] = [
    ("kitty", TerminalProgram::Kitty),
    ("xterm-kitty", TerminalProgram::Kitty),
    ("ghostty", TerminalProgram::Ghostty),
    ("xterm-ghostty", TerminalProgram::Ghostty),
    ("foot", TerminalProgram::Foot),
    ("foot-extra", TerminalProgram::Foot),
    ("konsole", TerminalProgram::Konsole),
    ("konsole-256color", TerminalProgram::Konsole),
    ("vscode", TerminalProgram::VsCode),
    ("wezterm", TerminalProgram::WezTerm),
    ("warpterminal", TerminalProgram::Warp),
    ("iterm.app", TerminalProgram::Iterm2),
    ("iterm2", TerminalProgram::Iterm2),
    ("apple_terminal", TerminalProgram::AppleTerminal),
    ("vte", TerminalProgram::Vte),
    ("vte-256color", TerminalProgram::Vte),
    ("vte-based", TerminalProgram::Vte),
    ("gnome-terminal", TerminalProgram::Vte),
    ("ptyxis", TerminalProgram::Vte),
    ("tilix", TerminalProgram::Vte),
    ("terminator", TerminalProgram::Vte),
    ("alacritty", TerminalProgram::Alacritty),
    ("alacritty-direct", TerminalProgram::Alacritty),
    ("windows-terminal", TerminalProgram::WindowsTerminal),
    ("windows terminal", TerminalProgram::WindowsTerminal),
    ("conemu", TerminalProgram::ConEmu),
];

impl TerminalProgram {
    /// Returns the program with this name, or `Unknown`.
    pub fn named(name: &str) -> Self {
        NAMES
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map_or(Self::Unknown, |(_, program)| *program)
    }

    /// The version that is assumed if none is known: the one in Debian 12. Debian 12 does not have the other programs, so no
    /// version is assumed for them.
    fn assumed_version(self) -> Option<Version> {
        match self {
            Self::Kitty => Some(Version(0, 26, 5)),
            Self::Foot => Some(Version(1, 13, 1)),
            Self::Konsole => Some(Version(22, 12, 3)),
            Self::Vte => Some(Version(0, 70, 6)),
            _ => None,
        }
    }

    /// The name as people write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kitty => "kitty",
            Self::Ghostty => "Ghostty",
            Self::Foot => "foot",
            Self::Konsole => "Konsole",
            Self::VsCode => "VS Code",
            Self::WezTerm => "WezTerm",
            Self::Warp => "Warp",
            Self::Iterm2 => "iTerm2",
            Self::AppleTerminal => "Terminal.app",
            Self::Vte => "a VTE terminal",
            Self::Alacritty => "Alacritty",
            Self::WindowsTerminal => "Windows Terminal",
            Self::ConEmu => "ConEmu",
            Self::Unknown => "an unknown terminal",
        }
    }
}

/// A version as three numbers, enough to compare any terminal's releases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// Parses `0.48.2`, `1.3.1-tip`, `20240203-110809-5046fc22`: the leading numbers, missing ones as zero.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(['.', '-', ' ', '+']).map_while(|part| part.parse::<u32>().ok());
        let major = numbers.next()?;
        Some(Self(major, numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)))
    }

    /// Parses the packed form of Konsole (`241202`) and VTE (`8001`, major 0): two digits each, from the right.
    fn unpack(text: &str) -> Option<Self> {
        let packed: u32 = text.parse().ok()?;
        Some(Self(packed / 10_000, packed / 100 % 100, packed % 100))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// A terminal program and, if known, its version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TerminalIdentity {
    /// The program.
    pub program: TerminalProgram,
    /// The version; kitty and foot never put theirs in the environment.
    pub version: Option<Version>,
}

impl fmt::Display for TerminalIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            Some(version) => write!(formatter, "{} {version}", self.program.as_str()),
            None => formatter.write_str(self.program.as_str()),
        }
    }
}

impl TerminalIdentity {
    /// Returns true if the version is at least this one. An unknown version counts as the oldest that many people run: a new
    /// terminal accepts the old sequences too, while an old terminal shows nothing for a new sequence, or shows the sequence
    /// itself.
    pub fn at_least(&self, version: Version) -> bool {
        self.version.or_else(|| self.program.assumed_version()).is_some_and(|own| own >= version)
    }

    /// Parses an XTVERSION reply, in both forms that terminals use: `kitty(0.48.2)` and `ghostty 1.3.1`.
    pub fn from_xtversion(text: &str) -> Self {
        let (name, version) = split_xtversion(text);
        let program = TerminalProgram::named(name);
        let version = match program {
            TerminalProgram::Vte => Version::unpack(version),
            _ => Version::parse(version),
        };
        Self { program, version }
    }
}

/// The name and the version in an XTVERSION reply; the version may be empty.
pub(crate) fn split_xtversion(text: &str) -> (&str, &str) {
    match text.split_once('(') {
        Some((name, version)) => (name.trim(), version.trim_end_matches(')')),
        None => text.trim().split_once(' ').unwrap_or((text.trim(), "")),
    }
}

/// Variables that name a terminal and that the 27 rows do not read, or read too late. In this order.
const IDENTIFYING_VARIABLES: [(&str, TerminalProgram); 14] = [
    ("ITERM_SESSION_ID", TerminalProgram::Iterm2),
    ("WEZTERM_PANE", TerminalProgram::WezTerm),
    ("WEZTERM_EXECUTABLE", TerminalProgram::WezTerm),
    ("WEZTERM_UNIX_SOCKET", TerminalProgram::WezTerm),
    ("ALACRITTY_WINDOW_ID", TerminalProgram::Alacritty),
    ("ALACRITTY_LOG", TerminalProgram::Alacritty),
    ("KITTY_WINDOW_ID", TerminalProgram::Kitty),
    ("GHOSTTY_RESOURCES_DIR", TerminalProgram::Ghostty),
    ("KONSOLE_VERSION", TerminalProgram::Konsole),
    ("PTYXIS_VERSION", TerminalProgram::Vte),
    ("VTE_VERSION", TerminalProgram::Vte),
    ("WT_SESSION", TerminalProgram::WindowsTerminal),
    ("ConEmuPID", TerminalProgram::ConEmu),
    ("ConEmuANSI", TerminalProgram::ConEmu),
];

/// Identifies the program behind an environment with no multiplexer in between.
///
/// A `TERM` that names a terminal is the freshest evidence: each terminal sets its own, while the other variables are
/// inherited by any terminal started from within another. Then come `TERM_PROGRAM`, the variable that iTerm2 sends
/// over SSH, the compatible answer, and the remaining variables.
pub(crate) fn identify(env: &Env, compatible: Option<&str>) -> TerminalIdentity {
    let by_name = |name: Option<&str>| {
        name.map(TerminalProgram::named).filter(|program| *program != TerminalProgram::Unknown)
    };
    let program = by_name(env.get("TERM"))
        .or_else(|| by_name(env.get("TERM_PROGRAM")))
        .or_else(|| by_name(env.get("LC_TERMINAL")))
        .or_else(|| by_name(compatible))
        .or_else(|| {
            IDENTIFYING_VARIABLES.iter().find_map(|(variable, program)| env.get(variable).map(|_| *program))
        })
        .unwrap_or_default();
    TerminalIdentity { program, version: version_of(program, env) }
}

fn version_of(program: TerminalProgram, env: &Env) -> Option<Version> {
    let beside = |name: &str, version: &str| {
        env.get(name).filter(|value| TerminalProgram::named(value) == program)?;
        Version::parse(env.get(version)?)
    };
    match program {
        TerminalProgram::Unknown => None,
        TerminalProgram::Konsole => Version::unpack(env.get("KONSOLE_VERSION")?),
        TerminalProgram::Vte => Version::unpack(env.get("VTE_VERSION")?),
        _ => beside("TERM_PROGRAM", "TERM_PROGRAM_VERSION")
            .or_else(|| beside("LC_TERMINAL", "LC_TERMINAL_VERSION")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(variables: &[(&str, &str)], program: TerminalProgram, version: Option<Version>) {
        let env = Env::new(variables.iter().copied());
        let detection = crate::detect(&env);
        assert_eq!(detection.identity, TerminalIdentity { program, version }, "{variables:?}");
    }

    #[test]
    fn terminals_without_term_program() {
        check(&[("TERM", "xterm-kitty")], TerminalProgram::Kitty, None);
        check(&[("TERM", "foot")], TerminalProgram::Foot, None);
        check(&[("KONSOLE_VERSION", "241202")], TerminalProgram::Konsole, Some(Version(24, 12, 2)));
        check(&[("WEZTERM_PANE", "3"), ("TERM", "xterm-256color")], TerminalProgram::WezTerm, None);
        check(&[("ITERM_SESSION_ID", "w0t0p0")], TerminalProgram::Iterm2, None);
        check(
            &[("PTYXIS_VERSION", "47.1"), ("VTE_VERSION", "8001"), ("TERM", "xterm-256color")],
            TerminalProgram::Vte,
            Some(Version(0, 80, 1)),
        );
        check(&[("ALACRITTY_WINDOW_ID", "9"), ("TERM", "xterm-256color")], TerminalProgram::Alacritty, None);
    }

    #[test]
    fn over_ssh_only_term_and_lc_variables_arrive() {
        let ssh = ("SSH_TTY", "/dev/pts/1");
        check(&[ssh, ("TERM", "foot")], TerminalProgram::Foot, None);
        check(
            &[ssh, ("TERM", "xterm-256color"), ("LC_TERMINAL", "iTerm2"), ("LC_TERMINAL_VERSION", "3.6.6")],
            TerminalProgram::Iterm2,
            Some(Version(3, 6, 6)),
        );
    }

    #[test]
    fn a_terminal_started_from_another_is_not_that_other() {
        check(&[("TERM", "alacritty"), ("KONSOLE_VERSION", "241202")], TerminalProgram::Alacritty, None);
        check(&[("TERM", "foot"), ("TERM_PROGRAM", "vscode")], TerminalProgram::Foot, None);
    }

    #[test]
    fn a_version_belongs_to_the_program_it_stands_beside() {
        check(
            &[("TERM_PROGRAM", "ghostty"), ("TERM_PROGRAM_VERSION", "1.3.1-tip")],
            TerminalProgram::Ghostty,
            Some(Version(1, 3, 1)),
        );
        check(
            &[("TERM", "xterm-kitty"), ("TERM_PROGRAM", "x"), ("TERM_PROGRAM_VERSION", "9")],
            TerminalProgram::Kitty,
            None,
        );
    }

    #[test]
    fn variables_are_ignored_inside_a_multiplexer() {
        for layer in ["TMUX", "STY", "ZELLIJ"] {
            check(
                &[(layer, "1"), ("KITTY_WINDOW_ID", "1"), ("TERM", "screen")],
                TerminalProgram::Unknown,
                None,
            );
        }
    }

    #[test]
    fn both_forms_of_xtversion() {
        let check = |text, program, version| {
            assert_eq!(
                TerminalIdentity::from_xtversion(text),
                TerminalIdentity { program, version },
                "{text}"
            );
        };
        check("kitty(0.48.2)", TerminalProgram::Kitty, Some(Version(0, 48, 2)));
        check("ghostty 1.3.1", TerminalProgram::Ghostty, Some(Version(1, 3, 1)));
        check(
            "WezTerm 20240203-110809-5046fc22",
            TerminalProgram::WezTerm,
            Some(Version(20_240_203, 110_809, 0)),
        );
        check("foot(1.18.1)", TerminalProgram::Foot, Some(Version(1, 18, 1)));
        check("VTE(7600)", TerminalProgram::Vte, Some(Version(0, 76, 0)));
        check("iTerm2 3.6.6", TerminalProgram::Iterm2, Some(Version(3, 6, 6)));
        check("tmux 3.4", TerminalProgram::Unknown, Some(Version(3, 4, 0)));
        check("kitty", TerminalProgram::Kitty, None);
        check("", TerminalProgram::Unknown, None);
    }

    #[test]
    fn versions_compare_by_number() {
        assert!(Version::parse("0.9.0") < Version::parse("0.36.0"));
        assert_eq!(Version::parse("not a version"), None);
        let is = |program, version, least| TerminalIdentity { program, version }.at_least(least);
        assert!(is(TerminalProgram::Kitty, Some(Version(0, 36, 0)), Version(0, 36, 0)));
        assert!(
            is(TerminalProgram::Kitty, None, Version(0, 26, 0))
                && !is(TerminalProgram::Kitty, None, Version(0, 36, 0))
        );
        assert!(!is(TerminalProgram::Foot, None, Version(1, 18, 0)), "unknown counts as Debian 12's");
        assert!(!is(TerminalProgram::Ghostty, None, Version(1, 0, 0)), "nothing is assumed of the others");
    }
}
