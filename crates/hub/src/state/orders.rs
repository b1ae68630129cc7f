//! Executes the orders of the engine: they are stored, drawn by hosts, published, or passed to the executor.

use ringer_core::attention::Record;
use ringer_core::engine::Delivery;
use ringer_core::message::{Place, SurfaceId};
use ringer_core::policy::{DeliveryChannel, RequestedMute};
use ringer_core::{Event, MessageId, Now, Order, Sender};
use ringer_deliver::DisplayedPopup;
use ringer_ipc::part::{PartEvent, TitleOutcome};
use ringer_journal::{DeadLetter, PendingDelivery, ShownPopup};
use serde_json::{Value, json};

use super::HubState;
use super::delivery::title_marks::TitleStep;
use crate::delivery::titles::TitleMarkChange;
use crate::hosts::protocol::{HostOrder, SentOrder};
use crate::message::{Action, DeliveryReport, Job};

impl HubState {
    pub(super) fn execute_orders(&mut self, now: Now, orders: Vec<Order>) {
        for order in orders {
            self.execute_order(now, order);
        }
        for surface in self.surfaces.take_gone() {
            self.feed_engine(now, Event::SurfaceGone(surface));
        }
    }

    pub(super) fn execute_order(&mut self, now: Now, order: Order) {
        match order {
            Order::RunHook { ticket, hook, hook_input } => {
                let program = self.settings.hook_program(&hook);
                self.execute(Job::Hook { ticket, program, hook_input });
            }
            Order::SaveRecord { record, is_new } => self.save_record(now, *record, is_new),
            Order::DeleteRecord(id) => {
                self.notifications.writes().delete(&id);
                self.publish(now, "notification.removed", json!({ "id": id }));
            }
            Order::SaveState(state) => {
                let is_mute = state.is::<RequestedMute>();
                self.notifications.writes().save_state(*state);
                if is_mute {
                    self.publish_mutes(now);
                }
            }
            Order::AddTrailStep { id, cause } => self.notifications.writes().add_step(id, now.wall_ms, cause),
            Order::AppendToJournal { surface, notification, category, report } => {
                self.append_terminal_notification(now, &surface, &notification, category, report);
            }
            Order::WithdrawFromTerminal { surface, id, report } => {
                self.withdraw_terminal_notification(now, &surface, &id, report);
            }
            Order::NotifyOfSource(notification) => self.append_source_notification(now, &notification),
            Order::ApplySignal { surface, agent: _, signal } => self.apply_signal(now, &surface, signal),
            Order::Deliver(delivery) => self.notifications.writes().start_delivery(*delivery),
            Order::Withdraw(id) => {
                self.notifications.writes().withdraw(&id);
                self.deliveries.withdraw(&id);
                self.execute(Job::Withdraw(id));
            }
            Order::Ring { place, ring } => {
                if let Some(surface) = &place.surface {
                    let around = self.surfaces.around(surface);
                    self.tell_rings([surface.clone()].into_iter().chain(around));
                }
                self.ring_title(&place, ring.is_some());
                let mut data = json!(ring.unwrap_or_default());
                data["place"] = json!(place);
                data["lit"] = json!(ring.is_some());
                self.publish(now, "ring", data);
            }
            Order::Badge { workspace, badge } => {
                let told = self.surfaces.badge(&workspace, badge);
                self.tell_hosts(told);
                let data = json!({ "workspace": workspace, "badge": badge.0, "text": badge.to_string() });
                self.publish(now, "badge", data);
            }
            Order::Flash(place) => {
                let told = self.surfaces.flash(&place);
                self.tell_hosts(told);
            }
            Order::Reorder(workspace) => self.publish(now, "reorder", json!({ "workspace": workspace })),
            Order::ShowToast(toast) => {
                self.tell_host_toast();
                let data = toast.map(|toast| json!({ "key": toast.key, "text": toast.text() }));
                self.publish(now, "toast", data.unwrap_or(Value::Null));
            }
            Order::ReportHook { hook, failure } => self.hook_reported(now, &hook, failure),
            Order::Indicator { key, text } => {
                self.publish(now, "indicator", json!({ "key": key, "text": text }));
                let order = HostOrder::Indicator { key: key.clone(), text: text.clone() };
                self.tell_hosts(self.surfaces.for_all(&order));
                if text.is_empty() {
                    self.indicators.remove(&key);
                } else {
                    self.indicators.insert(key, text);
                }
            }
        }
    }

    /// Sends hosts the rings of these surfaces, which include the rings inside them.
    pub(super) fn tell_rings(&mut self, surfaces: impl IntoIterator<Item = SurfaceId>) {
        let engine = self.notifications.engine();
        let orders = |surface: SurfaceId| self.surfaces.ring_orders(&surface, None, engine.lit_rings());
        let told: Vec<SentOrder> = surfaces.into_iter().flat_map(orders).collect();
        self.tell_hosts(told);
    }

    pub(super) fn tell_hosts(&mut self, orders: impl IntoIterator<Item = SentOrder>) {
        self.actions.extend(orders.into_iter().map(Action::Tell));
    }

    pub(super) fn publish(&mut self, now: Now, event: &'static str, data: Value) {
        self.act(Action::Publish { unix_ms: now.wall_ms, event, data });
    }

    pub(super) fn save_record(&mut self, now: Now, record: Record, is_new: bool) {
        if let Some(surface) = record.place.surface.as_ref().filter(|_| is_new) {
            self.parts.tell(PartEvent::SurfaceActive(surface));
        }
        let data = self.notifications.view(&record, &self.clock);
        let event = if is_new { "notification.created" } else { "notification.updated" };
        self.publish(now, event, data);
        self.notifications.save(record);
    }

