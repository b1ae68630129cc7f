//! What the server does because of what happened.

use std::ffi::OsString;
use std::path::PathBuf;

use ringer_core::message::ShownKind;
use ringer_ui::ProgramQuestion;
use serde::Deserialize;
use serde_json::Value;

use crate::emulator::Size;
use crate::layout::PaneId;
use crate::view::ClientId;

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Start the program of a pane; a shell if there is no command.
    Start {
        pane: PaneId,
        workspace: String,
        command: Vec<String>,
        directory: PathBuf,
        environment: Vec<(OsString, OsString)>,
        size: Size,
    },
    /// Write to the program of a pane.
    Write { pane: PaneId, bytes: Vec<u8> },
    /// The terminal of a pane has another size.
    Resize { pane: PaneId, size: Size },
    /// A pane is closed.
    Forget { pane: PaneId },
    /// Copy a text to the clipboard of a client.
    Copy { client: ClientId, text: String },
    /// A client shows the inbox.
    Inbox { client: ClientId },
    /// A client leaves; the text says why, if the person did not want it.
    Leave { client: ClientId, why: Option<String> },
    /// Ask the person what the program of a pane asks. Once that is done, the question that it replaces is closed.
    Ask {
        pane: PaneId,
        number: QuestionNumber,
        question: Box<ProgramQuestion>,
        replaces: Option<QuestionNumber>,
    },
    /// Close a question of the program of a pane without an answer.
    CloseQuestion { pane: PaneId, number: QuestionNumber },
    /// Tell the hub.
    Tell { method: &'static str, params: Value },
}

/// A question of a pane. No other one of the same pane has its number, as long as the server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QuestionNumber(pub(crate) u64);

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QuestionOutcome {
    /// The person can answer it.
    Asked,
    /// The person chose the button with this label.
    Chosen(String),
    /// It was closed without an answer.
    Closed,
    /// It could not be asked.
    NotAsked,
}

/// What the hub orders.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
pub(crate) enum HubOrder {
    Ring { surface_id: String, lit: bool, unread: usize, kind: Option<ShownKind> },
    Badge { workspace_id: String, badge: usize },
    Flash { surface_id: String },
    Focus { surface_id: String },
    Toast { text: Option<String> },
    Indicator { key: String, text: String },
}
