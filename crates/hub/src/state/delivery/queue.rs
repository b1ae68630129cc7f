//! Deliveries that were started and not reported yet, and those that wait for their turn. Each channel has a limit of its
//! own, so that a webhook that does not answer holds up nothing but webhooks.

use std::collections::{HashMap, HashSet, VecDeque};

use ringer_core::MessageId;
use ringer_core::policy::DeliveryChannel;

/// Deliveries of one channel that are in flight at once. Each is a task of the executor.
const MAX_IN_FLIGHT: usize = 256;
/// With so many waiting no more messages are read; they stay in the journal. About 10 MB of ids.
const MAX_WAITING: usize = 100_000;

/// Which deliveries are in flight, and which wait.
#[derive(Debug, Default)]
pub(in crate::state) struct Deliveries {
    in_flight: HashMap<MessageId, Vec<DeliveryChannel>>,
    counts: HashMap<DeliveryChannel, usize>,
    /// In the order in which they were decided. Only their ids: the hub's store has the rest.
    queues: HashMap<DeliveryChannel, VecDeque<MessageId>>,
    /// What is in a queue and not here was withdrawn.
    waiting: HashSet<(MessageId, DeliveryChannel)>,
}

impl Deliveries {
    /// A delivery is to start. If its channel has no room, it waits. Gives whether it starts now.
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

    /// A delivery that waited and has room now. It counts as in flight from here on.
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

    /// A notification is withdrawn: what waits never starts. The executor stops its deliveries and reports nothing, except
    /// for the person's command: that may have side effects, so it runs to its end.
    pub(in crate::state) fn withdraw(&mut self, id: &MessageId) {
        self.remove(id, |own| own != DeliveryChannel::Command);
        for channel in DeliveryChannel::ALL {
            self.waiting.remove(&(id.clone(), channel));
        }
    }

    /// How many are in flight or wait.
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
