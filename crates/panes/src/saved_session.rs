//! The form of a session on disk. Its panes are also part of the keeper's notes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ringer_ipc::KeptReport;
use serde::{Deserialize, Serialize};

use crate::layout::PaneId;
use crate::pane::Pane;
use crate::state::State;
use crate::workspace::Workspace;

/// The version of the file format. A newer one is not read.
const VERSION: u32 = 1;

/// A session: layouts, names, directories and unread panes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedSession {
    version: u32,
    pub(crate) workspaces: Vec<Workspace>,
    pub(crate) panes: Vec<SavedPane>,
    /// The workspace that was shown last.
    #[serde(default)]
    pub(crate) shown: Option<String>,
    /// Reports of programs that the hub has not answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unanswered: Vec<KeptReport>,
    /// The directory of the saved screens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) screens: Option<PathBuf>,
}

/// The part that the files of all versions have in common.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedPane {
    pub(crate) id: PaneId,
    pub(crate) name: Option<String>,
    pub(crate) command: Vec<String>,
    pub(crate) directory: PathBuf,
    pub(crate) is_unread: bool,
    /// Its program had ended, and the end was reported.
    pub(crate) has_ended: bool,
}

impl SavedPane {
    pub(crate) fn of(pane: &Pane) -> Self {
        Self {
            id: pane.id.clone(),
            name: pane.name.clone(),
            command: pane.command.clone(),
            directory: pane.directory.clone(),
            is_unread: pane.is_unread(),
            has_ended: pane.ending.is_some(),
        }
    }
}

impl SavedSession {
    pub(crate) fn of(state: &State, unanswered: Vec<KeptReport>) -> Self {
        let panes = state.panes().map(SavedPane::of).collect();
        let shown = state.last_shown().map(str::to_owned);
        Self {
            version: VERSION,
            workspaces: state.saved_workspaces(),
            panes,
            shown,
            unanswered,
            screens: None,
        }
    }

    /// Reads a session. Returns `None` if there is no file, and an error of the kind `Unsupported` if a newer version wrote it.
    pub(crate) fn read(path: &Path) -> io::Result<Option<Self>> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // A newer version may have changed everything else.
        let Versioned { version } = serde_json::from_slice(&bytes)?;
        if version > VERSION {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "it is of a newer Ringer"));
        }
        Ok(Some(serde_json::from_slice(&bytes)?))
    }

    pub(crate) fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec_pretty(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_read_as_it_was_written_and_another_version_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("session.json");
        let pane = SavedPane {
            id: PaneId::new("a1"),
            name: Some("api".to_owned()),
            command: vec!["claude".to_owned()],
            directory: PathBuf::from("/src"),
            is_unread: true,
            has_ended: false,
        };
        let workspace = Workspace::new("panes:1".to_owned(), "work".to_owned());
        let saved = SavedSession {
            version: VERSION,
            workspaces: vec![workspace],
            panes: vec![pane],
            shown: None,
            unanswered: Vec::new(),
            screens: Some(directory.path().join("screens")),
        };
        fs::write(&path, saved.to_bytes().unwrap()).unwrap();
        assert_eq!(SavedSession::read(&path).unwrap(), Some(saved.clone()));
        let newer = SavedSession { version: VERSION + 1, ..saved };
        fs::write(&path, newer.to_bytes().unwrap()).unwrap();
        let kind = |path: &Path| SavedSession::read(path).unwrap_err().kind();
        assert_eq!(kind(&path), io::ErrorKind::Unsupported);
        fs::write(&path, r#"{"version":3,"workspaces":{"all":"different"}}"#).unwrap();
        assert_eq!(kind(&path), io::ErrorKind::Unsupported);
        for damaged in
            ["{", "", "null", r#"{"version":1}"#, r#"{"version":2,"workspaces":"#, r#"{"version":-1}"#]
        {
            fs::write(&path, damaged).unwrap();
            assert_ne!(kind(&path), io::ErrorKind::Unsupported, "{damaged}");
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(SavedSession::read(&path).unwrap(), None);
    }
}
