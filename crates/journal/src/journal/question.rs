//! Questions of agents and scripts: open until they are answered or closed.

use std::os::fd::BorrowedFd;
use std::time::Instant;

use ringer_core::agent::PromptQuestion;
use ringer_core::message::{CLOSED_UNANSWERED, Mark, QuestionId, Tag};
use ringer_core::{Draft, Kind, MessageId, Recipient, Scope, Sender};
use rusqlite::{OptionalExtension, Row, Transaction, params};

use crate::db::tables::{optional_text, text};
use crate::error::Error;
use crate::ids::IdSource;
use crate::journal::append::put;
use crate::journal::schema::Journal;
use crate::wake::subscription::Topic;
use crate::wake::waiter::{OnParentExit, Waiter, WakeReason};

/// A stored question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Its id.
    pub id: QuestionId,
    /// The scope in which it was asked.
    pub scope: Scope,
    /// Who asked.
    pub asker: Sender,
    /// When it was asked, in milliseconds since 1970.
    pub asked_ms: i64,
    /// The text.
    pub question: String,
    /// Answers to choose from; may be empty.
    pub options: Vec<String>,
    /// When it was closed.
    pub answered_ms: Option<i64>,
    /// Who closed it.
    pub answerer: Option<Sender>,
    /// The answer, if one was given.
    pub answer: Option<String>,
}

impl Question {
    /// Converts the question to a prompt. If it has options, the answer is one of them.
    pub fn as_prompt(&self) -> PromptQuestion {
        let (text, options) = (self.question.clone(), self.options.clone());
        PromptQuestion { text, options, ..PromptQuestion::default() }
    }
}

/// A new question whose answer can be waited for.
#[derive(Debug)]
pub struct PendingQuestion {
    /// The question's id.
    pub id: QuestionId,
    waiter: Option<Waiter>,
}

const COLUMNS: &str = "id, scope, asker, asked, question, options, answered, answerer, answer";

impl Journal {
    /// Stores a question and its notification in one transaction. With `wait`, the answer can be waited for.
    pub fn ask(
        &mut self,
        draft: &Draft,
        question: &str,
        options: &[String],
        stamp: &IdSource,
        wait: Option<OnParentExit>,
    ) -> Result<PendingQuestion, Error> {
        let id = match &draft.question_id {
            Some(id) => id.clone(),
            None => self.free_question_id(stamp)?,
        };
        let notice =
            Draft { tag: Tag::Notice(Kind::Question), question_id: Some(id.clone()), ..draft.clone() };
        let message = stamp.message_id();
        let store = |transaction: &Transaction<'_>| {
            let options = serde_json::to_string(options).unwrap_or_else(|_| "[]".to_owned());
            transaction
                .prepare(
                    "INSERT INTO question (id, scope, asker, asked, question, options) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute(params![
                    id.as_str(),
                    notice.scope.as_str(),
                    notice.sender.as_str(),
                    stamp.unix_ms,
                    question,
                    options
                ])?;
            put(transaction, &notice, &message, stamp.unix_ms)
        };
        let (waiter, bells) = match wait {
            None => (None, self.write(store)?),
            Some(parent) => {
                let topic = Topic::Answer(id.clone());
                let (waiter, bells) = Waiter::register(self, topic, &notice.scope, "answer", parent, store)?;
                (Some(waiter), bells)
            }
        };
        self.wake(&bells);
        Ok(PendingQuestion { id, waiter })
    }

    /// An unused id. Two questions of the same second may get the same six random digits.
    fn free_question_id(&mut self, stamp: &IdSource) -> Result<QuestionId, Error> {
        let mut stamp = *stamp;
        loop {
            let id = stamp.next().question_id();
            if self.question(&id)?.is_none() {
                return Ok(id);
            }
        }
    }

    /// Waits for the answer. `None` if the deadline passed, the parent process exited, or `stop` is readable or hung up.
    pub fn wait_for_answer(
        &mut self,
        pending: &mut PendingQuestion,
        deadline: Option<Instant>,
        stop: Option<BorrowedFd<'_>>,
    ) -> Result<Option<Question>, Error> {
        let Some(waiter) = &mut pending.waiter else { return Ok(None) };
        loop {
            waiter.prepare(self)?;
            let question = self.question(&pending.id)?;
            if let Some(question) = question.filter(|question| question.answered_ms.is_some()) {
                return Ok(Some(question));
            }
            match waiter.wait(self, stop.as_slice(), deadline)? {
                WakeReason::Rung => {}
                WakeReason::Other | WakeReason::TimedOut | WakeReason::Orphaned => return Ok(None),
            }
        }
    }

    /// Closes a question, with an answer or without, and sends the answer to the agent that asked.
    pub fn answer(
        &mut self,
        id: &QuestionId,
        answer: Option<&str>,
        answerer: &Sender,
        stamp: &IdSource,
    ) -> Result<Question, Error> {
        let question = self.question(id)?.ok_or_else(|| Error::NoQuestion(id.to_string()))?;
        let closed = self.write(|transaction| {
            let changed = transaction
                .prepare("UPDATE question SET answered = ?2, answerer = ?3, answer = ?4 WHERE id = ?1 AND answered IS NULL")?
                .execute(params![id.as_str(), stamp.unix_ms, answerer.as_str(), answer])?;
            if changed == 0 {
                return Ok(None);
            }
            let mut bells = Vec::new();
            for (draft, id) in answer_messages(&question, answer, answerer, stamp) {
                bells.extend(put(transaction, &draft, &id, stamp.unix_ms)?);
            }
            Ok(Some(bells))
        })?;
        let question = self.question(id)?.ok_or_else(|| Error::NoQuestion(id.to_string()))?;
        match closed {
            Some(bells) => {
                self.wake(&bells);
                Ok(question)
            }
            None => Err(Error::Answered { id: id.to_string(), answer: question.answer }),
        }
    }

    /// Marks the answer in the asker's inbox as seen, after the asking process has printed it.
    pub fn mark_answer_read(&mut self, id: &QuestionId, unix_ms: i64) -> Result<(), Error> {
        self.write(|transaction| {
            transaction
                .prepare(
                    "UPDATE receipt SET state = 'seen', seen = ?2 WHERE seen IS NULL AND seq IN (
                         SELECT seq FROM message WHERE question_id = ?1 AND category = ?3)",
                )?
                .execute(params![id.as_str(), unix_ms, ANSWER])
                .map(drop)
        })
    }

    /// A question by its id.
    pub fn question(&mut self, id: &QuestionId) -> Result<Option<Question>, Error> {
        self.read(|connection| {
            let query = format!("SELECT {COLUMNS} FROM question WHERE id = ?1");
            Ok(connection.query_row(&query, [id.as_str()], read).optional()?.flatten())
        })
    }

    /// The ids of questions and of the messages that asked them, oldest first: only open ones, or all.
    pub fn question_messages(&mut self, closed_too: bool) -> Result<Vec<(QuestionId, MessageId)>, Error> {
        self.read(|connection| {
            let query = "SELECT question_id, id FROM message WHERE kind = 'question' AND question_id IN (
                             SELECT id FROM question WHERE ?1 OR answered IS NULL) ORDER BY seq";
            let mut statement = connection.prepare(query)?;
            let rows = statement.query_map([closed_too], |row| Ok((text(row, 0)?, text(row, 1)?)))?;
            let ids: Vec<(String, String)> = rows.collect::<Result<_, _>>()?;
            let parse = |(question, message): &(String, String)| {
                Some((QuestionId::parse(question).ok()?, MessageId::parse(message).ok()?))
            };
            Ok(ids.iter().filter_map(parse).collect())
        })
    }

    /// Open questions of this machine whose messages have a category, oldest first.
    pub fn open_questions_of_category(&mut self, category: &str) -> Result<Vec<QuestionId>, Error> {
        self.read(|connection| {
            let query = "SELECT question_id FROM message
                         WHERE kind = 'question' AND category = ?1 AND machine IS NULL AND question_id IN (
                             SELECT id FROM question WHERE answered IS NULL) ORDER BY seq";
            let mut statement = connection.prepare(query)?;
            let ids: Vec<String> =
                statement.query_map([category], |row| text(row, 0))?.collect::<Result<_, _>>()?;
            Ok(ids.iter().filter_map(|id| QuestionId::parse(id).ok()).collect())
        })
    }

    /// The questions of a scope, or of all scopes, oldest first: only open ones, or all.
    pub fn questions(&mut self, scope: Option<&Scope>, closed_too: bool) -> Result<Vec<Question>, Error> {
        self.read(|connection| {
            connection
                .prepare(&format!(
                    "SELECT {COLUMNS} FROM question
                     WHERE (?1 IS NULL OR scope = ?1) AND (?2 OR answered IS NULL) ORDER BY asked, id"
                ))?
                .query_map(params![scope.map(Scope::as_str), closed_too], read)?
                .filter_map(Result::transpose)
                .collect()
        })
    }
}

