//! A nonce that proves to an agent that a text in its conversation comes from Ringer.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// 128 random bits of an agent's session. Its client announces them when the session begins, and each notification repeats
/// them: a tool's output cannot know them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionNonce([u8; 16]);

impl SessionNonce {
    /// Creates a nonce from random bytes.
    pub fn new(random: [u8; 16]) -> Self {
        Self(random)
    }
}

impl fmt::Display for SessionNonce {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// Keeps the nonce out of logs and test failures.
impl fmt::Debug for SessionNonce {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SessionNonce(…)")
    }
}

/// The text is not a nonce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a nonce has 32 hexadecimal digits")]
pub struct InvalidNonce;

impl FromStr for SessionNonce {
    type Err = InvalidNonce;

    fn from_str(text: &str) -> Result<Self, InvalidNonce> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != 32 || !text.bytes().all(is_digit) {
            return Err(InvalidNonce);
        }
        u128::from_str_radix(text, 16).map(|number| Self(number.to_be_bytes())).map_err(|_| InvalidNonce)
    }
}

impl TryFrom<String> for SessionNonce {
    type Error = InvalidNonce;

    fn try_from(text: String) -> Result<Self, InvalidNonce> {
        text.parse()
    }
}

impl From<SessionNonce> for String {
    fn from(nonce: SessionNonce) -> Self {
        nonce.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_read_as_it_was_written() {
        let nonce = SessionNonce::new([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff]);
        assert_eq!(nonce.to_string(), "000102030405060708090a0b0c0d0eff");
        assert_eq!(nonce.to_string().parse(), Ok(nonce.clone()));
        assert_eq!(format!("{nonce:?}"), "SessionNonce(…)");
        for odd in ["", "0", "+00102030405060708090a0b0c0d0eff", "000102030405060708090A0B0C0D0EFF"] {
            assert_eq!(odd.parse::<SessionNonce>(), Err(InvalidNonce), "{odd}");
        }
    }
}
