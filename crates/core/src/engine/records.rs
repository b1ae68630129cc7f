//! Records, draws and delivers a notification after the decision.

use super::{Candidate, Engine, MAX_IN_FLIGHT};
use crate::arrival::Arrival;
use crate::attention::{Cause, ReadReason, Record, digest_id};
use crate::engine::{Delivery, Order};
use crate::message::{ICON, Kind, MessageId, Place, ShownKind, Tag};
use crate::policy::{DeliveryChannel, DeliveryPlan, HookInput, PopupMode, plan_delivery};
use crate::time::Now;

/// The kind of a message. A mark has the kind of a status.
pub(super) fn kind_of(tag: Tag) -> Kind {
    match tag {
        Tag::Notice(kind) => kind,
        Tag::Mark(_) => Kind::Status,
    }
}

/// The maximum age at which an arriving notification is still delivered. Older ones are only recorded: after a night without a
/// hub, a list helps more than a hundred popups at once. Ten minutes is a choice, not a measurement.
const MAX_AGE_MS: i64 = 10 * 60 * 1000;

impl Engine {
    pub(super) fn record(
        &mut self,
        now: Now,
        arrival: Arrival<Candidate>,
        hook_input: &HookInput,
        orders: &mut Vec<Order>,
    ) {
        let Arrival { place, item: Candidate { incoming, replaces, done, steps, .. }, .. } = arrival;
        let message = incoming.message;
        let draft = &message.draft;
        let kind = kind_of(draft.tag);
        let of = (draft.sender.as_str(), &place, draft.scope.as_str());
        let shown_kind = ShownKind::of(kind, draft.category.as_deref());
        let (effects, muted) =
            self.apply_mutes(now, hook_input.effects, of, (shown_kind, draft.category.as_deref()));
        let (effects, held_back) = self.hold_back(effects, shown_kind);
        let mut plan =
            plan_delivery(effects, self.is_in_view(&place), self.preferences.popup, self.preferences.reorder);
        plan.why.extend(muted.into_iter().chain(held_back));
        if now.wall_ms.saturating_sub(message.unix_ms) > MAX_AGE_MS && !plan.deliveries.is_empty() {
            plan.deliveries.clear();
            plan.why.push(Cause::TooOld);
        }
        let is_old = plan.why.contains(&Cause::TooOld);
        let text = &hook_input.notification;
        let some = |text: &String| Some(text.as_str()).filter(|text| !text.is_empty()).map(Into::into);
        let mut record = Record::from_message(&message, place.clone(), kind, text.body.clone());
        record.title = some(&text.title);
        record.subtitle = some(&text.subtitle);
        record.is_read = !plan.unread;
        record.is_resolved = record.is_read && record.ends_when_read(&ReadReason::Looked);
        record.pane_flash = plan.flash;
        record.escalates_ms = self.escalation_of(now, shown_kind, effects).filter(|_| !is_old).into();
        self.leave_out_disabled(&mut plan, shown_kind);
        plan.retain(|channel| !done.contains(&channel));
        record.had_popup = plan.deliveries.iter().flatten().any(|channel| channel.is_popup());
        let decided = Cause::Decided {
            channels: plan.deliveries.clone(),
            listed: plan.record,
            unread: plan.unread,
            effects: effects.names().into_iter().map(str::to_owned).collect(),
        };
        for step in steps.into_iter().chain(plan.why.drain(..)).chain([decided]) {
            record.add_step(now.wall_ms, step);
        }
        if !plan.record {
            orders.extend(
                record
                    .trail
                    .steps()
                    .map(|step| Order::AddTrailStep { id: message.id.clone(), cause: step.cause.clone() }),
            );
        } else if self.attention.store().get(&message.id).is_none() {
            self.turn_ends.add(&record);
            let added = self.attention.add(record, now.wall_ms);
            self.supersede(&message.id, added.superseded, &plan.deliveries, orders);
            self.added(&message.id, orders);
        } else {
            // The same message again, for example after a restart.
            return;
        }
        let delivery = |channel| Delivery {
            id: message.id.clone(),
            place: place.clone(),
            channel,
            title: text.title.clone(),
            subtitle: text.subtitle.clone(),
            body: text.body.clone(),
            kind: shown_kind,
            sender: message.draft.sender.to_string(),
            replaces: replaces.clone(),
            icon: message.draft.origin.meta.get(ICON).cloned(),
        };
        self.present(now, &place, plan, delivery, orders);
    }

    /// Removes channels that are not configured.
    pub(super) fn leave_out_disabled(&self, plan: &mut DeliveryPlan, kind: ShownKind) {
        let is_silent = self.preferences.silent_kinds.contains(&kind);
        let enabled = |channel| {
            let has_no_sound = is_silent && channel == DeliveryChannel::Sound;
            !has_no_sound && !self.preferences.disabled_channels.contains(&channel)
        };
        plan.retain(enabled);
    }

