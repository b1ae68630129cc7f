//! Remembering and delivering: what is decided is written down, drawn, and sent out.

use super::{Candidate, Engine, MAX_OUT, kind_of};
use crate::bus::Arrival;
use crate::delivery::{Way, plan};
use crate::id::MessageId;
use crate::kind::Kind;
use crate::now::Now;
use crate::order::{Delivery, Order};
use crate::policy::Envelope;
use crate::record::Record;
use crate::toast::{Priority, Toast};

fn is_popup(way: Way) -> bool {
    matches!(way, Way::Desktop | Way::Terminal)
}

/// How old a notification may be when it arrives and still pop up. After a night without a hub, the list is enough.
const LATE_MS: i64 = 10 * 60 * 1000;

impl Engine {
    pub(super) fn remember(
        &mut self,
        now: Now,
        arrival: Arrival<Candidate>,
        envelope: &Envelope,
        orders: &mut Vec<Order>,
    ) {
        let Arrival { place, item: Candidate { incoming, replaces, steps, .. }, .. } = arrival;
        let message = incoming.message;
        let mut plan =
            plan(envelope.effects, self.focus(&place), self.preferences.popup, self.preferences.reorder);
        if now.wall_ms.saturating_sub(message.unix_ms) > LATE_MS && !plan.purposes.is_empty() {
            plan.purposes.clear();
            plan.why.push(
                "it was sent long before anybody took it: remembered, and shown nowhere else".to_owned(),
            );
        }
        let text = &envelope.notification;
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let kind = kind_of(message.draft.tag);
        let mut record =
            Record::new(message.id.clone(), place.clone(), kind, text.body.clone(), message.unix_ms);
        record.title = some(&text.title);
        record.subtitle = some(&text.subtitle);
        record.sender = message.draft.sender.to_string();
        record.scope = message.draft.scope.to_string();
        record.open_question = message.draft.question_id.clone().filter(|_| kind == Kind::Question);
        record.is_read = !plan.unread;
        record.pane_flash = plan.flash;
        let decided = format!("decided: {}", envelope.effects.names().join(", "));
        for step in steps.into_iter().chain(plan.why).chain([decided]) {
            record.trail.add(now.wall_ms, step);
        }
        if !plan.record {
            orders.extend(
                record
                    .trail
                    .steps()
                    .map(|step| Order::Trail { id: message.id.clone(), text: step.text.clone() }),
            );
        } else if self.attention.store().get(&message.id).is_none() {
            let added = self.attention.add(record, now.wall_ms);
            self.supersede(&message.id, added.superseded, &plan.purposes, orders);
            self.added(&message.id, orders);
        } else {
            // Told twice, as after a restart: once is enough.
            return;
        }
        if plan.glow {
            self.attention.glow(place.clone(), now.mono);
        }
        // Whoever looks at the pane needs no line about it.
        if plan.record && !self.focus(&place).is_on_it() {
            let line = [&text.title, &text.body].map(String::as_str).join(if text.title.is_empty() {
                ""
            } else {
                ": "
            });
            self.toasts
                .add(now.mono, Toast::new(format!("notification-{}", message.id), Priority::Medium, line));
        }
        self.redraw(now.mono, &place, orders);
        if plan.flash && plan.record {
            orders.push(Order::Flash(place.clone()));
        }
        if plan.reorder {
            orders.push(Order::Reorder(place.workspace.clone()));
        }
        for mut ways in plan.purposes {
            ways.retain(|way| !self.preferences.closed.contains(way));
            let delivery = |way| Delivery {
                id: message.id.clone(),
                place: place.clone(),
                way,
                title: text.title.clone(),
                subtitle: text.subtitle.clone(),
                body: text.body.clone(),
                kind,
                sender: message.draft.sender.to_string(),
                replaces: replaces.clone(),
            };
            if let Some((first, rest)) = ways.split_first() {
                self.send_out(delivery(*first), rest.to_vec(), orders);
            }
        }
    }

    pub(super) fn send_out(&mut self, delivery: Delivery, rest: Vec<Way>, orders: &mut Vec<Order>) {
        if self.out.len() < MAX_OUT {
            self.out.insert((delivery.id.clone(), delivery.way), (rest, delivery.clone()));
        }
        orders.push(Order::Deliver(Box::new(delivery)));
    }

    pub(super) fn delivered(
        &mut self,
        now: Now,
        id: &MessageId,
        way: Way,
        result: &Result<String, String>,
        orders: &mut Vec<Order>,
    ) {
        let under_way = self.out.remove(&(id.clone(), way));
        let text = match result {
            Ok(what) => format!("{way}: {what}"),
            Err(why) => format!("{way} failed: {why}"),
        };
        self.attention.store_mut().note(id, now.wall_ms, text.clone());
        if self.attention.store().get(id).is_none() {
            orders.push(Order::Trail { id: id.clone(), text });
        } else {
            self.changed_without_withdrawing(id, orders);
        }
        if let (Err(_), Some((rest, delivery))) = (result, under_way)
            && let Some((next, rest)) = rest.split_first()
        {
            self.send_out(Delivery { way: *next, ..delivery }, rest.to_vec(), orders);
        } else if is_popup(way) {
            self.withdraw_superseded(id, orders);
        }
    }

    /// What a newer one superseded is read. Its popup stays until the newer one's has taken its place, if there is one:
    /// a popup that goes and comes back is two.
    fn supersede(
        &mut self,
        newer: &MessageId,
        older: Vec<MessageId>,
        purposes: &[Vec<Way>],
        orders: &mut Vec<Order>,
    ) {
        let closed = &self.preferences.closed;
        let pops_up =
            purposes.iter().flatten().filter(|way| is_popup(**way)).any(|way| !closed.contains(way));
        if !pops_up || self.superseded.len() >= MAX_OUT {
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
