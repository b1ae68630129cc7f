//! What the keeper keeps beside a program, for a server that finds no session.

use serde::{Deserialize, Serialize};

use crate::saved_session::SavedPane;

/// It is not longer.
const MAX_NOTE: usize = 64 * 1024;

/// A pane, and the workspace that it is in.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) workspace: String,
    pub(super) pane: SavedPane,
    /// The number of the server that noted it: the keeper dropped what it had kept for that one.
    #[serde(default)]
    pub(super) server: u64,
}

impl Note {
    /// As the keeper gets it; nothing if that is too long.
    pub(super) fn of(workspace: &str, pane: &SavedPane, server: u64) -> Option<String> {
        let note = Self { workspace: workspace.to_owned(), pane: pane.clone(), server };
        serde_json::to_string(&note).ok().filter(|note| note.len() <= MAX_NOTE)
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}
