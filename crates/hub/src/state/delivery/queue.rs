//! Limits the deliveries in flight. Each channel has its own limit, so that a webhook that does not answer delays only webhooks.

use std::collections::{HashMap, HashSet, VecDeque};

use ringer_core::MessageId;
use ringer_core::policy::DeliveryChannel;

/// The most deliveries of one channel in flight. Each is a task of the executor.
const MAX_IN_FLIGHT: usize = 256;
/// The most waiting deliveries. Beyond that, no more messages are read from the journal. About 10 MB of ids.
const MAX_WAITING: usize = 100_000;

/// The deliveries in flight, and those that wait.
#[derive(Debug, Default)]
pub(in crate::state) struct Deliveries {
    in_flight: HashMap<MessageId, Vec<DeliveryChannel>>,
    counts: HashMap<DeliveryChannel, usize>,
    /// Waiting deliveries in order. Only their ids; the hub store has the rest.
    queues: HashMap<DeliveryChannel, VecDeque<MessageId>>,
    /// A delivery that is in a queue but not here was withdrawn.
    waiting: HashSet<(MessageId, DeliveryChannel)>,
}

impl Deliveries {
    /// Starts a delivery, or queues it if its channel has no room. Returns true if it starts now.
    pub(in crate::state) fn start(&mut self, id: &MessageId, channel: DeliveryChannel) -> bool {
        if self.has_room(channel) && self.queues.get(&channel).is_none_or(VecDeque::is_empty) {
            self.add(id.clone(), channel);
            return true;
        }
        if self.waiting.insert((id.clone(), channel)) {
            self.queues.entry(channel).or_default().push_back(id.clone());
        }
        false
    }

    /// Takes a waiting delivery whose channel has room, and counts it as in flight.
    pub(in crate::state) fn take_next(&mut self) -> Option<(MessageId, DeliveryChannel)> {
        for channel in DeliveryChannel::ALL {
            while self.has_room(channel)
                && let Some(id) = self.queues.get_mut(&channel).and_then(VecDeque::pop_front)
            {
                if self.waiting.remove(&(id.clone(), channel)) {
                    self.add(id.clone(), channel);
                    return Some((id, channel));
                }
            }
        }
        None
    }

    pub(in crate::state) fn finish(&mut self, id: &MessageId, channel: DeliveryChannel) {
        self.remove(id, |own| own == channel);
    }

    /// Withdraws a notification: its waiting deliveries never start. The executor aborts those in flight without a report, except
    /// for the person's command, which may have side effects and therefore runs to its end.
    pub(in crate::state) fn withdraw(&mut self, id: &MessageId) {
        self.remove(id, |own| own != DeliveryChannel::Command);
        for channel in DeliveryChannel::ALL {
            self.waiting.remove(&(id.clone(), channel));
        }
    }

    /// Returns the number of deliveries that are in flight or wait.
    pub(in crate::state) fn count(&self) -> usize {
        self.counts.values().sum::<usize>() + self.waiting.len()
    }

    pub(in crate::state) fn is_full(&self) -> bool {
        self.waiting.len() >= MAX_WAITING
    }

    fn has_room(&self, channel: DeliveryChannel) -> bool {
        self.counts.get(&channel).is_none_or(|count| *count < MAX_IN_FLIGHT)
    }

    fn add(&mut self, id: MessageId, channel: DeliveryChannel) {
        self.in_flight.entry(id).or_default().push(channel);
        *self.counts.entry(channel).or_default() += 1;
    }

    fn remove(&mut self, id: &MessageId, is_over: impl Fn(DeliveryChannel) -> bool) {
        let Some(channels) = self.in_flight.get_mut(id) else { return };
        for channel in channels.extract_if(.., |own| is_over(*own)) {
            self.counts.entry(channel).and_modify(|count| *count -= 1);
        }
        if channels.is_empty() {
            self.in_flight.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> MessageId {
        MessageId::new(number as u64, [0; 10])
    }

    #[test]
    fn a_report_that_comes_after_a_withdrawal_counts_once() {
        let id = id(1);
        let mut deliveries = Deliveries::default();
        for channel in [DeliveryChannel::Desktop, DeliveryChannel::Command] {
            assert!(deliveries.start(&id, channel));
        }
        deliveries.withdraw(&id);
        assert_eq!(deliveries.count(), 1, "the command runs on");
        deliveries.finish(&id, DeliveryChannel::Desktop);
        assert_eq!(deliveries.count(), 1);
        deliveries.finish(&id, DeliveryChannel::Command);
        deliveries.finish(&id, DeliveryChannel::Command);
        assert_eq!((deliveries.count(), deliveries.in_flight.len()), (0, 0));
    }

    #[test]
    fn a_channel_that_is_full_holds_up_no_other() {
        let mut deliveries = Deliveries::default();
        for number in 0..MAX_IN_FLIGHT {
            assert!(deliveries.start(&id(number), DeliveryChannel::Webhook));
        }
        for number in 0..3 {
            assert!(!deliveries.start(&id(MAX_IN_FLIGHT + number), DeliveryChannel::Webhook));
        }
        assert!(deliveries.start(&id(MAX_IN_FLIGHT), DeliveryChannel::Desktop));
        assert!(!deliveries.is_full() && deliveries.take_next().is_none());
        deliveries.withdraw(&id(MAX_IN_FLIGHT));
        deliveries.finish(&id(7), DeliveryChannel::Webhook);
        assert!(!deliveries.start(&id(9999), DeliveryChannel::Webhook), "others came before");
        assert_eq!(deliveries.take_next(), Some((id(MAX_IN_FLIGHT + 1), DeliveryChannel::Webhook)));
        assert_eq!(deliveries.take_next(), None);
        assert_eq!(deliveries.count(), MAX_IN_FLIGHT + 2, "two wait");
    }
}
