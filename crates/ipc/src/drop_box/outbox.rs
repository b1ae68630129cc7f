//! What the hub leaves in the outbox for processes in sandboxes: a file for each question and for each listener.

use std::fs;
use std::path::{Path, PathBuf};

use ringer_core::message::QuestionId;
use ringer_core::{Message, Scope};
use ringer_journal::Consumer;
use ringer_platform::owned;
use serde::{Deserialize, Serialize};

/// The longest file of a listener. What does not fit is left out, the oldest first.
pub const MAX_LISTENER_FILE: usize = 256 * 1024;

/// The longest file that is read.
const MAX_FILE: u64 = 2 * 1024 * 1024;

/// The state of a question that a sandbox asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionState {
    /// It is in the inbox.
    Open,
    /// It was answered.
    Answered(String),
    /// It was closed without an answer.
    Closed,
    /// Another question of the same second has its id.
    Refused,
}

/// What a listener has not read, as far as the hub knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerFile {
    /// The place of the newest message of the journal when this was written.
    pub newest: i64,
    /// The messages, in order.
    pub messages: Vec<Message>,
}

/// The files of an outbox.
#[derive(Debug, Clone)]
pub struct Outbox {
    directory: PathBuf,
}

impl Outbox {
    /// The outbox at this path.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The file of a question.
    pub fn question_path(&self, id: &QuestionId) -> PathBuf {
        self.directory.join(format!("answer-{id}.json"))
    }

    /// The file of a listener.
    pub fn listener_path(&self, listener: &Consumer) -> PathBuf {
        self.directory.join(format!("{}.json", listener_name(listener)))
    }

    /// Reads the file of a question.
    pub fn question(&self, id: &QuestionId) -> Option<QuestionState> {
        read(&self.question_path(id))
    }

    /// Reads the file of a listener.
    pub fn listener(&self, listener: &Consumer) -> Option<ListenerFile> {
        read(&self.listener_path(listener))
    }

    /// The questions and the listeners that have a file.
    pub fn entries(&self) -> (Vec<QuestionId>, Vec<Consumer>) {
        let (mut questions, mut listeners) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(stem) = name.to_str().and_then(|name| name.strip_suffix(".json")) else { continue };
            if let Some(id) = stem.strip_prefix("answer-") {
                questions.extend(QuestionId::parse(id));
            } else if let Some((name, scope)) =
                stem.strip_prefix("listen-").and_then(|rest| rest.rsplit_once('@'))
            {
                listeners.extend(Scope::new(scope).and_then(|scope| Consumer::new(name, scope)));
            }
        }
        (questions, listeners)
    }
}

/// The name of a listener's files, without what tells the one in the outbox from the one in the drop box.
pub(super) fn listener_name(listener: &Consumer) -> String {
    format!("listen-{}@{}", listener.name(), listener.scope())
}

fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Option<T> {
    serde_json::from_slice(&owned::read(path, MAX_FILE).ok()?).ok()
}
