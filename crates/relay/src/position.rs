//! A place in the journal of a machine, as links name it.

use ringer_journal::Cursor;
use serde::{Deserialize, Serialize};

/// A place in a journal. All three parts have to fit, because a journal may be removed or replaced by an older copy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The random word that the journal's file was begun with.
    pub generation: String,
    /// The number of the message; 0 before the first.
    pub seq: i64,
    /// The id of that message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
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
