//! Local names of other machines, and what was open under their earlier names.
//!
//! A name belongs to one machine and a machine has one name, until the machine is forgotten or the person renames it. So a
//! machine cannot take over the name or the id of another one, whatever it reports about itself.
//!
//! The keys of a machine's episodes and the ids of its questions end with its name. If it is renamed while some are open, notes
//! map its keys to the ones with the earlier name, so that later messages about them are stored under the same keys.

use std::collections::BTreeMap;

use ringer_core::Recipient;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::db::tables::text;
use crate::error::Error;
use crate::journal::schema::{self, Journal};

/// Prefix of the notes that map a name to the id of its machine.
const NOTE: &str = "relay-name:";
/// Prefix of the notes with the source of a name. A name without one was chosen by its machine.
const SOURCE: &str = "relay-name-by:";
/// Prefix of the source for a name that is set in a link. The command of the link follows.
const LINK: &str = "link ";
/// The source for a name that `ringer relay serve --name` sets.
const SERVE: &str = "serve";

/// Who chose the name of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameSource {
    /// The machine itself, or the server of its team.
    Machine,
    /// The person, in a link of the settings.
    Link {
        /// The program of the link and its arguments.
        command: String,
    },
    /// The person, with `ringer relay serve --name`.
    Serve,
}

/// The result of naming a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamingResult {
    /// The machine has this name, newly or already.
    Named,
    /// Another machine has this name.
    NameTaken,
    /// The machine has another name.
    HasOtherName {
        /// Its name.
        name: String,
        /// Who chose it.
        source: NameSource,
    },
}

impl NameSource {
    fn note(&self) -> Option<String> {
        match self {
            Self::Machine => None,
            Self::Link { command } => Some(format!("{LINK}{command}")),
            Self::Serve => Some(SERVE.to_owned()),
        }
    }

    fn of_note(note: Option<&str>) -> Self {
        match note {
            Some(SERVE) => Self::Serve,
            Some(note) => match note.strip_prefix(LINK) {
                Some(command) => Self::Link { command: command.to_owned() },
                None => Self::Machine,
            },
            None => Self::Machine,
        }
    }
}

fn note_of(name: &str) -> String {
    format!("{NOTE}{name}")
}

fn source_note_of(name: &str) -> String {
    format!("{SOURCE}{name}")
}

/// The id of the machine with a name.
pub(crate) fn id_of(connection: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    schema::note(connection, &note_of(name))
}

/// The name of a machine.
pub(crate) fn name_of(connection: &Connection, machine_id: &str) -> rusqlite::Result<Option<String>> {
    let query = "SELECT substr(name, ?1) FROM note WHERE name LIKE 'relay-name:%' AND value = ?2";
    let begin = i64::try_from(NOTE.len() + 1).unwrap_or(0);
    connection.query_row(query, rusqlite::params![begin, machine_id], |row| text(row, 0)).optional()
}

fn source_of(connection: &Connection, name: &str) -> rusqlite::Result<NameSource> {
    let note = schema::note(connection, &source_note_of(name))?;
    Ok(NameSource::of_note(note.as_deref()))
}

/// Checks a name for a machine. `None` if the name can be stored: both are free, or only the source of the name changes.
fn naming(
    connection: &Connection,
    machine_id: &str,
    name: &str,
    source: &NameSource,
) -> rusqlite::Result<Option<NamingResult>> {
    match (id_of(connection, name)?, name_of(connection, machine_id)?) {
        (Some(id), _) if id == machine_id => {
            // The person's choice stays if the machine reports the same name. That of `serve --name` also stays if a link sets
            // it.
            let noted = source_of(connection, name)?;
            let is_noted = *source == NameSource::Machine || noted == *source || noted == NameSource::Serve;
            Ok(is_noted.then_some(NamingResult::Named))
        }
        (_, Some(other)) => {
            let source = source_of(connection, &other)?;
            Ok(Some(NamingResult::HasOtherName { name: other, source }))
        }
        (Some(_), None) => Ok(Some(NamingResult::NameTaken)),
        (None, None) => Ok(None),
    }
}

