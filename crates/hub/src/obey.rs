//! Obeying: what the engine ordered is written into the book, drawn by the hosts, told to those who follow, or handed to
//! the performer.

use ringer_core::{Delivery, DeliveryChannel, Event, MessageId, Now, Order, Place, Record, SurfaceId};
use ringer_journal::{DeadLetter, PendingDelivery, ShownPopup};
use serde_json::{Value, json};

use crate::dispatch::{Dispatcher, MAX_READ};
use crate::perform::{Job, Report, UnderWay};
use crate::terminals::Terminal;
use crate::tmux::TmuxPane;
use crate::view;

/// Terminals of a workspace that are tried for a message that came from none of them. The first is nearly always there; the
/// others are tried when it was closed since it spoke.
const MAX_TRIED: usize = 8;
/// Notifications that are added before the memory is trimmed again.
const TRIM_EVERY: usize = 1_000;

impl Dispatcher {
    pub(crate) fn carry_out(&mut self, now: Now, orders: Vec<Order>) {
        for order in orders {
            self.obey(now, order);
        }
        for surface in self.hosts.iter_mut().flat_map(|host| host.gone()).collect::<Vec<_>>() {
            self.handle(Event::SurfaceGone(surface));
        }
    }

    pub(crate) fn obey(&mut self, now: Now, order: Order) {
        match order {
            Order::RunHook { ticket, hook, envelope } => {
                let program = self.hook_programs.get(&hook);
                self.perform(Job::Hook { ticket, program, envelope });
            }
            Order::SaveRecord { record, is_new } => self.remember(now, *record, is_new),
            Order::DeleteRecord(id) => {
                self.book.forget(&id);
                self.events.add(now.wall_ms, "notification.removed", json!({ "id": id }));
            }
            Order::AddTrailStep { id, text } => self.book.step(id, now.wall_ms, text),
            Order::AppendToJournal { surface, title, body, category } => {
                self.append_sign(&surface, title.as_ref(), &body, category);
            }
            Order::ApplySignal { surface, agent: _, signal } => self.apply_signal(&surface, signal),
            Order::Deliver(delivery) => self.book.send(*delivery),
            Order::Withdraw(id) => {
                self.book.withdraw(&id);
                self.perform(Job::Withdraw(id));
            }
            Order::Ring { place, lit } => {
                self.hosts.iter_mut().for_each(|host| host.ring(&place, lit));
                self.ring_title(&place, lit);
                self.events.add(now.wall_ms, "ring", json!({ "place": place, "lit": lit }));
            }
            Order::Badge { workspace, badge } => {
                self.hosts.iter_mut().for_each(|host| host.badge(&workspace, badge));
                let data = json!({ "workspace": workspace, "badge": badge.0, "text": badge.to_string() });
                self.events.add(now.wall_ms, "badge", data);
            }
            Order::Flash(place) if self.flash => {
                self.hosts.iter_mut().for_each(|host| host.flash(&place));
            }
            Order::Flash(_) => {}
            Order::Reorder(workspace) => {
                self.events.add(now.wall_ms, "reorder", json!({ "workspace": workspace }));
            }
            Order::ShowToast(toast) => {
                self.hosts.iter_mut().for_each(|host| host.toast(toast.as_ref()));
                let data = toast.map(|toast| json!({ "key": toast.key, "text": toast.text() }));
                self.events.add(now.wall_ms, "toast", data.unwrap_or(Value::Null));
            }
            Order::Indicator { key, text } => {
                self.events.add(now.wall_ms, "indicator", json!({ "key": key, "text": text }));
            }
        }
    }

    pub(crate) fn remember(&mut self, now: Now, record: Record, is_new: bool) {
        let data = view::notification(&record, &self.clock);
        let name = if is_new { "notification.created" } else { "notification.updated" };
        self.events.add(now.wall_ms, name, data);
        self.book.remember(record);
        self.added += 1;
        if self.added >= TRIM_EVERY {
            self.added = 0;
            self.engine.trim(MAX_READ);
        }
    }

