//! The payloads that the machines of a team exchange: one JSON object in each message of the stream.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::position::Position;
use crate::wire_message::WireMessage;

/// The largest payload that is read, in bytes.
pub(crate) const MAX_PAYLOAD: usize = 1024 * 1024;
/// The most machines that a `want` names. For others the time of joining applies.
pub(crate) const MAX_WANTED: usize = 2_000;

/// A payload of the stream. Every field is untrusted, and is checked before use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum TeamPayload {
    /// A message of the machine's journal.
    Message {
        /// The random word that identifies the journal's file.
        generation: String,
        /// The clock of the machine at the time of publishing, in milliseconds since 1970.
        sent_ms: i64,
        /// The stream was given every message of the journal between this number and the message, before it. `None`: every
        /// message
        /// since the machine joined the team.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        covered_from: Option<i64>,
        /// All of these have this number in the stream, or a higher one. 0 if the machine does not know it.
        #[serde(default, skip_serializing_if = "is_zero")]
        covered_at: u64,
        /// It may have been published before.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        again: bool,
        /// The message.
        message: Box<WireMessage>,
    },
    /// The stream was recreated, or lost messages. The machine reports how far it has the messages of the others, which republish
    /// what it lacks.
    Want {
        /// The position of the last message that it has of each machine.
        stored: BTreeMap<String, Position>,
        /// When it joined the team: it requests all later messages of machines that are not in `stored`.
        joined_ms: i64,
        /// Messages before this number were removed from the stream, and the machine had not read all of them.
        #[serde(default, skip_serializing_if = "is_zero")]
        removed_before: u64,
    },
    /// Tests the permission to publish. Receivers ignore it.
    Hello {
        /// The clock of the machine, in milliseconds since 1970.
        sent_ms: i64,
    },
    /// A payload of a newer version. It is ignored.
    #[serde(other)]
    Unknown,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl TeamPayload {
    pub(crate) fn encode(&self) -> Vec<u8> {
        // Plain data cannot fail to encode.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Parses a payload. Returns `None` if it is invalid.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        (bytes.len() <= MAX_PAYLOAD).then(|| serde_json::from_slice(bytes).ok())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_payload_of_a_newer_version_is_ignored() {
        assert_eq!(TeamPayload::read(br#"{"type":"dance","steps":3}"#), Some(TeamPayload::Unknown));
        assert_eq!(TeamPayload::read(b"{}"), None);
        assert_eq!(TeamPayload::read(&vec![b' '; MAX_PAYLOAD + 1]), None);
        let want = TeamPayload::Want { stored: BTreeMap::new(), joined_ms: 5, removed_before: 3 };
        assert_eq!(TeamPayload::read(&want.encode()), Some(want));
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = TeamPayload::read(&bytes);
        }
    }
}
