//! Events that hooks spooled, because they could not write them in time: the hub takes them in.

use std::time::Duration;

use ringer_core::Agent;
use ringer_journal::LockTimeout;

use crate::clock::monotonic;
use crate::dispatch::{Dispatcher, RETRY_AFTER};
use crate::input::Input;

impl Dispatcher {
    /// Takes in what is spooled. If that fails, it is tried again in a moment; nothing is lost meanwhile. Gives whether
    /// everything is in.
    pub(crate) fn take_in_spool(&mut self) -> bool {
        let now = monotonic();
        self.spool_retry_at = None;
        match self.journal.ingest_spool(&monotonic, LockTimeout::LOOP) {
            Ok(taken) => {
                if taken.events > 0 {
                    self.log.line(format!("took in {} spooled events of hooks", taken.events));
                }
                if taken.more {
                    self.spool_retry_at = Some(now);
                }
                !taken.more
            }
            Err(error) => {
                self.log.line(format!("cannot take in what hooks spooled, trying again: {error}"));
                self.spool_retry_at = Some(now + RETRY_AFTER);
                false
            }
        }
    }

    /// Takes in the spool again, if it is time.
    pub(crate) fn retry_spool(&mut self, now: Duration) {
        if self.spool_retry_at.is_some_and(|at| at <= now) {
            self.spool_retry_at = None;
            self.wake();
        }
    }

    /// Tells the loop again in a moment that an agent's process ended.
    pub(crate) fn end_later(&self, agent: &Agent) {
        let (Some(inputs), agent) = (self.inputs.upgrade(), agent.clone()) else { return };
        tokio::spawn(async move {
            tokio::time::sleep(RETRY_AFTER).await;
            let _ = inputs.send(Input::ProcessEnded(agent)).await;
        });
    }
}
