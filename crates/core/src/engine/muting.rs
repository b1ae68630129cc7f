//! Mutes on demand: muted notifications are listed as unread and draw no attention.

use super::Engine;
use crate::attention::{Cause, Command, PreviousState, UndoKind};
use crate::engine::{Delivery, FeatureValue, Order, SavedState};
use crate::message::{Place, ShownKind, is_about_impostors};
use crate::policy::{Effects, MuteTarget, RequestedMute, RequestedMutes};
use crate::time::Now;

impl FeatureValue for RequestedMute {
    const FEATURE: &'static str = "mute";

    fn key(&self) -> String {
        self.target.to_string()
    }
}

impl MuteTarget {
    /// Removes the saved mute of this target.
    pub fn removal(&self) -> SavedState {
        SavedState::removal::<RequestedMute>(self.to_string())
    }
}

impl Engine {
    /// The mutes that the person asked for.
    pub fn mutes(&self) -> &RequestedMutes {
        &self.mutes
    }

    /// Sets a mute from the key and the text of its mark. Also removes mutes that have ended, since something is written
    /// anyway.
    pub(super) fn set_mute(&mut self, now: Now, key: &str, text: &str, orders: &mut Vec<Order>) {
        let Some((mute, command)) = RequestedMute::of_mark(key, text) else { return };
        let ended = self.mutes.remove_ended(now.wall_ms);
        orders.extend(ended.into_iter().map(|target| Order::SaveState(Box::new(target.removal()))));
        if !self.mutes.has_room_for(&mute.target) {
            return;
        }
        let before = self.mutes.set(mute.clone());
        let command = Command { id: command, kind: UndoKind::Mute };
        self.note_mute(Some(&command), mute.target.clone(), before, orders);
        orders.push(Order::SaveState(Box::new(mute.saved())));
    }

    /// Ends the mute that the key of a mark names, or all mutes.
    pub(super) fn end_mutes(&mut self, key: &str, command: Option<&Command>, orders: &mut Vec<Order>) {
        for target in self.mutes.named(key) {
            let before = self.mutes.remove(&target);
            orders.push(Order::SaveState(Box::new(target.removal())));
            self.note_mute(command, target, before, orders);
        }
    }

    fn note_mute(
        &mut self,
        command: Option<&Command>,
        target: MuteTarget,
        before: Option<RequestedMute>,
        orders: &mut Vec<Order>,
    ) {
        if let Some(command) = command {
            self.note(command, PreviousState::Mute { target, before }, orders);
        }
    }

    /// Undoes a command that set or ended a mute. A mute that would have ended meanwhile is not set again.
    pub(super) fn restore_mute(
        &mut self,
        now: Now,
        target: &MuteTarget,
        before: Option<RequestedMute>,
        orders: &mut Vec<Order>,
    ) {
        if let Some(mute) = before.filter(|mute| mute.holds(now.wall_ms)) {
            self.mutes.set(mute.clone());
            orders.push(Order::SaveState(Box::new(mute.saved())));
        } else if self.mutes.remove(target).is_some() {
            orders.push(Order::SaveState(Box::new(target.removal())));
        }
    }

    /// Returns true if a delivery that has not started is muted now.
    pub(super) fn is_muted(&self, now: Now, delivery: &Delivery) -> bool {
        let record = self.attention.store().get(&delivery.id);
        if record.is_some_and(|record| is_about_impostors(record.category.as_deref())) {
            return false;
        }
        let scope = record.map(|record| &*record.scope);
        let of = (delivery.sender.as_str(), &delivery.place, scope.unwrap_or_default());
        self.mutes.muting(now.wall_ms, of, delivery.kind).is_some()
    }

    /// Reduces the effects of a notification if it is muted now. Returns the remaining effects and the reason. Hooks cannot
    /// turn the others on again: the person has the last word.
    pub(super) fn apply_mutes(
        &self,
        now: Now,
        effects: Effects,
        of: (&str, &Place, &str),
        (kind, category): (ShownKind, Option<&str>),
    ) -> (Effects, Option<Cause>) {
        let muting = self.mutes.muting(now.wall_ms, of, kind).filter(|_| !is_about_impostors(category));
        match muting {
            None => (effects, None),
            Some(mute) => {
                let (target, until_unix_ms) = (mute.target.clone(), mute.until_unix_ms);
                (effects.muted(), Some(Cause::MutedByPerson { target, until_unix_ms }))
            }
        }
    }
}
