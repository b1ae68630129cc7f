//! Answers of the person at another machine to what agents ask here.

use ringer_core::MessageId;
use ringer_journal::{Error, Journal};

use crate::frame::Answered;
use crate::import::message_id;

/// The most words of an answer: a prompt has a few questions.
const MAX_WORDS: usize = 64;
/// The exit code of what is not allowed.
const NO_PERMISSION: u8 = 77;

/// An answer of the person at another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerRequest {
    /// The message that asks.
    pub message: MessageId,
    /// The words of the answer. Without them, what is asked is shown.
    pub words: Vec<String>,
    /// Whether that is wanted as JSON.
    pub as_json: bool,
}

/// Gives an answer.
pub type GiveAnswer = fn(&AnswerRequest) -> Answered;

/// Gives an answer, if that is allowed: to what agents of this machine ask, and not to what those of a third one ask.
pub(crate) fn answer(
    give: Option<GiveAnswer>,
    journal: &mut Journal,
    message: &str,
    words: Vec<String>,
    as_json: bool,
) -> Result<Answered, Error> {
    let refused =
        |error: &str| Answered { exit: NO_PERMISSION, error: error.to_owned(), ..Answered::default() };
    let Some(give) = give else { return Ok(refused("that machine takes no answers over this link")) };
    let id = message_id(message).ok().filter(|_| words.len() <= MAX_WORDS);
    let Some(message) = id else { return Ok(refused("that is no answer")) };
    Ok(match journal.machine_of(&message)? {
        Some(Some(_)) => refused("the question is of another machine; answer it there"),
        _ => give(&AnswerRequest { message, words, as_json }),
    })
}
