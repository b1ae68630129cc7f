//! Turns a message that a server pushed into a message in the agent's inbox.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ringer_config::ChannelEntry;
use ringer_core::conversation::{
    AdmittedSender, ChannelMessage, ChannelSender, InjectionSource, McpServer, Meta, PermissionVerdict, Rate,
    RateTracker, escape_attribute, parse_answer,
};
use ringer_core::message::Tag;
use ringer_core::{Draft, Kind, Recipient, Scope, Sender};
use ringer_ipc::part::AnswerOutcome;
use ringer_journal::{Error, IdSource, Journal, LockTimeout, monotonic};

use super::permissions::{ChatReply, PermissionRequests, RelayedAnswer};
use super::protocol::PushedMessage;
use super::shared::{Shared, running_agent};
use super::status_file::ChannelCounter;

/// The most bytes of attributes in a message. Every part of a long message repeats them and must fit into a client's limit.
const MAX_ATTRIBUTES: usize = 1_000;
/// The shortest interval between two warnings to the person that a server exceeds the rate limit.
const FLOOD_WARNING_INTERVAL: Duration = Duration::from_hours(1);
/// The most characters of a sender's name that are shown.
const MAX_NAME_CHARS: usize = 40;
/// Attributes that take precedence when there are too many: author, chat and message id.
const PRIORITY_ATTRIBUTES: [&str; 3] = ["user", "chat_id", "message_id"];

/// Receives the messages of one server.
pub(super) struct Intake {
    shared: Arc<Shared>,
    server: ChannelEntry,
    name: McpServer,
    journal: Option<Journal>,
    rates: RateTracker,
    /// The agent's permission requests, if they are relayed to the server.
    permissions: Option<PermissionRequests>,
    /// Lines that relay them, not yet written.
    unsent: Vec<Vec<u8>>,
    told_at: Option<Instant>,
}

impl Intake {
    pub(super) fn new(shared: Arc<Shared>, server: ChannelEntry, name: McpServer) -> Self {
        let rates = RateTracker::default();
        let (permissions, unsent) = (None, Vec::new());
        Self { shared, server, name, journal: None, rates, permissions, unsent, told_at: None }
    }

    /// Resets the state for a new connection: the server knows no requests, and gets none until it is connected.
    pub(super) fn begin(&mut self) {
        (self.permissions, self.unsent) = (None, Vec::new());
    }

    /// Starts relaying permission requests, if the server supports it and may answer.
    pub(super) fn connected(&mut self, relays_permissions: bool) {
        self.permissions = (self.server.may_answer && relays_permissions).then(PermissionRequests::default);
    }

    /// Rereads the agent's permission requests from the journal.
    pub(super) fn reread_prompts(&mut self) -> Result<(), Error> {
        let Some(mut permissions) = self.permissions.take() else { return Ok(()) };
        let to = self.server.to.clone();
        let lines = self.with_journal(|journal| {
            let Some(agent) = running_agent(journal, &to)? else { return Ok(Vec::new()) };
            Ok(permissions.update(&agent, &journal.open_prompts()?, random))
        });
        self.permissions = Some(permissions);
        self.unsent.extend(lines?);
        Ok(())
    }

