//! Continues where the last hub ended: restores its notifications, undecided messages and deliveries.

use ringer_core::policy::DeliveryChannel;
use ringer_core::{Event, Now, Order};
use ringer_journal::{Error, LockTimeout, StoredNotifications};

use super::HubState;
use super::ingest::RETRY_AFTER;
use crate::message::Action;
use crate::repository_probe::{ProbeResult, ProbeTarget};

impl HubState {
    /// Returns the repositories of the undecided messages, whose settings [`HubState::recover`] needs.
    pub(crate) fn recovery_targets(&mut self) -> Result<Vec<ProbeTarget>, Error> {
        let undecided = self.notifications.store().undecided()?;
        let messages = self.journal.messages(&undecided)?;
        Ok(self.probe_targets(&messages))
    }

    /// Restores the stored notifications, the undecided messages and the deliveries of the last hub.
    pub(crate) fn recover(
        &mut self,
        now: Now,
        probed: &[(ProbeTarget, ProbeResult)],
    ) -> Result<Vec<Action>, Error> {
        let StoredNotifications { mut records, unreadable } = self.notifications.stored()?;
        let rescued = self.rescue_notifications(now, unreadable)?;
        records.extend(rescued.iter().cloned());
        let store = self.notifications.store();
        let (undecided, outbox, flags) = (store.undecided()?, store.outbox()?, store.flags()?);
        let mut popups = store.popups()?;
        let orders = self.notifications.restore(now, records, &flags);
        self.title_marks.restore(&flags);
        self.notifications.restore_features(now)?;
        let shown = popups.iter().map(|popup| popup.id.clone());
        self.notifications.begin_writes(&undecided, flags, shown);
        for record in rescued {
            self.notifications.writes().upsert(record);
        }
        self.execute_orders(now, orders);
        self.check_title_marks(now);
        // A message that the journal no longer has counts as decided.
        for message in self.journal.messages(&undecided)? {
            self.arrive(now, message, probed);
        }
        for delivery in self.readable_deliveries(now, outbox) {
            self.log(format!("going on with {} of {}", delivery.channel, delivery.id));
            if self.notifications.is_read(&delivery.id) {
                // The person has seen it, or a newer notification replaced it.
                self.notifications.writes().finish_delivery(&delivery.id, delivery.channel);
                continue;
            }
            // Such a delivery replaces the popup of its surface.
            let has_key_of_surface =
                delivery.channel == DeliveryChannel::Desktop && !delivery.kind.is_prompt();
            let surface = delivery.place.surface.as_ref().filter(|_| has_key_of_surface);
            let older = popups.extract_if(.., |popup| {
                surface.is_some_and(|surface| popup.key == surface.as_str()) && popup.id != delivery.id
            });
            let older = older.map(|popup| popup.id).collect();
            let orders = self.notifications.resume(delivery, older);
            self.execute_orders(now, orders);
        }
        // Popups that the last hub should have withdrawn.
        for popup in popups {
            if self.notifications.is_read(&popup.id) {
                self.execute_order(now, Order::Withdraw(popup.id));
            }
        }
        let watches = self.settings.trusted_watches(&self.settings.config());
        self.act(Action::SetWatches(watches));
        self.check_settings_problems(now);
        if let Some(observation) = self.settings.error_observation() {
            self.feed_engine(now, Event::Observed(observation));
        }
        if self.is_offline() {
            return Ok(self.take_actions());
        }
        // From now on clients wait for this process.
        self.journal.wait_as_loop(LockTimeout::LOOP, RETRY_AFTER);
        self.notifications.store().wait_as_loop(LockTimeout::LOOP, RETRY_AFTER);
        Ok(self.take_actions())
    }
}
