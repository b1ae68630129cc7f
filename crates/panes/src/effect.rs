//! Effects: what the pure state asks the server to do.

use std::ffi::OsString;
use std::path::PathBuf;

use ringer_core::message::ShownKind;
use ringer_ipc::{HostFacts, ReportMethod};
use ringer_ui::ProgramQuestion;
use serde::Deserialize;
use serde_json::Value;

use crate::emulator::Size;
use crate::layout::PaneId;
use crate::view::ClientId;

/// An action for the server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Start the program of a pane. An empty command starts a shell.
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
    /// Set the size of a pane's terminal.
    Resize { pane: PaneId, size: Size },
    /// Drop a pane that was closed.
    Forget { pane: PaneId },
    /// Copy a text to the clipboard of a client.
    Copy { client: ClientId, text: String },
    /// Let a client show the inbox.
    Inbox { client: ClientId },
    /// Detach a client. `why` is the reason, if the person did not ask for it.
    Leave { client: ClientId, why: Option<String> },
    /// Ask the person a question of a program. After that, the question that it replaces is closed.
    Ask {
        pane: PaneId,
        number: QuestionNumber,
        question: Box<ProgramQuestion>,
        replaces: Option<QuestionNumber>,
    },
    /// Close a question of the program of a pane without an answer.
    CloseQuestion { pane: PaneId, number: QuestionNumber },
    /// The hub's facts have changed.
    SetFacts(HostFacts),
    /// Send a report to the hub.
    Report { method: ReportMethod, params: Value },
    /// Tell the hub that the person is here.
    ReportPresence,
    /// Answer a focus order of the hub.
    AnswerFocus(Value),
}

/// The number of a question, unique within its pane while the server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QuestionNumber(pub(crate) u64);

/// The outcome of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QuestionOutcome {
    /// The question is open, and can be answered.
    Asked,
    /// The person chose the button with this label.
    Chosen(String),
    /// The question was closed without an answer.
    Closed,
    /// The question could not be asked.
    NotAsked,
}

/// An order of the hub.
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
