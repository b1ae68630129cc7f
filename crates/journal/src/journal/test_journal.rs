//! Fixtures for the unit tests of the journal.

use ringer_core::{Draft, Kind, Scope, Sender};
use tempfile::TempDir;

use crate::home::Home;
use crate::journal::schema::Journal;

/// An empty journal in a temporary directory.
pub(crate) fn journal() -> (TempDir, Journal) {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(&Home::new(directory.path())).unwrap();
    (directory, journal)
}

/// A message of this machine.
pub(crate) fn draft(text: &str) -> Draft {
    Draft::new(Scope::global(), Sender::system(), Kind::Status, text).unwrap()
}