    /// Draws and delivers a notification as planned.
    pub(super) fn present(
        &mut self,
        now: Now,
        place: &Place,
        plan: DeliveryPlan,
        delivery: impl Fn(DeliveryChannel) -> Delivery,
        orders: &mut Vec<Order>,
    ) {
        if plan.brief_ring {
            self.attention.start_brief_ring(place.clone(), now.mono);
        }
        self.redraw(now.mono, place, orders);
        if plan.flash && plan.record {
            orders.push(Order::Flash(place.clone()));
        }
        if plan.reorder {
            orders.push(Order::Reorder(place.workspace.clone()));
        }
        for channels in plan.deliveries {
            if let Some((first, rest)) = channels.split_first() {
                self.start_delivery(delivery(*first), rest.to_vec(), orders);
            }
        }
    }

    pub(super) fn start_delivery(
        &mut self,
        delivery: Delivery,
        rest: Vec<DeliveryChannel>,
        orders: &mut Vec<Order>,
    ) {
        if self.in_flight.len() < MAX_IN_FLIGHT {
            self.in_flight.insert((delivery.id.clone(), delivery.channel), (rest, delivery.clone()));
        }
        orders.push(Order::Deliver(Box::new(delivery)));
    }

    pub(super) fn delivered(
        &mut self,
        now: Now,
        id: &MessageId,
        channel: DeliveryChannel,
        result: Result<String, String>,
        popup: Option<u32>,
        orders: &mut Vec<Order>,
    ) {
        let delivery = self.in_flight.remove(&(id.clone(), channel));
        let has_failed = result.is_err();
        if let Some((_, delivery)) = delivery.as_ref().filter(|_| !has_failed) {
            self.window.delivered(&delivery.place, id, channel);
        }
        let cause = match result {
            Ok(how) => Cause::Delivered { channel, how, popup },
            Err(why) => Cause::DeliveryFailed { channel, why },
        };
        self.attention.store_mut().add_trail_step(id, now.wall_ms, cause.clone());
        if *id == digest_id() {
            // The digest is not a message, so it has no trail.
        } else if self.attention.store().get(id).is_none() {
            orders.push(Order::AddTrailStep { id: id.clone(), cause });
        } else {
            self.changed_without_withdrawing(id, orders);
        }
        let next = delivery.filter(|_| has_failed).and_then(|(rest, delivery)| {
            let (next, rest) = rest.split_first()?;
            self.is_still_wanted(now, &delivery)
                .then(|| (Delivery { channel: *next, ..delivery }, rest.to_vec()))
        });
        match next {
            Some((delivery, rest)) => self.start_delivery(delivery, rest, orders),
            None if channel.is_popup() => {
                if has_failed {
                    self.popup_failed(id, orders);
                }
                self.withdraw_superseded(id, orders);
            }
            None => {}
        }
    }

    /// Returns true if a failed delivery should be tried with another channel.
    fn is_still_wanted(&self, now: Now, delivery: &Delivery) -> bool {
        if delivery.id == digest_id() {
            return !self.is_away();
        }
        // A notification that is not in the store was not withdrawn when the person began to look at its pane.
        let is_seen = self.is_in_view(&delivery.place);
        let is_held_back = delivery.channel.is_popup() && self.is_held_back(delivery.kind);
        !is_seen && !is_held_back && !self.is_muted(now, delivery)
    }

    /// Records that no channel could show the popup of a notification.
    fn popup_failed(&mut self, id: &MessageId, orders: &mut Vec<Order>) {
        // With `both` the other channel may have shown it, so it counts as shown.
        let is_only = self.preferences.popup != PopupMode::Both;
        if let Some(record) = self.attention.store().get(id).filter(|record| record.had_popup && is_only) {
            self.turn_ends.popup_failed(record);
            self.attention.store_mut().popup_failed(id);
            self.changed_without_withdrawing(id, orders);
        }
    }

    /// Saves the older notifications that a newer one superseded; they are read now. If the newer one gets a popup, their
    /// popups stay until it is shown: the desktop then replaces the old popup instead of closing one and opening another.
    fn supersede(
        &mut self,
        newer: &MessageId,
        older: Vec<MessageId>,
        deliveries: &[Vec<DeliveryChannel>],
        orders: &mut Vec<Order>,
    ) {
        let pops_up = deliveries.iter().flatten().any(|channel| channel.is_popup());
        if !pops_up || self.superseded.len() >= MAX_IN_FLIGHT {
            return self.changed(&older, orders);
        }
        for id in &older {
            self.changed_without_withdrawing(id, orders);
        }
        if !older.is_empty() {
            self.superseded.insert(newer.clone(), older);
        }
    }

    pub(super) fn withdraw_superseded(&mut self, newer: &MessageId, orders: &mut Vec<Order>) {
        for older in self.superseded.remove(newer).unwrap_or_default() {
            self.withdraw(&older, orders);
        }
    }
}
