//! Where the messages begin that another machine may have: what was written here before it was linked is not for it, whatever
//! place it asks for.
//!
//! That place is in a file beside the journal, because the journal may be removed, repaired or replaced by an older copy. Then the
//! id of the last message before the link tells what was written after it: ids are in the order of time.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use ringer_journal::{Home, IdSource, Journal};
use ringer_platform::{Durability, replace_file};

use crate::error::Error;
use crate::position::Position;

fn path(home: &Home, key: &str) -> PathBuf {
    home.path().join(format!("relay-begin-{key}.json"))
}

/// The number behind which messages of this machine may go to another one, or to a team: the key is what the journal keeps its
/// place under. That of a machine that is new is the end of the
/// journal: from here on nothing is left out that is written for it.
pub(crate) fn first_position(home: &Home, journal: &mut Journal, key: &str) -> Result<i64, Error> {
    let now = journal.export_position(key, IdSource::now().unix_ms)?;
    let path = path(home, key);
    let failed = |what: &str, source| Error::Io { what: format!("cannot {what} {}", path.display()), source };
    let begun: Position = match fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| failed("read", error.into()))?,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let begins = Position::from(now);
            // Plain data: it cannot fail to be written.
            let bytes = serde_json::to_vec(&begins).unwrap_or_default();
            replace_file(&path, &bytes, Durability::Synced).map_err(|error| failed("write", error))?;
            begins
        }
        Err(error) => return Err(failed("read", error)),
    };
    begun.id.map_or(Ok(0), |id| Ok(journal.own_seq_until(&id)?))
}

/// Forgets where the messages for a machine begin.
pub(crate) fn forget(home: &Home, key: &str) {
    let _ = fs::remove_file(path(home, key));
}
