//! The undo log: what the person's last commands changed.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::attention::{Record, UndoKind, UnreadReason};
use crate::message::{MessageId, Place};
use crate::policy::{MuteTarget, RequestedMute};

/// The most commands that can be undone; the oldest are forgotten first.
pub const MAX_UNDO_COMMANDS: usize = 10;
/// The most notifications of one command that can be restored: the newest ones. With more, remembering what `clear --all`
/// removes would cost as much as removing it.
pub const MAX_UNDO_NOTIFICATIONS: usize = 1000;

/// A command of the person. One command may be several marks with the same id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The id of the command.
    pub id: Arc<str>,
    /// The kind of the command.
    pub kind: UndoKind,
}

/// The state before a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PreviousState {
    /// A notification.
    Notification(Box<Record>),
    /// A place that was unread for a reason other than a notification.
    Reason(UnreadReason, Place),
    /// A mute.
    Mute {
        /// The target of the mute.
        target: MuteTarget,
        /// The mute before the command, if there was one.
        before: Option<RequestedMute>,
    },
}

/// One change of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoItem {
    /// The number of the change. Later ones have larger numbers.
    pub number: i64,
    /// The command.
    pub command: Arc<str>,
    /// The kind of the command.
    pub kind: UndoKind,
    /// The state before the command.
    pub before: PreviousState,
    /// True if the cause of the notification has ended since. Then undo does not restore it.
    #[serde(default)]
    pub has_ended: bool,
}

impl UndoItem {
    /// The notification, if the change is about one.
    pub fn record(&self) -> Option<&Record> {
        match &self.before {
            PreviousState::Notification(record) => Some(record),
            PreviousState::Reason(..) | PreviousState::Mute { .. } => None,
        }
    }
}

/// The changes of the last commands, oldest first.
#[derive(Debug, Clone, Default)]
pub struct UndoLog {
    /// One list for each command, the last command at the back. No list is empty.
    commands: VecDeque<VecDeque<UndoItem>>,
    last_number: i64,
}

impl UndoLog {
    /// The kind of the command that undo would undo.
    pub fn last(&self) -> Option<UndoKind> {
        Some(self.commands.back()?.front()?.kind)
    }

    /// All changes, oldest first.
    pub fn items(&self) -> impl Iterator<Item = &UndoItem> {
        self.commands.iter().flatten()
    }

    /// Adds saved changes, oldest first.
    pub(crate) fn restore(&mut self, items: impl IntoIterator<Item = UndoItem>) {
        for item in items {
            self.last_number = self.last_number.max(item.number);
            self.add(item);
        }
    }

    /// Records a change of a command. Returns the item to save, and the numbers of the items that are forgotten.
    pub(crate) fn note(&mut self, command: &Command, before: PreviousState) -> (UndoItem, Vec<i64>) {
        self.last_number += 1;
        let item = UndoItem {
            number: self.last_number,
            command: Arc::clone(&command.id),
            kind: command.kind,
            before,
            has_ended: false,
        };
        self.add(item.clone());
        let mut dropped = Vec::new();
        if self.commands.len() > MAX_UNDO_COMMANDS {
            dropped.extend(self.commands.pop_front().into_iter().flatten());
        }
        if let Some(items) = self.commands.back_mut().filter(|items| items.len() > MAX_UNDO_NOTIFICATIONS) {
            dropped.extend(items.pop_front());
        }
        (item, dropped.into_iter().map(|item| item.number).collect())
    }

    fn add(&mut self, item: UndoItem) {
        match self.commands.back_mut() {
            Some(items) if items.front().is_some_and(|first| first.command == item.command) => {
                items.push_back(item);
            }
            _ => self.commands.push_back(VecDeque::from([item])),
        }
    }

    /// The notifications that the last command changed, oldest first.
    pub(crate) fn last_notifications(&self) -> Vec<MessageId> {
        let items = self.commands.back().into_iter().flatten();
        items.filter_map(|item| Some(item.record()?.id.clone())).collect()
    }

    /// Returns the place of a notification of the last command.
    pub(crate) fn place_of(&self, id: &MessageId) -> Option<Place> {
        let mut records = self.commands.back()?.iter().filter_map(UndoItem::record);
        records.find(|record| record.id == *id).map(|record| record.place.clone())
    }

