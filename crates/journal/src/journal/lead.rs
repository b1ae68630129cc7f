//! The lead of a scope: an opt-in role that one agent session has at a time, and its messages.

use std::time::Instant;

use ringer_core::message::{Agent, part_count};
use ringer_core::{Message, Scope};
use rusqlite::{OptionalExtension, Row, Transaction, params};

use crate::db::tables::optional_text;
use crate::error::Error;
use crate::ids::IdSource;
use crate::journal::consumer::{Consumer, advance_behind};
use crate::journal::inbox;
use crate::journal::schema::Journal;
use crate::lock::Lock;

/// The lead of a scope.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lead {
    /// The person wants a lead in this scope.
    pub wanted: bool,
    /// The agent that has the role.
    pub agent: Option<String>,
    /// The lead may answer prompts of other agents in this scope.
    pub may_decide: bool,
}

impl Lead {
    /// Returns true if an agent may answer a prompt of another one: only the lead may, if the person allows it, and not its own
    /// prompts.
    pub fn may_answer(&self, agent: &Agent, asker: &Agent) -> bool {
        self.may_decide && self.agent.as_deref() == Some(agent.as_str()) && agent != asker
    }
}

impl Journal {
    /// The lead of a scope.
    pub fn lead(&mut self, scope: &Scope) -> Result<Lead, Error> {
        let found = self.read(|connection| {
            let query = "SELECT agent, may_decide FROM lead WHERE scope = ?1";
            let read = |row: &Row<'_>| Ok((optional_text(row, 0)?, row.get(1)?));
            connection.query_row(query, [scope.as_str()], read).optional()
        })?;
        let wanted = found.is_some();
        let (agent, may_decide) = found.unwrap_or_default();
        Ok(Lead { wanted, agent, may_decide })
    }

    /// Sets whether the person wants a lead in a scope.
    pub fn want_lead(&mut self, scope: &Scope, wanted: bool) -> Result<(), Error> {
        self.write(|transaction| {
            let change = if wanted {
                "INSERT OR IGNORE INTO lead (scope, agent) VALUES (?1, NULL)"
            } else {
                "DELETE FROM lead WHERE scope = ?1"
            };
            transaction.prepare(change)?.execute([scope.as_str()]).map(drop)
        })
    }

    /// Sets whether the lead of a scope may answer prompts of other agents there. Implies that a lead is wanted.
    pub fn let_lead_decide(&mut self, scope: &Scope, may: bool) -> Result<(), Error> {
        self.write(|transaction| {
            transaction
                .prepare(
                    "INSERT INTO lead (scope, agent, may_decide) VALUES (?1, NULL, ?2)
                     ON CONFLICT (scope) DO UPDATE SET may_decide = ?2",
                )?
                .execute(params![scope.as_str(), may])
                .map(drop)
        })
    }

    /// Makes an agent that starts a session the lead of its scope, if a lead is wanted and no live agent has the role. Returns
    /// true if the agent is the lead.
    pub fn claim_lead(&mut self, scope: &Scope, agent: &Agent) -> Result<bool, Error> {
        let lead = self.lead(scope)?;
        if !lead.wanted || lead.agent.as_deref() == Some(agent.as_str()) {
            return Ok(lead.wanted);
        }
        self.write(|transaction| claim(transaction, scope, agent))
    }
}

/// Makes an agent the lead of a scope if a lead is wanted and no live agent has the role. Returns true if it became the lead.
pub(crate) fn claim(transaction: &Transaction<'_>, scope: &Scope, agent: &Agent) -> rusqlite::Result<bool> {
    let changed = transaction
        .prepare(
            "UPDATE lead SET agent = ?2 WHERE scope = ?1 AND (agent IS NULL OR agent NOT IN (
                 SELECT id FROM agent WHERE scope = ?1 AND state <> 'exited'))",
        )?
        .execute(params![scope.as_str(), agent.as_str()])?;
    Ok(changed == 1)
}

/// How many messages are moved at once.
const MAX_MOVED: usize = 512;

impl Journal {
    /// If an agent is the lead of a scope, moves the lead's unread messages into the agent's inbox, except its own. Returns the
    /// number of moved messages.
    ///
    /// Holds the consumer's lock, so that no listener delivers the same messages. If another reader holds it until the
    /// deadline, moves nothing: that reader delivers them.
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
