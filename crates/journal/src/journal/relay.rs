//! Links to other machines: imports their messages, and reads the messages of this machine for export.
//!
//! The row of an imported message contains the name of its machine. The import position is a note that is written in the same
//! transaction. Export positions are in `export`.
//!
//! Ids are unique in the journal, but every machine chooses the ids of its messages. An imported message with the id of a
//! message of this machine is refused. One with the id of a message of a third machine is stored under a new id: one of the two
//! machines is lying, it is unknown which, and neither message must hide the other.

use std::collections::BTreeSet;

use ringer_core::agent::PromptContent;
use ringer_core::{Draft, Message, MessageId};
use rusqlite::{Transaction, params};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::ids::IdSource;
use crate::journal::append::put_with_machine;
use crate::journal::export::{self, TeamNote, team_note_of};
use crate::journal::machine_name;
use crate::journal::read::{COLUMNS, Cursor, read_message};
use crate::journal::schema::{self, Journal, highest};
use crate::wake::subscription::{Topic, registered_for};

/// Prefix of the notes that map an id on another machine to the id under which the message is stored here.
const OTHER_ID: &str = "relay-id:";

/// Prefix of the notes with the prompt of an imported message.
const PROMPT: &str = "relay-prompt:";

/// A validated message of another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedMessage {
    /// Its id on that machine.
    pub id: MessageId,
    /// When it was sent, converted to the clock of this machine.
    pub unix_ms: i64,
    /// Its content.
    pub draft: Draft,
    /// Its prompt, if it fits on a popup and may be answered from here.
    pub prompt: Option<PromptContent>,
}

/// A batch of messages of one machine.
#[derive(Debug, Clone, Copy)]
pub struct Import<'a> {
    /// The id of the machine.
    pub machine_id: &'a str,
    /// Its local name.
    pub machine: &'a str,
    /// The messages, in the order of that machine.
    pub messages: &'a [ImportedMessage],
    /// Position of the last message in the journal of that machine.
    pub end: &'a Cursor,
}

/// The result of an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImportResult {
    /// Number of new messages.
    pub new: usize,
    /// Number of refused messages, which have the id of a message of this machine.
    pub refused: usize,
}

/// Messages of this machine after a sequence number.
#[derive(Debug, Default)]
pub struct OwnBatch {
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// The batch covers all messages up to this sequence number.
    pub looked_at: i64,
    /// There may be more messages after it.
    pub more: bool,
}

/// The JSON format of an import position.
#[derive(Serialize, Deserialize)]
struct StoredPlace {
    generation: String,
    seq: i64,
    id: Option<String>,
}

fn note_of(machine_id: &str) -> String {
    format!("relay:{machine_id}")
}

impl Journal {
    /// Stores the new messages of another machine and the import position. `None`, storing nothing, if the machine no longer
    /// has that name.
    pub fn import(&mut self, import: &Import<'_>) -> Result<Option<ImportResult>, Error> {
        let stored = self.write(|transaction| {
            let id = machine_name::id_of(transaction, import.machine)?;
            let is_known = id.as_deref() == Some(import.machine_id);
            is_known.then(|| store(transaction, std::slice::from_ref(import))).transpose()
        })?;
        Ok(stored.map(|stored| self.wake_for(stored)))
    }

