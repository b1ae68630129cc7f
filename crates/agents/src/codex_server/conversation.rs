//! The protocol with Codex's server: messages in, messages out. Pure.

use ringer_core::agent::{Answer, Prompt, PromptContent};
use serde_json::{Value, json};

use super::connection::CodexServerError;
use super::request::PendingRequest;

const INITIALIZE: u64 = 1;
const LIST: u64 = 2;
const RESUME: u64 = 3;
const STEER: u64 = 4;

/// Maximum characters shown of a server error.
const MAX_REFUSAL: usize = 200;

#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose<'a> {
    /// Read the pending prompt; if the person was shown one, only that one.
    Show { shown: Option<&'a PromptContent> },
    /// Answer the prompt that the person was shown.
    Answer { shown: &'a PromptContent, answer: &'a Answer },
}

/// How a conversation ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// This prompt is pending.
    Pending(Prompt),
    /// Nothing is pending, or a prompt other than the one shown.
    NothingPending,
    Taken,
    /// The answer was sent, and Codex did not confirm it.
    NotConfirmed,
}

/// What to do after a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    Send(Vec<Value>),
    End(Outcome),
}

#[derive(Debug)]
enum Phase {
    /// Waiting for the response to the request with this id.
    Opening(u64),
    /// The server was asked to resend pending requests. `is_doubtful` if there may be none.
    Searching { is_doubtful: bool },
    /// The reason for a refusal was sent; this refusal follows.
    SendingReason { request_id: Value, refusal: Value },
    /// The answer was sent. `is_complete` is false if the reason for it was rejected.
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
    /// Starts a conversation and returns its first message. `find_patch` finds the patch of a tool call.
    pub(super) fn begin(
        thread_id: &'a str,
        purpose: Purpose<'a>,
        find_patch: &'a dyn Fn(&str) -> Option<String>,
    ) -> (Self, Value) {
        let client = json!({ "name": "ringer", "title": "Ringer", "version": env!("CARGO_PKG_VERSION") });
        // Without this capability the server does not send questions.
        let capabilities = json!({ "experimentalApi": true });
        let params = json!({ "clientInfo": client, "capabilities": capabilities });
        let conversation = Self { thread_id, purpose, find_patch, phase: Phase::Opening(INITIALIZE) };
        (conversation, request(INITIALIZE, "initialize", &params))
    }

    /// Returns true once the answer was sent.
    pub(super) fn has_answered(&self) -> bool {
        matches!(self.phase, Phase::Confirming { .. })
    }

    /// Returns true if nothing may be pending.
    pub(super) fn is_doubtful(&self) -> bool {
        matches!(self.phase, Phase::Searching { is_doubtful: true })
    }

    /// The outcome if no more messages come.
    pub(super) fn end(&self) -> Result<Outcome, CodexServerError> {
        match self.phase {
            Phase::Opening(_) | Phase::SendingReason { .. } => Err(CodexServerError::Timeout),
            Phase::Searching { .. } => Ok(Outcome::NothingPending),
            Phase::Confirming { .. } => Ok(Outcome::NotConfirmed),
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
            Phase::SendingReason { request_id, .. } if is_resolution(message, self.thread_id, request_id) => {
                Ok(Reaction::End(Outcome::NothingPending))
            }
            Phase::SendingReason { request_id, refusal }
                if is_response && message.get("id") == Some(&json!(STEER)) =>
            {
                let (request_id, refusal) = (request_id.take(), refusal.take());
                // Send the refusal even if the reason was rejected.
                self.phase = Phase::Confirming { request_id, is_complete: message.get("result").is_some() };
                Ok(Reaction::Send(vec![refusal]))
            }
            Phase::Confirming { request_id, is_complete }
                if is_resolution(message, self.thread_id, request_id) =>
            {
                Ok(Reaction::End(if *is_complete { Outcome::Taken } else { Outcome::NotConfirmed }))
            }
            _ => Ok(Reaction::Send(Vec::new())),
        }
    }

    /// Handles a response of the server.
    fn opened(&mut self, id: u64, result: &Value) -> Result<Reaction, CodexServerError> {
        match id {
            INITIALIZE => {
                self.phase = Phase::Opening(LIST);
                let list = request(LIST, "thread/loaded/list", &json!({}));
                Ok(Reaction::Send(vec![json!({ "method": "initialized" }), list]))
            }
            LIST => {
                // Resuming a thread that is not loaded would load it.
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

    /// Starts the search in a thread with this status. A hook reports a dialog before it opens, so an active turn may still open
    /// one.
    fn search_in(&mut self, status: &Value) -> Reaction {
        if status.get("type") != Some(&json!("active")) {
            return Reaction::End(Outcome::NothingPending);
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
        let Some(pending) = PendingRequest::read(message, self.thread_id, self.find_patch) else {
            return Ok(Reaction::Send(Vec::new()));
        };
        match self.purpose {
            Purpose::Show { shown } if shown.is_none_or(|shown| pending.matches(shown)) => {
                Ok(Reaction::End(Outcome::Pending(pending.prompt())))
            }
            Purpose::Answer { shown, answer } if pending.matches(shown) => {
                let reply = json!({ "id": pending.id, "result": pending.reply(shown, answer)? });
                Ok(Reaction::Send(vec![self.send_answer(pending, reply, reason_of(answer))]))
            }
            _ => {
                // Another request is pending. The one that was shown may follow.
                if let Phase::Searching { is_doubtful } = &mut self.phase {
                    *is_doubtful = true;
                }
                Ok(Reaction::Send(Vec::new()))
            }
        }
    }

    /// Sends an answer. The reason goes first: after the answer, the model may already continue.
    fn send_answer(&mut self, pending: PendingRequest, reply: Value, reason: Option<&str>) -> Value {
        let PendingRequest { id: request_id, turn_id, .. } = pending;
        let Some(reason) = reason else {
            self.phase = Phase::Confirming { request_id, is_complete: true };
            return reply;
        };
        self.phase = Phase::SendingReason { request_id, refusal: reply };
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
