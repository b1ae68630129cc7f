//! Reading and clearing notifications, and the rings and badges that change with it.

use std::time::Duration;

use super::BulkChange;
use super::{Candidate, Engine};
use crate::attention::{Badge, Cause, Command, ReadReason, Ring, UnreadReason};
use crate::engine::{Order, View};
use crate::message::{MessageId, Place, SurfaceId, is_about_impostors};
use crate::policy::DeliveryChannel;
use crate::time::Now;

fn add_cleared_steps(discarded: impl IntoIterator<Item = Candidate>, orders: &mut Vec<Order>) {
    for candidate in discarded {
        orders.push(Order::AddTrailStep { id: candidate.incoming.message.id, cause: Cause::Cleared });
    }
}

impl Engine {
    /// Marks the surfaces read that the person begins to look at. A surface that they already looked at is left alone: they
    /// may have marked it unread.
    pub(super) fn looks(
        &mut self,
        now: Now,
        host: u64,
        views: Vec<View>,
        present: bool,
        orders: &mut Vec<Order>,
    ) {
        let new = self.focus.set(host, views, present);
        // Surfaces that are shown while the person is away are marked read when they come back.
        if !self.is_away() {
            for surface in new {
                self.read_surface(now, surface, i64::MAX, orders);
            }
        }
    }

    /// Marks a surface read up to the moment when the person saw it. A surface that they look at now is left alone, as in
    /// [`Self::looks`].
    pub(super) fn glanced(&mut self, now: Now, surface: SurfaceId, at_ms: i64, orders: &mut Vec<Order>) {
        if !self.is_away() && !self.focus.is_looked_at(&surface) {
            self.read_surface(now, surface, at_ms, orders);
        }
    }

    /// Marks the notifications on a surface read that are not newer than `until_ms`, in milliseconds since 1970.
    pub(super) fn read_surface(
        &mut self,
        now: Now,
        surface: SurfaceId,
        until_ms: i64,
        orders: &mut Vec<Order>,
    ) {
        let mut places = self.attention.store().places_of(&surface);
        if let Some(workspace) = self.surfaces.workspace_of(&surface).cloned() {
            self.surfaces.select(Some(workspace.clone()));
            places.push(Place::surface(workspace, surface));
        }
        places.sort();
        places.dedup();
        for place in places {
            let mut ids = self.attention.begin_read(&place);
            let store = self.attention.store();
            ids.retain(|id| store.get(id).is_some_and(|record| record.unix_ms <= until_ms));
            let read = BulkChange::Read(ReadReason::Looked);
            self.begin_mark(now, read, ids, Some(place), None, orders);
        }
    }

    /// Marks a place unread on behalf of a host, unless the person looks at it.
    pub(super) fn set_unread(&mut self, now: Now, why: UnreadReason, place: &Place, orders: &mut Vec<Order>) {
        if !self.is_in_view(place) {
            self.attention.set(why, place.clone());
            self.redraw(now.mono, place, orders);
        }
    }

    /// Forgets a surface that is no longer known.
    pub(super) fn forget_surface(&mut self, surface: &SurfaceId) {
        self.surfaces.remove(surface);
        self.terminal_signals.set_agent(surface, None);
    }

    /// Handles a closed surface. Its notifications stay. Its other unread reasons end: the person cannot look at it any more.
    pub(super) fn close_surface(&mut self, now: Now, surface: &SurfaceId, orders: &mut Vec<Order>) {
        self.forget_surface(surface);
        let reasons = self.attention.reasons().filter(|(_, place)| place.surface.as_ref() == Some(surface));
        for (reason, place) in reasons.collect::<Vec<_>>() {
            self.attention.unset(reason, &place);
            self.redraw(now.mono, &place, orders);
        }
    }

    /// Returns true if the person looks at a place.
    pub(super) fn is_in_view(&self, place: &Place) -> bool {
        place.surface.as_ref().is_some_and(|surface| self.is_seen(surface))
    }

