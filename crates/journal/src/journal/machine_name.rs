//! What other machines are called here. A name belongs to one machine, and a machine has one name, until it is forgotten:
//! whatever a machine says of itself, it cannot take the name or the id of another one.

use rusqlite::{Connection, OptionalExtension, Transaction};

use crate::db::text::text;
use crate::error::Error;
use crate::journal::agent_note;
use crate::journal::schema::Journal;

/// How the notes begin that hold the id of the machine of a name.
const NOTE: &str = "relay-name:";

/// What became of giving a machine a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MachineNaming {
    /// It has this name, now or for long.
    Named,
    /// Another machine has this name.
    NameTaken,
    /// The machine has this other name.
    HasOtherName(String),
}

fn note_of(name: &str) -> String {
    format!("{NOTE}{name}")
}

/// The id of the machine of a name.
pub(crate) fn id_of(connection: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    agent_note::value(connection, &note_of(name))
}

fn name_of(connection: &Connection, machine_id: &str) -> rusqlite::Result<Option<String>> {
    let query = "SELECT substr(name, ?1) FROM note WHERE name LIKE 'relay-name:%' AND value = ?2";
    let begin = i64::try_from(NOTE.len() + 1).unwrap_or(0);
    connection.query_row(query, rusqlite::params![begin, machine_id], |row| text(row, 0)).optional()
}

fn naming(connection: &Connection, machine_id: &str, name: &str) -> rusqlite::Result<Option<MachineNaming>> {
    Ok(match (id_of(connection, name)?, name_of(connection, machine_id)?) {
        (Some(id), _) if id == machine_id => Some(MachineNaming::Named),
        (_, Some(other)) => Some(MachineNaming::HasOtherName(other)),
        (Some(_), None) => Some(MachineNaming::NameTaken),
        (None, None) => None,
    })
}

/// Takes the name of a machine away from it.
pub(crate) fn forget(transaction: &Transaction<'_>, machine_id: &str) -> rusqlite::Result<()> {
    let delete = "DELETE FROM note WHERE name LIKE 'relay-name:%' AND value = ?1";
    transaction.execute(delete, [machine_id]).map(drop)
}

impl Journal {
    /// Gives a name to a machine, if both are free.
    pub fn name_machine(&mut self, machine_id: &str, name: &str) -> Result<MachineNaming, Error> {
        if let Some(naming) = self.read(|connection| naming(connection, machine_id, name))? {
            return Ok(naming);
        }
        self.write(|transaction| {
            // Another process may have been quicker.
            if let Some(naming) = naming(transaction, machine_id, name)? {
                return Ok(naming);
            }
            agent_note::set(transaction, &note_of(name), machine_id)?;
            Ok(MachineNaming::Named)
        })
    }

    /// What a machine is called here.
    pub fn machine_name(&mut self, machine_id: &str) -> Result<Option<String>, Error> {
        self.read(|connection| name_of(connection, machine_id))
    }

    /// The id of the machine of that name.
    pub fn machine_named(&mut self, name: &str) -> Result<Option<String>, Error> {
        self.read(|connection| id_of(connection, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Home;

    #[test]
    fn a_name_and_a_machine_belong_together_until_the_machine_is_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&Home::new(directory.path())).unwrap();
        assert_eq!(journal.name_machine("m1", "box").unwrap(), MachineNaming::Named);
        assert_eq!(journal.name_machine("m1", "box").unwrap(), MachineNaming::Named);
        assert_eq!(journal.name_machine("m2", "box").unwrap(), MachineNaming::NameTaken);
        assert_eq!(
            journal.name_machine("m1", "other").unwrap(),
            MachineNaming::HasOtherName("box".to_owned())
        );
        assert_eq!(journal.machine_name("m1").unwrap().as_deref(), Some("box"));
        assert_eq!(journal.machine_named("box").unwrap().as_deref(), Some("m1"));
        journal.forget_machine("m1").unwrap();
        assert_eq!(journal.name_machine("m2", "box").unwrap(), MachineNaming::Named);
    }
}
