//! What is for the lead, put into its agent's inbox, from where it enters the agent's turns like its other messages.

use std::time::Instant;

use ringer_core::message::{Agent, part_count};
use ringer_core::{Message, Scope};

use crate::error::Error;
use crate::ids::IdSource;
use crate::journal::consumer::{Consumer, advance_behind};
use crate::journal::inbox;
use crate::journal::schema::Journal;
use crate::lock::Lock;

/// How many messages are moved at once. The others wait for the next time.
const MAX_MOVED: usize = 512;

impl Journal {
    /// If an agent is the lead of a scope, moves what the lead has not read into its inbox, except what the agent sent
    /// itself, under its id or its name. Gives how many messages that were.
    ///
    /// Under the consumer's lock, so that no listener passes the same on. If another reader has it until the deadline,
    /// nothing is moved: that one reads.
    pub fn move_to_inbox(
        &mut self,
        scope: &Scope,
        agent: &Agent,
        name: Option<&str>,
        deadline: Option<Instant>,
    ) -> Result<usize, Error> {
        let (now, own) = (IdSource::now().unix_ms, Some(agent.as_str()));
        if self.lead(scope)?.agent.as_deref() != own {
            return Ok(0);
        }
        let Ok(consumer) = Consumer::new(Consumer::LEAD, scope.clone()) else { return Ok(0) };
        if self.unread(&consumer, own, now, 1)?.is_empty() {
            return Ok(0);
        }
        let lock = Lock::take(&consumer.lock(self), deadline)
            .map_err(|error| self.home.error("taking the consumer's lock", error))?;
        let Some(_lock) = lock else { return Ok(0) };
        let unread = self.unread(&consumer, own, now, MAX_MOVED)?;
        let Some(last) = unread.last() else { return Ok(0) };
        let is_own = |message: &&Message| name == Some(message.draft.sender.as_str());
        self.write(|transaction| {
            let mut moved = 0;
            for message in unread.iter().filter(|message| !is_own(message)) {
                inbox::queue(transaction, agent.as_str(), (message.seq, part_count(&message.draft)), now)?;
                moved += 1;
            }
            advance_behind(transaction, &consumer, (last.seq, &last.id), now)?;
            Ok(moved)
        })
    }
}
