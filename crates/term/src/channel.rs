//! Chooses the sequence that notifies the person in a given terminal, and encodes it.

use std::str::FromStr;

use crate::detect::Detection;
use crate::encode::{BEL, Terminator, osc9, osc777};
use crate::identity::{TerminalProgram, Version};
use crate::multiplexer::{Multiplexer, wrap};
use crate::osc99::{NotificationId, Osc99Message, Urgency};
use crate::outer::{AppleBell, OuterTerminal};

/// The configured channel (`preferred_channel`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Channel {
    /// The best method that this terminal is known to support; a bell if it is unknown.
    #[default]
    Auto,
    /// The behaviour of Claude Code's `auto`, even where it sends nothing.
    Compatible,
    /// OSC 9.
    Iterm2,
    /// OSC 9 and a bell.
    Iterm2WithBell,
    /// OSC 99.
    Kitty,
    /// OSC 777.
    Ghostty,
    /// A bell.
    TerminalBell,
    /// Nothing.
    NotificationsDisabled,
}

/// Every channel with its name, for help texts and errors.
pub const CHANNELS: [(&str, Channel); 8] = [
    ("auto", Channel::Auto),
    ("compatible", Channel::Compatible),
    ("iterm2", Channel::Iterm2),
    ("iterm2_with_bell", Channel::Iterm2WithBell),
    ("kitty", Channel::Kitty),
    ("ghostty", Channel::Ghostty),
    ("terminal_bell", Channel::TerminalBell),
    ("notifications_disabled", Channel::NotificationsDisabled),
];

impl Channel {
    /// The name used in configuration and output.
    pub fn as_str(self) -> &'static str {
        CHANNELS.iter().find(|(_, own)| *own == self).map_or("", |(name, _)| name)
    }
}

/// There is no channel with this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown channel {0:?}")]
pub struct UnknownChannel(pub String);

impl FromStr for Channel {
    type Err = UnknownChannel;

    fn from_str(name: &str) -> Result<Self, UnknownChannel> {
        CHANNELS
            .iter()
            .find(|(own, _)| *own == name)
            .map(|(_, channel)| *channel)
            .ok_or_else(|| UnknownChannel(name.to_owned()))
    }
}

/// A way to notify the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Method {
    /// OSC 9.
    Iterm2,
    /// OSC 9 and a bell.
    Iterm2WithBell,
    /// OSC 99.
    Kitty,
    /// OSC 777.
    Ghostty,
    /// A bell.
    TerminalBell,
    /// Notifications are disabled.
    Disabled,
    /// Compatible mode has no method for this terminal.
    NoMethodAvailable,
}

impl Method {
    /// The name used in output and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Iterm2 => "iterm2",
            Self::Iterm2WithBell => "iterm2_with_bell",
            Self::Kitty => "kitty",
            Self::Ghostty => "ghostty",
            Self::TerminalBell => "terminal_bell",
            Self::Disabled => "disabled",
            Self::NoMethodAvailable => "no_method_available",
        }
    }

    /// Returns true if the method needs a sequence that a multiplexer may drop.
    fn needs_passthrough(self) -> bool {
        matches!(self, Self::Iterm2 | Self::Iterm2WithBell | Self::Kitty | Self::Ghostty)
    }
}

/// A method, and why it was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodChoice {
    /// The method.
    pub method: Method,
    /// The reason, as text for the trail.
    pub reason: String,
}

impl MethodChoice {
    fn new(method: Method, reason: impl Into<String>) -> Self {
        Self { method, reason: reason.into() }
    }
}

