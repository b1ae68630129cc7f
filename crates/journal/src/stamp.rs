//! When, and with which random bytes: what a message needs from the outside.

use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use ringer_core::{MessageId, QuestionId};

/// A moment and some randomness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Milliseconds since 1970.
    pub unix_ms: i64,
    /// Random bytes.
    pub random: [u8; 16],
}

impl Stamp {
    /// Now.
    pub fn now() -> Self {
        let unix_ms = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
        };
        Self { unix_ms, random: random_bytes() }
    }

    /// The id of a message of this stamp.
    pub fn message_id(&self) -> MessageId {
        let mut random = [0; 10];
        random.copy_from_slice(&self.random[..10]);
        MessageId::new(u64::try_from(self.unix_ms).unwrap_or(0), random)
    }

    /// The id of a question of this stamp.
    pub fn question_id(&self) -> QuestionId {
        QuestionId::new(u64::try_from(self.unix_ms / 1000).unwrap_or(0), self.number())
    }

    /// A name that nobody else has.
    pub(crate) fn name(&self) -> String {
        self.message_id().to_string()
    }

    /// A number out of the random bytes that the ids do not use.
    pub fn number(&self) -> u32 {
        u32::from_le_bytes([self.random[10], self.random[11], self.random[12], self.random[13]])
    }
}

fn random_bytes() -> [u8; 16] {
    let mut bytes = [0; 16];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    if filled != Ok(bytes.len()) {
        // Forbidden, as in some sandboxes: the standard library seeds its hashers from the system's own source.
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(
                &RandomState::new().hash_one(std::process::id()).to_le_bytes()[..chunk.len()],
            );
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_differ() {
        let (one, two) = (Stamp::now(), Stamp::now());
        assert_ne!(one.random, two.random);
        assert_ne!(one.message_id(), two.message_id());
    }

    #[test]
    fn a_clock_before_1970_is_no_reason_to_fail() {
        let stamp = Stamp { unix_ms: -5, random: [1; 16] };
        assert!(stamp.question_id().as_str().starts_with("q-0-"));
        assert_eq!(stamp.message_id().as_str().len(), 36);
    }
}