    /// Returns true if the person looks at a surface.
    pub fn is_seen(&self, surface: &SurfaceId) -> bool {
        !self.is_away() && self.focus.is_looked_at(surface)
    }

    pub(super) fn read(
        &mut self,
        now: Now,
        place: &Place,
        by: &ReadReason,
        command: Option<Command>,
        orders: &mut Vec<Order>,
    ) {
        self.note_reasons(Some(place), command.as_ref(), orders);
        let ids = self.attention.begin_read(place);
        let ids = self.without_warnings(ids);
        self.begin_mark(now, BulkChange::Read(by.clone()), ids, Some(place.clone()), command, orders);
    }

    pub(super) fn read_all(&mut self, now: Now, command: Option<Command>, orders: &mut Vec<Order>) {
        self.note_reasons(None, command.as_ref(), orders);
        let ids = self.attention.begin_read_all();
        let ids = self.without_warnings(ids);
        self.begin_mark(now, BulkChange::Read(ReadReason::All), ids, None, command, orders);
    }

    /// Marks one notification read. Returns its place, if that changed it.
    pub(super) fn read_one(
        &mut self,
        now: Now,
        id: &MessageId,
        by: &ReadReason,
        command: Option<&Command>,
        orders: &mut Vec<Order>,
    ) -> Option<Place> {
        let before = command.and_then(|_| self.attention.store().get(id).cloned());
        if !self.attention.store_mut().mark(id, true, now.wall_ms, by) {
            return None;
        }
        if let (Some(command), Some(before)) = (command, before) {
            self.note_change(command, before, orders);
        }
        self.changed(std::slice::from_ref(id), orders);
        self.attention.store().get(id).map(|record| record.place.clone())
    }

    pub(super) fn clear(
        &mut self,
        now: Now,
        place: &Place,
        command: Option<Command>,
        orders: &mut Vec<Order>,
    ) {
        let generation = self.fence.raise(place);
        let discarded = self.queue.discard(place, generation);
        add_cleared_steps(discarded, orders);
        let running = self.stop_hook_chains(|arrival| place.covers(&arrival.place));
        add_cleared_steps(running.into_iter().map(|arrival| arrival.item), orders);
        self.note_reasons(Some(place), command.as_ref(), orders);
        let ids = self.attention.begin_clear(place);
        let ids = self.without_warnings(ids);
        self.begin_mark(now, BulkChange::Remove, ids, Some(place.clone()), command, orders);
    }

    pub(super) fn clear_all(&mut self, now: Now, command: Option<Command>, orders: &mut Vec<Order>) {
        self.fence.raise_everywhere();
        let undecided = self.queue.take(|_| true).into_iter().chain(self.stop_hook_chains(|_| true));
        add_cleared_steps(undecided.map(|arrival| arrival.item), orders);
        self.note_reasons(None, command.as_ref(), orders);
        let ids = self.attention.begin_clear_all();
        let ids = self.without_warnings(ids);
        self.begin_mark(now, BulkChange::Remove, ids, None, command, orders);
    }

    /// Leaves out unread warnings about somebody who acts for the person: only a command that names such a warning may hide
    /// it.
    fn without_warnings(&self, mut ids: Vec<MessageId>) -> Vec<MessageId> {
        let is_warning = |id: &MessageId| {
            let record = self.attention.store().get(id);
            record.is_some_and(|record| !record.is_read && is_about_impostors(record.category.as_deref()))
        };
        ids.retain(|id| !is_warning(id));
        ids
    }

    pub(super) fn remove_read(&mut self, now: Now, command: Option<Command>, orders: &mut Vec<Order>) {
        let ids = self.attention.store().read_ids();
        self.begin_mark(now, BulkChange::Remove, ids, None, command, orders);
    }

    /// Takes one notification off the list. Returns its place.
    pub(super) fn remove_one(
        &mut self,
        id: MessageId,
        command: Option<&Command>,
        orders: &mut Vec<Order>,
    ) -> Option<Place> {
        let record = self.attention.store_mut().remove(&id)?;
        let place = record.place.clone();
        if let Some(command) = command {
            self.note_change(command, record, orders);
        }
        self.withdraw(&id, orders);
        orders.push(Order::DeleteRecord(id));
        Some(place)
    }

