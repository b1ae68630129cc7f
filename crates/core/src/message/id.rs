//! Ids of messages and questions, and the nonce that proves to an agent that a text in its conversation comes from Ringer.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::message::{InvalidName, validate_name};

/// The length of a UUID as text.
const UUID: usize = 36;

/// The id of a message: a UUID of version 7, so ids sort by time. Appending the same id twice is one message.
///
/// Cheap to clone, because orders and saved records contain it, and there may be 100,000 unread notifications.
#[derive(Clone, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub struct MessageId(IdText);

/// A UUID is stored inline: an allocation for each would double its memory.
#[derive(Clone)]
enum IdText {
    Uuid([u8; UUID]),
    Other(Arc<str>),
}

impl MessageId {
    /// Creates the id of a message sent at this time from the caller's random bytes.
    pub fn new(unix_ms: u64, random: [u8; 10]) -> Self {
        let mut text = [0; UUID];
        let id = uuid::Builder::from_unix_timestamp_millis(unix_ms, &random).into_uuid();
        id.hyphenated().encode_lower(&mut text);
        Self(IdText::Uuid(text))
    }

    /// Parses the id of an existing message.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        validate_name("message id", text)?;
        Ok(Self::of(text))
    }

    fn of(text: &str) -> Self {
        match text.as_bytes().try_into() {
            Ok(bytes) => Self(IdText::Uuid(bytes)),
            Err(_) => Self(IdText::Other(text.into())),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            // Always valid UTF-8: it was made from a text.
            IdText::Uuid(bytes) => std::str::from_utf8(bytes).unwrap_or_default(),
            IdText::Other(text) => text,
        }
    }

    fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            IdText::Uuid(bytes) => bytes,
            IdText::Other(text) => text.as_bytes(),
        }
    }
}

impl PartialEq for MessageId {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for MessageId {}

impl Hash for MessageId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl Ord for MessageId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl PartialOrd for MessageId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<String> for MessageId {
    fn from(text: String) -> Self {
        Self::of(&text)
    }
}

impl From<MessageId> for String {
    fn from(id: MessageId) -> Self {
        id.as_str().to_owned()
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("MessageId").field(&self.as_str()).finish()
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The id of a question: `q-<unix seconds>-<6 hex>`, short enough for an agent to repeat.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QuestionId(Box<str>);

impl QuestionId {
    /// Creates the id of a question asked at this time from the caller's random number.
    pub fn new(unix_seconds: u64, random: u32) -> Self {
        Self(format!("q-{unix_seconds}-{:06x}", random & 0x00ff_ffff).into())
    }

    /// Accepts an id from outside. Other tools have other formats, so any valid name is accepted.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        validate_name("question id", text)?;
        Ok(Self(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for QuestionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

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
    fn message_ids_are_version_7_and_sort_by_time() {
        let id = MessageId::new(1_771_338_605_000, [0xff; 10]);
        assert_eq!(id.as_str().len(), 36);
        assert_eq!(&id.as_str()[14..15], "7");
        assert!(id < MessageId::new(1_771_338_605_001, [0; 10]));
    }

    #[test]
    fn ids_of_any_length_are_compared_as_texts() {
        let texts = ["b", "01997a3e-0a1b-7c2d-8e3f-0123456789ab", "0", "01997a3e-0a1b-7c2d-8e3f-0123456789a"];
        let mut ids = texts.map(|text| MessageId::parse(text).unwrap());
        ids.sort();
        let mut sorted = texts;
        sorted.sort_unstable();
        assert_eq!(ids.each_ref().map(MessageId::as_str), sorted);
        let json = serde_json::to_string(&ids).unwrap();
        assert_eq!(json, serde_json::to_string(&sorted).unwrap());
        assert_eq!(serde_json::from_str::<[MessageId; 4]>(&json).unwrap(), ids);
    }

    #[test]
    fn question_ids_have_the_form_people_know() {
        assert_eq!(QuestionId::new(1_740_000_607, 0xffa1_b2c3).as_str(), "q-1740000607-a1b2c3");
        assert_eq!(QuestionId::new(0, 1).as_str(), "q-0-000001");
        assert!(QuestionId::parse("a\nb").is_err() && QuestionId::parse("").is_err());
    }

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
