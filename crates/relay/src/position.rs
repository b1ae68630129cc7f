//! A place in the journal of a machine, as links name it.

use ringer_journal::Cursor;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// A place in a journal. All three parts have to fit, because a journal may be removed or replaced by an older copy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The random word that the journal's file was begun with.
    #[serde(deserialize_with = "short")]
    pub generation: String,
    /// The number of the message; 0 before the first.
    #[serde(deserialize_with = "not_negative")]
    pub seq: i64,
    /// The id of that message.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "short_or_none")]
    pub id: Option<String>,
}

/// The words of a place are not longer, in bytes. They are stored, and the other machine may say anything.
const MAX_WORD: usize = 64;

fn short<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let word = String::deserialize(from)?;
    if word.len() <= MAX_WORD { Ok(word) } else { Err(D::Error::custom("a word of a place is too long")) }
}

fn short_or_none<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let word = Option::<String>::deserialize(from)?;
    if word.as_ref().is_none_or(|word| word.len() <= MAX_WORD) {
        Ok(word)
    } else {
        Err(D::Error::custom("a word of a place is too long"))
    }
}

fn not_negative<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    let number = i64::deserialize(from)?;
    if number >= 0 { Ok(number) } else { Err(D::Error::custom("a place is before the beginning")) }
}

impl From<Cursor> for Position {
    fn from(cursor: Cursor) -> Self {
        Self { generation: cursor.generation.unwrap_or_default(), seq: cursor.seq, id: cursor.id }
    }
}

impl From<Position> for Cursor {
    fn from(position: Position) -> Self {
        Self { generation: Some(position.generation), seq: position.seq, id: position.id }
    }
}
