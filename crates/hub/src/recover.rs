//! Going on where the last hub ended: what it remembered, what it had not decided, what was on its way out.

use ringer_core::{DeliveryChannel, MessageId, Order};
use ringer_journal::{Error, StoredNotifications};

use crate::book::{Book, unflag};
use crate::dispatch::{Dispatcher, MAX_READ};

impl Dispatcher {
    /// Brings back what the last hub remembered, had not decided, and had under way.
    pub(crate) async fn recover(&mut self) -> Result<(), Error> {
        let StoredNotifications { mut records, unreadable } = self.memory.notifications(MAX_READ)?;
        let restored = self.restore(unreadable)?;
        records.extend(restored.iter().cloned());
        let undecided = self.memory.undecided()?;
        let outbox = self.memory.outbox()?;
        let flags = self.memory.flags()?;
        let now = self.clock.now();
        let orders = self.engine.restore(now, records, flags.iter().filter_map(unflag));
        self.titles.put_back(&flags);
        self.titles.allow(&self.settings.config());
        let mut popups = self.memory.popups()?;
        self.book =
            Book::begin(undecided.iter().cloned(), flags, popups.iter().map(|popup| popup.id.clone()));
        for record in restored {
            self.book.remember(record);
        }
        self.carry_out(now, orders);
        self.check_titles();
        // Those that the journal no longer has are decided with that.
        let messages = self.journal.messages(&undecided)?;
        let sights = self.sights_of(&messages).await;
        for message in messages {
            self.arrive(message, &sights);
        }
        for delivery in self.readable(outbox) {
            self.log.line(format!("going on with {} of {}", delivery.channel, delivery.id));
            if self.is_read(&delivery.id) {
                // The person has seen it in the meantime, or something newer took its place.
                self.book.settle(&delivery.id, delivery.channel);
                continue;
            }
            // It takes the place of its surface's popup.
            let surface =
                delivery.place.surface.as_ref().filter(|_| delivery.channel == DeliveryChannel::Desktop);
            let older = popups.extract_if(.., |popup| {
                surface.is_some_and(|surface| popup.key == surface.as_str()) && popup.id != delivery.id
            });
            let older = older.map(|popup| popup.id).collect();
            let orders = self.engine.resume(delivery, older);
            self.carry_out(now, orders);
        }
        // What the last hub was to take back, and did not come to.
        for popup in popups {
            if self.is_read(&popup.id) {
                self.obey(now, Order::Withdraw(popup.id));
            }
        }
        Ok(())
    }

    /// Whether it was remembered and is read. What is not remembered cannot be.
    fn is_read(&self, id: &MessageId) -> bool {
        self.engine.attention().store().get(id).is_some_and(|record| record.is_read)
    }
}
