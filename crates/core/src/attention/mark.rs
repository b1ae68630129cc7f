//! Marks: reading, clearing and answering are messages too, so they work while no consumer runs, and reach every machine.
//! Consumers apply them and never show them.

use std::fmt;

use crate::attention::Record;
use crate::message::{MessageId, Place, SurfaceId, WorkspaceId, is_ended_by_key};

/// The target of a mark. It is written as the key of the message that carries the mark.
///
/// ```
/// use ringer_core::attention::MarkTarget;
/// use ringer_core::message::{Place, WorkspaceId};
///
/// let target = MarkTarget::Place(Place::workspace(WorkspaceId::new("repo:0a1b2c3d")));
/// assert_eq!(target.to_string(), "place:13:repo:0a1b2c3d");
/// assert_eq!(MarkTarget::parse("place:13:repo:0a1b2c3d"), Some(target));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MarkTarget {
    /// One message.
    Message(MessageId),
    /// Everything at a place.
    Place(Place),
    /// Everything.
    All,
    /// Everything that is read and resolved.
    AllRead,
    /// The messages with this key: the reports of an agent's episode, or of a program that gave its terminal an id.
    Key(String),
}

impl MarkTarget {
    /// Parses a key. `None` if no version writes such a key.
    pub fn parse(key: &str) -> Option<Self> {
        match key {
            "all" => return Some(Self::All),
            "all-read" => return Some(Self::AllRead),
            key if is_ended_by_key(key) => return Some(Self::Key(key.to_owned())),
            _ => {}
        }
        let Some(place) = key.strip_prefix("place:") else {
            return MessageId::parse(key).ok().map(Self::Message);
        };
        // Ids are opaque and may contain any separator, so the length of the first one is written before it.
        let (length, ids) = place.split_once(':')?;
        let (workspace, surface) = ids.split_at_checked(length.parse().ok()?)?;
        let surface = Some(surface).filter(|surface| !surface.is_empty()).map(SurfaceId::new);
        Some(Self::Place(Place { workspace: WorkspaceId::new(workspace), surface }))
    }
}

/// Returns true if a mark of another machine may change a notification. A notification of this machine that waits for an
/// answer is read, snoozed, cleared or ended only by what happens here: otherwise somebody who broke into the other machine
/// could hide it. Which notifications of other machines the mark may change is checked when it comes in.
pub fn is_open_to_other_machines(record: &Record) -> bool {
    record.machine.is_some() || !record.waits_for_answer()
}

/// Parses the end of a snooze from the text of a mark.
pub(crate) fn snooze_end(text: &str) -> Option<i64> {
    text.parse().ok().filter(|until_ms| *until_ms > 0)
}

impl fmt::Display for MarkTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(id) => formatter.write_str(id.as_str()),
            Self::All => formatter.write_str("all"),
            Self::AllRead => formatter.write_str("all-read"),
            Self::Key(key) => formatter.write_str(key),
            Self::Place(place) => {
                let workspace = place.workspace.as_str();
                write!(formatter, "place:{}:{workspace}", workspace.len())?;
                place.surface.as_ref().map_or(Ok(()), |surface| formatter.write_str(surface.as_str()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_no_version_wrote_is_no_target() {
        for key in ["place:", "place:x:abc", "place:99:abc", "place:1:é", ""] {
            assert_eq!(MarkTarget::parse(key), None, "{key:?}");
        }
    }

    proptest! {
        #[test]
        fn keys_both_ways(workspace in "\\PC{1,20}", surface in prop::option::of("\\PC{1,20}")) {
            let surface = surface.as_deref().map(SurfaceId::new);
            let place = Place { workspace: WorkspaceId::new(&workspace), surface };
            let target = MarkTarget::Place(place);
            prop_assert_eq!(MarkTarget::parse(&target.to_string()), Some(target));
        }

        #[test]
        fn any_key_is_read_or_refused(key in ".*") {
            let _ = MarkTarget::parse(&key);
        }
    }
}
