//! Applying marks on many notifications, piece by piece.

use std::collections::BTreeSet;

use super::Engine;
use super::bulk_mark::{BulkChange, BulkMark};
use crate::engine::Order;
use crate::message::{MessageId, Place};
use crate::time::Now;

impl Engine {
    /// Limits how many notifications a mark changes at once. It has no limit at first.
    ///
    /// After each event for which [`Engine::has_unfinished_marks`] is true, the caller goes on with
    /// [`Engine::continue_marks`]. The order of messages and marks is kept if no message is given to the engine before all
    /// marks are finished.
    pub fn limit_marks(&mut self, most: usize) {
        self.bulk_marks.most = most.max(1);
    }

    /// Whether a mark is not applied to all of its notifications yet.
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
        orders: &mut Vec<Order>,
    ) {
        self.bulk_marks.unfinished.push_back(BulkMark { change, rest: ids.into_iter(), place });
        // Behind another one it waits for its turn.
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
            for id in piece {
                places.extend(self.apply_to(now, &mark.change, id, orders));
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

    /// Applies a mark to one notification. Gives its place, if that changed it.
    fn apply_to(
        &mut self,
        now: Now,
        change: &BulkChange,
        id: MessageId,
        orders: &mut Vec<Order>,
    ) -> Option<Place> {
        match change {
            BulkChange::Read(by) => {
                if !self.attention.store_mut().mark(&id, true, now.wall_ms, by) {
                    return None;
                }
                self.changed(std::slice::from_ref(&id), orders);
                self.attention.store().get(&id).map(|record| record.place.clone())
            }
            BulkChange::Remove => {
                let record = self.attention.store_mut().remove(&id)?;
                self.withdraw(&id, orders);
                orders.push(Order::DeleteRecord(id));
                Some(record.place)
            }
        }
    }
}
