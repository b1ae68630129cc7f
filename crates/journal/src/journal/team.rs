//! What teams over a server do with the journal, beside what every link does.
//!
//! A team has a key, under which a cursor says how far its server has the messages of this machine, and a note what is known of
//! the server. How far the messages of each of its machines are stored is a note under `KEY:MACHINE`.

use crate::db::text::text;
use crate::error::Error;
use crate::journal::agent_note;
use crate::journal::schema::Journal;
use crate::position::Cursor;

/// What a connection to a team notes with what it stores.
#[derive(Debug, Clone, Copy)]
pub struct TeamNote<'a> {
    /// Under which key.
    pub key: &'a str,
    /// The note.
    pub note: &'a str,
}

/// The name of a team's note.
pub(crate) fn team_note_of(key: &str) -> String {
    format!("team:{key}")
}

impl Journal {
    /// What is known of a team's server.
    pub fn team_note(&mut self, key: &str) -> Result<Option<String>, Error> {
        self.read(|connection| agent_note::value(connection, &team_note_of(key)))
    }

    /// Stores what is known of a team's server.
    pub fn set_team_note(&mut self, key: &str, note: &str) -> Result<(), Error> {
        self.write(|transaction| agent_note::set(transaction, &team_note_of(key), note))
    }

    /// How far the messages of each machine of a team are stored here.
    pub fn team_positions(&mut self, key: &str) -> Result<Vec<(String, Cursor)>, Error> {
        let prefix = format!("relay:{key}:");
        let machines: Vec<String> = self.read(|connection| {
            connection
                .prepare("SELECT name FROM note WHERE substr(name, 1, length(?1)) = ?1 ORDER BY name")?
                .query_map([&prefix], |row| text(row, 0))?
                .collect()
        })?;
        let mut positions = Vec::new();
        for machine in machines.iter().filter_map(|name| name.strip_prefix(&prefix)) {
            if let Some(cursor) = self.import_position(&format!("{key}:{machine}"))? {
                positions.push((machine.to_owned(), cursor));
            }
        }
        Ok(positions)
    }

    /// The number behind which are the messages that were written here at that time or later.
    pub fn own_since(&mut self, unix_ms: i64) -> Result<i64, Error> {
        let first = "SELECT coalesce(
                         (SELECT min(seq) - 1 FROM message WHERE machine IS NULL AND ts >= ?1),
                         (SELECT max(seq) FROM message), 0)";
        self.read(|connection| connection.query_row(first, [unix_ms], |row| row.get(0)))
    }

    /// Forgets what is known of a team. The messages of its machines stay.
    pub fn forget_team(&mut self, key: &str) -> Result<(), Error> {
        self.forget_machine(key)?;
        self.write(|transaction| {
            transaction.execute("DELETE FROM note WHERE name = ?1", [team_note_of(key)])?;
            for prefix in [format!("relay:{key}:"), format!("team:{key}:")] {
                let notes = "DELETE FROM note WHERE substr(name, 1, length(?1)) = ?1";
                transaction.execute(notes, [prefix])?;
            }
            let names =
                "DELETE FROM note WHERE name LIKE 'relay-name:%' AND substr(value, 1, length(?1)) = ?1";
            transaction.execute(names, [format!("{key}:")]).map(drop)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::test_journal::{draft, journal};
    use crate::{IdSource, Import, ImportedMessage, NameSource};

    #[test]
    fn the_places_of_a_team_are_its_own() {
        let (_directory, mut journal) = journal();
        for (key, seq) in [("nats:t:box", 3), ("nats:t:vm", 4), ("nats:tt:box", 5), ("m1", 6)] {
            let end = Cursor { generation: Some("g".to_owned()), seq, id: None };
            let message = ImportedMessage {
                id: IdSource::now().message_id(),
                unix_ms: 1,
                draft: draft("x"),
                prompt: None,
            };
            let messages = [message];
            let import = Import { machine_id: key, machine: "box", messages: &messages, end: &end };
            journal.import_all(&[import], None).unwrap();
        }
        let positions = |journal: &mut Journal| -> Vec<(String, i64)> {
            let positions = journal.team_positions("nats:t").unwrap();
            positions.into_iter().map(|(machine, cursor)| (machine, cursor.seq)).collect()
        };
        assert_eq!(positions(&mut journal), [("box".to_owned(), 3), ("vm".to_owned(), 4)]);
        journal.set_team_note("nats:t", "known").unwrap();
        journal.name_machine("nats:t:box", "box.t", &NameSource::Machine).unwrap();
        assert_eq!(journal.team_note("nats:t").unwrap().as_deref(), Some("known"));
        journal.forget_team("nats:t").unwrap();
        assert_eq!(journal.team_note("nats:t").unwrap(), None);
        assert!(positions(&mut journal).is_empty());
        assert_eq!(journal.machine_id_of("box.t").unwrap(), None);
        assert!(journal.import_position("nats:tt:box").unwrap().is_some(), "another team stays");
    }

    #[test]
    fn what_was_written_since_a_time_is_behind_a_number() {
        let (_directory, mut journal) = journal();
        assert_eq!(journal.own_since(0).unwrap(), 0);
        for unix_ms in [10, 20, 30] {
            journal.append_as(&draft("x"), &IdSource::now().message_id(), unix_ms).unwrap();
        }
        let since = |journal: &mut Journal, unix_ms| journal.own_since(unix_ms).unwrap();
        assert_eq!([0, 20, 21, 31].map(|unix_ms| since(&mut journal, unix_ms)), [0, 1, 2, 3]);
    }
}
