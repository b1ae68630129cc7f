//! Passes answers from popups and chats to the agents that ask, for the hub.

use std::sync::Arc;

use ringer_agents::answering::{AnswerResult, give_answer};
use ringer_core::Sender;
use ringer_core::agent::PopupAnswer;
use ringer_core::attention::AnsweredWith;
use ringer_core::conversation::PermissionVerdict;
use ringer_core::message::{MessageOrigin, QuestionId};
use ringer_hub::monotonic;
use ringer_ipc::part::{AnswerOutcome, AnsweredQuestion, Answerer, Part};
use ringer_journal::{Decision, Error, Home, IdSource, Journal};
use ringer_platform::path_variable;
use ringer_term::sanitise_line;

use crate::client_setup::client_paths;
use crate::commands::answer::answer_of_popup;

const NO_JOURNAL: &str = "there is no journal any more";

/// Answers as the person: only they can press a button of a popup.
#[derive(Clone)]
pub(crate) struct PopupAnswerer {
    home: Home,
}

impl PopupAnswerer {
    pub(crate) fn new(home: Home) -> Self {
        Self { home }
    }

    fn give(&self, asked: &AnsweredQuestion, answer: &PopupAnswer) -> Result<AnswerOutcome, Error> {
        let Some(mut journal) = Journal::open_existing(&self.home)? else {
            return Ok(AnswerOutcome::NotTaken(NO_JOURNAL.to_owned()));
        };
        match asked {
            AnsweredQuestion::Prompt(key) => {
                let (by, with) = (Sender::person(), AnsweredWith::Popup);
                answer_prompt(&mut journal, key, answer.words(), by, with)
            }
            AnsweredQuestion::Question(id) => answer_question(&mut journal, id, answer),
            AnsweredQuestion::Remote(id) => Ok(match answer_of_popup(&mut journal, id, answer.words()) {
                Ok(()) => AnswerOutcome::Taken,
                Err(failure) => AnswerOutcome::NotTaken(failure.first_line()),
            }),
        }
    }
}

impl Part for PopupAnswerer {
    fn answerer(&self) -> Option<Arc<dyn Answerer>> {
        Some(Arc::new(self.clone()))
    }
}

impl Answerer for PopupAnswerer {
    fn answer(&self, asked: &AnsweredQuestion, answer: &PopupAnswer) -> AnswerOutcome {
        self.give(asked, answer).unwrap_or_else(|error| AnswerOutcome::NotTaken(error.to_string()))
    }
}

/// Passes on the answer of an MCP channel's sender whom the person has allowed to write, over a server that may answer.
pub(crate) fn answer_of_channel(
    home: &Home,
    key: &str,
    verdict: PermissionVerdict,
    by: &Sender,
) -> AnswerOutcome {
    let word = match verdict {
        PermissionVerdict::Allow => "allow",
        PermissionVerdict::Deny => "deny",
    };
    let give = || match Journal::open_existing(home)? {
        Some(mut journal) => answer_prompt(&mut journal, key, word, by.clone(), AnsweredWith::Channel),
        None => Ok(AnswerOutcome::NotTaken(NO_JOURNAL.to_owned())),
    };
    give().unwrap_or_else(|error: Error| AnswerOutcome::NotTaken(error.to_string()))
}

fn answer_prompt(
    journal: &mut Journal,
    key: &str,
    words: &str,
    by: Sender,
    with: AnsweredWith,
) -> Result<AnswerOutcome, Error> {
    let Some(prompt) = journal.prompt(key)? else {
        return Ok(AnswerOutcome::NotTaken(not_taken(&AnswerResult::Over)));
    };
    let answer = match prompt.prompt.content.read_answer(&[words]) {
        Ok(answer) => answer,
        Err(error) => return Ok(AnswerOutcome::OnlyThere(error.to_string())),
    };
    let decision = Decision { answer, by, with, at_ms: IdSource::now().unix_ms };
    let paths = client_paths(path_variable("HOME").unwrap_or_default(), None);
    let result = give_answer(journal, &paths, &prompt, &decision, &MessageOrigin::default(), &monotonic)?;
    Ok(match result {
        AnswerResult::Taken => AnswerOutcome::Taken,
        AnswerResult::DialogOnly(why) => AnswerOutcome::OnlyThere(why),
        other => AnswerOutcome::NotTaken(not_taken(&other)),
    })
}

fn answer_question(
    journal: &mut Journal,
    id: &QuestionId,
    answer: &PopupAnswer,
) -> Result<AnswerOutcome, Error> {
    let Some(question) = journal.question(id)? else { return Err(Error::NoQuestion(id.to_string())) };
    match question.as_prompt().read_choice(answer.words()).as_deref() {
        Ok([choice]) => {
            journal.answer(id, Some(choice), &Sender::person(), &IdSource::now())?;
            Ok(AnswerOutcome::Taken)
        }
        Ok(_) => Ok(AnswerOutcome::NotTaken("it has one answer".to_owned())),
        Err(error) => Ok(AnswerOutcome::NotTaken(error.to_string())),
    }
}

/// Explains why an agent has not taken an answer.
pub(crate) fn not_taken(result: &AnswerResult) -> String {
    match result {
        AnswerResult::NotConfirmed => "sent, not confirmed: the agent has not gone on within 2 s".to_owned(),
        AnswerResult::AnsweredBefore(before) => {
            format!("already answered by {}: {}", person(&before.by), sanitise_line(&before.answer.text()))
        }
        AnswerResult::DialogOnly(why) => format!("cannot be answered from here: {why}"),
        _ => "it is over: it was answered in its own terminal, or the agent no longer asks".to_owned(),
    }
}

/// Names a sender; the person is `you`.
fn person(sender: &Sender) -> String {
    if *sender == Sender::person() { "you".to_owned() } else { sanitise_line(sender.as_str()) }
}
