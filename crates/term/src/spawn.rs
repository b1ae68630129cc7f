//! The environment for an agent that runs in an embedded terminal.

use crate::env::Env;

/// The terminal as which the embedder presents itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum EmulatedTerminal {
    /// OSC 99, the richest protocol.
    #[default]
    Kitty,
    /// OSC 777.
    Ghostty,
    /// OSC 9 and progress.
    Iterm2,
}

impl EmulatedTerminal {
    fn term_program(self) -> &'static str {
        match self {
            Self::Kitty => "kitty",
            Self::Ghostty => "ghostty",
            Self::Iterm2 => "iTerm.app",
        }
    }

    /// The answer to XTVERSION (`CSI > q`), the same as the real terminal's. An embedder that presents itself as this terminal
    /// must send it.
    ///
    /// ```
    /// assert_eq!(ringer_term::EmulatedTerminal::Kitty.version_reply(), "\x1bP>|kitty(0.48.2)\x1b\\");
    /// ```
    pub fn version_reply(self) -> String {
        let version = self.term_program_version();
        let text = match self {
            Self::Kitty => format!("kitty({version})"),
            Self::Ghostty => format!("ghostty {version}"),
            Self::Iterm2 => format!("iTerm2 {version}"),
        };
        format!("\x1bP>|{text}\x1b\\")
    }

    /// A version that supports the sequences. Without a version, clients assume an old one.
    fn term_program_version(self) -> &'static str {
        match self {
            Self::Kitty => "0.48.2",
            Self::Ghostty => "1.3.1",
            Self::Iterm2 => "3.6.6",
        }
    }
}

/// The location of the agent, for the notifications that it sends.
#[derive(Debug, Clone, Copy, Default)]
pub struct SpawnLocation<'a> {
    /// The workspace's id.
    pub workspace: Option<&'a str>,
    /// The surface's id.
    pub surface: Option<&'a str>,
    /// The hub's socket.
    pub socket: Option<&'a str>,
}

/// Variables of the outer terminal that take precedence over `TERM_PROGRAM`, or that name another terminal or pane.
const FOREIGN_VARIABLES: [&str; 34] = [
    "CURSOR_TRACE_ID",
    "VSCODE_GIT_ASKPASS_MAIN",
    "__CFBundleIdentifier",
    "TERMINAL_EMULATOR",
    "TERM_PROGRAM_VERSION",
    "KONSOLE_VERSION",
    "KONSOLE_DBUS_SESSION",
    "KONSOLE_DBUS_WINDOW",
    "GNOME_TERMINAL_SERVICE",
    "GNOME_TERMINAL_SCREEN",
    "XTERM_VERSION",
    "VTE_VERSION",
    "PTYXIS_VERSION",
    "TERMINATOR_UUID",
    "KITTY_WINDOW_ID",
    "KITTY_PID",
    "KITTY_LISTEN_ON",
    "GHOSTTY_RESOURCES_DIR",
    "GHOSTTY_BIN_DIR",
    "ALACRITTY_LOG",
    "ALACRITTY_SOCKET",
    "ALACRITTY_WINDOW_ID",
    "TILIX_ID",
    "WT_SESSION",
    "ConEmuANSI",
    "ConEmuPID",
    "ConEmuTask",
    "ITERM_SESSION_ID",
    "LC_TERMINAL",
    "LC_TERMINAL_VERSION",
    "WEZTERM_PANE",
    "WEZTERM_EXECUTABLE",
    "WEZTERM_UNIX_SOCKET",
    "WINDOWID",
];

/// The variables of multiplexers around the process.
const MULTIPLEXER_VARIABLES: [&str; 7] =
    ["TMUX", "TMUX_PANE", "STY", "WINDOW", "ZELLIJ", "ZELLIJ_PANE_ID", "ZELLIJ_SESSION_NAME"];

/// Changes to the environment of a program whose notifications are read on their way to the real terminal: variables with
/// their value, or with `None` to remove them. The program then detects the emulated terminal.
///
/// Unlike [`spawn_env`], this leaves `TERM` and the variables of multiplexers alone. The program draws on the real terminal,
/// so it needs that terminal's capabilities, and what it sends through a multiplexer must be wrapped for it.
///
/// ```
/// use ringer_term::{identity_variables, EmulatedTerminal};
///
/// let changes: Vec<_> = identity_variables(EmulatedTerminal::Kitty).collect();
/// assert!(changes.contains(&("TERM_PROGRAM", Some("kitty"))));
/// assert!(changes.contains(&("KONSOLE_VERSION", None)));
/// assert!(changes.iter().all(|(name, _)| *name != "TERM" && *name != "TMUX"));
/// ```
pub fn identity_variables(
    flavour: EmulatedTerminal,
) -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
    let set = [
        ("TERM_PROGRAM", Some(flavour.term_program())),
        ("TERM_PROGRAM_VERSION", Some(flavour.term_program_version())),
    ];
    FOREIGN_VARIABLES.into_iter().map(|name| (name, None)).chain(set)
}

