//! Export cursors: how far other machines, and the servers of teams, have stored the messages of this machine. Pruning keeps the
//! messages after them.
//!
//! A team has a key, for the cursor of its server and for a note about the server. How far the messages of its machines are
//! stored here is a note under `KEY:MACHINE`.

use ringer_core::message::{Mark, MarkReach};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::db::tables::text;
use crate::error::Error;
use crate::journal::consumer::advance;
use crate::journal::machine_name;
use crate::journal::read::Cursor;
use crate::journal::schema::{self, Journal, POSITION, generation};

/// Scope of the export cursors: all scopes.
const EVERYWHERE: &str = "*";

/// SQL condition for messages of this machine that are sent to the machine named `?1`. The same rule as `WireMessage` in the
/// relay, in SQL so that thousands can be counted at once. A mark on many notifications is sent as single marks and does not
/// count.
fn for_machine() -> String {
    let marks = |reach| {
        let words = Mark::words(reach).map(|word| format!("'{word}'"));
        words.collect::<Vec<_>>().join(", ")
    };
    format!(
        "machine IS NULL AND CASE
             WHEN kind >= 'mark-' AND kind < 'mark.' THEN kind NOT IN ({local}) AND (kind NOT IN ({personal})
                 OR key NOT IN ('all', 'all-read') AND key NOT LIKE 'place:%' AND key NOT LIKE 'episode:%')
             WHEN recipient >= 'agent:' AND recipient < 'agent;'
             THEN substr(recipient, -length('@' || ?1)) = '@' || ?1
             ELSE true
         END",
        local = marks(MarkReach::ThisMachine),
        personal = marks(MarkReach::PersonsMachines),
    )
}

fn consumer_of(machine_id: &str) -> String {
    format!("relay-{machine_id}")
}

/// Deletes the export cursor of a machine.
pub(crate) fn forget(transaction: &Transaction<'_>, machine_id: &str) -> rusqlite::Result<()> {
    let cursor = "DELETE FROM cursor WHERE consumer = ?1 AND scope = ?2";
    transaction.execute(cursor, params![consumer_of(machine_id), EVERYWHERE]).map(drop)
}

/// Returns true for a machine with a name here, and for a team of this machine.
fn is_known(connection: &Connection, machine_id: &str) -> rusqlite::Result<bool> {
    let is_machine = machine_name::name_of(connection, machine_id)?.is_some();
    Ok(is_machine || schema::note(connection, &team_note_of(machine_id))?.is_some())
}

impl Journal {
    /// How far another machine has stored the messages of this one. A new machine starts at the end.
    pub fn export_position(&mut self, machine_id: &str, unix_ms: i64) -> Result<Cursor, Error> {
        let consumer = consumer_of(machine_id);
        if let Some(place) = self.read(|connection| export_position(connection, &consumer))? {
            return Ok(place);
        }
        self.write(|transaction| {
            let end = "SELECT ?1, ?2, coalesce(max(seq), 0),
                           (SELECT id FROM message ORDER BY seq DESC LIMIT 1), ?3, 0 FROM message WHERE true";
            advance(transaction, end, params![consumer, EVERYWHERE, unix_ms])?;
            Ok(export_position(transaction, &consumer)?.unwrap_or_default())
        })
    }

    /// Sequence number of a message. If it does not exist, that of the last message of this machine before it.
    pub fn own_seq_until(&mut self, id: &str) -> Result<i64, Error> {
        let found = "SELECT coalesce((SELECT seq FROM message WHERE id = ?1),
                         (SELECT max(seq) FROM message WHERE id < ?1 AND machine IS NULL), 0)";
        self.read(|connection| connection.query_row(found, [id], |row| row.get(0)))
    }

    /// Counts the messages after a sequence number that are for a machine; at most `most`.
    pub fn own_count_for(&mut self, machine: &str, seq: i64, most: i64) -> Result<i64, Error> {
        self.read(|connection| count_for(connection, machine, seq, most))
    }

    /// Moves the export cursor of a machine or a team. Returns false, without creating a cursor, if it was removed meanwhile.
    pub fn advance_export(&mut self, machine_id: &str, cursor: &Cursor, unix_ms: i64) -> Result<bool, Error> {
        let consumer = consumer_of(machine_id);
        self.write(|transaction| {
            if !is_known(transaction, machine_id)? {
                return Ok(false);
            }
            let found = "SELECT ?1, ?2, seq, id, ?5, 0 FROM message WHERE seq = ?3 AND id = ?4";
            let place = params![consumer, EVERYWHERE, cursor.seq, cursor.id, unix_ms];
            advance(transaction, found, place)?;
            Ok(true)
        })
    }

    /// Number of messages of this machine that the server of a team has not stored yet.
    pub fn export_lag(&mut self, machine_id: &str) -> Result<Option<i64>, Error> {
        let consumer = consumer_of(machine_id);
        self.read(|connection| {
            let Some(Cursor { seq, .. }) = export_position(connection, &consumer)? else { return Ok(None) };
            let count = "SELECT count(*) FROM message WHERE seq > ?1 AND machine IS NULL";
            connection.query_row(count, [seq], |row| row.get(0)).map(Some)
        })
    }

    /// Number of messages for another machine that it has not stored yet. `None` if it was never connected.
    pub fn export_lag_of(&mut self, machine_id: &str, machine: &str) -> Result<Option<i64>, Error> {
        let consumer = consumer_of(machine_id);
        self.read(|connection| {
            let Some(Cursor { seq, .. }) = export_position(connection, &consumer)? else { return Ok(None) };
            count_for(connection, machine, seq, i64::MAX).map(Some)
        })
    }
}