    /// Starts a stored delivery, or queues it until its channel has room.
    pub(super) fn start_delivery(&mut self, delivery: Delivery) {
        if self.deliveries.start(&delivery.id, delivery.channel) {
            self.execute_delivery(delivery);
        }
    }

    /// Starts queued deliveries whose channels have room.
    pub(super) fn start_waiting_deliveries(&mut self, now: Now) {
        while let Some((id, channel)) = self.deliveries.take_next() {
            match self.notifications.store().pending_delivery(&id, channel.as_str()) {
                Ok(row) => match self.readable_deliveries(now, row.into_iter().collect()).pop() {
                    Some(delivery) => self.execute_delivery(delivery),
                    None => self.deliveries.finish(&id, channel),
                },
                Err(error) => {
                    self.log(format!("cannot read what is to be delivered: {error}"));
                    self.deliveries.finish(&id, channel);
                    self.deliveries.start(&id, channel);
                    return self.ingest.pause(self.time.mono(now));
                }
            }
        }
    }

    fn execute_delivery(&mut self, mut delivery: Delivery) {
        // A bell has no heading and Ringer as its sender, so the name of the pane says more.
        let has_heading = [&delivery.title, &delivery.subtitle].iter().any(|text| !text.trim().is_empty());
        if !has_heading && delivery.sender == Sender::system().as_str() {
            let pane = delivery.place.surface.as_ref().filter(|surface| surface.is_pane());
            delivery.title = pane.and_then(|pane| self.surfaces.name_of(pane)).unwrap_or_default();
        }
        let prompt = self.popup_prompt(&mut delivery);
        let terminals = match delivery.channel {
            DeliveryChannel::Terminal => self.surfaces.terminals_of(&delivery.place),
            _ => Vec::new(),
        };
        let senders = match delivery.channel {
            DeliveryChannel::Desktop => self.surfaces.senders(),
            _ => Vec::new(),
        };
        self.execute(Job::Deliver { delivery: Box::new(delivery), terminals, senders, prompt });
    }

    /// Stores the result of a delivery, and tells the engine.
    pub(super) fn record_delivery(
        &mut self,
        now: Now,
        id: &MessageId,
        channel: DeliveryChannel,
        report: DeliveryReport,
    ) {
        self.notifications.writes().finish_delivery(id, channel);
        for surface in &report.closed {
            self.surfaces.forget(surface);
        }
        let popup = report.popup.as_ref().map(|popup| popup.handle.number);
        if let Some(DisplayedPopup { handle, offer }) = report.popup {
            // The same key as on the desktop: a prompt has its own popup, other notifications share their surface's.
            let record = self.notifications.get(id).filter(|record| !record.is_prompt());
            let surface = record.and_then(|record| record.place.surface.as_ref()).map(ToString::to_string);
            let key = surface.unwrap_or_else(|| id.to_string());
            let (number, server) = (handle.number, handle.server);
            let popup = ShownPopup { key, id: id.clone(), number, server, offer };
            self.notifications.writes().popup_shown(popup);
        }
        if let (DeliveryChannel::Webhook | DeliveryChannel::AwayWebhook, Err(why)) = (channel, &report.result)
        {
            let letter = DeadLetter {
                id: id.clone(),
                target: channel.to_string(),
                why: why.clone(),
                unix_ms: now.wall_ms,
            };
            self.notifications.writes().add_dead_letter(letter);
        }
        self.feed_engine(now, Event::Delivered { id: id.clone(), channel, result: report.result, popup });
    }

    /// Decodes the deliveries of an earlier hub. Those that this version cannot read are given up: no later version could read
    /// them either, so they would stay forever.
    pub(super) fn readable_deliveries(&mut self, now: Now, rows: Vec<PendingDelivery>) -> Vec<Delivery> {
        let mut deliveries = Vec::new();
        for row in rows {
            match serde_json::from_str(&row.delivery) {
                Ok(delivery) => deliveries.push(delivery),
                Err(error) => {
                    let why = format!("what an earlier hub wrote down of it cannot be read: {error}");
                    self.log(format!("giving up {} of {}: {why}", row.channel, row.id));
                    self.notifications.writes().give_up(row, why, now.wall_ms);
                }
            }
        }
        deliveries
    }

    /// Sets or removes the title mark of a place whose surface rings that way.
    pub(super) fn ring_title(&mut self, place: &Place, lit: bool) {
        let Some(surface) = &place.surface else { return };
        if self.surfaces.rings_by_title(surface) || !lit {
            let step = self.title_marks.want(place, lit);
            self.change_title(step);
        }
    }

    /// Removes the marks of an earlier hub from places where nothing is unread.
    pub(super) fn check_title_marks(&mut self, now: Now) {
        for place in self.title_marks.places() {
            if !self.notifications.has_ring(&place, now.mono) {
                self.ring_title(&place, false);
            }
        }
    }

    pub(super) fn change_title(&mut self, step: Option<TitleStep>) {
        let (place, set) = match step {
            Some(TitleStep::Set(place)) => (place, true),
            Some(TitleStep::Remove(place)) => (place, false),
            None => return,
        };
        let Some(surface) = place.surface.clone() else { return };
        let change = if surface.tmux().is_some() {
            Some(TitleMarkChange::of_pane(surface.clone(), set))
        } else {
            self.surfaces.terminal_of(&surface).map(|terminal| TitleMarkChange::on_stack(terminal, set))
        };
        if let Some(change) = change {
            self.title_changes.push(change);
        } else {
            // The terminal is unknown, so no mark can be set or removed.
            let step = self.title_marks.tried(&surface, TitleOutcome::Gone);
            self.change_title(step);
        }
    }
}
