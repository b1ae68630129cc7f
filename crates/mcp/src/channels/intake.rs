//! From what a server pushed to a message in the inbox of the agent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ringer_core::message::Tag;
use ringer_core::policy::McpChannel;
use ringer_core::{Draft, Kind, Recipient, Scope, Sender};
use ringer_ipc::host::AnswerOutcome;
use ringer_journal::{Error, IdSource, Journal, LockTimeout, monotonic};
use ringer_turn::{
    AdmittedSender, ChannelMessage, ChannelSender, InjectionSource, McpServer, Meta, PermissionVerdict, Rate,
    RateTracker, escape_attribute, parse_answer,
};

use super::permissions::{PermissionRequests, Relayed, RelayedAnswer};
use super::protocol::PushedMessage;
use super::shared::{Shared, running_agent};
use super::status_file::Counted;

/// How long the attributes of a message may be together. With them, a part of it still fits into what clients take at once.
const MAX_ATTRIBUTES: usize = 1_000;
/// How often the person is told that a server sends too much.
const TELL_EVERY: Duration = Duration::from_hours(1);
/// How many characters of a sender's name the person is told.
const MAX_SHOWN_NAME: usize = 40;
/// Attributes that are kept before others: who wrote, where, and which message it is.
const FIRST: [&str; 3] = ["user", "chat_id", "message_id"];

/// What takes the messages of one server.
pub(super) struct Intake {
    shared: Arc<Shared>,
    server: McpChannel,
    name: McpServer,
    journal: Option<Journal>,
    rates: RateTracker,
    /// What the agent asks a permission for, if the server is told of it.
    permissions: Option<PermissionRequests>,
    /// Lines that tell the server of them, and are not written yet.
    unsent: Vec<Vec<u8>>,
    told_at: Option<Instant>,
}

impl Intake {
    pub(super) fn new(shared: Arc<Shared>, server: McpChannel, name: McpServer) -> Self {
        let rates = RateTracker::default();
        let (permissions, unsent) = (None, Vec::new());
        Self { shared, server, name, journal: None, rates, permissions, unsent, told_at: None }
    }

    /// Another connection begins: the server knows of no request, and may not be told of one yet.
    pub(super) fn begin(&mut self) {
        (self.permissions, self.unsent) = (None, Vec::new());
    }

    /// The server is connected. If it relays permissions and may answer, it is told of them from now on.
    pub(super) fn connected(&mut self, relays_permissions: bool) {
        self.permissions = (self.server.may_answer && relays_permissions).then(PermissionRequests::default);
    }

    /// Looks what the agent asks a permission for.
    pub(super) fn look_at_prompts(&mut self) -> Result<(), Error> {
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

    /// The lines that tell the server of requests that it does not know yet.
    pub(super) fn take_unsent(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.unsent)
    }

    /// The server says what was answered in the chat.
    pub(super) fn take_verdict(&mut self, request_id: &str, verdict: PermissionVerdict) {
        self.look_before_answer();
        let relayed = self.permissions.as_mut().map(|own| own.receive_verdict(request_id, verdict));
        let counted = match relayed {
            Some(Ok(Relayed::Answer(answer))) => self.answer(&answer, None),
            Some(Ok(_)) => Counted::LateAnswer,
            // It was told of no request, so it cannot know of one.
            Some(Err(_)) | None => Counted::Invalid,
        };
        self.shared.status_file().count(&self.server, counted);
    }

    /// What was answered elsewhere a moment ago is over.
    fn look_before_answer(&mut self) {
        if let Err(error) = self.look_at_prompts() {
            self.shared.log(format!("MCP channel {}: the open prompts cannot be read: {error}", self.name));
        }
    }

    /// Gives an answer to the agent, and waits until it is taken or not: for about two seconds. Meanwhile nothing of the server
    /// is read.
    fn answer(&self, answer: &RelayedAnswer, sender: Option<&ChannelSender>) -> Counted {
        let source = InjectionSource::Channel(self.name.clone()).to_string();
        let named = sender.map(|sender| format!("{source}:{}", sender.user()));
        let by = named.and_then(|name| Sender::new(&name).ok()).or_else(|| Sender::new(&source).ok());
        let Some(by) = by else { return Counted::Invalid };
        let what = match answer.verdict {
            PermissionVerdict::Allow => "allowed",
            PermissionVerdict::Deny => "denied",
        };
        let (counted, outcome) = match self.shared.answer(&answer.key, answer.verdict, &by) {
            AnswerOutcome::Taken => (Counted::Answer, "the agent has taken it".to_owned()),
            AnswerOutcome::NotTaken(why) | AnswerOutcome::OnlyThere(why) => (Counted::LateAnswer, why),
        };
        let who = sender.map_or_else(|| "the server".to_owned(), shown_name);
        self.shared.log(format!("MCP channel {}: {who} {what} what the agent asked: {outcome}", self.name));
        counted
    }

