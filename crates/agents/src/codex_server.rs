//! Codex's app server, through which its dialogs can be read and answered from elsewhere.
//!
//! Codex in a terminal runs its sessions in a server and shows their dialogs. Another client of that server also receives the
//! pending request and may answer it, which closes the dialog. The first answer counts.
//!
//! A connection serves one query or one answer, and lives for a few seconds at most. Only what the person was shown is answered.

mod connection;
mod conversation;
mod request;
#[cfg(test)]
mod tests;
mod window;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ringer_core::agent::{Answer, Prompt, PromptContent};

use crate::client::{Client, ClientPaths};
use crate::sessions;

use connection::Connection;
use conversation::{Conversation, Outcome, Purpose, Reaction};

pub use connection::CodexServerError;
pub(crate) use window::has_no_window;

/// How long finding the pending request may take. It takes about 20 ms.
const TIME_TO_FIND: Duration = Duration::from_secs(2);
/// How long the server may take to confirm an answer. It takes about 3 ms.
const TIME_TO_CONFIRM: Duration = Duration::from_secs(2);
/// How long to wait for the request that was shown if another one is pending, or none yet: Ringer's hook runs before the dialog
/// opens.
const TIME_IN_DOUBT: Duration = Duration::from_millis(500);

/// The outcome of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnswerOutcome {
    /// Codex took the answer.
    Taken,
    /// The answer was sent, and Codex did not confirm it in time. It may have rejected only the reason for a refusal.
    NotConfirmed,
    /// The prompt that the person was shown is no longer pending.
    NothingPending,
}

/// The oldest pending prompt of a thread.
pub fn pending_prompt(paths: &ClientPaths, thread_id: &str) -> Result<Option<Prompt>, CodexServerError> {
    show(paths, thread_id, None)
}

/// The prompt that the person was shown, if it is still pending. It includes what `always` would allow, which Codex's hooks do
/// not report.
pub fn shown_prompt(
    paths: &ClientPaths,
    thread_id: &str,
    shown: &PromptContent,
) -> Result<Option<Prompt>, CodexServerError> {
    show(paths, thread_id, Some(shown))
}

fn show(
    paths: &ClientPaths,
    thread_id: &str,
    shown: Option<&PromptContent>,
) -> Result<Option<Prompt>, CodexServerError> {
    match converse(paths, thread_id, Purpose::Show { shown })? {
        Outcome::Pending(prompt) => Ok(Some(prompt)),
        _ => Ok(None),
    }
}

/// Answers the pending prompt of a thread. `shown` is the prompt that the person saw: if another one is pending by now, it is not
/// answered. What `always` allows must have been shown; [`shown_prompt`] has it.
pub fn answer(
    paths: &ClientPaths,
    thread_id: &str,
    shown: &PromptContent,
    answer: &Answer,
) -> Result<AnswerOutcome, CodexServerError> {
    match converse(paths, thread_id, Purpose::Answer { shown, answer })? {
        Outcome::Taken => Ok(AnswerOutcome::Taken),
        Outcome::NotConfirmed => Ok(AnswerOutcome::NotConfirmed),
        Outcome::NothingPending | Outcome::Pending(_) => Ok(AnswerOutcome::NothingPending),
    }
}

fn directory(paths: &ClientPaths) -> PathBuf {
    (Client::Codex.adapter().settings.user_directory)(paths)
}

fn socket(paths: &ClientPaths) -> PathBuf {
    directory(paths).join("app-server-control/app-server-control.sock")
}

fn converse(paths: &ClientPaths, thread_id: &str, purpose: Purpose) -> Result<Outcome, CodexServerError> {
    let socket = socket(paths);
    let find_patch = |call_id: &str| {
        let log = sessions::find_log(&directory(paths).join("sessions"), &format!("-{thread_id}.jsonl"))?;
        request::find_patch(&log, call_id)
    };
    let mut deadline = Instant::now() + TIME_TO_FIND;
    let mut connection = Connection::open(&socket, deadline)?;
    let (mut conversation, first) = Conversation::begin(thread_id, purpose, &find_patch);
    connection.send(&[first])?;
    let mut was_doubtful = false;
    loop {
        let message = match connection.receive() {
            Ok(message) => message,
            Err(CodexServerError::Timeout) => return conversation.end(),
            Err(_) if conversation.has_answered() => return conversation.end(),
            Err(error) => return Err(error),
        };
        let had_answered = conversation.has_answered();
        let messages = match conversation.receive(&message)? {
            Reaction::End(outcome) => return Ok(outcome),
            Reaction::Send(messages) => messages,
        };
        if conversation.has_answered() && !had_answered {
            deadline = Instant::now() + TIME_TO_CONFIRM;
        } else if conversation.is_doubtful() && !was_doubtful {
            deadline = deadline.min(Instant::now() + TIME_IN_DOUBT);
            was_doubtful = true;
        }
        connection.set_deadline(deadline);
        match connection.send(&messages) {
            Err(_) if conversation.has_answered() => return conversation.end(),
            sent => sent?,
        }
    }
}
