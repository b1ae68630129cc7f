//! The terminal around a multiplexer: the query for tmux, and the parser of its answer.
//!
//! This crate runs nothing. The caller runs [`tmux_query`] and passes the answer to [`OuterTerminal::from_tmux`].

use crate::identity::{TerminalIdentity, TerminalProgram, split_xtversion};

/// The sequences that tmux passes on to the terminal around it (`allow-passthrough`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passthrough {
    /// Nothing: wrapped sequences disappear.
    Off,
    /// Only from panes that some client is looking at.
    Visible,
    /// From every pane.
    All,
}

/// The terminal around tmux, as tmux knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OuterTerminal {
    /// The name that the client's terminal reports (`kitty`), or its `TERM` if it reports none. Empty if no client is
    /// attached.
    pub name: String,
    /// The program and version behind the name.
    pub identity: TerminalIdentity,
    /// The sequences that are passed on.
    pub passthrough: Passthrough,
    /// True if a client shows the pane's window.
    pub shown: bool,
}

impl OuterTerminal {
    /// Returns true if a wrapped sequence would reach the terminal now.
    pub fn allows_passthrough(&self) -> bool {
        match self.passthrough {
            Passthrough::Off => false,
            Passthrough::Visible => self.shown,
            Passthrough::All => true,
        }
    }

    /// Parses tmux's answer to [`tmux_query`]. `None` if it is not an answer.
    ///
    /// ```
    /// use ringer_term::{OuterTerminal, Passthrough, TerminalProgram};
    ///
    /// let outer = OuterTerminal::from_tmux("kitty(0.48.2)|xterm-kitty|on|1\n").unwrap();
    /// assert_eq!(outer.identity.program, TerminalProgram::Kitty);
    /// assert_eq!(outer.passthrough, Passthrough::Visible);
    /// ```
    pub fn from_tmux(answer: &str) -> Option<Self> {
        let mut fields = answer.trim_end().split('|');
        let (termtype, termname) = (fields.next()?.trim(), fields.next()?.trim());
        let passthrough = match fields.next()?.trim() {
            "0" | "off" => Passthrough::Off,
            "2" | "all" => Passthrough::All,
            // Versions before 3.3 do not have the option and pass everything on, as `on` does now.
            _ => Passthrough::Visible,
        };
        let shown = fields.next().is_none_or(|clients| clients.trim() != "0");
        let by_type = TerminalIdentity::from_xtversion(termtype);
        let identity = if by_type.program == TerminalProgram::Unknown {
            TerminalIdentity { program: TerminalProgram::named(termname), version: None }
        } else {
            by_type
        };
        let name = if termtype.is_empty() { termname } else { split_xtversion(termtype).0 };
        Some(Self { name: name.to_owned(), identity, passthrough, shown })
    }
}

/// The arguments of a tmux command that asks about the terminal around a pane (`$TMUX_PANE`).
pub fn tmux_query(pane: Option<&str>) -> Vec<String> {
    let format = "#{client_termtype}|#{client_termname}|#{allow-passthrough}|#{window_active_clients}";
    let mut arguments = vec!["display-message", "-p"];
    if let Some(pane) = pane {
        arguments.extend(["-t", pane]);
    }
    arguments.push(format);
    arguments.into_iter().map(str::to_owned).collect()
}

/// The arguments that ask macOS whether Terminal.app's bell is switched off in the profile of the front window.
///
/// The script is constant and contains no text from outside. Not tested on a Mac.
pub fn apple_bell_query() -> [&'static str; 5] {
    [
        "osascript",
        "-l",
        "JavaScript",
        "-e",
        "ObjC.import('Foundation');\
         const profile = Application('Terminal').windows[0].currentSettings.name();\
         const defaults = $.NSUserDefaults.alloc.initWithSuiteName('com.apple.Terminal');\
         const profiles = ObjC.deepUnwrap(defaults.objectForKey('Window Settings')) || {};\
         const bell = (profiles[profile] || {}).Bell;\
         bell === false || bell === 0 ? 'disabled' : 'enabled'",
    ]
}

/// Terminal.app's bell setting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AppleBell {
    /// Switched off in the profile.
    Disabled,
    /// On, or unknown.
    #[default]
    NotDisabled,
}

impl AppleBell {
    /// Parses the answer to [`apple_bell_query`]; anything unclear counts as not disabled.
    pub fn from_answer(answer: &str) -> Self {
        if answer.trim() == "disabled" { Self::Disabled } else { Self::NotDisabled }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Version;

    fn check(answer: &str, name: &str, program: TerminalProgram, passthrough: Passthrough) -> OuterTerminal {
        let outer = OuterTerminal::from_tmux(answer).unwrap();
        assert_eq!((outer.name.as_str(), outer.identity.program), (name, program), "{answer}");
        assert_eq!(outer.passthrough, passthrough, "{answer}");
        outer
    }

    #[test]
    fn both_spellings_of_passthrough() {
        for (word, expected) in [
            ("0", Passthrough::Off),
            ("1", Passthrough::Visible),
            ("2", Passthrough::All),
            ("off", Passthrough::Off),
            ("on", Passthrough::Visible),
            ("all", Passthrough::All),
            ("", Passthrough::Visible),
        ] {
            check(&format!("kitty(0.48.2)|xterm-kitty|{word}"), "kitty", TerminalProgram::Kitty, expected);
        }
    }

    #[test]
    fn both_forms_of_termtype_and_none() {
        let outer = check(
            "ghostty 1.3.1|xterm-ghostty|1|1",
            "ghostty",
            TerminalProgram::Ghostty,
            Passthrough::Visible,
        );
        assert_eq!(outer.identity.version, Some(Version(1, 3, 1)));
        check("|xterm-kitty|2|1", "xterm-kitty", TerminalProgram::Kitty, Passthrough::All);
        check("|xterm-256color|1|1", "xterm-256color", TerminalProgram::Unknown, Passthrough::Visible);
        // No client attached.
        check("||1|0", "", TerminalProgram::Unknown, Passthrough::Visible);
    }

    #[test]
    fn a_hidden_window_needs_all() {
        let shown = |answer| OuterTerminal::from_tmux(answer).unwrap().allows_passthrough();
        assert!(shown("k|k|1|1") && !shown("k|k|1|0") && shown("k|k|2|0") && !shown("k|k|0|1"));
    }

    #[test]
    fn invalid_answers_are_rejected() {
        assert_eq!(OuterTerminal::from_tmux("no server running on /tmp/tmux-0/default"), None);
        assert_eq!(OuterTerminal::from_tmux(""), None);
        assert_eq!(AppleBell::from_answer("execution error: -1743"), AppleBell::NotDisabled);
        assert_eq!(AppleBell::from_answer("disabled\n"), AppleBell::Disabled);
    }

    #[test]
    fn the_query_names_the_pane() {
        assert_eq!(tmux_query(Some("%3"))[..4], ["display-message", "-p", "-t", "%3"]);
        assert_eq!(tmux_query(None).len(), 3);
    }
}
