//! Notes about agents: values that a process stores about an agent for the next time. They are deleted with their agent.

use ringer_core::message::Agent;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::db::text::text;
use crate::error::Error;
use crate::journal::schema::Journal;

/// Notes about agents that are not known any more.
pub(crate) const OF_GONE_AGENTS: &str =
    "name LIKE 'agent:%' AND substr(name, 7) NOT IN (SELECT id FROM agent)";

/// The value of a note.
pub(crate) fn value(connection: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    let mut select = connection.prepare_cached("SELECT value FROM note WHERE name = ?1")?;
    select.query_row([name], |row| text(row, 0)).optional()
}

/// Stores a value under a name, in place of the one before.
pub(crate) fn set(transaction: &Transaction<'_>, name: &str, value: &str) -> rusqlite::Result<()> {
    transaction
        .prepare("INSERT OR REPLACE INTO note (name, value) VALUES (?1, ?2)")?
        .execute(params![name, value])
        .map(drop)
}

fn name(agent: &Agent) -> String {
    format!("agent:{}", agent.as_str())
}

impl Journal {
    /// The note about an agent.
    pub fn agent_note(&mut self, agent: &Agent) -> Result<Option<String>, Error> {
        self.read(|connection| value(connection, &name(agent)))
    }

    /// Stores a note about an agent, in place of the one before.
    pub fn set_agent_note(&mut self, agent: &Agent, value: &str) -> Result<(), Error> {
        self.write(|transaction| set(transaction, &name(agent), value))
    }
}
