//! Which program draws the terminal, and which version of it: what decides what it can show.

use std::fmt;

use crate::env::Env;

/// A terminal program that Ringer knows something about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Program {
    /// kitty.
    Kitty,
    /// Ghostty.
    Ghostty,
    /// foot.
    Foot,
    /// Konsole, and what embeds it (Dolphin, Kate).
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

/// The names under which programs appear: in `TERM_PROGRAM`, in `TERM`, in the 27 rows, in XTVERSION replies.
/// Compared without case.
const NAMES: [(&str, Program); 26] = [
    ("kitty", Program::Kitty),
    ("xterm-kitty", Program::Kitty),
    ("ghostty", Program::Ghostty),
    ("xterm-ghostty", Program::Ghostty),
    ("foot", Program::Foot),
    ("foot-extra", Program::Foot),
    ("konsole", Program::Konsole),
    ("konsole-256color", Program::Konsole),
    ("vscode", Program::VsCode),
    ("wezterm", Program::WezTerm),
    ("warpterminal", Program::Warp),
    ("iterm.app", Program::Iterm2),
    ("iterm2", Program::Iterm2),
    ("apple_terminal", Program::AppleTerminal),
    ("vte", Program::Vte),
    ("vte-256color", Program::Vte),
    ("vte-based", Program::Vte),
    ("gnome-terminal", Program::Vte),
    ("ptyxis", Program::Vte),
    ("tilix", Program::Vte),
    ("terminator", Program::Vte),
    ("alacritty", Program::Alacritty),
    ("alacritty-direct", Program::Alacritty),
    ("windows-terminal", Program::WindowsTerminal),
    ("windows terminal", Program::WindowsTerminal),
    ("conemu", Program::ConEmu),
];

impl Program {
    /// The program of that name, `Unknown` if none of ours has it.
    pub fn named(name: &str) -> Self {
        NAMES
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map_or(Self::Unknown, |(_, program)| *program)
    }

    /// The version that counts where none is told: that of Debian 12. The others are in no Debian release of that time,
    /// and nothing is assumed of them.
    fn assumed_version(self) -> Option<Version> {
        match self {
            Self::Kitty => Some(Version(0, 26, 5)),
            Self::Foot => Some(Version(1, 13, 1)),
            Self::Konsole => Some(Version(22, 12, 3)),
            Self::Vte => Some(Version(0, 70, 6)),
            _ => None,
        }
    }

    /// How people write its name.
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
    /// Reads `0.48.2`, `1.3.1-tip`, `20240203-110809-5046fc22`: the leading numbers, missing ones as zero.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(['.', '-', ' ', '+']).map_while(|part| part.parse::<u32>().ok());
        let major = numbers.next()?;
        Some(Self(major, numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)))
    }

    /// Reads the packed form of Konsole (`241202`) and VTE (`8001`, major 0): two digits each, from the right.
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

/// A terminal program and, where something tells it, its version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Identity {
    /// The program.
    pub program: Program,
    /// Its version; kitty and foot never say theirs in the environment.
    pub version: Option<Version>,
}

impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            Some(version) => write!(formatter, "{} {version}", self.program.as_str()),
            None => formatter.write_str(self.program.as_str()),
        }
    }
}

impl Identity {
    /// Whether the version is at least this one. An unknown version counts as the oldest that many people run: a new
    /// terminal takes the old sequences too, while an old one shows nothing for the new ones, or the sequence itself.
    pub fn at_least(&self, version: Version) -> bool {
        self.version.or_else(|| self.program.assumed_version()).is_some_and(|own| own >= version)
    }