    /// Takes a message. What becomes of it is counted.
    pub(super) fn take(&mut self, pushed: PushedMessage) {
        let counted = self.judge(pushed);
        self.shared.status_file().count(&self.server, counted);
    }

    fn judge(&mut self, pushed: PushedMessage) -> Counted {
        let Ok(message) = element(self.name.clone(), pushed) else { return Counted::Invalid };
        // One that does not say who wrote it cannot be allowed.
        let Some(sender) = ChannelSender::of(&message) else { return Counted::Refused };
        let Some(admitted) = self.admit(&sender) else { return Counted::Refused };
        if parse_answer(message.content()).is_some() {
            self.look_before_answer();
        }
        let relayed = self.permissions.as_mut().map(|own| own.receive(admitted, message.content()));
        match relayed {
            Some(Relayed::Answer(answer)) => return self.answer(&answer, Some(&sender)),
            // It is no text for the agent.
            Some(Relayed::TooLate) => return Counted::LateAnswer,
            Some(Relayed::Message) | None => {}
        }
        let (now, source) = (monotonic(), InjectionSource::Channel(self.name.clone()));
        if !self.rates.allows(now, &source, Rate::default()) {
            self.tell_of_flood();
            return Counted::OverRate;
        }
        match self.store(&message, &source) {
            Ok(true) => {
                self.rates.record(now, &source);
                Counted::Message
            }
            Ok(false) => Counted::Refused,
            Err(error) => {
                self.shared.log(format!("a message of the channel {} is lost: {error}", self.name));
                Counted::Invalid
            }
        }
    }

    /// The sender, if they may write. Who may not gets a code, which the person is told.
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
            self.tell_person(&text, &format!("channel-sender:{code}"));
        }
        None
    }

    fn tell_of_flood(&mut self) {
        if self.told_at.is_some_and(|told| told.elapsed() < TELL_EVERY) {
            return;
        }
        self.told_at = Some(Instant::now());
        let Rate { count, per } = Rate::default();
        let text = format!(
            "The MCP channel {} sends more than {count} messages in {} s. What is over that is dropped.",
            self.name,
            per.as_secs()
        );
        self.tell_person(&text, &format!("channel-rate:{}", self.name));
    }

    fn tell_person(&mut self, text: &str, key: &str) {
        self.shared.log(text.to_owned());
        let mut draft = Draft::tagged(Scope::global(), Sender::system(), Tag::Notice(Kind::Status), text);
        draft.recipient = Recipient::Person;
        draft.key = Some(key.to_owned());
        if let Err(error) = self.with_journal(|journal| journal.append(&draft, &IdSource::now())) {
            self.shared.log(format!("cannot tell of it: {error}"));
        }
    }

    /// Puts a message into the agent's inbox. Gives whether that agent runs.
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
        // After an error it is opened anew: it may have been replaced.
        let mut journal = self.journal.take().map_or_else(open, Ok)?;
        let done = act(&mut journal)?;
        self.journal = Some(journal);
        Ok(done)
    }
}

/// A message as the agent reads it.
#[doc(hidden)]
pub fn element(server: McpServer, pushed: PushedMessage) -> Result<ChannelMessage, ringer_turn::Error> {
    ChannelMessage::new(server, &pushed.content, bounded(pushed.meta))
}

/// The name of a sender. It is a stranger's text: quoted, and no longer than names are.
fn shown_name(sender: &ChannelSender) -> String {
    format!("{:?}", sender.user().chars().take(MAX_SHOWN_NAME).collect::<String>())
}

fn random() -> u32 {
    let [a, b, c, d, ..] = IdSource::now().random;
    u32::from_le_bytes([a, b, c, d])
}

/// As much of the metadata as may be in the element.
fn bounded(mut meta: BTreeMap<String, String>) -> Meta {
    let mut room = MAX_ATTRIBUTES;
    let first = FIRST.iter().filter_map(|key| meta.remove_entry(*key)).collect::<Vec<_>>();
    let fitting = first.into_iter().chain(meta).filter(|(key, value)| {
        // A space, the sign and two quotation marks.
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
    fn metadata_is_bounded_and_the_sender_comes_first() {
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