/// Chooses the method to notify through a terminal.
///
/// ```
/// use ringer_term::{choose_method, detect, AppleBell, Channel, Env, Method};
///
/// let detection = detect(&Env::new([("TERM", "foot")]));
/// assert_eq!(choose_method(Channel::Auto, &detection, AppleBell::default()).method, Method::Ghostty, "any version takes OSC 777");
/// assert_eq!(choose_method(Channel::Compatible, &detection, AppleBell::default()).method, Method::NoMethodAvailable);
/// ```
pub fn choose_method(channel: Channel, detection: &Detection, apple_bell: AppleBell) -> MethodChoice {
    let asked = |method| MethodChoice::new(method, format!("asked for: {}", channel.as_str()));
    let choice = match channel {
        Channel::Auto => automatic(detection),
        Channel::Compatible => compatible(detection, apple_bell),
        Channel::Iterm2 => asked(Method::Iterm2),
        Channel::Iterm2WithBell => asked(Method::Iterm2WithBell),
        Channel::Kitty => asked(Method::Kitty),
        Channel::Ghostty => asked(Method::Ghostty),
        Channel::TerminalBell => asked(Method::TerminalBell),
        Channel::NotificationsDisabled => asked(Method::Disabled),
    };
    match detection.passthrough_problem() {
        Some(why) if choice.method.needs_passthrough() => {
            MethodChoice::new(Method::TerminalBell, format!("{}, but {why}: using the bell", choice.reason))
        }
        _ => choice,
    }
}

/// Claude Code's own table.
fn compatible(detection: &Detection, apple_bell: AppleBell) -> MethodChoice {
    let name = detection.terminal.as_deref();
    let method = match name {
        Some("iTerm.app") => Method::Iterm2,
        Some("kitty") => Method::Kitty,
        Some("ghostty") => Method::Ghostty,
        // The rule looks inverted. It is kept because this mode is compatible with Claude Code.
        Some("Apple_Terminal") if apple_bell == AppleBell::Disabled => Method::TerminalBell,
        _ => Method::NoMethodAvailable,
    };
    MethodChoice::new(method, format!("compatible table, terminal {}", name.unwrap_or("unknown")))
}

/// Covers more terminals than the compatible table, which sends nothing to those it does not know.
fn automatic(detection: &Detection) -> MethodChoice {
    let identity = &detection.identity;
    let method = match identity.program {
        _ if detection.knows_osc99 => Method::Kitty,
        TerminalProgram::Kitty if identity.at_least(Version(0, 36, 0)) => Method::Kitty,
        TerminalProgram::Foot if identity.at_least(Version(1, 18, 0)) => Method::Kitty,
        TerminalProgram::Konsole if identity.at_least(Version(24, 12, 0)) => Method::Kitty,
        TerminalProgram::VsCode => Method::Kitty,
        TerminalProgram::Ghostty
        | TerminalProgram::WezTerm
        | TerminalProgram::Warp
        | TerminalProgram::Kitty
        | TerminalProgram::Foot => Method::Ghostty,
        TerminalProgram::Iterm2 => Method::Iterm2,
        _ => Method::TerminalBell,
    };
    let reason = match (&detection.outer, detection.multiplexers.first()) {
        (Some(OuterTerminal { name, .. }), _) if name.is_empty() => {
            "no terminal is attached to tmux".to_owned()
        }
        (Some(OuterTerminal { name, .. }), _) => format!("tmux reports the outer terminal {name}"),
        (None, Some(layer)) => format!("inside {}, which hides the outer terminal", layer.as_str()),
        (None, None) if identity.program == TerminalProgram::Unknown => "terminal not recognised".to_owned(),
        (None, None) => format!("the terminal is {identity}"),
    };
    MethodChoice::new(method, reason)
}

/// A notification for the terminal to show.
#[derive(Debug, Clone, Copy)]
pub struct OutgoingNotification<'a> {
    /// Used by OSC 99: a notification with the same id updates the first.
    pub id: &'a NotificationId,
    /// The sender, or the subject.
    pub title: Option<&'a str>,
    /// The text.
    pub body: &'a str,
    /// Used by OSC 99.
    pub urgency: Urgency,
    /// The name of an icon. Used by OSC 99.
    pub icon: Option<&'a str>,
}