/// Category of messages that deliver an answer.
const ANSWER: &str = "answer";

/// The messages for an answer: the mark that closes the question, and the answer for the agent that asked.
fn answer_messages(
    question: &Question,
    answer: Option<&str>,
    answerer: &Sender,
    stamp: &IdSource,
) -> Vec<(Draft, MessageId)> {
    let scope = question.scope.clone();
    let body = answer.unwrap_or_default();
    let mut mark = Draft::tagged(scope.clone(), answerer.clone(), Tag::Mark(Mark::Answer), body);
    mark.recipient = Recipient::All;
    mark.question_id = Some(question.id.clone());
    mark.category = answer.is_none().then(|| CLOSED_UNANSWERED.to_owned());
    let mut stamp = *stamp;
    let mut drafts = vec![(mark, stamp.next().message_id())];
    if let (Some(agent), Some(answer)) = (question.asker.reply_to(), answer) {
        let text = format!("Answer to \"{}\": {answer}", question.question);
        let mut reply = Draft::tagged(scope, answerer.clone(), Tag::Notice(Kind::Status), &text);
        reply.recipient = Recipient::Agent(agent);
        reply.question_id = Some(question.id.clone());
        reply.category = Some(ANSWER.to_owned());
        drafts.push((reply, stamp.next().message_id()));
    }
    drafts
}

/// Reads a row. `None` if its id is damaged: it cannot be answered.
fn read(row: &Row<'_>) -> rusqlite::Result<Option<Question>> {
    let Ok(id) = QuestionId::parse(&text(row, 0)?) else { return Ok(None) };
    Ok(Some(Question {
        id,
        scope: Scope::new(&text(row, 1)?).unwrap_or_else(|_| Scope::global()),
        asker: Sender::new(&text(row, 2)?).unwrap_or_else(|_| Sender::system()),
        asked_ms: row.get(3)?,
        question: text(row, 4)?,
        options: serde_json::from_str(&text(row, 5)?).unwrap_or_default(),
        answered_ms: row.get(6)?,
        answerer: optional_text(row, 7)?.and_then(|name| Sender::new(&name).ok()),
        answer: optional_text(row, 8)?,
    }))
}
