//! A place in the journal, and how far a reader has come.

use ringer_core::{Message, MessageId};

/// A place in a journal: every message up to there was taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The random word that the journal's file was begun with. `None` if it was not noted: schema 1 of the hub's memory
    /// did not have it.
    pub generation: Option<String>,
    /// The number of the message that was taken last; 0 before the first.
    pub seq: i64,
    /// The id of that message.
    pub id: Option<String>,
}

/// How far a reader outside the journal's file has come in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadPosition {
    /// The place.
    pub cursor: Cursor,
    /// Set while it reads again what an exchanged journal had when that was noticed.
    pub catch_up: Option<CatchUp>,
}

/// Reading again from the beginning, because the journal is another one or an older copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatchUp {
    /// The newest message that was taken before. Ids begin with the time, so one that is not newer was sent earlier.
    /// Empty if that is not known.
    pub newest: String,
    /// The highest number when the exchange was noticed. What comes behind it is new.
    pub until: i64,
}

/// What a message means to a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// It comes for the first time.
    New,
    /// It may have come before: those whose id the reader knows did.
    MaybeSeen,
    /// It was sent before the newest message that was taken. If the reader does not know it, it missed it then.
    Old,
}

impl ReadPosition {
    /// A message was taken.
    pub fn advance(&mut self, seq: i64, id: &MessageId) {
        self.cursor.seq = seq;
        self.cursor.id = Some(id.to_string());
        self.catch_up.take_if(|catch_up| catch_up.until <= seq);
    }

    /// What a message means that comes behind this place.
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

    /// The newest message that was taken, by its id.
    pub(crate) fn newest(&self) -> Option<String> {
        let before = self.catch_up.as_ref().map(|catch_up| catch_up.newest.clone());
        before.max(self.cursor.id.clone())
    }
}