    /// Saves a notification that changed and redraws its place.
    pub(super) fn changed_at(&mut self, now: Now, id: &MessageId, orders: &mut Vec<Order>) {
        self.changed(std::slice::from_ref(id), orders);
        if let Some(place) = self.attention.store().get(id).map(|record| record.place.clone()) {
            self.redraw(now.mono, &place, orders);
        }
    }

    /// Saves a notification that was added, and withdraws its popups if it is already read.
    pub(super) fn added(&mut self, id: &MessageId, orders: &mut Vec<Order>) {
        self.save_record(id, true, orders);
        self.withdraw_if_read(id, orders);
    }

    /// Saves notifications that changed, and withdraws the popups of the ones that are read now.
    pub(super) fn changed(&mut self, ids: &[MessageId], orders: &mut Vec<Order>) {
        for id in ids {
            self.changed_without_withdrawing(id, orders);
            self.withdraw_if_read(id, orders);
        }
    }

    pub(super) fn changed_without_withdrawing(&self, id: &MessageId, orders: &mut Vec<Order>) {
        self.save_record(id, false, orders);
    }

    fn save_record(&self, id: &MessageId, is_new: bool, orders: &mut Vec<Order>) {
        let record = self.attention.store().get(id).map(|record| Box::new(record.clone()));
        orders.extend(record.map(|record| Order::SaveRecord { record, is_new }));
    }

    fn withdraw_if_read(&mut self, id: &MessageId, orders: &mut Vec<Order>) {
        if self.attention.store().get(id).is_some_and(|record| record.is_read) {
            self.withdraw(id, orders);
        }
    }

    pub(super) fn withdraw(&mut self, id: &MessageId, orders: &mut Vec<Order>) {
        for channel in DeliveryChannel::ALL {
            self.in_flight.remove(&(id.clone(), channel));
        }
        orders.push(Order::Withdraw(id.clone()));
        self.withdraw_superseded(id, orders);
    }

    pub(super) fn redraw(&mut self, now: Duration, place: &Place, orders: &mut Vec<Order>) {
        let rings = !self.preferences.no_rings;
        let mut places = vec![place.clone()];
        if place.surface.is_none() {
            places.extend(self.lit_rings.keys().filter(|lit| lit.workspace == place.workspace).cloned());
        }
        for place in places.into_iter().filter(|place| place.surface.is_some()) {
            let ring = self.attention.ring(&place, now).filter(|_| rings);
            let before = match ring {
                Some(ring) => self.lit_rings.insert(place.clone(), ring),
                None => self.lit_rings.remove(&place),
            };
            if before != ring {
                orders.push(Order::Ring { place, ring });
            }
        }
        let badge = self.attention.badge(&place.workspace);
        let workspace = place.workspace.clone();
        let before = match badge {
            Badge(0) => self.badges.remove(&workspace),
            badge => self.badges.insert(workspace.clone(), badge),
        };
        if before.unwrap_or_default() != badge {
            orders.push(Order::Badge { workspace, badge });
        }
    }

    /// The surfaces with a lit ring.
    pub fn lit_rings(&self) -> impl Iterator<Item = (&SurfaceId, Ring)> {
        self.lit_rings.iter().filter_map(|(place, ring)| Some((place.surface.as_ref()?, *ring)))
    }

    /// Redraws every place that has or had a ring or a badge, after a change that may affect any of them.
    pub(super) fn redraw_all(&mut self, now: Duration, orders: &mut Vec<Order>) {
        let mut places: Vec<Place> = self.lit_rings.keys().cloned().collect();
        places.extend(self.badges.keys().cloned().map(Place::workspace));
        places.extend(self.attention.store().newest_unread().map(|record| record.place.clone()));
        places.extend(self.attention.places_with_reason());
        places.sort();
        places.dedup();
        for place in places {
            self.redraw(now, &place, orders);
        }
    }
}
