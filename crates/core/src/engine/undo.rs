//! Undoes the person's last command: what it read is unread again, what it took off the list is listed again. No popup is
//! shown again.

use super::BulkChange;
use super::Engine;
use crate::attention::{
    Cause, Command, PreviousState, ReadReason, Record, Trail, UndoItem, UndoKind, UndoLog, UnreadReason,
};
use crate::engine::{FeatureValue, Order, SavedState};
use crate::message::{MessageId, Place};
use crate::time::Now;

impl FeatureValue for UndoItem {
    const FEATURE: &'static str = "undo";

    fn key(&self) -> String {
        key(self.number)
    }

    fn about(&self) -> Option<MessageId> {
        self.record().map(|record| record.id.clone())
    }
}

impl UndoItem {
    /// Removes the saved item with this number.
    pub fn removal(number: i64) -> SavedState {
        SavedState::removal::<Self>(key(number))
    }
}

/// Sorts by number.
fn key(number: i64) -> String {
    format!("{number:020}")
}

fn save(item: &UndoItem) -> Order {
    Order::SaveState(Box::new(item.saved()))
}

fn delete(number: i64) -> Order {
    Order::SaveState(Box::new(UndoItem::removal(number)))
}

impl Engine {
    /// The changes that can be undone.
    pub fn undo_log(&self) -> &UndoLog {
        &self.undo_log
    }

    /// Forgets the changes of a repository's notifications.
    pub fn forget_undo(&mut self, scope: &str) -> Vec<Order> {
        let forgotten = self.undo_log.forget(|record| &*record.scope == scope);
        forgotten.into_iter().map(delete).collect()
    }

    pub(super) fn note_change(&mut self, command: &Command, before: Record, orders: &mut Vec<Order>) {
        // A notification that was read stays in the store, with its trail. For a cleared one, this copy holds the part of the
        // trail that is not saved.
        let trail = if command.kind == UndoKind::Clear { before.trail.clone() } else { Trail::default() };
        self.note(command, PreviousState::Notification(Box::new(Record { trail, ..before })), orders);
    }

    /// Records that a command ends the other reasons for which a place, or any place, is unread.
    pub(super) fn note_reasons(
        &mut self,
        place: Option<&Place>,
        command: Option<&Command>,
        orders: &mut Vec<Order>,
    ) {
        let Some(command) = command else { return };
        for (reason, place) in self.attention.reasons_of(place) {
            self.note(command, PreviousState::Reason(reason, place), orders);
        }
    }

    pub(super) fn note(&mut self, command: &Command, before: PreviousState, orders: &mut Vec<Order>) {
        let (item, dropped) = self.undo_log.note(command, before);
        orders.push(save(&item));
        orders.extend(dropped.into_iter().map(delete));
    }

    /// Records that the cause of some notifications has ended, so that undo does not restore them.
    pub(super) fn end_undo(&mut self, which: impl Fn(&Record) -> bool, orders: &mut Vec<Order>) {
        let ended = self.undo_log.end(which);
        orders.extend(ended.iter().map(save));
    }

    /// Undoes the last command.
    pub(super) fn undo(&mut self, now: Now, orders: &mut Vec<Order>) {
        let ids = self.undo_log.last_notifications();
        for UndoItem { number, before, .. } in self.undo_log.take_last_other_changes() {
            orders.push(delete(number));
            match before {
                PreviousState::Reason(reason, place) => self.restore_reason(now, reason, &place, orders),
                PreviousState::Mute { target, before } => self.restore_mute(now, &target, before, orders),
                PreviousState::Notification(_) => {}
            }
        }
        let Some(first) = ids.first().and_then(|id| self.undo_log.place_of(id)) else { return };
        self.begin_mark(now, BulkChange::TakeBack, ids, Some(first), None, orders);
    }

    fn restore_reason(&mut self, now: Now, reason: UnreadReason, place: &Place, orders: &mut Vec<Order>) {
        self.attention.set(reason, place.clone());
        self.redraw(now.mono, place, orders);
    }

    /// Undoes what the last command did to one notification. Returns its place, if that changed it.
    pub(super) fn take_back(&mut self, now: Now, id: &MessageId, orders: &mut Vec<Order>) -> Option<Place> {
        let UndoItem { number, kind, before, has_ended, .. } = self.undo_log.take(id)?;
        orders.push(delete(number));
        let PreviousState::Notification(before) = before else { return None };
        let is_over =
            !before.is_resolved && before.expires_ms.get().is_some_and(|expires| expires <= now.wall_ms);
        if has_ended || is_over {
            return None;
        }
        let superseding = self.attention.store().superseding(&before).cloned();
        let superseding = superseding.filter(|_| !before.is_read);
        match (kind, superseding) {
            (UndoKind::Read, Some(_)) => None,
            (UndoKind::Read, None) => self.unread_again(now, &before, orders),
            (UndoKind::Clear | UndoKind::Mute, newer) => self.list_again(now, *before, newer, orders),
        }
    }

    fn unread_again(&mut self, now: Now, before: &Record, orders: &mut Vec<Order>) -> Option<Place> {
        let cause = Cause::TakenBack { kind: UndoKind::Read };
        if !self.attention.store_mut().take_back(before, now.wall_ms, cause) {
            return None;
        }
        self.changed(std::slice::from_ref(&before.id), orders);
        Some(before.place.clone())
    }

    /// Lists a notification again. One that was superseded while it was off the list comes back as read.
    fn list_again(
        &mut self,
        now: Now,
        mut record: Record,
        superseded_by: Option<MessageId>,
        orders: &mut Vec<Order>,
    ) -> Option<Place> {
        record.add_step(now.wall_ms, Cause::TakenBack { kind: UndoKind::Clear });
        if let Some(newer) = superseded_by {
            let by = ReadReason::Newer(newer);
            record.is_read = true;
            record.is_resolved |= record.ends_when_read(&by);
            record.add_step(now.wall_ms, Cause::MarkedRead { by });
        }
        let (id, place) = (record.id.clone(), record.place.clone());
        if !self.attention.store_mut().restore(record) {
            return None;
        }
        self.added(&id, orders);
        Some(place)
    }
}