impl OutgoingNotification<'_> {
    /// Returns the bytes for a method, wrapped for the multiplexers in between (nearest first). Write them at once.
    ///
    /// Empty for the methods that send nothing.
    pub fn encode(&self, method: Method, layers: &[Multiplexer]) -> Vec<u8> {
        let end = Terminator::inside(layers);
        let wrapped = |sequence: String| wrap(sequence.as_bytes(), layers);
        match method {
            Method::Iterm2 => wrapped(osc9(self.title, self.body, end)),
            Method::Iterm2WithBell => {
                [wrapped(osc9(self.title, self.body, end)).as_slice(), BEL.as_bytes()].concat()
            }
            Method::Kitty => wrapped(self.message99().encode(end)),
            Method::Ghostty => wrapped(osc777(self.title, self.body, end)),
            Method::TerminalBell => BEL.into(),
            Method::Disabled | Method::NoMethodAvailable => Vec::new(),
        }
    }

    fn message99(&self) -> Osc99Message<'_> {
        let title = self.title.unwrap_or_default();
        let icons = self.icon.as_slice();
        Osc99Message { title, body: self.body, urgency: self.urgency, icons, ..Osc99Message::new(self.id) }
    }
}

#[cfg(test)]
mod tests {
    use crate::detect::detect;
    use crate::env::Env;

    use super::*;

    fn check(variables: &[(&str, &str)], auto: Method, compatible: Method) {
        let detection = detect(&Env::new(variables.iter().copied()));
        let chosen = |channel| choose_method(channel, &detection, AppleBell::default()).method;
        assert_eq!((chosen(Channel::Auto), chosen(Channel::Compatible)), (auto, compatible), "{variables:?}");
    }

    #[test]
    fn the_table_of_terminals() {
        use Method::{Ghostty, Iterm2, Kitty, NoMethodAvailable, TerminalBell};
        check(&[("TERM", "xterm-kitty")], Ghostty, Kitty);
        check(&[("TERM_PROGRAM", "kitty"), ("TERM_PROGRAM_VERSION", "0.36.0")], Kitty, Kitty);
        check(&[("TERM_PROGRAM", "kitty"), ("TERM_PROGRAM_VERSION", "0.35.2")], Ghostty, Kitty);
        check(&[("TERM", "foot")], Ghostty, NoMethodAvailable);
        check(&[("TERM_PROGRAM", "foot"), ("TERM_PROGRAM_VERSION", "1.18.0")], Kitty, NoMethodAvailable);
        check(&[("TERM_PROGRAM", "foot"), ("TERM_PROGRAM_VERSION", "1.17.2")], Ghostty, NoMethodAvailable);
        check(&[("KONSOLE_VERSION", "241200")], Kitty, NoMethodAvailable);
        check(&[("KONSOLE_VERSION", "240802")], TerminalBell, NoMethodAvailable);
        check(&[("TERM_PROGRAM", "vscode")], Kitty, NoMethodAvailable);
        check(&[("TERM", "xterm-ghostty")], Ghostty, Ghostty);
        check(&[("TERM_PROGRAM", "WezTerm")], Ghostty, NoMethodAvailable);
        check(&[("TERM_PROGRAM", "WarpTerminal")], Ghostty, NoMethodAvailable);
        check(&[("TERM_PROGRAM", "iTerm.app")], Iterm2, Iterm2);
        check(&[("TERM_PROGRAM", "Apple_Terminal")], TerminalBell, NoMethodAvailable);
        check(&[("TERM", "xterm-256color")], TerminalBell, NoMethodAvailable);
        check(&[], TerminalBell, NoMethodAvailable);
        // Variables that leaked into a multiplexer prove nothing.
        check(
            &[("TMUX", "1"), ("KITTY_WINDOW_ID", "1"), ("TERM", "tmux-256color")],
            TerminalBell,
            NoMethodAvailable,
        );
    }

