//! Applies marks on many notifications, piece by piece.

use std::collections::BTreeSet;

use super::{BulkChange, BulkMark, Engine};
use crate::attention::{Command, MAX_UNDO_NOTIFICATIONS};
use crate::engine::Order;
use crate::message::{MessageId, Place};
use crate::time::Now;

impl Engine {
    /// Limits how many notifications a mark changes at once. By default there is no limit.
    ///
    /// While [`Engine::has_unfinished_marks`] returns true after an event, the caller must call [`Engine::continue_marks`].
    /// The order of messages and marks is kept if no message is passed to the engine before all marks are finished.
    pub fn limit_marks(&mut self, most: usize) {
        self.bulk_marks.most = most.max(1);
    }

    /// Returns true if a mark has not been applied to all of its notifications yet.
    pub fn has_unfinished_marks(&self) -> bool {
        !self.bulk_marks.unfinished.is_empty()
    }

    /// Applies the unfinished marks to the next notifications. Returns the orders to execute, in order.
    pub fn continue_marks(&mut self, now: Now) -> Vec<Order> {
        let mut orders = Vec::new();
        self.apply_marks(now, &mut orders);
        orders
    }

    pub(super) fn begin_mark(
        &mut self,
        now: Now,
        change: BulkChange,
        ids: Vec<MessageId>,
        place: Option<Place>,
        command: Option<Command>,
        orders: &mut Vec<Order>,
    ) {
        let rest = ids.into_iter();
        self.bulk_marks.unfinished.push_back(BulkMark { change, rest, place, command });
        // If other marks are unfinished, this one waits behind them.
        if self.bulk_marks.unfinished.len() == 1 {
            self.apply_marks(now, orders);
        }
    }

    fn apply_marks(&mut self, now: Now, orders: &mut Vec<Order>) {
        let mut left = self.bulk_marks.most;
        while let Some(mut mark) = self.bulk_marks.unfinished.pop_front() {
            let piece: Vec<MessageId> = mark.rest.by_ref().take(left).collect();
            left -= piece.len();
            let mut places = BTreeSet::new();
            let mut behind = piece.len() + mark.rest.len();
            for id in piece {
                behind -= 1;
                // The last ones are the newest. Changes beyond the limit of the undo log are not saved in the first place.
                let command = mark.command.as_ref().filter(|_| behind < MAX_UNDO_NOTIFICATIONS);
                places.extend(self.apply_to(now, &mark.change, id, command, orders));
            }
            let is_finished = mark.rest.len() == 0;
            match mark.place.as_ref().filter(|_| is_finished) {
                Some(place) => self.redraw(now.mono, place, orders),
                None if is_finished => self.redraw_all(now.mono, orders),
                None => {}
            }
            for place in places {
                self.redraw(now.mono, &place, orders);
            }
            if !is_finished {
                return self.bulk_marks.unfinished.push_front(mark);
            }
        }
    }

    /// Applies a mark to one notification. Returns its place, if that changed it.
    fn apply_to(
        &mut self,
        now: Now,
        change: &BulkChange,
        id: MessageId,
        command: Option<&Command>,
        orders: &mut Vec<Order>,
    ) -> Option<Place> {
        match change {
            BulkChange::Read(by) => self.read_one(now, &id, by, command, orders),
            BulkChange::Remove => self.remove_one(id, command, orders),
            BulkChange::TakeBack => self.take_back(now, &id, orders),
        }
    }
}
