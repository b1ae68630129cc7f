//! Prompts: dialogs of agents' clients, and answers that are given outside the client.
//!
//! A prompt has the key of its notification. It is open until the session shows that it is over. The first answer wins, but an
//! answer alone does not end a prompt.

use std::os::fd::BorrowedFd;
use std::time::Instant;

use ringer_core::agent::{Answer, Prompt, episode_key};
use ringer_core::attention::AnsweredWith;
use ringer_core::message::{Agent, Mark, MessageId, MessageOrigin, QuestionId, Tag};
use ringer_core::{Draft, Recipient, Scope, Sender};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::db::tables::{optional_text, text};
use crate::error::Error;
use crate::ids::IdSource;
use crate::journal::append::put;
use crate::journal::hook_waiter::{HookWaiter, HookWake};
use crate::journal::schema::Journal;
use crate::wake::doorbell;
use crate::wake::subscription::{self, Topic};
use crate::wake::waiter::OnParentExit;

/// A stored prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPrompt {
    /// The key of its notification.
    pub key: String,
    /// The agent that asks.
    pub agent: Agent,
    /// The scope of the agent.
    pub scope: Scope,
    /// The tool call it is about.
    pub call: String,
    /// When it was asked, in milliseconds since 1970.
    pub asked_ms: i64,
    /// The dialog.
    pub prompt: Prompt,
    /// The answer from outside the client, if there is one.
    pub decision: Option<Decision>,
    /// When that answer was passed to the client.
    pub handed_ms: Option<i64>,
    /// When the client continued, with or without that answer.
    pub ended_ms: Option<i64>,
}

/// An answer to a prompt, and who gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The answer.
    pub answer: Answer,
    /// Who gave it.
    pub by: Sender,
    /// How it was given.
    pub with: AnsweredWith,
    /// Time of the answer, in milliseconds since 1970.
    pub at_ms: i64,
}

/// The result of answering a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecideOutcome {
    /// The answer is the first one and will be passed to the client.
    Accepted,
    /// Another answer was first.
    AnsweredBefore(Decision),
    /// The prompt is over.
    Over,
}

const COLUMNS: &str =
    "key, agent, scope, call, asked, prompt, answer, answerer, answered, answered_with, handed, ended";

/// Removes the answer.
const WITHDRAW: &str =
    "UPDATE prompt SET answer = NULL, answerer = NULL, answered = NULL, answered_with = NULL,
     handed = NULL WHERE key = ?1";

impl Journal {
    /// The prompt with the key of a notification.
    pub fn prompt(&mut self, key: &str) -> Result<Option<StoredPrompt>, Error> {
        self.read(|connection| by_key(connection, key))
    }

    /// The prompt that a message is about.
    pub fn prompt_of_message(&mut self, id: &MessageId) -> Result<Option<StoredPrompt>, Error> {
        self.read(|connection| of_message(connection, "id", id.as_str()))
    }

    /// The prompt that a question belongs to.
    pub fn prompt_of_question(&mut self, id: &QuestionId) -> Result<Option<StoredPrompt>, Error> {
        self.read(|connection| of_message(connection, "question_id", id.as_str()))
    }

    /// Open prompts, oldest first.
    pub fn open_prompts(&mut self) -> Result<Vec<StoredPrompt>, Error> {
        self.read(|connection| {
            connection
                .prepare(&format!("SELECT {COLUMNS} FROM prompt WHERE ended IS NULL ORDER BY asked, key"))?
                .query_map([], read)?
                .filter_map(Result::transpose)
                .collect()
        })
    }