    /// The deliveries of an earlier hub that this version can read. The others are given up: no version after this one
    /// reads them either, so they would be in the outbox for ever.
    pub(crate) fn readable(&mut self, outbox: Vec<PendingDelivery>) -> Vec<Delivery> {
        let mut deliveries = Vec::new();
        for row in outbox {
            match serde_json::from_str(&row.delivery) {
                Ok(delivery) => deliveries.push(delivery),
                Err(error) => {
                    let why = format!("what an earlier hub wrote down of it cannot be read: {error}");
                    self.log.line(format!("giving up {} of {}: {why}", row.way, row.id));
                    self.book.give_up(row, why, self.clock.now().wall_ms);
                }
            }
        }
        deliveries
    }

    pub(crate) fn send(&mut self, delivery: Delivery) {
        let terminals = match delivery.channel {
            DeliveryChannel::Terminal => self.terminals_of(&delivery.place),
            _ => Vec::new(),
        };
        let callers =
            if delivery.channel == DeliveryChannel::Desktop { self.callers.recent() } else { Vec::new() };
        let under_way = UnderWay::begin(&self.under_way);
        self.perform(Job::Deliver { delivery: Box::new(delivery), terminals, callers, under_way });
    }

    /// The terminal of a place; of a workspace as a whole, those in it, the one that spoke last first.
    fn terminals_of(&self, place: &Place) -> Vec<Terminal> {
        if let Some(surface) = &place.surface {
            return self.terminal_of(surface).into_iter().collect();
        }
        let surfaces = self.hosts.iter().flat_map(|host| host.surfaces());
        let near = surfaces.filter(|info| info.workspace == place.workspace && info.tty.is_some());
        near.take(MAX_TRIED).map(|info| Terminal { tty: info.tty, surface: info.surface }).collect()
    }

    /// The terminal of a surface.
    pub(crate) fn terminal_of(&self, surface: &SurfaceId) -> Option<Terminal> {
        let tty = self.hosts.iter().find_map(|host| host.surface(surface)).and_then(|info| info.tty);
        // After a restart no terminal is known until it speaks, but its id says which it is.
        let named = || Some(surface.as_str().strip_prefix("tty:")?.rsplit_once('@')?.0.to_owned());
        let tty = tty.or_else(named);
        (tty.is_some() || TmuxPane::of(surface).is_some()).then(|| Terminal { tty, surface: surface.clone() })
    }

    pub(crate) fn perform(&mut self, job: Job) {
        self.unsent.push_back(job);
        self.hand_on();
    }

    /// Hands jobs on as far as the performer takes them at once; the rest follows when it does.
    pub(crate) fn hand_on(&mut self) {
        while !self.unsent.is_empty()
            && let Ok(permit) = self.jobs.try_reserve()
            && let Some(job) = self.unsent.pop_front()
        {
            permit.send(job);
        }
    }

    pub(crate) fn delivered(&mut self, id: MessageId, way: DeliveryChannel, report: Report) {
        self.book.settle(&id, way);
        for surface in &report.gone {
            self.hosts.iter_mut().for_each(|host| host.forget(surface));
        }
        if let Some(shown) = report.shown {
            let record = self.engine.attention().store().get(&id);
            let surface = record.and_then(|record| record.place.surface.as_ref()).map(ToString::to_string);
            let key = surface.unwrap_or_else(|| id.to_string());
            let (number, server) = (shown.number, shown.server);
            self.book.shown(ShownPopup { key, id: id.clone(), number, server });
        }
        if let (DeliveryChannel::Webhook, Err(why)) = (way, &report.result) {
            let unix_ms = self.clock.now().wall_ms;
            self.book.bury(DeadLetter { id: id.clone(), target: way.to_string(), why: why.clone(), unix_ms });
        }
        self.handle(Event::Delivered { id, channel: way, result: report.result });
        self.hungry = true;
    }
}
