//! A mark on many notifications, applied in pieces: with 100,000 of them, all at once would take a second.

use std::collections::VecDeque;

use crate::attention::{Command, ReadReason};
use crate::message::{MessageId, Place};

/// Marks that are not applied to all of their notifications yet, in the order in which they came.
#[derive(Debug, Clone)]
pub(super) struct BulkMarks {
    pub(super) unfinished: VecDeque<BulkMark>,
    /// How many notifications are changed at once.
    pub(super) most: usize,
}

impl Default for BulkMarks {
    fn default() -> Self {
        Self { unfinished: VecDeque::new(), most: usize::MAX }
    }
}

/// A mark, and the notifications that it is still to be applied to. Which they are is settled when it comes: later ones are not
/// meant.
#[derive(Debug, Clone)]
pub(super) struct BulkMark {
    pub(super) change: BulkChange,
    pub(super) rest: std::vec::IntoIter<MessageId>,
    /// What is redrawn at the end; `None` for everything.
    pub(super) place: Option<Place>,
    /// The command of the person whose mark it is, if it can be taken back.
    pub(super) command: Option<Command>,
}

#[derive(Debug, Clone)]
pub(super) enum BulkChange {
    Read(ReadReason),
    Remove,
    TakeBack,
}