    /// Removes the change of a notification from the last command and returns it.
    pub(crate) fn take(&mut self, id: &MessageId) -> Option<UndoItem> {
        let items = self.commands.back_mut()?;
        let at = items.iter().position(|item| item.record().is_some_and(|record| record.id == *id))?;
        let item = items.remove(at);
        self.commands.retain(|items| !items.is_empty());
        item
    }

    /// Removes the last command's other changes and returns them.
    pub(crate) fn take_last_other_changes(&mut self) -> Vec<UndoItem> {
        let Some(items) = self.commands.back_mut() else { return Vec::new() };
        let (notifications, others): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(items).into_iter().partition(|item| item.record().is_some());
        *items = notifications;
        self.commands.retain(|items| !items.is_empty());
        others.into()
    }

    /// Records that the cause of some notifications has ended. Returns the changed items.
    pub(crate) fn end(&mut self, which: impl Fn(&Record) -> bool) -> Vec<UndoItem> {
        let items = self.commands.iter_mut().flatten();
        let ended = items.filter(|item| !item.has_ended && item.record().is_some_and(&which));
        ended
            .map(|item| {
                item.has_ended = true;
                item.clone()
            })
            .collect()
    }

    /// Forgets the changes of some notifications. Returns their numbers.
    pub(crate) fn forget(&mut self, which: impl Fn(&Record) -> bool) -> Vec<i64> {
        let mut forgotten = Vec::new();
        for items in &mut self.commands {
            items.retain(|item| {
                let is_meant = item.record().is_some_and(&which);
                forgotten.extend(is_meant.then_some(item.number));
                !is_meant
            });
        }
        self.commands.retain(|items| !items.is_empty());
        forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Kind, WorkspaceId};

    fn command(id: &str, kind: UndoKind) -> Command {
        Command { id: id.into(), kind }
    }

    fn before(number: u64) -> PreviousState {
        let place = Place::workspace(WorkspaceId::new("w"));
        let id = MessageId::new(number, [0; 10]);
        PreviousState::Notification(Box::new(Record::new(id, place, Kind::Complete, "x", 0)))
    }

    #[test]
    fn the_oldest_command_is_dropped_as_a_whole() {
        let mut log = UndoLog::default();
        for number in 0..MAX_UNDO_COMMANDS as u64 {
            let command = command(&number.to_string(), UndoKind::Read);
            assert!(log.note(&command, before(1)).1.is_empty());
            assert!(log.note(&command, before(2)).1.is_empty());
        }
        assert_eq!(log.note(&command("newest", UndoKind::Clear), before(3)).1, [1, 2]);
        assert_eq!(log.last(), Some(UndoKind::Clear));
        assert_eq!(log.items().next().map(|item| &*item.command), Some("1"));
    }

    #[test]
    fn of_one_command_the_newest_are_kept() {
        let mut log = UndoLog::default();
        let clear = command("c", UndoKind::Clear);
        let most = MAX_UNDO_NOTIFICATIONS as u64;
        for number in 1..=most {
            assert!(log.note(&clear, before(number)).1.is_empty());
        }
        assert_eq!(log.note(&clear, before(most + 1)).1, [1]);
        assert_eq!(log.last_notifications().len(), MAX_UNDO_NOTIFICATIONS);
        assert_eq!(log.last_notifications()[0], MessageId::new(2, [0; 10]));
    }

    #[test]
    fn what_was_saved_goes_on_with_larger_numbers() {
        let mut log = UndoLog::default();
        let read = command("r", UndoKind::Read);
        let saved: Vec<UndoItem> = (0..3).map(|number| log.note(&read, before(number)).0).collect();
        let json = serde_json::to_string(&saved).unwrap();
        let mut next = UndoLog::default();
        next.restore(serde_json::from_str::<Vec<UndoItem>>(&json).unwrap());
        assert!(next.items().eq(log.items()));
        let (item, _) = next.note(&read, before(9));
        assert_eq!((item.number, next.last_notifications().len()), (4, 4), "the same command goes on");
    }
}