    /// Answers a prompt if it is open and has no answer. Also appends the answer as a message.
    pub fn decide(
        &mut self,
        prompt: &StoredPrompt,
        decision: &Decision,
        origin: &MessageOrigin,
        stamp: &IdSource,
    ) -> Result<DecideOutcome, Error> {
        // Plain data: it cannot fail to be written.
        let answer = serde_json::to_string(&decision.answer).unwrap_or_default();
        let mut mark = Draft::tagged(
            prompt.scope.clone(),
            decision.by.clone(),
            Tag::Mark(Mark::Decision),
            &decision.answer.text(),
        );
        mark.recipient = Recipient::Person;
        mark.key = Some(prompt.key.clone());
        mark.category = Some(decision.with.as_str().to_owned());
        mark.origin = origin.clone();
        let (outcome, bells) = self.write(|transaction| {
            let changed = transaction
                .prepare(
                    "UPDATE prompt SET answer = ?2, answerer = ?3, answered = ?4, answered_with = ?5
                     WHERE key = ?1 AND answer IS NULL AND ended IS NULL",
                )?
                .execute(params![
                    prompt.key,
                    answer,
                    decision.by.as_str(),
                    decision.at_ms,
                    decision.with.as_str()
                ])?;
            if changed == 1 {
                let bells = put(transaction, &mark, &stamp.message_id(), stamp.unix_ms)?;
                return Ok((DecideOutcome::Accepted, bells));
            }
            let known = by_key(transaction, &prompt.key)?;
            let before = known.filter(|known| known.ended_ms.is_none()).and_then(|known| known.decision);
            Ok((before.map_or(DecideOutcome::Over, DecideOutcome::AnsweredBefore), Vec::new()))
        })?;
        self.wake(&bells);
        Ok(outcome)
    }

    /// Withdraws an answer that was not passed to the client, so that another one can be given.
    pub fn withdraw_decision(&mut self, prompt: &StoredPrompt) -> Result<(), Error> {
        self.write(|transaction| {
            let query = format!("{WITHDRAW} AND handed IS NULL AND ended IS NULL");
            transaction.prepare(&query)?.execute([&prompt.key]).map(drop)
        })
    }

    /// Records that the answer was passed to the client.
    pub fn note_answer_handed(&mut self, key: &str, unix_ms: i64) -> Result<(), Error> {
        self.write(|transaction| {
            transaction
                .prepare("UPDATE prompt SET handed = ?2 WHERE key = ?1 AND handed IS NULL")?
                .execute(params![key, unix_ms])
                .map(drop)
        })
    }

    /// Returns true if a hook of the client is waiting for the answer to a prompt.
    pub fn is_waited_for(&mut self, key: &str) -> Result<bool, Error> {
        let topic = Topic::Prompt(key.to_owned());
        let bells = self.read(|connection| subscription::registered_for(connection, &topic))?;
        Ok(bells.iter().any(|bell| doorbell::is_alive(&doorbell::named(&self.home, bell))))
    }

    /// Registers this process for the answer to the open prompt about a tool call. `None` if there is no such prompt.
    pub fn wait_at_prompt(&mut self, agent: &Agent, call: &str) -> Result<Option<PromptWaiter>, Error> {
        let Some(machine) = self.agent_machine(agent)? else { return Ok(None) };
        let Some(episode) = machine.prompt_about(call) else { return Ok(None) };
        let key = episode_key(agent, episode);
        let Some(prompt) = self.prompt(&key)?.filter(|prompt| prompt.ended_ms.is_none()) else {
            return Ok(None);
        };
        let topic = Topic::Prompt(key.clone());
        let waiter = HookWaiter::register(self, topic, &prompt.scope, "prompt", OnParentExit::Stop)?;
        Ok(Some(PromptWaiter { key, waiter }))
    }
}

/// A process that waits for the answer to a prompt. It keeps no database open while it sleeps.
#[derive(Debug)]
pub struct PromptWaiter {
    key: String,
    waiter: HookWaiter,
}

impl PromptWaiter {
    /// Reads the prompt. `None` if it was deleted, or if nothing can wake this process any more. Call it before each
    /// [`Self::sleep`].
    pub fn look(&mut self) -> Result<Option<StoredPrompt>, Error> {
        match self.waiter.journal()? {
            Some(mut journal) => journal.prompt(&self.key),
            None => Ok(None),
        }
    }

