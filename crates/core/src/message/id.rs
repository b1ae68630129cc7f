//! Ids of messages and questions.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::message::{InvalidName, validate_name};

/// The id of a message: a UUID of version 7, so ids sort by time. Appending the same id twice is one message.
///
/// Cheap to clone: every index of a store has it, and there may be 100,000 unread notifications.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageId(Arc<str>);

impl MessageId {
    /// An id for a message made at this time, out of the caller's randomness.
    pub fn new(unix_ms: u64, random: [u8; 10]) -> Self {
        Self(uuid::Builder::from_unix_timestamp_millis(unix_ms, &random).into_uuid().to_string().into())
    }

    /// Reads an id that a message already has.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        validate_name("message id", text)?;
        Ok(Self(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The id of a question: `q-<unix seconds>-<6 hex>`, short enough for an agent to repeat.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QuestionId(String);

impl QuestionId {
    /// An id for a question asked at this time, out of the caller's randomness.
    pub fn new(unix_seconds: u64, random: u32) -> Self {
        Self(format!("q-{unix_seconds}-{:06x}", random & 0x00ff_ffff))
    }

    /// Accepts an id from outside. Other tools have other formats, so any valid name is accepted.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        validate_name("question id", text)?;
        Ok(Self(text.to_owned()))
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
    fn question_ids_have_the_form_people_know() {
        assert_eq!(QuestionId::new(1_740_000_607, 0xffa1_b2c3).as_str(), "q-1740000607-a1b2c3");
        assert_eq!(QuestionId::new(0, 1).as_str(), "q-0-000001");
        assert!(QuestionId::parse("a\nb").is_err() && QuestionId::parse("").is_err());
    }
}
