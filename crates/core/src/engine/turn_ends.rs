//! Remembers whether the end of an agent's last turn had a popup. If so, the reminder that the agent waits has none.

use std::collections::HashMap;
use std::sync::Arc;

use crate::attention::Record;
use crate::message::{MessageId, ShownKind};

/// The most agents that are remembered. At the limit all are forgotten, and an agent that waits may then have a second popup.
const MAX_AGENTS: usize = 4096;

#[derive(Debug, Clone)]
struct TurnEnd {
    id: MessageId,
    had_popup: bool,
}

/// The end of each agent's last turn.
#[derive(Debug, Clone, Default)]
pub(super) struct TurnEnds {
    by_sender: HashMap<Arc<str>, TurnEnd>,
}

impl TurnEnds {
    /// Records a notification. Only ends of turns count.
    pub(super) fn add(&mut self, record: &Record) {
        if record.shown_kind() != ShownKind::Complete {
            return;
        }
        if self.by_sender.len() >= MAX_AGENTS && !self.by_sender.contains_key(&record.sender) {
            self.by_sender.clear();
        }
        let end = TurnEnd { id: record.id.clone(), had_popup: record.had_popup };
        self.by_sender.insert(Arc::clone(&record.sender), end);
    }

    /// Records that no channel could show the popup of a notification.
    pub(super) fn popup_failed(&mut self, record: &Record) {
        if let Some(end) = self.by_sender.get_mut(&record.sender).filter(|end| end.id == record.id) {
            end.had_popup = false;
        }
    }

    /// Returns true if the end of this agent's last turn had a popup.
    pub(super) fn had_popup(&self, sender: &str) -> bool {
        self.by_sender.get(sender).is_some_and(|end| end.had_popup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Kind, Place, WorkspaceId};

    fn record(number: u64, sender: &str, kind: Kind, had_popup: bool) -> Record {
        let place = Place::workspace(WorkspaceId::new("w"));
        let record = Record::new(MessageId::new(number, [0; 10]), place, kind, "x", 0);
        Record { sender: sender.into(), had_popup, ..record }
    }

    #[test]
    fn only_the_last_end_of_a_turn_of_each_agent_counts() {
        let mut ends = TurnEnds::default();
        ends.add(&record(1, "a", Kind::Complete, true));
        ends.add(&record(2, "a", Kind::Error, false));
        assert!(ends.had_popup("a") && !ends.had_popup("b"));
        ends.add(&record(3, "a", Kind::Complete, false));
        assert!(!ends.had_popup("a"));
        ends.add(&record(4, "a", Kind::Complete, true));
        ends.popup_failed(&record(1, "a", Kind::Complete, true));
        assert!(ends.had_popup("a"), "an older one failed");
        ends.popup_failed(&record(4, "a", Kind::Complete, true));
        assert!(!ends.had_popup("a"));
    }

    #[test]
    fn agents_are_bounded() {
        let mut ends = TurnEnds::default();
        for number in 0..10_000 {
            ends.add(&record(number, &number.to_string(), Kind::Complete, true));
        }
        assert!(ends.by_sender.len() <= MAX_AGENTS && ends.had_popup("9999"));
    }
}