    /// Sleeps until something changes; see [`HookWaiter::sleep`].
    pub fn sleep(
        &mut self,
        others: &[BorrowedFd<'_>],
        hung_up: Option<BorrowedFd<'_>>,
        deadline: Option<Instant>,
    ) -> Result<HookWake, Error> {
        self.waiter.sleep(others, hung_up, deadline)
    }

    /// The key of the prompt.
    pub fn key(&self) -> &str {
        &self.key
    }
}

/// Stores a prompt. Does not change an existing one, so that a second hook of the same dialog joins it.
pub(crate) fn open(
    transaction: &Transaction<'_>,
    (agent, scope): (&Agent, &Scope),
    (key, call): (&str, &str),
    prompt: &Prompt,
    unix_ms: i64,
) -> rusqlite::Result<()> {
    // Plain data: it cannot fail to be written.
    let prompt = serde_json::to_string(prompt).unwrap_or_default();
    transaction
        .prepare(
            "INSERT OR IGNORE INTO prompt (key, agent, scope, call, asked, prompt) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![key, agent.as_str(), scope.as_str(), call, unix_ms, prompt])
        .map(drop)
}

/// Records which answer the client accepted. A stored answer that decides otherwise was too late: it is withdrawn, so that the
/// command that gave it does not report success.
pub(crate) fn note_client_answer(
    transaction: &Transaction<'_>,
    agent: &Agent,
    call: &str,
    accepted: &Answer,
) -> rusqlite::Result<()> {
    let stored: Vec<(String, String)> = transaction
        .prepare("SELECT key, answer FROM prompt WHERE agent = ?1 AND call = ?2 AND answer IS NOT NULL")?
        .query_map([agent.as_str(), call], |row| Ok((text(row, 0)?, text(row, 1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (key, answer) in stored {
        let is_same =
            serde_json::from_str::<Answer>(&answer).is_ok_and(|answer| answer.decides_like(accepted));
        if !is_same {
            transaction.prepare(WITHDRAW)?.execute([&key])?;
        }
    }
    Ok(())
}

/// Ends the prompt with a key, if there is one. The mark that resolves its notification wakes the waiting processes.
pub(crate) fn end(transaction: &Transaction<'_>, key: &str, unix_ms: i64) -> rusqlite::Result<()> {
    transaction
        .prepare("UPDATE prompt SET ended = ?2 WHERE key = ?1 AND ended IS NULL")?
        .execute(params![key, unix_ms])
        .map(drop)
}

fn by_key(connection: &Connection, key: &str) -> rusqlite::Result<Option<StoredPrompt>> {
    let query = format!("SELECT {COLUMNS} FROM prompt WHERE key = ?1");
    Ok(connection.prepare(&query)?.query_row([key], read).optional()?.flatten())
}

fn of_message(connection: &Connection, column: &str, id: &str) -> rusqlite::Result<Option<StoredPrompt>> {
    let query = format!("SELECT key FROM message WHERE {column} = ?1 AND key IS NOT NULL");
    let key: Option<String> = connection.prepare(&query)?.query_row([id], |row| text(row, 0)).optional()?;
    key.map_or(Ok(None), |key| by_key(connection, &key))
}

/// Reads a row. `None` if it is damaged: a prompt that cannot be read completely cannot be answered.
fn read(row: &Row<'_>) -> rusqlite::Result<Option<StoredPrompt>> {
    let (Ok(agent), Ok(scope)) = (Agent::new(&text(row, 1)?), Scope::new(&text(row, 2)?)) else {
        return Ok(None);
    };
    let Ok(prompt) = serde_json::from_str(&text(row, 5)?) else { return Ok(None) };
    let answer = optional_text(row, 6)?.and_then(|answer| serde_json::from_str(&answer).ok());
    let by = optional_text(row, 7)?.and_then(|name| Sender::new(&name).ok());
    let (at_ms, with): (Option<i64>, _) = (row.get(8)?, optional_text(row, 9)?);
    let decision = answer.zip(by).map(|(answer, by)| Decision {
        answer,
        by,
        with: AnsweredWith::named(with.as_deref().unwrap_or_default()),
        at_ms: at_ms.unwrap_or_default(),
    });
    Ok(Some(StoredPrompt {
        key: text(row, 0)?,
        agent,
        scope,
        call: text(row, 3)?,
        asked_ms: row.get(4)?,
        prompt,
        decision,
        handed_ms: row.get(10)?,
        ended_ms: row.get(11)?,
    }))
}
