//! Detects the terminal: the 27 rows that Claude Code checks, in its order, and the facts that its single answer leaves out.

use crate::env::Env;
use crate::identity::{TerminalIdentity, TerminalProgram, identify};
use crate::multiplexer::{Multiplexer, multiplexers};
use crate::outer::{OuterTerminal, Passthrough};

/// The terminal, as far as the environment tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detection {
    /// The compatible answer: what Claude Code would say. `None` only in row 27.
    pub terminal: Option<String>,
    /// Which of the 27 rows matched, counted from 1.
    pub row: u8,
    /// The deciding variable, as `NAME=value`; a description for rows that check no variable.
    pub evidence: String,
    /// The multiplexers around the process, nearest layer first.
    pub multiplexers: Vec<Multiplexer>,
    /// The terminal around the multiplexer, if it was queried; see [`crate::outer`].
    pub outer: Option<OuterTerminal>,
    /// True if the process runs at the far end of an SSH connection.
    pub ssh: bool,
    /// The terminal program behind the environment. Variables prove nothing inside a multiplexer, so there it is
    /// unknown until [`Detection::with_outer_terminal`].
    pub identity: TerminalIdentity,
    /// True if the terminal itself reported support for OSC 99; see [`crate::probe`].
    pub knows_osc99: bool,
}

impl Detection {
    /// Returns true if the nearest terminal saves and restores titles (XTWINOPS 22 and 23), and false if that is unknown: a
    /// terminal that does not restore the title would keep the mark for ever.
    pub fn restores_titles(&self) -> bool {
        use TerminalProgram::{Alacritty, Foot, Iterm2, Kitty, Vte};
        match self.multiplexers.first() {
            Some(multiplexer) => *multiplexer == Multiplexer::Tmux,
            None => matches!(self.identity.program, Alacritty | Foot | Iterm2 | Kitty | Vte),
        }
    }

    /// Adds the terminal's own answer to a [`crate::probe::Probe`]. An unknown name does not override the environment.
    pub fn with_probe_reply(mut self, identity: TerminalIdentity, knows_osc99: bool) -> Self {
        if identity.program != TerminalProgram::Unknown {
            let told = self.identity.version.filter(|_| self.identity.program == identity.program);
            self.identity = TerminalIdentity { version: identity.version.or(told), ..identity };
        }
        self.knows_osc99 = knows_osc99;
        self
    }

    /// Adds the multiplexer's answer about the terminal around it.
    pub fn with_outer_terminal(mut self, outer: OuterTerminal) -> Self {
        self.identity = outer.identity;
        self.outer = Some(outer);
        self
    }

    /// Returns why a wrapped sequence would not pass through tmux; `None` if it would, or if tmux did not answer.
    pub fn passthrough_problem(&self) -> Option<&'static str> {
        let outer = self.outer.as_ref().filter(|_| self.multiplexers.contains(&Multiplexer::Tmux))?;
        match outer.passthrough {
            _ if outer.allows_passthrough() => None,
            Passthrough::Off => {
                Some("tmux lets nothing through (add `set -g allow-passthrough on` to tmux.conf)")
            }
            _ => Some(
                "no terminal shows this tmux window, and tmux lets nothing through from there \
                 (from tmux 3.4 on, `set -g allow-passthrough all` does)",
            ),
        }
    }
}

/// Detects the terminal by the first matching row. Multiplexers and SSH are reported in addition.
///
/// ```
/// use ringer_term::{detect, Env};
///
/// let env = Env::new([("TERM_PROGRAM", "ghostty"), ("KITTY_WINDOW_ID", "1")]);
/// let detection = detect(&env);
/// assert_eq!(detection.terminal.as_deref(), Some("ghostty"));
/// assert_eq!((detection.row, detection.evidence.as_str()), (7, "TERM_PROGRAM=ghostty"));
/// ```
pub fn detect(env: &Env) -> Detection {
    let (row, answer) = (1u8..)
        .zip(ROWS)
        .find_map(|(number, row)| row(env).map(|answer| (number, answer)))
        .unwrap_or((FALLBACK_ROW, Answer::unknown()));
    let multiplexers = multiplexers(env);
    let identity = if multiplexers.is_empty() {
        identify(env, answer.terminal.as_deref())
    } else {
        TerminalIdentity::default()
    };
    Detection {
        terminal: answer.terminal,
        row,
        evidence: answer.evidence,
        multiplexers,
        outer: None,
        ssh: ssh_evidence(env).is_some(),
        identity,
        knows_osc99: false,
    }
}

struct Answer {
    terminal: Option<String>,
    evidence: String,
}

impl Answer {
    #[expect(clippy::unnecessary_wraps, reason = "every row gives an `Option`")]
    fn new(terminal: impl Into<String>, evidence: impl Into<String>) -> Option<Self> {
        Some(Self { terminal: Some(terminal.into()), evidence: evidence.into() })
    }

    fn unknown() -> Self {
        Self { terminal: None, evidence: "no environment variable names a terminal".to_owned() }
    }
}

const FALLBACK_ROW: u8 = 27;