    /// Takes the lines that relay new requests to the server.
    pub(super) fn take_unsent(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.unsent)
    }

    /// Handles an answer that the server reports as a verdict.
    pub(super) fn take_verdict(&mut self, request_id: &str, verdict: PermissionVerdict) {
        self.reread_before_answer();
        let relayed = self.permissions.as_mut().map(|own| own.receive_verdict(request_id, verdict));
        let counted = match relayed {
            Some(Ok(ChatReply::Answer(answer))) => self.answer(&answer, None),
            Some(Ok(_)) => ChannelCounter::LateAnswer,
            // An invalid id, or a verdict from a server that gets no requests.
            Some(Err(_)) | None => ChannelCounter::Invalid,
        };
        self.shared.status_file().count(&self.server, counted);
    }

    /// Rereads the prompts, since a request may have been answered elsewhere a moment ago.
    fn reread_before_answer(&mut self) {
        if let Err(error) = self.reread_prompts() {
            self.shared.log(format!("MCP channel {}: the open prompts cannot be read: {error}", self.name));
        }
    }

    /// Passes an answer to the agent and waits up to about two seconds until it is accepted. Meanwhile nothing is read from the
    /// server.
    fn answer(&self, answer: &RelayedAnswer, sender: Option<&ChannelSender>) -> ChannelCounter {
        let source = InjectionSource::Channel(self.name.clone()).to_string();
        let named = sender.map(|sender| format!("{source}:{}", sender.user()));
        let by = named.and_then(|name| Sender::new(&name).ok()).or_else(|| Sender::new(&source).ok());
        let Some(by) = by else { return ChannelCounter::Invalid };
        let what = match answer.verdict {
            PermissionVerdict::Allow => "allowed",
            PermissionVerdict::Deny => "denied",
        };
        let (counted, outcome) = match self.shared.answer(&answer.key, answer.verdict, &by) {
            AnswerOutcome::Taken => (ChannelCounter::Answer, "the agent has taken it".to_owned()),
            AnswerOutcome::NotTaken(why) | AnswerOutcome::OnlyThere(why) => (ChannelCounter::LateAnswer, why),
        };
        let who = sender.map_or_else(|| "the server".to_owned(), shown_name);
        self.shared.log(format!("MCP channel {}: {who} {what} what the agent asked: {outcome}", self.name));
        counted
    }

    /// Handles a message and counts the outcome.
    pub(super) fn take(&mut self, pushed: PushedMessage) {
        let counted = self.judge(pushed);
        self.shared.status_file().count(&self.server, counted);
    }

    fn judge(&mut self, pushed: PushedMessage) -> ChannelCounter {
        let Ok(message) = element(self.name.clone(), pushed) else { return ChannelCounter::Invalid };
        // Without an author it cannot be on the allowlist.
        let Some(sender) = ChannelSender::of(&message) else { return ChannelCounter::Refused };
        let Some(admitted) = self.admit(&sender) else { return ChannelCounter::Refused };
        if parse_answer(message.content()).is_some() {
            self.reread_before_answer();
        }
        let relayed = self.permissions.as_mut().map(|own| own.receive(admitted, message.content()));
        match relayed {
            Some(ChatReply::Answer(answer)) => return self.answer(&answer, Some(&sender)),
            // An answer is never passed to the agent as text.
            Some(ChatReply::TooLate) => return ChannelCounter::LateAnswer,
            Some(ChatReply::Message) | None => {}
        }
        let (now, source) = (monotonic(), InjectionSource::Channel(self.name.clone()));
        if !self.rates.allows(now, &source, Rate::default()) {
            self.warn_of_flood();
            return ChannelCounter::OverRate;
        }
        match self.store(&message, &source) {
            Ok(true) => {
                self.rates.record(now, &source);
                ChannelCounter::Message
            }
            Ok(false) => ChannelCounter::Refused,
            Err(error) => {
                self.shared.log(format!("a message of the channel {} is lost: {error}", self.name));
                ChannelCounter::Invalid
            }
        }
    }

    /// Returns the sender if they may write. Otherwise shows the person a pairing code for them.
    fn admit<'a>(&mut self, sender: &'a ChannelSender) -> Option<AdmittedSender<'a>> {
        let (offered, waiting) = {
            let mut senders = self.shared.senders();
            if let Err(error) = senders.refresh() {
                self.shared.log(format!("who may write over channels cannot be read: {error}"));
            }
            if let Some(admitted) = senders.admit(sender) {
                self.shared.status_file().set_waiting(senders.waiting());
                return Some(admitted);
            }
            (senders.offer_code(sender), senders.waiting())
        };
        self.shared.status_file().set_waiting(waiting);
        if let Some(code) = offered {
            let (user, name, to) = (shown_name(sender), &self.name, &self.server.to);
            let text =
                format!("{user} on {name} wants to write to {to}. To allow it: ringer mcp pair {code}");
            self.notify_person(&text, &format!("channel-sender:{code}"));
        }
        None
    }

    fn warn_of_flood(&mut self) {
        if self.told_at.is_some_and(|told| told.elapsed() < FLOOD_WARNING_INTERVAL) {
            return;
        }
        self.told_at = Some(Instant::now());
        let Rate { count, per } = Rate::default();
        let text = format!(
            "The MCP channel {} sends more than {count} messages in {} s. What is over that is dropped.",
            self.name,
            per.as_secs()
        );
        self.notify_person(&text, &format!("channel-rate:{}", self.name));
    }

    fn notify_person(&mut self, text: &str, key: &str) {
        self.shared.log(text.to_owned());
        let mut draft = Draft::tagged(Scope::global(), Sender::system(), Tag::Notice(Kind::Status), text);
        draft.recipient = Recipient::Person;
        draft.key = Some(key.to_owned());
        if let Err(error) = self.with_journal(|journal| journal.append(&draft, &IdSource::now())) {
            self.shared.log(format!("cannot tell of it: {error}"));
        }
    }

    /// Puts a message into the agent's inbox. Returns false if the agent is not running.
    fn store(&mut self, message: &ChannelMessage, source: &InjectionSource) -> Result<bool, Error> {
        let (to, name) = (self.server.to.clone(), source.to_string());
        let text = message.content().replace('\0', "");
        let text = if text.trim().is_empty() { "(no text)" } else { &text };
        self.with_journal(|journal| {
            let Some(agent) = running_agent(journal, &to)? else { return Ok(false) };
            let Some(info) = journal.agent_info(&agent)? else { return Ok(false) };
            let Ok(sender) = Sender::new(&name) else { return Ok(false) };
            let mut draft = Draft::tagged(info.scope, sender, Tag::Notice(Kind::Status), text);
            draft.recipient = Recipient::Agent(agent);
            draft.category = Some(name);
            draft.origin.meta = message.meta().clone().into();
            journal.append(&draft, &IdSource::now()).map(|_| true)
        })
    }

    fn with_journal<T>(&mut self, act: impl FnOnce(&mut Journal) -> Result<T, Error>) -> Result<T, Error> {
        let open = || Journal::open_without_repair(self.shared.home(), LockTimeout::COMMAND);
        // After an error it is reopened: the file may have been replaced.
        let mut journal = self.journal.take().map_or_else(open, Ok)?;
        let done = act(&mut journal)?;
        self.journal = Some(journal);
        Ok(done)
    }
}

