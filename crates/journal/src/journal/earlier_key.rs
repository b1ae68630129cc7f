//! What was open when a machine got another name. The keys of its episodes and the ids of its questions end with the name that it
//! had: what it says of them later is stored under the same keys.

use std::collections::BTreeMap;

use rusqlite::{Connection, Transaction, params};

use crate::db::text::text;
use crate::journal::agent_note;

/// How the notes begin that hold such a key. The id of the machine follows, and the key as the machine has it.
const NOTE: &str = "relay-key:";
/// The newest open ones that are noted. No machine has so many agents that wait.
const MOST: i64 = 1000;

fn notes_of(machine_id: &str) -> String {
    format!("{NOTE}{machine_id}:")
}

/// Notes what is open of a machine that is about to lose the name `from`.
pub(crate) fn note_open(transaction: &Transaction<'_>, machine_id: &str, from: &str) -> rusqlite::Result<()> {
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
            .query_map(params![from, suffix, MOST], |row| text(row, 0))?
            .collect::<rusqlite::Result<_>>()?;
        for key in keys {
            if let Some(own) = key.strip_suffix(&suffix) {
                agent_note::set(transaction, &format!("{}{own}", notes_of(machine_id)), &key)?;
            }
        }
    }
    Ok(())
}

/// Another machine has this name from now on, and keys that end with it are its own.
pub(crate) fn forget_name(transaction: &Transaction<'_>, name: &str) -> rusqlite::Result<()> {
    let delete = "DELETE FROM note WHERE name LIKE 'relay-key:%' AND substr(value, -length(?1)) = ?1";
    transaction.execute(delete, [format!("@{name}")]).map(drop)
}

/// Forgets the keys of a machine.
pub(crate) fn forget_machine(transaction: &Transaction<'_>, machine_id: &str) -> rusqlite::Result<()> {
    let delete = "DELETE FROM note WHERE substr(name, 1, length(?1)) = ?1";
    transaction.execute(delete, [notes_of(machine_id)]).map(drop)
}

/// Deletes the notes about messages that are no longer there.
pub(crate) fn forget_messages(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let delete = "DELETE FROM note WHERE name LIKE 'relay-key:%'
                  AND value NOT IN (SELECT key FROM message WHERE key IS NOT NULL)
                  AND value NOT IN (SELECT question_id FROM message WHERE question_id IS NOT NULL)";
    transaction.execute(delete, []).map(drop)
}

/// The open ones of a machine: under its own keys, those that they are stored under.
pub(crate) fn keys_of(
    connection: &Connection,
    machine_id: &str,
) -> rusqlite::Result<BTreeMap<String, String>> {
    let begin = notes_of(machine_id);
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