/// Rows 1 to 26, in order; row 27 is the fallback.
const ROWS: [fn(&Env) -> Option<Answer>; 26] = [
    |env| set(env, "CURSOR_TRACE_ID", "cursor"),
    |env| containing(env, "VSCODE_GIT_ASKPASS_MAIN", &["cursor", "windsurf", "antigravity"]),
    bundle,
    |env| equal(env, "TERMINAL_EMULATOR", "JetBrains-JediTerm", "pycharm"),
    |env| equal(env, "TERM", "xterm-ghostty", "ghostty"),
    |env| containing(env, "TERM", &["kitty"]),
    |env| env.get("TERM_PROGRAM").and_then(|name| Answer::new(name, named("TERM_PROGRAM", name))),
    |env| set(env, "TMUX", "tmux"),
    |env| set(env, "STY", "screen"),
    |env| set(env, "KONSOLE_VERSION", "konsole"),
    |env| set(env, "GNOME_TERMINAL_SERVICE", "gnome-terminal"),
    |env| set(env, "XTERM_VERSION", "xterm"),
    |env| set(env, "VTE_VERSION", "vte-based"),
    |env| set(env, "TERMINATOR_UUID", "terminator"),
    |env| set(env, "KITTY_WINDOW_ID", "kitty"),
    |env| set(env, "ALACRITTY_LOG", "alacritty"),
    |env| set(env, "TILIX_ID", "tilix"),
    |env| set(env, "WT_SESSION", "windows-terminal"),
    |env| env.get("SESSIONNAME").and_then(|_| equal(env, "TERM", "cygwin", "cygwin")),
    |env| env.get("MSYSTEM").and_then(|name| Answer::new(name.to_lowercase(), named("MSYSTEM", name))),
    |env| ["ConEmuANSI", "ConEmuPID", "ConEmuTask"].iter().find_map(|name| set(env, name, "conemu")),
    |env| {
        let name = env.get("WSL_DISTRO_NAME")?;
        Answer::new(format!("wsl-{name}"), named("WSL_DISTRO_NAME", name))
    },
    |env| ssh_evidence(env).and_then(|evidence| Answer::new("ssh-session", evidence)),
    |env| containing(env, "TERM", &["alacritty", "rxvt", "termite", "foot"]),
    |env| env.get("TERM").and_then(|name| Answer::new(name, named("TERM", name))),
    |env| {
        if env.stdout_is_tty() {
            None
        } else {
            Answer::new("non-interactive", "standard output is not a terminal")
        }
    },
];

/// macOS sets this variable to the application that started the program.
const BUNDLES: [(&str, &str); 6] = [
    ("com.googlecode.iterm2", "iTerm.app"),
    ("com.apple.Terminal", "Apple_Terminal"),
    ("com.mitchellh.ghostty", "ghostty"),
    ("net.kovidgoyal.kitty", "kitty"),
    ("dev.warp.Warp-Stable", "WarpTerminal"),
    ("com.microsoft.VSCode", "vscode"),
];

fn bundle(env: &Env) -> Option<Answer> {
    let id = env.get("__CFBundleIdentifier")?;
    let (_, name) = BUNDLES.iter().find(|(known, _)| *known == id)?;
    Answer::new(*name, named("__CFBundleIdentifier", id))
}

fn set(env: &Env, variable: &str, terminal: &str) -> Option<Answer> {
    let value = env.get(variable)?;
    Answer::new(terminal, named(variable, value))
}

fn equal(env: &Env, variable: &str, expected: &str, terminal: &str) -> Option<Answer> {
    env.get(variable).filter(|value| *value == expected)?;
    Answer::new(terminal, named(variable, expected))
}

fn containing(env: &Env, variable: &str, names: &[&str]) -> Option<Answer> {
    let value = env.get(variable)?;
    let name = names.iter().find(|name| value.contains(**name))?;
    Answer::new(*name, named(variable, value))
}

fn ssh_evidence(env: &Env) -> Option<String> {
    ["SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"]
        .into_iter()
        .find_map(|variable| env.get(variable).map(|value| named(variable, value)))
}

