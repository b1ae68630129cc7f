//! The note that the keeper stores with each program, for a server that finds no session.

use serde::{Deserialize, Serialize};

use crate::pane::Pane;
use crate::saved_session::SavedPane;
use crate::workspace::{PanePlace, Workspace};

/// The longest note.
const MAX_NOTE: usize = 64 * 1024;

/// A pane and its workspace.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    workspace: String,
    workspace_name: String,
    /// The pane has the focus of the workspace.
    has_keys: bool,
    pub(super) pane: SavedPane,
    /// The number of the server that wrote the note. The keeper dropped its kept output when it received the note.
    pub(super) server: u64,
}

impl Note {
    pub(super) fn of(workspace: &Workspace, pane: &Pane, server: u64) -> Self {
        Self {
            workspace: workspace.id.clone(),
            workspace_name: workspace.name.clone(),
            has_keys: workspace.focused() == Some(&pane.id),
            pane: SavedPane::of(pane),
            server,
        }
    }

    /// The encoded note, or `None` if it is too long.
    pub(super) fn text(&self) -> Option<String> {
        serde_json::to_string(self).ok().filter(|note| note.len() <= MAX_NOTE)
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub(super) fn place(&self) -> PanePlace {
        PanePlace {
            workspace: self.workspace.clone(),
            name: self.workspace_name.clone(),
            has_keys: self.has_keys,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Instant;

    use super::*;
    use crate::emulator::Size;
    use crate::layout::{PaneId, SplitDirection};

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
}
