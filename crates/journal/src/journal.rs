//! The journal (`ringer.db`): its tables, and the operations on them.

pub(crate) mod agent;
pub(crate) mod append;
pub(crate) mod consumer;
pub(crate) mod export;
pub(crate) mod hook_waiter;
pub(crate) mod hub_reader;
pub(crate) mod inbox;
pub(crate) mod lead;
pub(crate) mod listener;
pub(crate) mod machine_name;
pub(crate) mod prompt;
pub(crate) mod question;
pub(crate) mod read;
pub(crate) mod relay;
pub(crate) mod retention;
pub(crate) mod schema;
pub(crate) mod sender;
pub(crate) mod stats;

/// Fixtures for the unit tests of the journal.
#[cfg(test)]
pub(crate) mod test_journal {
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
}
