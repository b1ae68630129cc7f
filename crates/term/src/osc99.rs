//! OSC 99, kitty's notification protocol: ids, keys and the encoder.
//!
//! [`crate::Scanner`] reads it chunk by chunk; `osc99_assembler.rs` assembles the chunks.

use std::fmt;

use crate::base64;
use crate::encode::{Terminator, osc};
use crate::sanitise::{sanitise_block, sanitise_line};

/// The longest plain payload of a chunk, in bytes; terminals drop longer ones.
pub const MAX_PLAIN: usize = 2048;
/// The longest base64 payload of a chunk, in bytes.
pub const MAX_ENCODED: usize = 4096;

/// The urgency of a notification (`u`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// 0.
    Low,
    /// 1, the default.
    #[default]
    Normal,
    /// 2: stays until it is dismissed.
    Critical,
}

impl Urgency {
    /// The word used in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::Critical => "critical",
        }
    }
}

/// When a notification is shown (`o`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Occasion {
    /// Always.
    #[default]
    Always,
    /// Only while the window does not have the focus.
    Unfocused,
    /// Only while the window is not visible.
    Invisible,
}

impl Occasion {
    /// The word used in the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Unfocused => "unfocused",
            Self::Invisible => "invisible",
        }
    }
}

/// The actions of a click (`a`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Actions {
    /// Brings the window to the front.
    pub focus: bool,
    /// Reports the click to the program with an OSC 99 sequence.
    pub report: bool,
}

impl Default for Actions {
    fn default() -> Self {
        Self { focus: true, report: false }
    }
}

/// A notification to encode as OSC 99, with every key of the protocol.
///
/// ```
/// use ringer_term::{Osc99Message, NotificationId, Terminator};
///
/// let id = NotificationId::new("1234").unwrap();
/// let message = Osc99Message { title: "Claude Code", body: "done", ..Osc99Message::new(&id) };
/// assert_eq!(
///     message.encode(Terminator::St),
///     "\x1b]99;i=1234:d=0:p=title;Claude Code\x1b\\\
///      \x1b]99;i=1234:d=0:p=body;done\x1b\\\
///      \x1b]99;i=1234:d=1:a=focus;\x1b\\"
/// );
/// ```
///
/// Sending another with the same id updates the first.
#[derive(Debug, Clone)]
pub struct Osc99Message<'a> {
    /// One id for all chunks (`i`).
    pub id: &'a NotificationId,
    /// The first line.
    pub title: &'a str,
    /// The text; may have several lines.
    pub body: &'a str,
    /// Buttons, in order.
    pub buttons: &'a [&'a str],
    /// The actions of a click (`a`).
    pub actions: Actions,
    /// When to show it (`o`).
    pub occasion: Occasion,
    /// The urgency (`u`).
    pub urgency: Urgency,
    /// True if the terminal should report when it is closed (`c`).
    pub report_close: bool,
    /// The application's name (`f`).
    pub application: Option<&'a str>,
    /// Names of icons; the first known one is shown (`n`).
    pub icons: &'a [&'a str],
    /// The key under which the terminal caches the icon (`g`).
    pub icon_key: Option<&'a NotificationId>,
    /// The name of a sound: `system`, `silent`, … (`s`).
    pub sound: Option<&'a str>,
    /// The types of the notification, for filters (`t`).
    pub types: &'a [&'a str],
    /// How long it stays, in milliseconds (`w`).
    pub expires_ms: Option<u32>,
}

impl<'a> Osc99Message<'a> {
    /// Creates a notification without text.
    pub fn new(id: &'a NotificationId) -> Self {
        Self {
            id,
            title: "",
            body: "",
            buttons: &[],
            actions: Actions::default(),
            occasion: Occasion::default(),
            urgency: Urgency::default(),
            report_close: false,
            application: None,
            icons: &[],
            icon_key: None,
            sound: None,
            types: &[],
            expires_ms: None,
        }
    }

