//! What is said to Codex's server, step by step: messages in, messages out.

use ringer_core::agent::{Answer, Prompt, PromptContent};
use serde_json::{Value, json};

use super::connection::CodexServerError;
use super::request::WaitingRequest;

const INITIALIZE: u64 = 1;
const LIST: u64 = 2;
const RESUME: u64 = 3;
const STEER: u64 = 4;

/// The longest error of the server that is shown, in characters.
const MAX_REFUSAL: usize = 200;

/// What a conversation is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose<'a> {
    /// To see what waits; if the person was shown something, only that.
    Show { shown: Option<&'a PromptContent> },
    /// To answer what the person was shown.
    Answer { shown: &'a PromptContent, answer: &'a Answer },
}

/// How a conversation ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// This waits.
    Waits(Prompt),
    /// Nothing waits, or something else than what the person was shown.
    NothingWaits,
    /// Codex took the answer.
    Taken,
    /// The answer was sent, and Codex did not say that it took it.
    NotConfirmed,
}

/// What follows from a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    /// These are to be sent.
    Send(Vec<Value>),
    /// It is over.
    End(Ending),
}

#[derive(Debug)]
enum Phase {
    /// An answer to the request with this id is awaited.
    Opening(u64),
    /// The server has been asked to send again what waits. `is_doubtful` if it may have nothing to send.
    Searching { is_doubtful: bool },
    /// The reason for a refusal has been sent, and this refusal is to follow.
    GivingReason { request_id: Value, refusal: Value },
    /// The answer has been sent. `is_complete` unless the reason for it was not taken.
    Confirming { request_id: Value, is_complete: bool },
}

/// A conversation about one thread.
pub(super) struct Conversation<'a> {
    thread_id: &'a str,
    purpose: Purpose<'a>,
    find_patch: &'a dyn Fn(&str) -> Option<String>,
    phase: Phase,
}

impl<'a> Conversation<'a> {
    /// A conversation that begins with this message. `find_patch` finds the patch of a tool call.
    pub(super) fn begin(
        thread_id: &'a str,
        purpose: Purpose<'a>,
        find_patch: &'a dyn Fn(&str) -> Option<String>,
    ) -> (Self, Value) {
        let client = json!({ "name": "ringer", "title": "Ringer", "version": env!("CARGO_PKG_VERSION") });
        // Without it the server keeps questions to itself.
        let capabilities = json!({ "experimentalApi": true });
        let params = json!({ "clientInfo": client, "capabilities": capabilities });
        let conversation = Self { thread_id, purpose, find_patch, phase: Phase::Opening(INITIALIZE) };
        (conversation, request(INITIALIZE, "initialize", &params))
    }

    /// Whether an answer was sent.
    pub(super) fn has_answered(&self) -> bool {
        matches!(self.phase, Phase::Confirming { .. })
    }

    /// Whether there may be nothing to wait for.
    pub(super) fn is_doubtful(&self) -> bool {
        matches!(self.phase, Phase::Searching { is_doubtful: true })
    }

    /// The ending if no more messages come.
    pub(super) fn end(&self) -> Result<Ending, CodexServerError> {
        match self.phase {
            Phase::Opening(_) | Phase::GivingReason { .. } => Err(CodexServerError::Silent),
            Phase::Searching { .. } => Ok(Ending::NothingWaits),
            Phase::Confirming { .. } => Ok(Ending::NotConfirmed),
        }
    }

    /// Takes a message of the server.
    pub(super) fn receive(&mut self, message: &Value) -> Result<Reaction, CodexServerError> {
        let is_response = message.get("method").is_none();
        match &mut self.phase {
            Phase::Opening(id) if is_response && message.get("id") == Some(&json!(*id)) => {
                let id = *id;
                self.opened(id, result(message)?)
            }
            Phase::Opening(RESUME) | Phase::Searching { .. } if !is_response => self.search(message),
            Phase::GivingReason { request_id, .. } if is_resolution(message, self.thread_id, request_id) => {
                Ok(Reaction::End(Ending::NothingWaits))
            }
            Phase::GivingReason { request_id, refusal }
                if is_response && message.get("id") == Some(&json!(STEER)) =>
            {
                let (request_id, refusal) = (request_id.take(), refusal.take());
                // It is refused also if the reason is not taken.
                self.phase = Phase::Confirming { request_id, is_complete: message.get("result").is_some() };
                Ok(Reaction::Send(vec![refusal]))
            }
            Phase::Confirming { request_id, is_complete }
                if is_resolution(message, self.thread_id, request_id) =>
            {
                Ok(Reaction::End(if *is_complete { Ending::Taken } else { Ending::NotConfirmed }))
            }
            _ => Ok(Reaction::Send(Vec::new())),
        }
    }

