//! The ids of tool calls.
//!
//! A harness knows by them which call a notification entered with.

use std::fmt;

use ringer_core::message::{InvalidName, validate_name};
use serde::{Deserialize, Serialize};

/// The id of a tool call, which its result carries too.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CallId(String);

impl CallId {
    /// Checks an id.
    pub fn new(id: &str) -> Result<Self, InvalidName> {
        validate_name("call id", id)?;
        Ok(Self(id.to_owned()))
    }

    /// `notif_<uuid>`, from the caller's random bytes: the id of a call that no model made.
    pub(crate) fn synthetic(random: [u8; 16]) -> Self {
        let mut bytes = random;
        // A UUID says that it is random: version 4, and the variant of RFC 9562.
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex = format!("{:032x}", u128::from_be_bytes(bytes));
        let groups = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
        Self(format!("notif_{}", groups.join("-")))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl TryFrom<String> for CallId {
    type Error = InvalidName;

    fn try_from(id: String) -> Result<Self, InvalidName> {
        Self::new(&id)
    }
}

impl From<CallId> for String {
    fn from(id: CallId) -> Self {
        id.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_synthetic_id_is_notif_and_a_uuid_of_version_4() {
        assert_eq!(CallId::synthetic([0; 16]).as_str(), "notif_00000000-0000-4000-8000-000000000000");
        assert_eq!(CallId::synthetic([0xff; 16]).as_str(), "notif_ffffffff-ffff-4fff-bfff-ffffffffffff");
        let counted: [u8; 16] = std::array::from_fn(|index| u8::try_from(index).unwrap());
        assert_eq!(CallId::synthetic(counted).as_str(), "notif_00010203-0405-4607-8809-0a0b0c0d0e0f");
    }

    #[test]
    fn a_call_id_is_a_valid_name() {
        assert_eq!(CallId::new("toolu_01").unwrap().to_string(), "toolu_01");
        assert!(
            CallId::new("").is_err()
                && CallId::new("a\nb").is_err()
                && CallId::new(&"x".repeat(257)).is_err()
        );
        assert_eq!(serde_json::to_string(&CallId::new("toolu_01").unwrap()).unwrap(), "\"toolu_01\"");
        assert!(serde_json::from_str::<CallId>("\"\"").is_err());
    }
}