/// Returns a message as the agent reads it.
#[doc(hidden)]
pub fn element(
    server: McpServer,
    pushed: PushedMessage,
) -> Result<ChannelMessage, ringer_core::conversation::Error> {
    ChannelMessage::new(server, &pushed.content, bounded(pushed.meta))
}

/// Returns the sender's name, quoted and truncated: it is untrusted text.
fn shown_name(sender: &ChannelSender) -> String {
    format!("{:?}", sender.user().chars().take(MAX_NAME_CHARS).collect::<String>())
}

fn random() -> u32 {
    let [a, b, c, d, ..] = IdSource::now().random;
    u32::from_le_bytes([a, b, c, d])
}

/// Drops metadata beyond [`MAX_ATTRIBUTES`].
fn bounded(mut meta: BTreeMap<String, String>) -> Meta {
    let mut room = MAX_ATTRIBUTES;
    let first = PRIORITY_ATTRIBUTES.iter().filter_map(|key| meta.remove_entry(*key)).collect::<Vec<_>>();
    let fitting = first.into_iter().chain(meta).filter(|(key, value)| {
        // A space, the equals sign and two quotation marks.
        let length = key.len() + escape_attribute(value).len() + 4;
        let fits = length <= room;
        room -= if fits { length } else { 0 };
        fits
    });
    Meta::filtered(fitting).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_bounded_and_starts_with_the_sender() {
        let meta = |pairs: &[(&str, &str)]| {
            bounded(pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
        };
        let long = "\"".repeat(150);
        let kept = meta(&[("a", &long), ("b", &long), ("user", "alice"), ("source", "x"), ("z", "last")]);
        assert_eq!(kept.pairs().map(|(key, _)| key).collect::<Vec<_>>(), ["a", "user", "z"]);
        let kept = meta(&[("user", &"x".repeat(5_000)), ("chat_id", "1")]);
        assert_eq!(kept.pairs().collect::<Vec<_>>(), [("chat_id", "1")]);
    }
}