    /// Reads an XTVERSION reply, in both forms terminals use: `kitty(0.48.2)` and `ghostty 1.3.1`.
    pub fn from_xtversion(text: &str) -> Self {
        let (name, version) = split_xtversion(text);
        let program = Program::named(name);
        let version = match program {
            Program::Vte => Version::unpack(version),
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

/// Variables that name a terminal although the 27 rows do not read them, or read them too late. In this order.
const TELLTALES: [(&str, Program); 14] = [
    ("ITERM_SESSION_ID", Program::Iterm2),
    ("WEZTERM_PANE", Program::WezTerm),
    ("WEZTERM_EXECUTABLE", Program::WezTerm),
    ("WEZTERM_UNIX_SOCKET", Program::WezTerm),
    ("ALACRITTY_WINDOW_ID", Program::Alacritty),
    ("ALACRITTY_LOG", Program::Alacritty),
    ("KITTY_WINDOW_ID", Program::Kitty),
    ("GHOSTTY_RESOURCES_DIR", Program::Ghostty),
    ("KONSOLE_VERSION", Program::Konsole),
    ("PTYXIS_VERSION", Program::Vte),
    ("VTE_VERSION", Program::Vte),
    ("WT_SESSION", Program::WindowsTerminal),
    ("ConEmuPID", Program::ConEmu),
    ("ConEmuANSI", Program::ConEmu),
];

/// The program behind an environment with no multiplexer in between.
///
/// A `TERM` that names a terminal is the freshest evidence: each terminal sets its own, while the other variables are
/// inherited by any terminal started from within another. Then come `TERM_PROGRAM`, the variable that iTerm2 sends
/// over SSH, the compatible answer, and what is left of the telltales.
pub(crate) fn identify(env: &Env, compatible: Option<&str>) -> Identity {
    let by_name =
        |name: Option<&str>| name.map(Program::named).filter(|program| *program != Program::Unknown);
    let program = by_name(env.get("TERM"))
        .or_else(|| by_name(env.get("TERM_PROGRAM")))
        .or_else(|| by_name(env.get("LC_TERMINAL")))
        .or_else(|| by_name(compatible))
        .or_else(|| TELLTALES.iter().find_map(|(variable, program)| env.get(variable).map(|_| *program)))
        .unwrap_or_default();
    Identity { program, version: version_of(program, env) }
}

fn version_of(program: Program, env: &Env) -> Option<Version> {
    let beside = |name: &str, version: &str| {
        env.get(name).filter(|value| Program::named(value) == program)?;
        Version::parse(env.get(version)?)
    };
    match program {
        Program::Unknown => None,
        Program::Konsole => Version::unpack(env.get("KONSOLE_VERSION")?),
        Program::Vte => Version::unpack(env.get("VTE_VERSION")?),
        _ => beside("TERM_PROGRAM", "TERM_PROGRAM_VERSION")
            .or_else(|| beside("LC_TERMINAL", "LC_TERMINAL_VERSION")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(variables: &[(&str, &str)], program: Program, version: Option<Version>) {
        let env = Env::new(variables.iter().copied());
        let detection = crate::detect(&env);
        assert_eq!(detection.identity, Identity { program, version }, "{variables:?}");
    }

    #[test]
    fn terminals_without_term_program() {
        check(&[("TERM", "xterm-kitty")], Program::Kitty, None);
        check(&[("TERM", "foot")], Program::Foot, None);
        check(&[("KONSOLE_VERSION", "241202")], Program::Konsole, Some(Version(24, 12, 2)));
        check(&[("WEZTERM_PANE", "3"), ("TERM", "xterm-256color")], Program::WezTerm, None);
        check(&[("ITERM_SESSION_ID", "w0t0p0")], Program::Iterm2, None);
        check(
            &[("PTYXIS_VERSION", "47.1"), ("VTE_VERSION", "8001"), ("TERM", "xterm-256color")],
            Program::Vte,
            Some(Version(0, 80, 1)),
        );
        check(&[("ALACRITTY_WINDOW_ID", "9"), ("TERM", "xterm-256color")], Program::Alacritty, None);
    }

    #[test]
    fn over_ssh_only_term_and_lc_variables_arrive() {
        let ssh = ("SSH_TTY", "/dev/pts/1");
        check(&[ssh, ("TERM", "foot")], Program::Foot, None);
        check(
            &[ssh, ("TERM", "xterm-256color"), ("LC_TERMINAL", "iTerm2"), ("LC_TERMINAL_VERSION", "3.6.6")],
            Program::Iterm2,
            Some(Version(3, 6, 6)),
        );
    }

    #[test]
    fn a_terminal_started_from_another_is_not_that_other() {
        check(&[("TERM", "alacritty"), ("KONSOLE_VERSION", "241202")], Program::Alacritty, None);
        check(&[("TERM", "foot"), ("TERM_PROGRAM", "vscode")], Program::Foot, None);
    }

    #[test]
    fn a_version_belongs_to_the_program_it_stands_beside() {
        check(
            &[("TERM_PROGRAM", "ghostty"), ("TERM_PROGRAM_VERSION", "1.3.1-tip")],
            Program::Ghostty,
            Some(Version(1, 3, 1)),
        );
        check(
            &[("TERM", "xterm-kitty"), ("TERM_PROGRAM", "x"), ("TERM_PROGRAM_VERSION", "9")],
            Program::Kitty,
            None,
        );
    }

    #[test]
    fn variables_prove_nothing_inside_a_multiplexer() {
        for layer in ["TMUX", "STY", "ZELLIJ"] {
            check(&[(layer, "1"), ("KITTY_WINDOW_ID", "1"), ("TERM", "screen")], Program::Unknown, None);
        }
    }

    #[test]
    fn both_forms_of_xtversion() {
        let check = |text, program, version| {
            assert_eq!(Identity::from_xtversion(text), Identity { program, version }, "{text}");
        };
        check("kitty(0.48.2)", Program::Kitty, Some(Version(0, 48, 2)));
        check("ghostty 1.3.1", Program::Ghostty, Some(Version(1, 3, 1)));
        check("WezTerm 20240203-110809-5046fc22", Program::WezTerm, Some(Version(20_240_203, 110_809, 0)));
        check("foot(1.18.1)", Program::Foot, Some(Version(1, 18, 1)));
        check("VTE(7600)", Program::Vte, Some(Version(0, 76, 0)));
        check("iTerm2 3.6.6", Program::Iterm2, Some(Version(3, 6, 6)));
        check("tmux 3.4", Program::Unknown, Some(Version(3, 4, 0)));
        check("kitty", Program::Kitty, None);
        check("", Program::Unknown, None);
    }

    #[test]
    fn versions_compare_by_number() {
        assert!(Version::parse("0.9.0") < Version::parse("0.36.0"));
        assert_eq!(Version::parse("not a version"), None);
        let is = |program, version, least| Identity { program, version }.at_least(least);
        assert!(is(Program::Kitty, Some(Version(0, 36, 0)), Version(0, 36, 0)));
        assert!(is(Program::Kitty, None, Version(0, 26, 0)) && !is(Program::Kitty, None, Version(0, 36, 0)));
        assert!(!is(Program::Foot, None, Version(1, 18, 0)), "unknown counts as Debian 12's");
        assert!(!is(Program::Ghostty, None, Version(1, 0, 0)), "nothing is assumed of the others");
    }
}