    /// The next step after a response of the server.
    fn opened(&mut self, id: u64, result: &Value) -> Result<Reaction, CodexServerError> {
        match id {
            INITIALIZE => {
                self.phase = Phase::Opening(LIST);
                let list = request(LIST, "thread/loaded/list", &json!({}));
                Ok(Reaction::Send(vec![json!({ "method": "initialized" }), list]))
            }
            LIST => {
                // Resuming another thread would load it.
                let threads =
                    result.get("data").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                if !threads.iter().any(|thread| thread == self.thread_id) {
                    return Err(CodexServerError::OtherSession);
                }
                self.phase = Phase::Opening(RESUME);
                let params = json!({ "threadId": self.thread_id, "excludeTurns": true });
                Ok(Reaction::Send(vec![request(RESUME, "thread/resume", &params)]))
            }
            _ => {
                let status = result.pointer("/thread/status").unwrap_or(&Value::Null);
                Ok(self.search_in(status))
            }
        }
    }

    /// Searches in a thread with this status. A hook tells of a dialog before it opens, so one may come in a turn.
    fn search_in(&mut self, status: &Value) -> Reaction {
        if status.get("type") != Some(&json!("active")) {
            return Reaction::End(Ending::NothingWaits);
        }
        let flags =
            status.get("activeFlags").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let waits = flags.iter().any(|flag| flag == "waitingOnApproval" || flag == "waitingOnUserInput");
        self.phase = Phase::Searching { is_doubtful: !waits };
        Reaction::Send(Vec::new())
    }

    fn search(&mut self, message: &Value) -> Result<Reaction, CodexServerError> {
        let is_of_thread = message.pointer("/params/threadId").is_some_and(|id| id == self.thread_id);
        if is_of_thread && message.get("method").is_some_and(|method| method == "thread/status/changed") {
            let status = message.pointer("/params/status").unwrap_or(&Value::Null);
            return Ok(self.search_in(status));
        }
        let Some(waiting) = WaitingRequest::read(message, self.thread_id, self.find_patch) else {
            return Ok(Reaction::Send(Vec::new()));
        };
        match self.purpose {
            Purpose::Show { shown } if shown.is_none_or(|shown| waiting.asks(shown)) => {
                Ok(Reaction::End(Ending::Waits(waiting.prompt())))
            }
            Purpose::Answer { shown, answer } if waiting.asks(shown) => {
                let reply = json!({ "id": waiting.id, "result": waiting.reply(shown, answer)? });
                Ok(Reaction::Send(vec![self.give(waiting, reply, reason_of(answer))]))
            }
            _ => {
                // Something else waits. What was shown may come after it.
                if let Phase::Searching { is_doubtful } = &mut self.phase {
                    *is_doubtful = true;
                }
                Ok(Reaction::Send(Vec::new()))
            }
        }
    }

    /// Gives an answer. The reason for it goes before it: after it, the model may have been asked already.
    fn give(&mut self, waiting: WaitingRequest, reply: Value, reason: Option<&str>) -> Value {
        let WaitingRequest { id: request_id, turn_id, .. } = waiting;
        let Some(reason) = reason else {
            self.phase = Phase::Confirming { request_id, is_complete: true };
            return reply;
        };
        self.phase = Phase::GivingReason { request_id, refusal: reply };
        let input = json!([{ "type": "text", "text": reason }]);
        let params = json!({ "threadId": self.thread_id, "expectedTurnId": turn_id, "input": input });
        request(STEER, "turn/steer", &params)
    }
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "id": id, "method": method, "params": params })
}

fn result(response: &Value) -> Result<&Value, CodexServerError> {
    response.get("result").ok_or_else(|| {
        let words = response.pointer("/error/message").and_then(Value::as_str).unwrap_or("no reason given");
        CodexServerError::Refused(words.chars().take(MAX_REFUSAL).collect())
    })
}

fn is_resolution(message: &Value, thread_id: &str, request_id: &Value) -> bool {
    message.get("method").is_some_and(|method| method == "serverRequest/resolved")
        && message.pointer("/params/threadId").is_some_and(|id| id == thread_id)
        && message.pointer("/params/requestId") == Some(request_id)
}

fn reason_of(answer: &Answer) -> Option<&str> {
    match answer {
        Answer::Deny { reason: Some(reason) } if !reason.trim().is_empty() => Some(reason),
        _ => None,
    }
}
