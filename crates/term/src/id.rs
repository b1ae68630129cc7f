//! The id of a terminal notification.

use std::fmt;

/// An id of letters, digits and `_+.-`: what a terminal may be sent, and may send back, without harm.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NotificationId(String);

/// Longer ids are refused; no client comes near.
const MAX_LENGTH: usize = 128;

/// Why a text is no notification id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidId {
    /// It has no characters.
    #[error("a notification id cannot be empty")]
    Empty,
    /// It has too many.
    #[error("a notification id has at most {MAX_LENGTH} characters, this one has {0}")]
    TooLong(usize),
    /// It has one that could end the sequence or mean something to the terminal.
    #[error("a notification id is made of letters, digits and _ + . -, not {0:?}")]
    Character(char),
}

impl NotificationId {
    /// Checks a text.
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

    /// Four digits out of the caller's randomness, as Claude Code makes its ids.
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
