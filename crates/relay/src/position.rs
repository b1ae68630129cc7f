//! Positions in the journal of a machine, and the first one that another machine may read from.
//!
//! Messages from before a machine was linked are not for it, whatever position it requests. The first position is in a file
//! beside the journal, because the journal may be removed, repaired or replaced by an older copy. Then the id of the last message
//! before the link shows which messages are newer: ids are ordered by time.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use ringer_journal::{Cursor, Home, IdSource, Journal};
use ringer_platform::{Durability, replace_file};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::Error;

/// A position in a journal. All three parts must match, because a journal may be removed or replaced by an older copy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The random word that identifies the journal's file.
    #[serde(deserialize_with = "short")]
    pub generation: String,
    /// The number of the message; 0 before the first.
    #[serde(deserialize_with = "not_negative")]
    pub seq: i64,
    /// The id of that message.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "short_or_none")]
    pub id: Option<String>,
}

/// The longest word in a position, in bytes. Positions are stored, and the other machine may send anything.
const MAX_WORD: usize = 64;

fn short<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let word = String::deserialize(from)?;
    if word.len() <= MAX_WORD { Ok(word) } else { Err(D::Error::custom("a word of a position is too long")) }
}

fn short_or_none<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let word = Option::<String>::deserialize(from)?;
    if word.as_ref().is_none_or(|word| word.len() <= MAX_WORD) {
        Ok(word)
    } else {
        Err(D::Error::custom("a word of a position is too long"))
    }
}

fn not_negative<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    let number = i64::deserialize(from)?;
    if number >= 0 { Ok(number) } else { Err(D::Error::custom("a position is before the beginning")) }
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

fn first_position_file(home: &Home, key: &str) -> PathBuf {
    home.path().join(format!("relay-begin-{key}.json"))
}

/// Returns the number after which messages of this machine may be sent to another one, or to a team; `key` is the name of the
/// cursor in the journal. For a new machine this is the end of the journal: from here on no message for it is left out.
pub(crate) fn first_position(home: &Home, journal: &mut Journal, key: &str) -> Result<i64, Error> {
    let now = journal.export_position(key, IdSource::now().unix_ms)?;
    let path = first_position_file(home, key);
    let failed = |what: &str, source| Error::Io { what: format!("cannot {what} {}", path.display()), source };
    let begun: Position = match fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| failed("read", error.into()))?,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let begins = Position::from(now);
            // Plain data cannot fail to encode.
            let bytes = serde_json::to_vec(&begins).unwrap_or_default();
            replace_file(&path, &bytes, Durability::Synced).map_err(|error| failed("write", error))?;
            begins
        }
        Err(error) => return Err(failed("read", error)),
    };
    begun.id.map_or(Ok(0), |id| Ok(journal.own_seq_until(&id)?))
}

/// Forgets where the messages for a machine begin.
pub(crate) fn forget_first_position(home: &Home, key: &str) {
    let _ = fs::remove_file(first_position_file(home, key));
}
