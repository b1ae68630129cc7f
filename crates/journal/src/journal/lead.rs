//! The lead: the role of a scope, for which the person opted in, bound to one agent session at a time.

use ringer_core::Scope;
use ringer_core::message::Agent;
use rusqlite::{OptionalExtension, Transaction, params};

use crate::db::text::optional_text;
use crate::error::Error;
use crate::journal::schema::Journal;

/// Whether a scope has a lead, and who that is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lead {
    /// Whether the person wants one here.
    pub wanted: bool,
    /// The agent that has the role.
    pub agent: Option<String>,
}

impl Journal {
    /// The lead of a scope.
    pub fn lead(&mut self, scope: &Scope) -> Result<Lead, Error> {
        let found = self.read(|connection| {
            let query = "SELECT agent FROM lead WHERE scope = ?1";
            connection.query_row(query, [scope.as_str()], |row| optional_text(row, 0)).optional()
        })?;
        Ok(Lead { wanted: found.is_some(), agent: found.flatten() })
    }

    /// The person wants a lead in a scope, or no longer.
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

    /// An agent begins a session in a scope. It is the lead if one is wanted and no live agent has the role. Gives whether
    /// it is.
    pub fn claim_lead(&mut self, scope: &Scope, agent: &Agent) -> Result<bool, Error> {
        let lead = self.lead(scope)?;
        if !lead.wanted || lead.agent.as_deref() == Some(agent.as_str()) {
            return Ok(lead.wanted);
        }
        self.write(|transaction| claim(transaction, scope, agent))
    }
}

/// Makes an agent the lead of a scope if one is wanted there and no live agent has the role. Gives whether it became it.
pub(crate) fn claim(transaction: &Transaction<'_>, scope: &Scope, agent: &Agent) -> rusqlite::Result<bool> {
    let changed = transaction
        .prepare(
            "UPDATE lead SET agent = ?2 WHERE scope = ?1 AND (agent IS NULL OR agent NOT IN (
                 SELECT id FROM agent WHERE scope = ?1 AND state <> 'exited'))",
        )?
        .execute(params![scope.as_str(), agent.as_str()])?;
    Ok(changed == 1)
}
