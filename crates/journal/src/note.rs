//! Notes about agents: what somebody wants to find again the next time it looks at one. They go with their agent.

use ringer_core::Agent;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::error::Error;
use crate::journal::Journal;
use crate::row::text;

/// Notes about agents that are not known any more.
pub(crate) const OF_GONE_AGENTS: &str =
    "name LIKE 'agent:%' AND substr(name, 7) NOT IN (SELECT id FROM agent)";

/// The value of a note.
pub(crate) fn value(connection: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    connection.query_row("SELECT value FROM note WHERE name = ?1", [name], |row| text(row, 0)).optional()
}

/// Notes a value, in place of what was noted under that name before.
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
    /// What was noted about an agent.
    pub fn note_about(&mut self, agent: &Agent) -> Result<Option<String>, Error> {
        self.read(|connection| value(connection, &name(agent)))
    }

    /// Notes something about an agent, in place of what was noted before.
    pub fn set_note_about(&mut self, agent: &Agent, value: &str) -> Result<(), Error> {
        self.write(|transaction| set(transaction, &name(agent), value))
    }
}