fn note_name(
    transaction: &Transaction<'_>,
    machine_id: &str,
    name: &str,
    source: &NameSource,
) -> rusqlite::Result<()> {
    schema::set_note(transaction, &note_of(name), machine_id)?;
    forget_keys_ending_with(transaction, name)?;
    match source.note() {
        Some(note) => schema::set_note(transaction, &source_note_of(name), &note),
        None => Ok(()),
    }
}

/// Deletes the name of a machine.
pub(crate) fn forget(transaction: &Transaction<'_>, machine_id: &str) -> rusqlite::Result<()> {
    while let Some(name) = name_of(transaction, machine_id)? {
        for note in [note_of(&name), source_note_of(&name)] {
            transaction.execute("DELETE FROM note WHERE name = ?1", [note])?;
        }
    }
    Ok(())
}

/// Changes the recipients of messages to agents of a renamed machine (`agent:worker-1@from`), which may not be delivered yet.
fn readdress(transaction: &Transaction<'_>, from: &str, name: &str) -> rusqlite::Result<()> {
    let (from, name) = (format!("@{from}"), format!("@{name}"));
    let query = "SELECT seq, recipient FROM message WHERE machine IS NULL
                 AND recipient >= 'agent:' AND recipient < 'agent;' AND substr(recipient, -length(?1)) = ?1";
    let rows: Vec<(i64, String)> = transaction
        .prepare(query)?
        .query_map([&from], |row| Ok((row.get(0)?, text(row, 1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut update = transaction.prepare("UPDATE message SET recipient = ?1 WHERE seq = ?2")?;
    for (seq, recipient) in rows {
        let recipient = recipient.strip_suffix(&from).map(|agent| format!("{agent}{name}"));
        // An invalid recipient, such as one that is too long, would be read as the default recipient.
        if let Some(recipient) = recipient.filter(|recipient| Recipient::parse(recipient).is_ok()) {
            update.execute(rusqlite::params![recipient, seq])?;
        }
    }
    Ok(())
}

impl Journal {
    /// Names a machine, if both the name and the machine are free, and records who chose the name.
    pub fn name_machine(
        &mut self,
        machine_id: &str,
        name: &str,
        source: &NameSource,
    ) -> Result<NamingResult, Error> {
        if let Some(naming) = self.read(|connection| naming(connection, machine_id, name, source))? {
            return Ok(naming);
        }
        self.write(|transaction| {
            // Another process may have been faster.
            if let Some(naming) = naming(transaction, machine_id, name, source)? {
                return Ok(naming);
            }
            note_name(transaction, machine_id, name, source)?;
            Ok(NamingResult::Named)
        })
    }

    /// Renames a machine with the name `from`, if the new name is free. Updates its messages and the recipients of messages to
    /// its agents. Its open episodes and questions keep their keys; see [`Journal::earlier_keys`]. Wakes all links.
    pub fn rename_machine(
        &mut self,
        machine_id: &str,
        from: &str,
        name: &str,
        source: &NameSource,
    ) -> Result<NamingResult, Error> {
        let naming = self.write(|transaction| {
            match naming(transaction, machine_id, name, source)? {
                Some(NamingResult::HasOtherName { name: known, .. }) if known == from => {}
                Some(naming) => return Ok(naming),
                None => {
                    note_name(transaction, machine_id, name, source)?;
                    return Ok(NamingResult::Named);
                }
            }
            if id_of(transaction, name)?.is_some() {
                return Ok(NamingResult::NameTaken);
            }
            note_open_keys(transaction, machine_id, from)?;
            forget(transaction, machine_id)?;
            note_name(transaction, machine_id, name, source)?;
            transaction.execute("UPDATE message SET machine = ?1 WHERE machine = ?2", [name, from])?;
            readdress(transaction, from, name)?;
            Ok(NamingResult::Named)
        })?;
        self.wake_links()?;
        Ok(naming)
    }

    /// Keys that were open when the machine got its name: maps the machine's own keys to the stored ones.
    pub fn earlier_keys(&mut self, machine: &str) -> Result<BTreeMap<String, String>, Error> {
        self.read(|connection| match id_of(connection, machine)? {
            Some(machine_id) => open_keys_of(connection, &machine_id),
            None => Ok(BTreeMap::new()),
        })
    }

    /// The name of a machine, and who chose it.
    pub fn machine_name_and_source(
        &mut self,
        machine_id: &str,
    ) -> Result<Option<(String, NameSource)>, Error> {
        self.read(|connection| {
            let Some(name) = name_of(connection, machine_id)? else { return Ok(None) };
            let source = source_of(connection, &name)?;
            Ok(Some((name, source)))
        })
    }

    /// The name of a machine.
    pub fn machine_name(&mut self, machine_id: &str) -> Result<Option<String>, Error> {
        self.read(|connection| name_of(connection, machine_id))
    }

    /// The id of the machine with a name.
    pub fn machine_id_of(&mut self, name: &str) -> Result<Option<String>, Error> {
        self.read(|connection| id_of(connection, name))
    }
}

/// Prefix of the notes with earlier keys: followed by the id of the machine and the machine's own key.
const KEY_NOTE: &str = "relay-key:";
/// How many open keys are noted. No machine has that many waiting agents.
const MAX_KEYS: i64 = 1000;

fn key_notes_of(machine_id: &str) -> String {
    format!("{KEY_NOTE}{machine_id}:")
}

/// Notes the open keys of a machine before its name `from` is deleted.
pub(crate) fn note_open_keys(
    transaction: &Transaction<'_>,
    machine_id: &str,
    from: &str,
) -> rusqlite::Result<()> {
    let suffix = format!("@{from}");
    // A mark ends an episode or answers a question.
    let open = [("key", "mark-resolve"), ("question_id", "mark-answer")].map(|(column, end)| {
        format!(
            "SELECT {column} FROM message WHERE machine = ?1 AND kind NOT LIKE 'mark-%'
             AND substr({column}, -length(?2)) = ?2 AND {column} NOT IN
             (SELECT {column} FROM message WHERE machine = ?1 AND kind = '{end}' AND {column} IS NOT NULL)
             GROUP BY {column} ORDER BY max(seq) DESC LIMIT ?3"
        )
    });
    for query in open {
        let keys: Vec<String> = transaction
            .prepare(&query)?
            .query_map(params![from, suffix, MAX_KEYS], |row| text(row, 0))?
            .collect::<rusqlite::Result<_>>()?;
        for key in keys {
            if let Some(own) = key.strip_suffix(&suffix) {
                schema::set_note(transaction, &format!("{}{own}", key_notes_of(machine_id)), &key)?;
            }
        }
    }
    Ok(())
}

/// Deletes the notes about keys that end with a name, when another machine gets it.
pub(crate) fn forget_keys_ending_with(transaction: &Transaction<'_>, name: &str) -> rusqlite::Result<()> {
    let delete = "DELETE FROM note WHERE name LIKE 'relay-key:%' AND substr(value, -length(?1)) = ?1";
    transaction.execute(delete, [format!("@{name}")]).map(drop)
}

/// Deletes the notes about a machine's keys.
pub(crate) fn forget_keys_of(transaction: &Transaction<'_>, machine_id: &str) -> rusqlite::Result<()> {
    let delete = "DELETE FROM note WHERE substr(name, 1, length(?1)) = ?1";
    transaction.execute(delete, [key_notes_of(machine_id)]).map(drop)
}

/// Deletes notes about keys without messages.
pub(crate) fn forget_unused_keys(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let delete = "DELETE FROM note WHERE name LIKE 'relay-key:%'
                  AND value NOT IN (SELECT key FROM message WHERE key IS NOT NULL)
                  AND value NOT IN (SELECT question_id FROM message WHERE question_id IS NOT NULL)";
    transaction.execute(delete, []).map(drop)
}

/// The noted keys of a machine: maps its own keys to the stored ones.
pub(crate) fn open_keys_of(
    connection: &Connection,
    machine_id: &str,
) -> rusqlite::Result<BTreeMap<String, String>> {
    let begin = key_notes_of(machine_id);
    let mut statement = connection
        .prepare("SELECT name, value FROM note WHERE name >= ?1 AND name < ?1 || char(0x10ffff)")?;
    let rows = statement.query_map([&begin], |row| Ok((text(row, 0)?, text(row, 1)?)))?;
    let mut keys = BTreeMap::new();
    for row in rows {
        let (name, key) = row?;
        keys.extend(name.strip_prefix(&begin).map(|own| (own.to_owned(), key)));
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use ringer_core::message::{Mark, QuestionId, Tag};
    use ringer_core::{Draft, Kind};

    use super::*;
    use crate::journal::test_journal::{draft, journal};
    use crate::{Cursor, IdSource, Import, ImportedMessage};

    fn link(command: &str) -> NameSource {
        NameSource::Link { command: command.to_owned() }
    }

    fn has_other_name(name: &str, source: NameSource) -> NamingResult {
        NamingResult::HasOtherName { name: name.to_owned(), source }
    }

    #[test]
    fn a_name_and_a_machine_belong_together_until_the_machine_is_forgotten() {
        let (_directory, mut journal) = journal();
        let mut name =
            |machine: &str, name: &str| journal.name_machine(machine, name, &NameSource::Machine).unwrap();
        assert_eq!(name("m1", "box"), NamingResult::Named);
        assert_eq!(name("m1", "box"), NamingResult::Named);
        assert_eq!(name("m2", "box"), NamingResult::NameTaken);
        assert_eq!(name("m1", "other"), has_other_name("box", NameSource::Machine));
        assert_eq!(journal.machine_name("m1").unwrap().as_deref(), Some("box"));
        assert_eq!(journal.machine_id_of("box").unwrap().as_deref(), Some("m1"));
        journal.forget_machine("m1").unwrap();
        assert_eq!(journal.name_machine("m2", "box", &NameSource::Machine).unwrap(), NamingResult::Named);
    }

    #[test]
    fn who_chose_a_name_is_known_and_forgotten_with_it() {
        let (_directory, mut journal) = journal();
        let source =
            |journal: &mut Journal| journal.name_machine("m1", "other", &NameSource::Machine).unwrap();
        for chosen in [NameSource::Machine, link("ssh box"), NameSource::Serve] {
            journal.name_machine("m1", "box", &chosen).unwrap();
            assert_eq!(source(&mut journal), has_other_name("box", chosen));
        }
        for chosen in [NameSource::Machine, link("ssh box")] {
            journal.name_machine("m1", "box", &chosen).unwrap();
            assert_eq!(source(&mut journal), has_other_name("box", NameSource::Serve), "it stays");
        }
        journal.forget_machine("m1").unwrap();
        journal.name_machine("m1", "box", &NameSource::Machine).unwrap();
        assert_eq!(source(&mut journal), has_other_name("box", NameSource::Machine));
    }

    #[test]
    fn another_name_is_given_only_where_it_is_free_and_frees_the_one_before() {
        let (_directory, mut journal) = journal();
        for (machine, name) in [("m1", "box"), ("m2", "vm")] {
            journal.name_machine(machine, name, &link(name)).unwrap();
        }
        let mut rename = |from: &str, to: &str| journal.rename_machine("m1", from, to, &link("box")).unwrap();
        assert_eq!(rename("box", "vm"), NamingResult::NameTaken);
        assert_eq!(rename("other", "build"), has_other_name("box", link("box")), "that is not its name");
        assert_eq!(rename("box", "build"), NamingResult::Named);
        assert_eq!(rename("box", "build"), NamingResult::Named, "twice is once");
        assert_eq!(journal.machine_name("m1").unwrap().as_deref(), Some("build"));
        assert_eq!(journal.machine_id_of("box").unwrap(), None);
        assert_eq!(journal.machine_id_of("vm").unwrap().as_deref(), Some("m2"));
    }

    #[test]
    fn what_is_for_agents_of_a_machine_stays_for_them_under_its_new_name() {
        let (_directory, mut journal) = journal();
        journal.name_machine("m1", "box", &link("box")).unwrap();
        let long = format!("agent:{}@box", "a".repeat(250));
        let before = [
            "agent:worker-1@box",
            "agent:worker-1@bigbox",
            "agent:worker-1@vm",
            "agent:worker-1",
            "agent:box",
            "person",
            &long,
        ];
        let ids = before.map(|recipient| {
            let mut draft = draft("hello");
            draft.recipient = Recipient::parse(recipient).unwrap();
            journal.append(&draft, &IdSource::now()).unwrap()
        });
        journal.rename_machine("m1", "box", "build-box", &link("box")).unwrap();
        let after = ids.map(|id| journal.message(id.as_str()).unwrap().unwrap().draft.recipient.to_string());
        let mut expected = before;
        expected[0] = "agent:worker-1@build-box";
        assert_eq!(after, expected, "the last one is too long for the new name");
    }

    fn import(journal: &mut Journal, (machine_id, machine): (&str, &str), drafts: &[Draft]) {
        let messages: Vec<ImportedMessage> = drafts
            .iter()
            .map(|draft| ImportedMessage {
                id: IdSource::now().message_id(),
                unix_ms: 7,
                draft: draft.clone(),
                prompt: None,
            })
            .collect();
        let end = Cursor { generation: Some("g".to_owned()), seq: 1, id: None };
        let import = Import { machine_id, machine, messages: &messages, end: &end };
        journal.import(&import).unwrap().expect("a machine");
    }

    #[test]
    fn what_is_open_of_a_machine_keeps_its_keys_until_another_machine_has_its_name() {
        let (_directory, mut journal) = journal();
        journal.name_machine("m1", "box", &link("box")).unwrap();
        let with_key = |tag: Tag, key: &str| {
            let mut draft = draft("x");
            (draft.tag, draft.key) = (tag, Some(key.to_owned()));
            draft
        };
        let with_question = |tag: Tag, id: &str| {
            let mut draft = draft("x");
            (draft.tag, draft.question_id) = (tag, Some(QuestionId::parse(id).unwrap()));
            draft
        };
        let notice = Tag::Notice(Kind::Question);
        let drafts = [
            with_key(notice, "episode:a:1@box"),
            with_key(notice, "episode:a:2@box"),
            with_key(Tag::Mark(Mark::Resolve), "episode:a:1@box"),
            with_question(notice, "q-1@box"),
            with_question(notice, "q-2@box"),
            with_question(Tag::Mark(Mark::Answer), "q-2@box"),
            with_key(notice, "deploy"),
        ];
        import(&mut journal, ("m1", "box"), &drafts);
        assert!(journal.earlier_keys("box").unwrap().is_empty());
        journal.rename_machine("m1", "box", "build", &link("box")).unwrap();
        let open = |keys: &[(&str, &str)]| -> BTreeMap<String, String> {
            keys.iter().map(|(own, key)| ((*own).to_owned(), (*key).to_owned())).collect()
        };
        let of_box = [("episode:a:2", "episode:a:2@box"), ("q-1", "q-1@box")];
        assert_eq!(journal.earlier_keys("build").unwrap(), open(&of_box));
        // Again, with a new key in between.
        import(&mut journal, ("m1", "build"), &[with_key(notice, "episode:a:3@build")]);
        journal.rename_machine("m1", "build", "vm", &link("box")).unwrap();
        let of_build = ("episode:a:3", "episode:a:3@build");
        let all = [&of_box[..], &[of_build]].concat();
        assert_eq!(journal.earlier_keys("vm").unwrap(), open(&all));
        // From now on, keys with that name belong to another machine.
        journal.name_machine("m2", "box", &link("other")).unwrap();
        assert_eq!(journal.earlier_keys("vm").unwrap(), open(&[of_build]));
        assert!(journal.earlier_keys("box").unwrap().is_empty());
        journal.forget_machine("m1").unwrap();
        journal.name_machine("m1", "vm", &link("box")).unwrap();
        assert!(journal.earlier_keys("vm").unwrap().is_empty());
    }

    #[test]
    fn keys_are_forgotten_with_their_messages() {
        let (_directory, mut journal) = journal();
        journal.name_machine("m1", "box", &link("box")).unwrap();
        let mut draft = draft("x");
        draft.key = Some("episode:a:1@box".to_owned());
        import(&mut journal, ("m1", "box"), &[draft]);
        journal.rename_machine("m1", "box", "build", &link("box")).unwrap();
        let forget = |journal: &mut Journal| {
            journal.write(forget_unused_keys).unwrap();
            journal.earlier_keys("build").unwrap().len()
        };
        assert_eq!(forget(&mut journal), 1);
        journal.write(|transaction| transaction.execute("DELETE FROM message", [])).unwrap();
        assert_eq!(forget(&mut journal), 0);
    }
}
