//! The session on disk, which is restored after a reboot, and the notes with which the keeper restores it without that file.
//!
//! A file that cannot be used is renamed, because the next save would replace it.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ringer_ipc::KeptReport;
use serde::{Deserialize, Serialize};

use crate::layout::PaneId;
use crate::pane::Pane;
use crate::paths::{PanePaths, SESSION};
use crate::state::State;
use crate::workspace::{PanePlace, Workspace};

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
struct FileVersion {
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
        let FileVersion { version } = serde_json::from_slice(&bytes)?;
        if version > VERSION {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "it is of a newer Ringer"));
        }
        Ok(Some(serde_json::from_slice(&bytes)?))
    }

    pub(crate) fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec_pretty(self)
    }
}

/// The number of panes in the saved session. Without a server and a keeper, the first window restores them.
pub fn saved_panes(paths: &PanePaths) -> io::Result<usize> {
    Ok(SavedSession::read(&paths.session())?.map_or(0, |saved| saved.panes.len()))
}

/// The longest note that the keeper accepts.
const MAX_NOTE: usize = 64 * 1024;

/// A pane and its workspace. The keeper stores it with the program, for a server that finds no session.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Note {
    workspace: String,
    workspace_name: String,
    /// The pane has the focus of the workspace.
    has_keys: bool,
    pub(crate) pane: SavedPane,
    /// The number of the server that wrote the note. The keeper dropped its kept output when it received the note.
    pub(crate) server: u64,
}

impl Note {
    pub(crate) fn of(workspace: &Workspace, pane: &Pane, server: u64) -> Self {
        Self {
            workspace: workspace.id.clone(),
            workspace_name: workspace.name.clone(),
            has_keys: workspace.focused() == Some(&pane.id),
            pane: SavedPane::of(pane),
            server,
        }
    }

    /// The encoded note, or `None` if it is too long.
    pub(crate) fn text(&self) -> Option<String> {
        serde_json::to_string(self).ok().filter(|note| note.len() <= MAX_NOTE)
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub(crate) fn place(&self) -> PanePlace {
        PanePlace {
            workspace: self.workspace.clone(),
            name: self.workspace_name.clone(),
            has_keys: self.has_keys,
        }
    }
}

/// The most unusable files of each kind. One more replaces the oldest.
const MAX_KEPT: usize = 9;

/// The reason a session cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnusableSession {
    Damaged,
    /// A newer version of the program wrote it.
    Newer,
}

impl UnusableSession {
    /// Converts the error of [`SavedSession::read`].
    pub(crate) fn of(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::Unsupported { Self::Newer } else { Self::Damaged }
    }

    /// Renames the session file of a home. Returns the new name.
    pub(crate) fn set_aside(self, home: &Path) -> io::Result<String> {
        let ending = match self {
            Self::Damaged => "damaged",
            Self::Newer => "newer",
        };
        let numbered = (1..MAX_KEPT).map(|number| format!("{SESSION}.{ending}-{number}"));
        let names = std::iter::once(format!("{SESSION}.{ending}")).chain(numbered);
        // A file cannot replace a directory.
        let names = names.filter(|name| !home.join(name).is_dir());
        let name =
            names.min_by_key(|name| written_at(&home.join(name))).ok_or(io::ErrorKind::AlreadyExists)?;
        fs::rename(home.join(SESSION), home.join(&name))?;
        Ok(name)
    }
}

impl fmt::Display for UnusableSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Damaged => "the layout could not be read",
            Self::Newer => "the layout is of a newer Ringer",
        })
    }
}

/// The modification time of a file, or `None`, which sorts before all times, if it does not exist.
fn written_at(path: &Path) -> Option<SystemTime> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        // An unknown file counts as new, so that it is not replaced.
        found => Some(found.and_then(|found| found.modified()).unwrap_or_else(|_| SystemTime::now())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::emulator::Size;
    use crate::layout::SplitDirection;

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

    #[test]
    fn a_note_says_where_its_pane_was() {
        let mut workspace = Workspace::new("panes:1".to_owned(), "api".to_owned());
        let panes = ["left", "right"].map(|id| {
            workspace.add(PaneId::new(id), None, SplitDirection::Right);
            Pane::new(PaneId::new(id), PathBuf::from("/src"), Size::at_least(80, 24), Instant::now())
        });
        for (pane, has_keys) in panes.iter().zip([false, true]) {
            let note = Note::of(&workspace, pane, 3);
            let read = Note::read(&note.text().unwrap()).unwrap();
            assert_eq!(read, note);
            let (workspace, name) = ("panes:1".to_owned(), "api".to_owned());
            assert_eq!(read.place(), PanePlace { workspace, name, has_keys });
        }
    }

    /// Writes a session that was modified at this second, and sets it aside.
    fn set_aside(home: &Path, reason: UnusableSession, second: u64) -> io::Result<String> {
        let path = home.join(SESSION);
        fs::write(&path, second.to_string()).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(second)).unwrap();
        reason.set_aside(home)
    }

    #[test]
    fn each_copy_has_its_own_name_until_the_oldest_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path();
        for reason in [UnusableSession::Damaged, UnusableSession::Newer] {
            let ending = if reason == UnusableSession::Damaged { "damaged" } else { "newer" };
            let name = |number: u64| match number {
                0 => format!("panes.json.{ending}"),
                number => format!("panes.json.{ending}-{number}"),
            };
            for number in 0..9 {
                // The fourth one was written before all others.
                let second = if number == 3 { 1 } else { 100 + number };
                assert_eq!(set_aside(home, reason, second).unwrap(), name(number));
            }
            assert!(!home.join(SESSION).exists());
            assert_eq!(set_aside(home, reason, 200).unwrap(), name(3));
            assert_eq!(set_aside(home, reason, 201).unwrap(), name(0));
            assert_eq!(set_aside(home, reason, 202).unwrap(), name(1));
            fs::remove_file(home.join(name(5))).unwrap();
            assert_eq!(set_aside(home, reason, 203).unwrap(), name(5));
            let kept = |number: u64| fs::read_to_string(home.join(name(number))).unwrap();
            assert_eq!([0, 1, 2, 3, 4, 5, 8].map(kept), ["201", "202", "102", "200", "104", "203", "108"]);
        }
        assert_eq!(fs::read_dir(home).unwrap().count(), 2 * MAX_KEPT);
    }

    #[test]
    fn no_directory_is_replaced_and_one_can_be_set_aside() {
        let directory = tempfile::tempdir().unwrap();
        let (home, reason) = (directory.path(), UnusableSession::Damaged);
        fs::create_dir(home.join(SESSION)).unwrap();
        fs::write(home.join(SESSION).join("file"), "").unwrap();
        assert_eq!(reason.set_aside(home).unwrap(), "panes.json.damaged");
        for number in 1..9 {
            set_aside(home, reason, number).unwrap();
        }
        let old = File::open(home.join("panes.json.damaged")).unwrap();
        old.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(set_aside(home, reason, 20).unwrap(), "panes.json.damaged-1");
        assert!(home.join("panes.json.damaged").join("file").exists());
        assert!(reason.set_aside(home).is_err(), "there is nothing to set aside");
        assert_eq!(fs::read_dir(home).unwrap().count(), MAX_KEPT);
    }
}