    /// Returns all chunks. Write them at once: kitty merges the chunks of two writers.
    ///
    /// The keys are in the last chunk, so a terminal that knows only the older protocol still shows the text.
    pub fn encode(&self, terminator: Terminator) -> String {
        let mut sequences = String::new();
        let mut chunk = |keys: &str, payload: &str| {
            sequences += &osc(&format!("99;i={}:{keys};{payload}", self.id), terminator);
        };
        let mut part = |name: &str, text: &str| {
            // Line breaks are unsafe inside an OSC, and GNU screen tears every character beyond Latin-1.
            if text.contains('\n') || (terminator == Terminator::Bel && !text.is_ascii()) || name == "buttons"
            {
                // The length is a multiple of three, so that the pieces join without padding in between.
                for piece in text.as_bytes().chunks(MAX_ENCODED / 4 * 3) {
                    chunk(&format!("d=0:e=1:p={name}"), &base64::encode(piece));
                }
            } else {
                for piece in pieces(text, MAX_PLAIN) {
                    chunk(&format!("d=0:p={name}"), piece);
                }
            }
        };
        part("title", &sanitise_line(self.title));
        part("body", &sanitise_block(self.body));
        let labels: Vec<String> = self.buttons.iter().map(|label| sanitise_line(label)).collect();
        // U+2028 is the separator of the protocol; terminals do not act on it.
        part("buttons", &labels.join("\u{2028}"));
        chunk(&format!("d=1:{}", self.keys()), "");
        sequences
    }

    fn keys(&self) -> String {
        let encoded = |text: &str| base64::encode(sanitise_line(text).as_bytes());
        let mut keys = vec![format!("a={}", self.actions_value())];
        if self.occasion != Occasion::Always {
            keys.push(format!("o={}", self.occasion.as_str()));
        }
        if self.urgency != Urgency::Normal {
            keys.push(format!("u={}", self.urgency as u8));
        }
        if self.report_close {
            keys.push("c=1".to_owned());
        }
        keys.extend(self.application.map(|name| format!("f={}", encoded(name))));
        keys.extend(self.icon_key.map(|key| format!("g={key}")));
        keys.extend(self.icons.iter().map(|name| format!("n={}", encoded(name))));
        keys.extend(self.sound.map(|name| format!("s={}", encoded(name))));
        keys.extend(self.types.iter().map(|name| format!("t={}", encoded(name))));
        keys.extend(self.expires_ms.map(|expires| format!("w={expires}")));
        keys.join(":")
    }

    fn actions_value(&self) -> &'static str {
        match (self.actions.focus, self.actions.report) {
            (true, false) => "focus",
            (true, true) => "focus,report",
            (false, true) => "-focus,report",
            (false, false) => "-focus",
        }
    }
}

/// Closes a notification.
pub fn close99(id: &NotificationId, terminator: Terminator) -> String {
    osc(&format!("99;i={id}:p=close;"), terminator)
}

/// Asks the terminal what it supports; it answers with the same id.
pub fn query99(id: &NotificationId, terminator: Terminator) -> String {
    osc(&format!("99;i={id}:p=?;"), terminator)
}

/// The answer of an embedder to a query: the features of a host that shows titles and bodies, with or without buttons. The
/// only bytes of the program in the answer are its id, which has been checked.
pub fn query99_reply(id: &NotificationId, has_buttons: bool, terminator: Terminator) -> String {
    let buttons = if has_buttons { "buttons," } else { "" };
    let payloads = format!("title,body,{buttons}close,alive,?");
    let support = format!("a=focus,report:c=1:o=always:p={payloads}:u=0,1,2:w=1");
    osc(&format!("99;i={id}:p=?;{support}"), terminator)
}

/// The answer of an embedder to `p=alive`: the ids that are still shown.
pub fn alive99_reply(id: &NotificationId, alive: &[NotificationId], terminator: Terminator) -> String {
    let ids: Vec<&str> = alive.iter().map(NotificationId::as_str).collect();
    osc(&format!("99;i={id}:p=alive;{}", ids.join(",")), terminator)
}

/// Cuts a text into pieces of at most `most` bytes, between characters.
fn pieces(text: &str, most: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, after) = rest.split_at(rest.floor_char_boundary(most));
        rest = after;
        Some(piece)
    })
}

/// An id of letters, digits and `_+.-`: safe to send to a terminal, and to receive from one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NotificationId(String);

/// The longest id. No client comes near.
const MAX_LENGTH: usize = 128;

/// Why a text is not a notification id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidId {
    /// The text is empty.
    #[error("a notification id cannot be empty")]
    Empty,
    /// The text is too long.
    #[error("a notification id has at most {MAX_LENGTH} characters, this one has {0}")]
    TooLong(usize),
    /// The text has a character that could end the sequence or mean something to the terminal.
    #[error("a notification id is made of letters, digits and _ + . -, not {0:?}")]
    Character(char),
}

