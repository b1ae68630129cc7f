//! Codex's own server, through which its dialogs can be seen and answered from elsewhere.
//!
//! A Codex in a terminal runs its sessions in a server, and shows their dialogs. Another client of that server gets the
//! request that waits, too, and may answer it: the dialog closes then. The first answer counts.
//!
//! A connection lives for one question or one answer, and never longer than a few seconds. Only what the person was
//! shown is answered.

mod connection;
mod conversation;
mod patches;
mod request;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ringer_core::agent::{Answer, Prompt, PromptContent};

use crate::client::{Client, ClientPaths};
use crate::sessions;
use connection::Connection;
use conversation::{Conversation, Ending, Purpose, Reaction};

pub use connection::CodexServerError;

/// How long it may take to find what waits. It takes about 20 ms.
const TIME_TO_FIND: Duration = Duration::from_secs(2);
/// How long the server may take to say that the answer was taken. It takes about 3 ms.
const TIME_TO_CONFIRM: Duration = Duration::from_secs(2);
/// How long to wait for what was shown where something else waits, or nothing does yet: Ringer's own hook runs before the
/// dialog opens.
const TIME_IN_DOUBT: Duration = Duration::from_millis(500);

/// What became of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnswerOutcome {
    /// Codex took it.
    Taken,
    /// It was sent, and Codex did not say in time that it took it. The reason for a refusal may be what it did not take.
    NotConfirmed,
    /// What the person was shown does not wait any more.
    NothingWaits,
}

/// What Codex waits for in a thread, the oldest first.
pub fn pending_prompt(paths: &ClientPaths, thread_id: &str) -> Result<Option<Prompt>, CodexServerError> {
    show(paths, thread_id, None)
}

/// What the person was shown, as it waits in a thread: with what `always` would allow, of which Codex's hooks do not know.
/// `None` if it does not wait any more.
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
        Ending::Waits(prompt) => Ok(Some(prompt)),
        _ => Ok(None),
    }
}

/// Answers what Codex waits for in a thread. `shown` is what the person was shown: if something else waits by now, it is
/// not answered. What `always` allows must have been shown: [`shown_prompt`] tells it.
pub fn answer(
    paths: &ClientPaths,
    thread_id: &str,
    shown: &PromptContent,
    answer: &Answer,
) -> Result<AnswerOutcome, CodexServerError> {
    match converse(paths, thread_id, Purpose::Answer { shown, answer })? {
        Ending::Taken => Ok(AnswerOutcome::Taken),
        Ending::NotConfirmed => Ok(AnswerOutcome::NotConfirmed),
        Ending::NothingWaits | Ending::Waits(_) => Ok(AnswerOutcome::NothingWaits),
    }
}

fn directory(paths: &ClientPaths) -> PathBuf {
    (Client::Codex.adapter().settings.user_directory)(paths)
}

fn converse(paths: &ClientPaths, thread_id: &str, purpose: Purpose) -> Result<Ending, CodexServerError> {
    let socket = directory(paths).join("app-server-control/app-server-control.sock");
    let find_patch = |call_id: &str| {
        let log = sessions::find_log(&directory(paths).join("sessions"), thread_id)?;
        patches::find_patch(&log, call_id)
    };
    let mut deadline = Instant::now() + TIME_TO_FIND;
    let mut connection = Connection::open(&socket, deadline)?;
    let (mut conversation, first) = Conversation::begin(thread_id, purpose, &find_patch);
    connection.send(&[first])?;
    let mut was_doubtful = false;
    loop {
        let message = match connection.receive() {
            Ok(message) => message,
            Err(CodexServerError::Silent) => return conversation.end(),
            Err(_) if conversation.has_answered() => return conversation.end(),
            Err(error) => return Err(error),
        };
        let had_answered = conversation.has_answered();
        let messages = match conversation.receive(&message)? {
            Reaction::End(ending) => return Ok(ending),
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
