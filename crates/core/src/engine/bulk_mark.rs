//! Marks on many notifications, applied in pieces: applying one to 100,000 at once would take a second.

use std::collections::VecDeque;

use crate::attention::{Command, ReadReason};
use crate::message::{MessageId, Place};

/// Marks that have not been applied to all of their notifications yet, in the order of arrival.
#[derive(Debug, Clone)]
pub(super) struct BulkMarks {
    pub(super) unfinished: VecDeque<BulkMark>,
    /// The most notifications that are changed at once.
    pub(super) most: usize,
}

impl Default for BulkMarks {
    fn default() -> Self {
        Self { unfinished: VecDeque::new(), most: usize::MAX }
    }
}

/// A mark, and the notifications that it has not been applied to yet. The list is fixed when the mark arrives: later
/// notifications are not affected.
#[derive(Debug, Clone)]
pub(super) struct BulkMark {
    pub(super) change: BulkChange,
    pub(super) rest: std::vec::IntoIter<MessageId>,
    /// The place to redraw at the end; `None` for all places.
    pub(super) place: Option<Place>,
    /// The person's command, if it can be undone.
    pub(super) command: Option<Command>,
}

#[derive(Debug, Clone)]
pub(super) enum BulkChange {
    Read(ReadReason),
    Remove,
    TakeBack,
}