impl NotificationId {
    /// Checks a text and creates the id.
    pub fn new(text: &str) -> Result<Self, InvalidId> {
        if text.is_empty() {
            return Err(InvalidId::Empty);
        }
        if text.len() > MAX_LENGTH {
            return Err(InvalidId::TooLong(text.chars().count()));
        }
        match text.chars().find(|c| !(c.is_ascii_alphanumeric() || "_+.-".contains(*c))) {
            Some(character) => Err(InvalidId::Character(character)),
            None => Ok(Self(text.to_owned())),
        }
    }

    /// Creates an id of four digits from the caller's random number, like Claude Code's ids.
    pub fn four_digits(random: u64) -> Self {
        Self(format!("{:04}", random % 10_000))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NotificationId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> NotificationId {
        NotificationId::new("7").unwrap()
    }

    #[test]
    fn a_body_with_lines_is_base64() {
        let id = id();
        let message = Osc99Message { body: "one\ntwo", ..Osc99Message::new(&id) };
        assert_eq!(
            message.encode(Terminator::St),
            "\x1b]99;i=7:d=0:e=1:p=body;b25lCnR3bw==\x1b\\\x1b]99;i=7:d=1:a=focus;\x1b\\"
        );
    }

    #[test]
    fn every_key_is_written() {
        let id = id();
        let message = Osc99Message {
            title: "t",
            buttons: &["Yes", "No"],
            actions: Actions { focus: false, report: true },
            occasion: Occasion::Unfocused,
            urgency: Urgency::Critical,
            report_close: true,
            application: Some("ringer"),
            icons: &["info"],
            icon_key: Some(&id),
            sound: Some("silent"),
            types: &["agent"],
            expires_ms: Some(5000),
            ..Osc99Message::new(&id)
        };
        let encoded = message.encode(Terminator::Bel);
        assert!(encoded.contains("d=0:e=1:p=buttons;WWVz4oCoTm8=\x07"), "{encoded:?}");
        assert!(encoded.ends_with(
            "d=1:a=-focus,report:o=unfocused:u=2:c=1:f=cmluZ2Vy:g=7:n=aW5mbw==:s=c2lsZW50:t=YWdlbnQ=:w=5000;\x07"
        ));
    }

    #[test]
    fn chunks_keep_their_limits() {
        let id = id();
        let long = "🚀".repeat(1_000);
        let lines = format!("{long}\n");
        for body in [long.as_str(), lines.as_str()] {
            let encoded =
                Osc99Message { title: &long, body, ..Osc99Message::new(&id) }.encode(Terminator::St);
            let chunks: Vec<&str> = encoded.split_terminator("\x1b\\").collect();
            assert!(chunks.len() >= 5);
            for chunk in chunks {
                let (head, payload) = chunk.split_once(';').unwrap().1.split_once(';').unwrap();
                let most = if head.contains("e=1") { MAX_ENCODED } else { MAX_PLAIN };
                assert!(payload.len() <= most);
            }
        }
    }

    #[test]
    fn close_query_and_their_answers() {
        let id = id();
        assert_eq!(close99(&id, Terminator::St), "\x1b]99;i=7:p=close;\x1b\\");
        assert_eq!(query99(&id, Terminator::St), "\x1b]99;i=7:p=?;\x1b\\");
        assert!(query99_reply(&id, false, Terminator::St).contains(":p=title,body,close,"));
        let reply = query99_reply(&id, true, Terminator::St);
        assert!(reply.starts_with("\x1b]99;i=7:p=?;a=focus,report:"), "{reply:?}");
        assert!(reply.contains(":p=title,body,buttons,close,"), "{reply:?}");
        assert_eq!(
            alive99_reply(&id, std::slice::from_ref(&id), Terminator::St),
            "\x1b]99;i=7:p=alive;7\x1b\\"
        );
    }

    #[test]
    fn only_harmless_characters() {
        assert_eq!(NotificationId::new("build_1+2.3-x").unwrap().as_str(), "build_1+2.3-x");
        for (text, bad) in [("a;b", ';'), ("a:b", ':'), ("a\x1b", '\x1b'), ("é", 'é'), ("a b", ' ')] {
            assert_eq!(NotificationId::new(text), Err(InvalidId::Character(bad)));
        }
        assert_eq!(NotificationId::new(""), Err(InvalidId::Empty));
        assert_eq!(NotificationId::new(&"x".repeat(129)), Err(InvalidId::TooLong(129)));
    }

    #[test]
    fn four_digits_always() {
        assert_eq!(NotificationId::four_digits(7).as_str(), "0007");
        assert_eq!(NotificationId::four_digits(u64::MAX).as_str().len(), 4);
    }
}