fn named(variable: &str, value: &str) -> String {
    format!("{variable}={value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(variables: &[(&str, &str)], row: u8, terminal: &str) {
        let detection = detect(&Env::new(variables.iter().copied()));
        assert_eq!((detection.row, detection.terminal.as_deref()), (row, Some(terminal)), "{variables:?}");
        assert!(!detection.evidence.is_empty());
    }

    #[test]
    fn every_row_matches() {
        let askpass = "VSCODE_GIT_ASKPASS_MAIN";
        check(&[("CURSOR_TRACE_ID", "x")], 1, "cursor");
        check(&[(askpass, "/opt/cursor/askpass.js")], 2, "cursor");
        check(&[(askpass, "/opt/windsurf/askpass.js")], 2, "windsurf");
        check(&[(askpass, "/opt/antigravity/askpass.js")], 2, "antigravity");
        check(&[("TERMINAL_EMULATOR", "JetBrains-JediTerm")], 4, "pycharm");
        check(&[("TERM", "xterm-ghostty")], 5, "ghostty");
        check(&[("TERM", "xterm-kitty")], 6, "kitty");
        check(&[("TERM_PROGRAM", "WezTerm")], 7, "WezTerm");
        check(&[("TMUX", "/tmp/tmux-0/default,1,0")], 8, "tmux");
        check(&[("STY", "1.pts-0.host")], 9, "screen");
        check(&[("KONSOLE_VERSION", "241202")], 10, "konsole");
        check(&[("GNOME_TERMINAL_SERVICE", ":1.5")], 11, "gnome-terminal");
        check(&[("XTERM_VERSION", "XTerm(390)")], 12, "xterm");
        check(&[("VTE_VERSION", "7600")], 13, "vte-based");
        check(&[("TERMINATOR_UUID", "urn:uuid:1")], 14, "terminator");
        check(&[("KITTY_WINDOW_ID", "1")], 15, "kitty");
        check(&[("ALACRITTY_LOG", "/tmp/a.log")], 16, "alacritty");
        check(&[("TILIX_ID", "1")], 17, "tilix");
        check(&[("WT_SESSION", "1")], 18, "windows-terminal");
        check(&[("SESSIONNAME", "Console"), ("TERM", "cygwin")], 19, "cygwin");
        check(&[("MSYSTEM", "MINGW64")], 20, "mingw64");
        for name in ["ConEmuANSI", "ConEmuPID", "ConEmuTask"] {
            check(&[(name, "1")], 21, "conemu");
        }
        check(&[("WSL_DISTRO_NAME", "Debian")], 22, "wsl-Debian");
        for name in ["SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"] {
            check(&[(name, "1")], 23, "ssh-session");
        }
        for name in ["alacritty", "rxvt", "termite", "foot"] {
            check(&[("TERM", &format!("x-{name}-256color"))], 24, name);
        }
        check(&[("TERM", "xterm-256color")], 25, "xterm-256color");
        check(&[], 26, "non-interactive");
    }

    #[test]
    fn row_27_has_no_name() {
        let detection = detect(&Env::default().tty(true));
        assert_eq!((detection.row, detection.terminal), (27, None));
    }

    #[test]
    fn every_bundle_id_is_row_3() {
        for (id, name) in BUNDLES {
            check(&[("__CFBundleIdentifier", id), ("TERM_PROGRAM", "other")], 3, name);
        }
        check(&[("__CFBundleIdentifier", "org.example"), ("TERM_PROGRAM", "other")], 7, "other");
    }

    /// All rows' variables at once; removing the winner lets the next row win, down to the last.
    #[test]
    fn earlier_rows_take_precedence() {
        let mut env = Env::new([
            ("CURSOR_TRACE_ID", "1"),
            ("VSCODE_GIT_ASKPASS_MAIN", "windsurf"),
            ("__CFBundleIdentifier", "net.kovidgoyal.kitty"),
            ("TERMINAL_EMULATOR", "JetBrains-JediTerm"),
            ("TERM_PROGRAM", "WezTerm"),
            ("TMUX", "1"),
            ("STY", "1"),
            ("KONSOLE_VERSION", "1"),
            ("GNOME_TERMINAL_SERVICE", "1"),
            ("XTERM_VERSION", "1"),
            ("VTE_VERSION", "1"),
            ("TERMINATOR_UUID", "1"),
            ("KITTY_WINDOW_ID", "1"),
            ("ALACRITTY_LOG", "1"),
            ("TILIX_ID", "1"),
            ("WT_SESSION", "1"),
            ("SESSIONNAME", "1"),
            ("MSYSTEM", "MSYS"),
            ("ConEmuPID", "1"),
            ("WSL_DISTRO_NAME", "x"),
            ("SSH_TTY", "1"),
            ("TERM", "cygwin"),
        ]);
        let expected: Vec<u8> = (1..=4).chain(7..=23).collect();
        for row in expected {
            let detection = detect(&env);
            assert_eq!(detection.row, row);
            let (winner, _) = detection.evidence.split_once('=').unwrap();
            // Row 19 is decided by a pair; TERM itself has to stay for the rows below.
            let winner = if row == 19 { "SESSIONNAME" } else { winner };
            env.remove(winner);
        }
        assert_eq!(detect(&env).row, 25);
    }

    #[test]
    fn known_traps() {
        // A VTE terminal such as Terminator sets both.
        check(&[("TERMINATOR_UUID", "1"), ("VTE_VERSION", "7600")], 13, "vte-based");
        check(&[("TERM_PROGRAM", "myterm"), ("KITTY_WINDOW_ID", "1")], 7, "myterm");
        check(&[("TERM_PROGRAM", "tmux"), ("TERM", "xterm-kitty")], 6, "kitty");
        // Empty is unset.
        check(&[("CURSOR_TRACE_ID", ""), ("TERM", "linux")], 25, "linux");
    }

    #[test]
    fn ssh_is_a_flag_beside_the_terminal() {
        let detection = detect(&Env::new([("SSH_TTY", "/dev/pts/1"), ("TERM", "xterm-kitty")]));
        assert_eq!((detection.terminal.as_deref(), detection.ssh), (Some("kitty"), true));
        assert!(!detect(&Env::new([("TERM", "xterm-kitty")])).ssh);
    }
}
