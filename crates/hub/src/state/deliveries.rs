//! Deliveries that were started and not reported yet.

use std::collections::HashMap;

use ringer_core::MessageId;
use ringer_core::policy::DeliveryChannel;

/// With so many in flight no more messages are read; they wait in the journal.
const MAX_IN_FLIGHT: usize = 1024;

/// Which deliveries are in flight.
#[derive(Debug, Default)]
pub(super) struct DeliveriesInFlight {
    channels: HashMap<MessageId, Vec<DeliveryChannel>>,
    count: usize,
}

impl DeliveriesInFlight {
    pub(super) fn start(&mut self, id: MessageId, channel: DeliveryChannel) {
        self.channels.entry(id).or_default().push(channel);
        self.count += 1;
    }

    pub(super) fn finish(&mut self, id: &MessageId, channel: DeliveryChannel) {
        self.remove(id, |own| own == channel);
    }

    /// A notification is withdrawn. The executor stops its deliveries and reports nothing, except for the person's command:
    /// that may have side effects, so it runs to its end.
    pub(super) fn withdraw(&mut self, id: &MessageId) {
        self.remove(id, |own| own != DeliveryChannel::Command);
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn is_full(&self) -> bool {
        self.count >= MAX_IN_FLIGHT
    }

    fn remove(&mut self, id: &MessageId, is_over: impl Fn(DeliveryChannel) -> bool) {
        let Some(channels) = self.channels.get_mut(id) else { return };
        let before = channels.len();
        channels.retain(|own| !is_over(*own));
        self.count -= before - channels.len();
        if channels.is_empty() {
            self.channels.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_that_comes_after_a_withdrawal_counts_once() {
        let id = MessageId::new(1, [0; 10]);
        let mut deliveries = DeliveriesInFlight::default();
        for channel in [DeliveryChannel::Desktop, DeliveryChannel::Command] {
            deliveries.start(id.clone(), channel);
        }
        deliveries.withdraw(&id);
        assert_eq!(deliveries.count(), 1, "the command runs on");
        deliveries.finish(&id, DeliveryChannel::Desktop);
        assert_eq!(deliveries.count(), 1);
        deliveries.finish(&id, DeliveryChannel::Command);
        deliveries.finish(&id, DeliveryChannel::Command);
        assert_eq!((deliveries.count(), deliveries.channels.len()), (0, 0));
    }
}
