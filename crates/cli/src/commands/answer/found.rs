//! Finds the question or dialog that a person wants to answer.

use ringer_core::attention::{NotificationStore, Record};
use ringer_core::message::{IdMatch, MessageId, QuestionId};
use ringer_hub::Clock;
use ringer_journal::{Journal, Question, StoredPrompt};
use ringer_term::sanitise_line;

use crate::failure::{Exit, Failure};
use crate::notifications;

#[derive(Debug)]
pub(super) enum Target {
    /// A question of `ringer ask`.
    Question(Question),
    /// A dialog of the agent's client.
    Prompt(StoredPrompt),
    /// A notification without a known question or dialog.
    Notification,
}

/// The target, with its notification.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) target: Target,
    pub(super) record: Option<Record>,
    short_id: Option<String>,
}

impl Found {
    /// Finds the target that `text` names, or the only open one if there is no text.
    pub(super) fn read(text: Option<&str>, journal: &mut Journal) -> Result<Self, Failure> {
        if let Some(text) = text
            && let Ok(id) = QuestionId::parse(text)
            && let Some(question) = journal.question(&id)?
        {
            return Self::of_question(question, journal);
        }
        let list = notifications::read()?;
        let open = notifications::open_prompts(&list, journal)?;
        let message = match text {
            None => only_one(&open, &list)?,
            Some("last") => open.last().cloned().ok_or_else(nothing_open)?,
            Some(text) => named(text, &open, &list)?,
        };
        let record = list.get(&message).cloned();
        let target = match journal.prompt_of_message(&message)? {
            Some(prompt) => Target::Prompt(prompt),
            None => match question_of(&message, journal)? {
                Some(question) if !is_in_dialog(record.as_ref()) => Target::Question(question),
                _ => Target::Notification,
            },
        };
        let short_id = list.short_id(&message);
        if matches!(target, Target::Notification) && !record.as_ref().is_some_and(Record::needs_person) {
            let what = format!("{} asks nothing", short_id.as_deref().unwrap_or(message.as_str()));
            return Err(Failure::new(Exit::Data, what).hint("ringer"));
        }
        Ok(Self { target, record, short_id })
    }

    fn of_question(question: Question, journal: &mut Journal) -> Result<Self, Failure> {
        let messages = journal.question_messages(true)?;
        let message = messages.into_iter().find(|(id, _)| *id == question.id).map(|(_, message)| message);
        let list = notifications::read()?;
        let record = message.as_ref().and_then(|message| list.get(message)).cloned();
        let short_id = message.as_ref().and_then(|message| list.short_id(message));
        let target = match journal.prompt_of_question(&question.id)? {
            Some(prompt) => Target::Prompt(prompt),
            None if is_in_dialog(record.as_ref()) => Target::Notification,
            None => Target::Question(question),
        };
        Ok(Self { target, record, short_id })
    }

    /// Returns the id of the target for a command line.
    pub(super) fn id(&self) -> String {
        let own = || match &self.target {
            Target::Question(question) => question.id.to_string(),
            _ => "last".to_owned(),
        };
        self.short_id.clone().unwrap_or_else(own)
    }

    /// Returns true if it can still be answered.
    pub(super) fn is_open(&self) -> bool {
        match &self.target {
            Target::Question(question) => question.answered_ms.is_none(),
            Target::Prompt(prompt) => prompt.ended_ms.is_none() && prompt.decision.is_none(),
            Target::Notification => false,
        }
    }
}

/// Returns true if a notification belongs to a dialog of a client, and to no question of `ringer ask`.
fn is_in_dialog(record: Option<&Record>) -> bool {
    record.is_some_and(Record::is_of_session)
}

fn question_of(message: &MessageId, journal: &mut Journal) -> Result<Option<Question>, Failure> {
    let all = journal.question_messages(true)?;
    let id = all.into_iter().find(|(_, id)| id == message).map(|(question, _)| question);
    Ok(id.map(|id| journal.question(&id)).transpose()?.flatten())
}

fn nothing_open() -> Failure {
    Failure::new(Exit::Data, "nothing waits for an answer").hint("ringer")
}

fn only_one(open: &[MessageId], list: &NotificationStore) -> Result<MessageId, Failure> {
    match open {
        [] => Err(nothing_open()),
        [message] => Ok(message.clone()),
        several => Err(ambiguous("several things wait for an answer", several, list)),
    }
}

/// Resolves an id among the open notifications, else among all.
fn named(text: &str, open: &[MessageId], list: &NotificationStore) -> Result<MessageId, Failure> {
    // Questions of other machines are not in this journal's tables.
    if let Some(record) = QuestionId::parse(text).ok().and_then(|id| list.asking(&id)) {
        return Ok(record.id.clone());
    }
    match IdMatch::among(text, open.iter().rev()) {
        IdMatch::One(message) => Ok(message),
        IdMatch::Several(several) => {
            let what = format!("{} fits several open ones", sanitise_line(text));
            Err(ambiguous(&what, &several, list))
        }
        IdMatch::Unknown if text.starts_with("q-") => {
            Err(ringer_journal::Error::NoQuestion(sanitise_line(text)).into())
        }
        IdMatch::Unknown => notifications::named(list, text, &Clock::local())?.ok_or_else(|| {
            Failure::new(Exit::Data, format!("unknown id {}", sanitise_line(text))).hint("ringer")
        }),
    }
}

fn ambiguous(what: &str, messages: &[MessageId], list: &NotificationStore) -> Failure {
    let line = |message: &MessageId| {
        let record = list.get(message);
        let said = record.map(|record| sanitise_line(&record.body)).unwrap_or_default();
        let said: String = said.chars().take(60).collect();
        format!("\n  {}  {said}", list.short_id(message).unwrap_or_else(|| message.to_string()))
    };
    let lines: String = messages.iter().take(10).map(line).collect();
    let first = messages.first().and_then(|message| list.short_id(message)).unwrap_or_default();
    Failure::usage(format!("{what}:{lines}")).hint(format!("name one of them, as in: ringer answer {first}"))
}
