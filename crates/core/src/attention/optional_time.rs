//! A time that may be missing.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A time in milliseconds since 1970, or none. As large as the number alone: an `Option` would be twice as large, and there may
/// be 100,000 records with three of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionalTime(i64);

impl OptionalTime {
    /// None.
    pub const NONE: Self = Self(i64::MIN);

    /// The time, if there is one.
    pub fn get(self) -> Option<i64> {
        (self != Self::NONE).then_some(self.0)
    }

    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }
}

impl From<Option<i64>> for OptionalTime {
    fn from(time: Option<i64>) -> Self {
        time.map_or(Self::NONE, Self)
    }
}

impl Default for OptionalTime {
    fn default() -> Self {
        Self::NONE
    }
}

impl Serialize for OptionalTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.get().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for OptionalTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_saved_as_an_option_is() {
        for time in [None, Some(0), Some(-1), Some(1_900_000_000_000)] {
            let saved = serde_json::to_string(&time).unwrap();
            let read: OptionalTime = serde_json::from_str(&saved).unwrap();
            assert_eq!((read.get(), serde_json::to_string(&read).unwrap()), (time, saved));
        }
    }
}