/// Returns the environment for an agent in an embedded terminal. The agent detects the emulated terminal, whatever the outer
/// one is.
///
/// `TERM` stays neutral, because one that names a terminal would take precedence. `TERM_PROGRAM` always names a known
/// terminal, because Claude Code sends nothing at all to an unknown one.
///
/// ```
/// use ringer_term::{detect, spawn_env, Env, EmulatedTerminal, SpawnLocation};
///
/// let ours = Env::new([("TERM", "xterm-ghostty"), ("TMUX", "/tmp/x,1,0"), ("HOME", "/h")]);
/// let env = spawn_env(&ours, EmulatedTerminal::Kitty, SpawnLocation { surface: Some("ws:1"), ..SpawnLocation::default() });
/// assert_eq!(detect(&env).terminal.as_deref(), Some("kitty"));
/// assert_eq!((env.get("HOME"), env.get("RINGER_SURFACE")), (Some("/h"), Some("ws:1")));
/// ```
pub fn spawn_env(base: &Env, flavour: EmulatedTerminal, place: SpawnLocation<'_>) -> Env {
    let mut env = base.clone();
    for name in MULTIPLEXER_VARIABLES {
        env.remove(name);
    }
    for (name, value) in identity_variables(flavour) {
        match value {
            Some(value) => env.set(name, value),
            None => env.remove(name),
        }
    }
    env.set("TERM", "xterm-256color");
    for (name, value) in [
        ("RINGER_WORKSPACE", place.workspace),
        ("RINGER_SURFACE", place.surface),
        ("RINGER_SOCKET", place.socket),
    ] {
        match value {
            Some(value) => env.set(name, value),
            None => env.remove(name),
        }
    }
    env.tty(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{Channel, Method, choose_method};
    use crate::detect::detect;
    use crate::identity::{TerminalIdentity, identify};
    use crate::outer::AppleBell;
    use proptest::prelude::*;

    const EVERY_DETECTED: [&str; 12] = [
        "CURSOR_TRACE_ID",
        "VSCODE_GIT_ASKPASS_MAIN",
        "__CFBundleIdentifier",
        "TERMINAL_EMULATOR",
        "TERM",
        "TERM_PROGRAM",
        "TMUX",
        "STY",
        "ZELLIJ",
        "WSL_DISTRO_NAME",
        "SSH_TTY",
        "MSYSTEM",
    ];

    proptest! {
        #[test]
        fn the_emulated_terminal_overrides_the_outer_one(
            names in prop::collection::vec(prop::sample::select([&FOREIGN_VARIABLES[..], &MULTIPLEXER_VARIABLES[..], &EVERY_DETECTED[..]].concat()), 0..20),
            value in prop::sample::select(vec!["1", "cursor", "xterm-ghostty", "xterm-kitty", "com.apple.Terminal", "JetBrains-JediTerm"]),
        ) {
            let base = Env::new(names.iter().map(|name| (*name, value)));
            for (flavour, terminal, method) in [
                (EmulatedTerminal::Kitty, "kitty", Method::Kitty),
                (EmulatedTerminal::Ghostty, "ghostty", Method::Ghostty),
                (EmulatedTerminal::Iterm2, "iTerm.app", Method::Iterm2),
            ] {
                let detection = detect(&spawn_env(&base, flavour, SpawnLocation::default()));
                prop_assert_eq!(detection.terminal.as_deref(), Some(terminal));
                prop_assert!(detection.multiplexers.is_empty());
                for channel in [Channel::Auto, Channel::Compatible] {
                    prop_assert_eq!(choose_method(channel, &detection, AppleBell::default()).method, method);
                }
            }
        }
    }

    #[test]
    fn version_replies_match_the_environment() {
        for flavour in [EmulatedTerminal::Kitty, EmulatedTerminal::Ghostty, EmulatedTerminal::Iterm2] {
            let env = spawn_env(&Env::default(), flavour, SpawnLocation::default());
            let reply = flavour.version_reply();
            let text = reply.strip_prefix("\x1bP>|").and_then(|reply| reply.strip_suffix("\x1b\\"));
            assert_eq!(TerminalIdentity::from_xtversion(text.unwrap()), identify(&env, None));
        }
    }

    #[test]
    fn a_foreign_location_does_not_leak_in() {
        let base = Env::new([("RINGER_SURFACE", "ws:outer"), ("RINGER_SOCKET", "/old")]);
        let env = spawn_env(
            &base,
            EmulatedTerminal::Kitty,
            SpawnLocation { socket: Some("/new"), ..SpawnLocation::default() },
        );
        assert_eq!((env.get("RINGER_SURFACE"), env.get("RINGER_SOCKET")), (None, Some("/new")));
    }
}