    /// Imports messages of several machines and writes a note of a team, in one transaction.
    pub fn import_all(
        &mut self,
        imports: &[Import<'_>],
        note: Option<TeamNote<'_>>,
    ) -> Result<ImportResult, Error> {
        let stored = self.write(|transaction| {
            let stored = store(transaction, imports)?;
            if let Some(TeamNote { key, note }) = note {
                schema::set_note(transaction, &team_note_of(key), note)?;
            }
            Ok(stored)
        })?;
        Ok(self.wake_for(stored))
    }

    fn wake_for(&mut self, (imported, bells): (ImportResult, BTreeSet<String>)) -> ImportResult {
        if imported.new > 0 {
            self.wake(&bells.into_iter().collect::<Vec<_>>());
        }
        imported
    }

    /// Wakes all links to other machines, after something about one of them has changed.
    pub(crate) fn wake_links(&mut self) -> Result<(), Error> {
        let bells = self.read(|connection| registered_for(connection, &Topic::EverythingAndAgents))?;
        self.wake(&bells);
        Ok(())
    }

    /// How far the messages of another machine are stored here. `None` if none are.
    pub fn import_position(&mut self, machine_id: &str) -> Result<Option<Cursor>, Error> {
        let note = self.read(|connection| schema::note(connection, &note_of(machine_id)))?;
        let place = note.and_then(|note| serde_json::from_str::<StoredPlace>(&note).ok());
        Ok(place.map(|StoredPlace { generation, seq, id }| Cursor { generation: Some(generation), seq, id }))
    }

    /// The messages of this machine after a sequence number, including marks; at most `most`.
    pub fn own_after(&mut self, seq: i64, most: usize) -> Result<OwnBatch, Error> {
        let query = format!(
            "SELECT {COLUMNS} FROM message WHERE seq > ?1 AND seq <= ?2 AND machine IS NULL ORDER BY seq"
        );
        self.read(|connection| {
            let mut batch = OwnBatch { looked_at: highest(connection)?.max(seq), ..OwnBatch::default() };
            let mut statement = connection.prepare(&query)?;
            let mut rows = statement.query([seq, batch.looked_at])?;
            while let Some(row) = rows.next()? {
                if batch.messages.len() == most {
                    batch.looked_at = batch.messages.last().map_or(seq, |last| last.seq);
                    batch.more = true;
                    break;
                }
                // Skips a damaged row: it must not block the messages after it.
                batch.messages.extend(read_message(row)?);
            }
            Ok(batch)
        })
    }

    /// Deletes the name of a machine and both positions. Its messages stay. Wakes the links.
    pub fn forget_machine(&mut self, machine_id: &str) -> Result<(), Error> {
        self.write(|transaction| {
            machine_name::forget(transaction, machine_id)?;
            machine_name::forget_keys_of(transaction, machine_id)?;
            transaction.execute("DELETE FROM note WHERE name = ?1", [note_of(machine_id)])?;
            export::forget(transaction, machine_id)
        })?;
        self.wake_links()
    }

    /// The newest notices of another machine before a local sequence number, newest first; at most `most`.
    pub fn notices_of_machine(
        &mut self,
        machine: &str,
        before: i64,
        most: usize,
    ) -> Result<Vec<Message>, Error> {
        let query = format!(
            "SELECT {COLUMNS} FROM message WHERE machine = ?1 AND seq < ?2 AND kind NOT LIKE 'mark-%'
             ORDER BY seq DESC"
        );
        self.select(&query, params![machine, before], most)
    }

    /// The prompt of an imported message, if a popup can answer it.
    pub fn prompt_elsewhere(&mut self, id: &MessageId) -> Result<Option<PromptContent>, Error> {
        let note = self.read(|connection| schema::note(connection, &format!("{PROMPT}{id}")))?;
        Ok(note.and_then(|note| serde_json::from_str(&note).ok()))
    }

    /// The machine of a message: `Some(None)` for this machine, `None` if the message does not exist.
    pub fn machine_of(&mut self, id: &MessageId) -> Result<Option<Option<String>>, Error> {
        Ok(self.message(id.as_str())?.map(|message| message.machine))
    }
}

/// The result of storing an imported message.
enum StoreResult {
    /// It is new. Contains the doorbells to wake.
    New(Vec<String>),
    /// It was stored before.
    Known,
    /// It has the id of a message of this machine.
    Refused,
}

/// Stores messages and import positions. Returns the result and the doorbells to wake.
fn store(
    transaction: &Transaction<'_>,
    imports: &[Import<'_>],
) -> rusqlite::Result<(ImportResult, BTreeSet<String>)> {
    let (mut imported, mut bells) = (ImportResult::default(), BTreeSet::new());
    for import in imports {
        for message in import.messages {
            match put(transaction, import, message)? {
                StoreResult::New(more) => {
                    bells.extend(more);
                    imported.new += 1;
                }
                StoreResult::Known => {}
                StoreResult::Refused => imported.refused += 1,
            }
        }
        let Cursor { generation, seq, id } = import.end.clone();
        let place = StoredPlace { generation: generation.unwrap_or_default(), seq, id };
        // Plain data: it cannot fail to be written.
        let place = serde_json::to_string(&place).unwrap_or_default();
        schema::set_note(transaction, &note_of(import.machine_id), &place)?;
    }
    Ok((imported, bells))
}

fn put(
    transaction: &Transaction<'_>,
    import: &Import<'_>,
    message: &ImportedMessage,
) -> rusqlite::Result<StoreResult> {
    let ImportedMessage { id, unix_ms, draft, prompt } = message;
    let machine = Some(import.machine);
    if let Some(bells) = put_with_machine(transaction, draft, id, *unix_ms, machine)? {
        if let Some(prompt) = prompt.as_ref().and_then(|prompt| serde_json::to_string(prompt).ok()) {
            schema::set_note(transaction, &format!("{PROMPT}{id}"), &prompt)?;
        }
        return Ok(StoreResult::New(bells));
    }
    let stored = "SELECT machine FROM message WHERE id = ?1";
    let stored: Option<String> = transaction.query_row(stored, [id.as_str()], |row| row.get(0))?;
    let Some(stored) = stored else { return Ok(StoreResult::Refused) };
    // A name without a machine is an earlier name of this machine, or that of a removed one.
    let other = machine_name::id_of(transaction, &stored)?.filter(|other| other != import.machine_id);
    if stored == import.machine || other.is_none() {
        return Ok(StoreResult::Known);
    }
    let note = format!("{OTHER_ID}{}:{id}", import.machine_id);
    if schema::note(transaction, &note)?.is_some() {
        return Ok(StoreResult::Known);
    }
    let own_id = IdSource { unix_ms: *unix_ms, ..IdSource::now() }.message_id();
    schema::set_note(transaction, &note, own_id.as_str())?;
    let bells = put_with_machine(transaction, draft, &own_id, *unix_ms, machine)?;
    Ok(bells.map_or(StoreResult::Known, StoreResult::New))
}

/// Deletes notes about imported messages that no longer exist.
pub(crate) fn forget_messages_of_machines(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let delete = "DELETE FROM note WHERE name LIKE 'relay-id:%' AND value NOT IN (SELECT id FROM message)";
    transaction.execute(delete, [])?;
    let delete = "DELETE FROM note WHERE name LIKE 'relay-prompt:%'
                  AND substr(name, 14) NOT IN (SELECT id FROM message)";
    transaction.execute(delete, [])?;
    machine_name::forget_unused_keys(transaction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NameSource;
    use crate::journal::test_journal::{draft, journal};

    fn import(journal: &mut Journal, messages: &[ImportedMessage], seq: i64) -> usize {
        import_of(journal, ("m1", "box"), messages, seq).new
    }

    fn import_of(
        journal: &mut Journal,
        (machine_id, machine): (&str, &str),
        messages: &[ImportedMessage],
        seq: i64,
    ) -> ImportResult {
        let end = Cursor { generation: Some("g".to_owned()), seq, id: None };
        journal.import(&Import { machine_id, machine, messages, end: &end }).unwrap().expect("a machine")
    }

    #[test]
    fn no_machine_hides_the_message_of_another_one_by_its_id() {
        let (_directory, mut journal) = journal();
        let own = journal.append(&draft("own"), &IdSource::now()).unwrap();
        let id = IdSource::now().message_id();
        for (machine_id, name) in [("m1", "eve"), ("m2", "box")] {
            journal.name_machine(machine_id, name, &NameSource::Machine).unwrap();
        }
        let of = |id: &MessageId, text: &str| ImportedMessage {
            id: id.clone(),
            unix_ms: 7,
            draft: draft(text),
            prompt: None,
        };
        // The lying machine was faster than the owner of the message.
        let (lie, truth) = ([of(&id, "lie"), of(&own, "not yours")], [of(&id, "truth")]);
        assert_eq!(import_of(&mut journal, ("m1", "eve"), &lie, 2), ImportResult { new: 1, refused: 1 });
        assert_eq!(import_of(&mut journal, ("m2", "box"), &truth, 1), ImportResult { new: 1, refused: 0 });
        assert_eq!(import_of(&mut journal, ("m2", "box"), &truth, 1), ImportResult::default(), "once");
        let messages = journal.messages_after(0, 10).unwrap();
        let found: Vec<_> =
            messages.iter().map(|found| (found.machine.as_deref(), found.draft.body.as_str())).collect();
        assert_eq!(found, [(None, "own"), (Some("eve"), "lie"), (Some("box"), "truth")]);
        // A machine that was forgotten and comes back under another name is known by its id: its message is not stored twice.
        journal.forget_machine("m2").unwrap();
        journal.name_machine("m2", "build", &NameSource::Machine).unwrap();
        let known = ImportedMessage { id: messages[2].id.clone(), ..truth[0].clone() };
        assert_eq!(import_of(&mut journal, ("m2", "build"), &[known], 1), ImportResult::default());
    }

    #[test]
    fn what_comes_twice_is_stored_once_and_is_not_sent_on() {
        let (_directory, mut journal) = journal();
        let own = journal.append(&draft("own"), &IdSource::now()).unwrap();
        let message = ImportedMessage {
            id: IdSource::now().message_id(),
            unix_ms: 7,
            draft: draft("from the box"),
            prompt: None,
        };
        journal.name_machine("m1", "box", &NameSource::Machine).unwrap();
        assert_eq!(journal.import_position("m1").unwrap(), None);
        assert_eq!(import(&mut journal, std::slice::from_ref(&message), 4), 1);
        assert_eq!(import(&mut journal, std::slice::from_ref(&message), 5), 0);
        assert_eq!(journal.import_position("m1").unwrap().unwrap().seq, 5);
        let stored = journal.message(message.id.as_str()).unwrap().unwrap();
        assert_eq!((stored.machine.as_deref(), stored.unix_ms), (Some("box"), 7));
        let batch = journal.own_after(0, 10).unwrap();
        assert_eq!(batch.messages.iter().map(|message| &message.id).collect::<Vec<_>>(), [&own]);
        assert!(batch.looked_at >= 2 && !batch.more, "the other one need not be looked at again");
    }

    #[test]
    fn a_batch_has_an_end() {
        let (_directory, mut journal) = journal();
        for text in ["a", "b", "c"] {
            journal.append(&draft(text), &IdSource::now()).unwrap();
        }
        let batch = journal.own_after(0, 2).unwrap();
        assert_eq!((batch.messages.len(), batch.looked_at, batch.more), (2, 2, true));
        assert_eq!(
            [(1, 9), (0, 2)].map(|(seq, most)| journal.own_count_for("box", seq, most).unwrap()),
            [2, 2]
        );
        let batch = journal.own_after(2, 2).unwrap();
        assert_eq!((batch.messages.len(), batch.looked_at, batch.more), (1, 3, false));
    }

    #[test]
    fn nothing_of_a_machine_that_was_forgotten_or_renamed_is_stored_under_its_name() {
        let (_directory, mut journal) = journal();
        let message = ImportedMessage {
            id: IdSource::now().message_id(),
            unix_ms: 7,
            draft: draft("late"),
            prompt: None,
        };
        let end = Cursor { generation: Some("g".to_owned()), seq: 1, id: None };
        let import = Import { machine_id: "m1", machine: "box", messages: &[message], end: &end };
        assert_eq!(journal.import(&import).unwrap(), None, "it was never known");
        journal.name_machine("m1", "box", &NameSource::Machine).unwrap();
        journal.forget_machine("m1").unwrap();
        assert_eq!(journal.import(&import).unwrap(), None);
        assert_eq!(journal.import_position("m1").unwrap(), None, "it begins anew");
        journal.name_machine("m1", "box", &NameSource::Machine).unwrap();
        let source = NameSource::Link { command: "ssh box".to_owned() };
        journal.rename_machine("m1", "box", "build", &source).unwrap();
        assert_eq!(journal.import(&import).unwrap(), None);
        let import = Import { machine: "build", ..import };
        assert_eq!(journal.import(&import).unwrap(), Some(ImportResult { new: 1, refused: 0 }));
        // Its messages stay its own under the next name.
        journal.rename_machine("m1", "build", "vm", &source).unwrap();
        let machine = journal.machine_of(&import.messages[0].id).unwrap();
        assert_eq!(machine, Some(Some("vm".to_owned())));
    }
}