    #[test]
    fn apple_terminal_by_its_bell_setting() {
        let detection = detect(&Env::new([("TERM_PROGRAM", "Apple_Terminal")]));
        let chosen = |bell| choose_method(Channel::Compatible, &detection, bell).method;
        assert_eq!(chosen(AppleBell::Disabled), Method::TerminalBell);
        assert_eq!(chosen(AppleBell::NotDisabled), Method::NoMethodAvailable);
    }

    #[test]
    fn a_configured_channel_overrides_detection() {
        let detection = detect(&Env::new([("TERM", "xterm-kitty")]));
        for (channel, method) in [
            (Channel::Iterm2, Method::Iterm2),
            (Channel::Iterm2WithBell, Method::Iterm2WithBell),
            (Channel::Kitty, Method::Kitty),
            (Channel::Ghostty, Method::Ghostty),
            (Channel::TerminalBell, Method::TerminalBell),
            (Channel::NotificationsDisabled, Method::Disabled),
        ] {
            assert_eq!(choose_method(channel, &detection, AppleBell::default()).method, method);
        }
    }

    #[test]
    fn inside_tmux_the_outer_terminal_decides() {
        let chosen = |answer: &str, channel| {
            let inside = detect(&Env::new([("TMUX", "1"), ("TERM", "tmux-256color")]));
            choose_method(
                channel,
                &inside.with_outer_terminal(OuterTerminal::from_tmux(answer).unwrap()),
                AppleBell::default(),
            )
        };
        assert_eq!(chosen("kitty(0.48.2)|xterm-kitty|on|1", Channel::Auto).method, Method::Kitty);
        assert_eq!(chosen("ghostty 1.3.1|xterm-ghostty|all|0", Channel::Auto).method, Method::Ghostty);
        let off = chosen("kitty(0.48.2)|xterm-kitty|off|1", Channel::Auto);
        assert_eq!(off.method, Method::TerminalBell);
        assert!(off.reason.contains("allow-passthrough"), "{}", off.reason);
        assert_eq!(chosen("kitty(0.48.2)|xterm-kitty|on|0", Channel::Kitty).method, Method::TerminalBell);
        assert_eq!(
            chosen("kitty(0.48.2)|xterm-kitty|off|1", Channel::NotificationsDisabled).method,
            Method::Disabled
        );
    }

    #[test]
    fn names_both_ways() {
        for (name, channel) in CHANNELS {
            assert_eq!(name.parse(), Ok(channel));
            assert_eq!(channel.as_str(), name);
        }
        assert_eq!("pigeon".parse::<Channel>(), Err(UnknownChannel("pigeon".into())));
    }

    #[test]
    fn one_sequence_each_and_the_bell_never_wrapped() {
        let id = NotificationId::new("1").unwrap();
        let notice = OutgoingNotification {
            id: &id,
            title: Some("T"),
            body: "B",
            urgency: Urgency::Normal,
            icon: None,
        };
        let check = |method, layers: &[Multiplexer], expected: &str| {
            let encoded = notice.encode(method, layers);
            assert_eq!(encoded.escape_ascii().to_string(), expected.as_bytes().escape_ascii().to_string());
        };
        let tmux = [Multiplexer::Tmux];
        check(Method::Iterm2, &[], "\x1b]9;T: B\x1b\\");
        check(Method::Iterm2WithBell, &tmux, "\x1bPtmux;\x1b\x1b]9;T: B\x1b\x1b\\\x1b\\\x07");
        check(Method::Ghostty, &[], "\x1b]777;notify;T;B\x1b\\");
        check(Method::Ghostty, &[Multiplexer::Screen], "\x1bP\x1b]777;notify;T;B\x07\x1b\\");
        check(Method::TerminalBell, &tmux, "\x07");
        check(Method::Disabled, &tmux, "");
        check(Method::NoMethodAvailable, &[], "");
        check(
            Method::Kitty,
            &[],
            "\x1b]99;i=1:d=0:p=title;T\x1b\\\x1b]99;i=1:d=0:p=body;B\x1b\\\x1b]99;i=1:d=1:a=focus;\x1b\\",
        );
    }
}
