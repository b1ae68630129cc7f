//! Positions in the journal, and how far a reader has read.

use ringer_core::{Message, MessageId};

/// A position in a journal file: every message up to it has been processed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Generation of the journal file: a random word written when the file was created. `None` if unknown.
    pub generation: Option<String>,
    /// Sequence number of the last processed message; 0 before the first.
    pub seq: i64,
    /// Id of that message.
    pub id: Option<String>,
}

/// How far a reader has read that stores its position outside the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadPosition {
    /// The position.
    pub cursor: Cursor,
    /// Set while the reader re-reads a journal that was replaced.
    pub catch_up: Option<CatchUp>,
}

/// A re-read from the beginning, because the journal file was replaced by another one or an older copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatchUp {
    /// Id of the newest message processed before. Ids begin with the time, so a message with a lower id was sent earlier. Empty
    /// if unknown.
    pub newest: String,
    /// Highest sequence number when the replacement was noticed. Messages after it are new.
    pub until: i64,
}

/// What a reader knows about a message after its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// Never processed.
    New,
    /// Possibly processed: the reader has to compare ids.
    MaybeSeen,
    /// Sent before the newest processed message. A reader that does not know its id missed it.
    Old,
}

impl ReadPosition {
    /// Moves past a processed message.
    pub fn advance(&mut self, seq: i64, id: &MessageId) {
        self.cursor.seq = seq;
        self.cursor.id = Some(id.to_string());
        self.catch_up.take_if(|catch_up| catch_up.until <= seq);
    }

    /// Classifies a message after this position.
    pub fn age(&self, message: &Message) -> Age {
        match &self.catch_up {
            Some(catch_up) if message.seq <= catch_up.until => {
                if *message.id.as_str() <= *catch_up.newest {
                    Age::Old
                } else {
                    Age::MaybeSeen
                }
            }
            _ => Age::New,
        }
    }

    /// Id of the newest processed message.
    pub(crate) fn newest(&self) -> Option<String> {
        let before = self.catch_up.as_ref().map(|catch_up| catch_up.newest.clone());
        before.max(self.cursor.id.clone())
    }
}