fn count_for(connection: &Connection, machine: &str, seq: i64, most: i64) -> rusqlite::Result<i64> {
    let count =
        format!("SELECT count(*) FROM (SELECT 1 FROM message WHERE seq > ?2 AND {} LIMIT ?3)", for_machine());
    connection.query_row(&count, params![machine, seq, most], |row| row.get(0))
}

fn export_position(connection: &Connection, consumer: &str) -> rusqlite::Result<Option<Cursor>> {
    let place = connection.query_row(
        &format!("SELECT {POSITION}, id FROM cursor WHERE consumer = ?1 AND scope = ?2"),
        [consumer, EVERYWHERE],
        |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<String>>(1)?)),
    );
    let Some((seq, _)) = place.optional()? else { return Ok(None) };
    let id = connection.query_row("SELECT id FROM message WHERE seq = ?1", [seq], |row| text(row, 0));
    Ok(Some(Cursor { generation: Some(generation(connection)?), seq, id: id.optional()? }))
}

/// A note about a team, written together with imported messages.
#[derive(Debug, Clone, Copy)]
pub struct TeamNote<'a> {
    /// Key of the team.
    pub key: &'a str,
    /// The note.
    pub note: &'a str,
}

/// Name of a team's note.
pub(crate) fn team_note_of(key: &str) -> String {
    format!("team:{key}")
}

impl Journal {
    /// The note about a team's server.
    pub fn team_note(&mut self, key: &str) -> Result<Option<String>, Error> {
        self.read(|connection| schema::note(connection, &team_note_of(key)))
    }

    /// Stores the note about a team's server.
    pub fn set_team_note(&mut self, key: &str, note: &str) -> Result<(), Error> {
        self.write(|transaction| schema::set_note(transaction, &team_note_of(key), note))
    }

    /// Import positions of all machines of a team.
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

    /// The sequence number before the first message of this machine that was sent at a time or later.
    pub fn own_since(&mut self, unix_ms: i64) -> Result<i64, Error> {
        let first = "SELECT coalesce(
                         (SELECT min(seq) - 1 FROM message WHERE machine IS NULL AND ts >= ?1),
                         (SELECT max(seq) FROM message), 0)";
        self.read(|connection| connection.query_row(first, [unix_ms], |row| row.get(0)))
    }

    /// Deletes everything about a team except the messages of its machines.
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

    /// The position before a link was added is found by a message id, even in an older copy without that message.
    #[test]
    fn what_is_older_than_a_message_is_known_by_its_id() {
        let (_directory, mut journal) = journal();
        let at = |unix_ms| IdSource { unix_ms, random: [7; 16] };
        for unix_ms in [1_000, 3_000] {
            journal.append(&draft("own"), &at(unix_ms)).unwrap();
        }
        let until = |journal: &mut Journal, unix_ms| {
            journal.own_seq_until(at(unix_ms).message_id().as_str()).unwrap()
        };
        assert_eq!([500, 1_000, 2_000, 3_000, 4_000].map(|ms| until(&mut journal, ms)), [0, 1, 1, 2, 2]);
    }

    #[test]
    fn a_new_machine_begins_at_the_end_and_keeps_its_place() {
        let (_directory, mut journal) = journal();
        journal.append(&draft("before"), &IdSource::now()).unwrap();
        journal.name_machine("m1", "box", &NameSource::Machine).unwrap();
        let begin = journal.export_position("m1", 0).unwrap();
        assert_eq!(begin.seq, 1);
        let id = journal.append(&draft("after"), &IdSource::now()).unwrap();
        assert_eq!(journal.export_position("m1", 0).unwrap(), begin, "it does not move by being asked for");
        assert_eq!(journal.export_lag("m1").unwrap(), Some(1));
        let next = Cursor { seq: 2, id: Some(id.to_string()), ..begin };
        assert!(journal.advance_export("m1", &next, 0).unwrap());
        assert_eq!(journal.export_position("m1", 0).unwrap(), next);
        journal.forget_machine("m1").unwrap();
        assert_eq!(journal.export_lag("m1").unwrap(), None);
        assert!(!journal.advance_export("m1", &next, 0).unwrap(), "it is no longer known");
        assert_eq!(journal.export_lag("m1").unwrap(), None, "and has no place");
    }

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
