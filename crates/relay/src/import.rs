//! Converts what another machine sends into messages that may be stored here.
//!
//! Nothing from the other machine is trusted. The link determines the origin of a message. Every name of something on that
//! machine (agents, sessions, questions, repositories, surfaces) gets the machine's name, so that it can never refer to something
//! on this machine or on a third one.

use std::collections::BTreeMap;
use std::time::Duration;

use ringer_core::agent::PromptContent;
use ringer_core::attention::MarkTarget;
use ringer_core::message::{
    About, EPISODE_KEY_PREFIX, InvalidName, MACHINE_PREFIX, MAX_BODY, Mark, MarkReach, MessageOrigin,
    QuestionId, Tag, is_ended_by_key, validate_name, validate_text,
};
use ringer_core::{Draft, MessageId, Recipient, Scope, Sender};
use ringer_journal::ImportedMessage;

use crate::machine::MachineName;
use crate::wire_message::WireMessage;

/// The longest text in a part of [`About`], in bytes.
const MAX_PART: usize = MAX_BODY / 16;
/// The longest surface id, in bytes.
const MAX_SURFACE: usize = 256;
/// The tolerated difference between clocks: a message also takes a moment to arrive.
const CLOCK_TOLERANCE_MS: i64 = 2_000;

/// The import rules of one connection.
#[derive(Debug, Clone)]
pub struct ImportRules {
    /// The name of the machine here.
    pub machine: MachineName,
    /// The machine may send messages to agents of this one.
    pub may_address_agents: bool,
    /// Messages of its agents reach the lead agent of the same repository here.
    pub may_reach_lead: bool,
    /// The person answers from here what its agents ask.
    pub may_be_answered: bool,
    /// How far the clock of this machine is ahead of the other one, in milliseconds.
    pub clock_ahead_ms: i64,
}

/// The reason for refusing a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportRefusal {
    /// A text is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidName),
    /// This version does not know the message's kind.
    #[error("it is of an unknown kind")]
    UnknownTag,
    /// The id is not a message id.
    #[error("its id is no id of a message")]
    NoId,
    /// A message of this machine has the same id.
    #[error("it has the id of a message that this machine wrote")]
    OwnId,
    /// The recipient is an agent here, and the machine may not write to agents.
    #[error("the machine may not write to agents here")]
    NotAllowed,
    /// No other machine may set the mark, or not on this target.
    #[error("the machine may not set that mark")]
    NotItsMark,
}

impl ImportRules {
    /// Returns the rules of a connection. `own_ms` and `other_ms` are the clocks of both machines at its beginning.
    pub fn new(machine: MachineName, may_address_agents: bool, own_ms: i64, other_ms: i64) -> Self {
        let ahead = own_ms.saturating_sub(other_ms);
        let clock_ahead_ms = if ahead.abs() > CLOCK_TOLERANCE_MS { ahead } else { 0 };
        let may_reach_lead = may_address_agents;
        Self { machine, may_address_agents, may_reach_lead, may_be_answered: false, clock_ahead_ms }
    }

    /// Converts a message for this machine's journal.
    pub fn import(&self, wire: WireMessage) -> Result<ImportedMessage, ImportRefusal> {
        let tag = Tag::named(&wire.tag).ok_or(ImportRefusal::UnknownTag)?;
        let id = message_id(&wire.id)?;
        let sender = Sender::new(&self.named(&wire.sender))?;
        let mut draft = Draft::tagged(self.scope(&wire.scope)?, sender, tag, &wire.body);
        (draft.title, draft.subtitle, draft.category) = (wire.title, wire.subtitle, wire.category);
        draft.check()?;
        let question = wire.question_id.as_deref().map(|id| QuestionId::parse(&self.named(id)));
        draft.question_id = question.transpose()?;
        let key = wire.key.as_deref();
        match tag {
            Tag::Notice(_) => {
                validate_text("message", &wire.body, MAX_BODY)?;
                draft.recipient = self.recipient(&wire.recipient)?;
                draft.key = key.map(|key| self.notice_key(key)).transpose()?;
            }
            Tag::Mark(_) if wire.body.len() > MAX_BODY => return Err(ImportRefusal::NotItsMark),
            Tag::Mark(mark) => {
                draft.recipient = Recipient::Person;
                draft.body = self.mark_body(mark, &wire.body)?;
                draft.key = self.mark_key(mark, key, draft.question_id.as_ref())?;
            }
        }
        draft.ttl = wire.ttl_ms.map(Duration::from_millis);
        draft.about = wire.about.map(|about| self.about(about));
        draft.origin = MessageOrigin {
            surface: wire.surface.map(|surface| self.surface(&surface)),
            workspace: Some(self.workspace()),
            ..MessageOrigin::default()
        };
        let prompt = wire.prompt.filter(|_| self.may_be_answered && matches!(tag, Tag::Notice(_)));
        let unix_ms = wire.unix_ms.saturating_add(self.clock_ahead_ms);
        Ok(ImportedMessage { id, unix_ms, draft, prompt: prompt.and_then(for_popup) })
    }

    /// Restores the keys under which open episodes and questions were stored before the machine got its current name.
    pub(crate) fn with_earlier_keys(
        &self,
        mut imported: ImportedMessage,
        earlier: &BTreeMap<String, String>,
    ) -> ImportedMessage {
        let suffix = format!("@{}", self.machine);
        let before = |key: &str| key.strip_suffix(&suffix).and_then(|own| earlier.get(own));
        let draft = &mut imported.draft;
        if let Some(key) =
            draft.key.as_deref().filter(|key| key.starts_with(EPISODE_KEY_PREFIX)).and_then(before)
        {
            draft.key = Some(key.clone());
        }
        if let Some(Ok(id)) =
            draft.question_id.as_ref().and_then(|id| before(id.as_str())).map(|id| QuestionId::parse(id))
        {
            draft.question_id = Some(id);
        }
        imported
    }

    /// Adds the machine to a name: `worker-1@box`.
    pub(crate) fn named(&self, name: &str) -> String {
        format!("{name}@{}", self.machine)
    }

    /// Prefixes a scope with the machine. Repository ids are random, but a machine could name one of this machine, and so reach
    /// its lead agent. The prefix contains no `_`, so that `a_b` with `c` differs from `a` with `b_c`.
    fn scope(&self, scope: &str) -> Result<Scope, ImportRefusal> {
        let scope = Scope::new(scope)?;
        let machine = self.machine.as_str().replace('-', "--").replace('.', "-d").replace('_', "-u");
        Ok(Scope::new(&format!("{machine}_{scope}"))?)
    }

    /// Converts the text of a mark. For read and cleared marks it names a command, for `ringer undo` on the other machine, and is
    /// dropped. The end of a snooze is converted from the other machine's clock.
    fn mark_body(&self, mark: Mark, body: &str) -> Result<String, ImportRefusal> {
        match mark {
            Mark::Read | Mark::Unread | Mark::Clear => Ok(String::new()),
            Mark::Snooze => {
                let until_ms: i64 = body.parse().map_err(|_| ImportRefusal::NotItsMark)?;
                Ok(until_ms.saturating_add(self.clock_ahead_ms).to_string())
            }
            _ => Ok(body.to_owned()),
        }
    }

    fn recipient(&self, recipient: &str) -> Result<Recipient, ImportRefusal> {
        let recipient = Recipient::parse(recipient)?;
        match recipient.agent() {
            Some(_) if !self.may_address_agents => Err(ImportRefusal::NotAllowed),
            _ => Ok(recipient),
        }
    }

    /// Converts the key of a notice. Keys of episodes name an agent, and keys of terminals a surface; others are local to their
    /// sender.
    fn notice_key(&self, key: &str) -> Result<String, InvalidName> {
        let key = if is_ended_by_key(key) { self.named(key) } else { key.to_owned() };
        validate_name("key", &key).map(|()| key)
    }

    /// Adds the machine to the key of an episode, `episode:AGENT:NUMBER`, or of a program's terminal output. Returns `None` for
    /// another key.
    fn ended_key(&self, key: &str) -> Option<String> {
        let own = is_ended_by_key(key).then(|| self.named(key));
        own.filter(|key| validate_name("key", key).is_ok())
    }

    /// Converts the target of a mark. Agents of the other machine end their own episodes and questions; the person's marks each
    /// name one message.
    fn mark_key(
        &self,
        mark: Mark,
        key: Option<&str>,
        question: Option<&QuestionId>,
    ) -> Result<Option<String>, ImportRefusal> {
        let refused = ImportRefusal::NotItsMark;
        match mark {
            Mark::Answer if question.is_some() => Ok(None),
            Mark::Resolve | Mark::Decision => {
                key.and_then(|key| self.ended_key(key)).map(Some).ok_or(refused)
            }
            _ if mark.reach() == MarkReach::PersonsMachines => match key.and_then(MarkTarget::parse) {
                Some(MarkTarget::Message(id)) => Ok(Some(message_id(id.as_str())?.to_string())),
                _ => Err(refused),
            },
            _ => Err(refused),
        }
    }

    /// Converts the parts of a notice, adding the machine to the ones that people read first.
    fn about(&self, about: About) -> About {
        let short = |text: Option<String>| text.map(|text| cut(&text, MAX_PART).to_owned());
        let name = short(about.name).map(|name| self.named(&name));
        let repository = short(about.repository).map(|repository| format!("{}:{repository}", self.machine));
        About {
            repository: repository.or_else(|| Some(self.machine.to_string()).filter(|_| name.is_none())),
            name,
            client: short(about.client),
            branch: short(about.branch),
            detail: about.detail.map(|detail| cut(&detail, MAX_BODY).to_owned()),
            turn_ms: about.turn_ms,
        }
    }

    pub(crate) fn surface(&self, surface: &str) -> String {
        format!("{}:{}", self.workspace(), cut(surface, MAX_SURFACE))
    }

    fn workspace(&self) -> String {
        format!("{MACHINE_PREFIX}{}", self.machine)
    }
}

/// Returns the part of a prompt that a popup needs. `None` if a popup cannot show all of it.
pub(crate) fn for_popup(mut prompt: PromptContent) -> Option<PromptContent> {
    match &mut prompt {
        PromptContent::Permission(request) => request.always.clear(),
        PromptContent::Questions(questions) => {
            for question in questions {
                question.descriptions.clear();
            }
        }
        _ => {}
    }
    prompt.popup_text().is_some().then_some(prompt)
}

/// Parses a message id. Only a UUID is accepted, as Ringer makes them, because other texts could look like words.
pub(crate) fn message_id(text: &str) -> Result<MessageId, ImportRefusal> {
    let is_uuid = text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        });
    if is_uuid { Ok(MessageId::parse(text)?) } else { Err(ImportRefusal::NoId) }
}

/// Returns the beginning of a text, of at most `most` bytes.
fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ringer_core::Kind;

    const ID: &str = "01890000-0000-7000-8000-000000000001";

    fn rules() -> ImportRules {
        ImportRules::new(MachineName::parse("box").unwrap(), false, 0, 0)
    }

    fn wire(tag: &str) -> WireMessage {
        let own = str::to_owned;
        WireMessage {
            seq: 1,
            id: own(ID),
            unix_ms: 5,
            tag: own(tag),
            scope: own("0a1b2c3d"),
            sender: own("worker-1"),
            recipient: own("default"),
            body: own("hello"),
            ..WireMessage::default()
        }
    }

    #[test]
    fn imported_names_include_the_machine() {
        let mut sent = wire("question");
        sent.key = Some("episode:claude-1:2".to_owned());
        sent.question_id = Some("q-1-abc".to_owned());
        sent.surface = Some("tmux:/tmp/s:1:%2".to_owned());
        sent.about = Some(About { repository: Some("api".to_owned()), ..About::default() });
        let imported = rules().import(sent).unwrap();
        let draft = imported.draft;
        assert_eq!(draft.tag, Tag::Notice(Kind::Question));
        assert_eq!(draft.scope.as_str(), "box_0a1b2c3d");
        assert_eq!(draft.sender.as_str(), "worker-1@box");
        assert_eq!(draft.key.as_deref(), Some("episode:claude-1:2@box"));
        assert_eq!(draft.question_id.unwrap().as_str(), "q-1-abc@box");
        assert_eq!(draft.origin.surface.as_deref(), Some("machine:box:tmux:/tmp/s:1:%2"));
        assert_eq!(draft.about.unwrap().label().as_deref(), Some("box:api"));
        assert_eq!(draft.origin.cwd, None, "a path of another machine is none of this one");
    }

    #[test]
    fn forbidden_messages_are_refused() {
        let check = |change: fn(&mut WireMessage), refusal: ImportRefusal| {
            let mut sent = wire("status");
            change(&mut sent);
            assert_eq!(rules().import(sent).unwrap_err(), refusal);
        };
        check(|sent| sent.recipient = "agent:worker-2".to_owned(), ImportRefusal::NotAllowed);
        check(|sent| sent.tag = "dance".to_owned(), ImportRefusal::UnknownTag);
        check(|sent| sent.id = "last".to_owned(), ImportRefusal::NoId);
        check(|sent| sent.tag = "mark-mute".to_owned(), ImportRefusal::NotItsMark);
        check(|sent| sent.tag = "mark-undo".to_owned(), ImportRefusal::NotItsMark);
        let mut all = wire("mark-read");
        all.key = Some("all".to_owned());
        assert_eq!(rules().import(all).unwrap_err(), ImportRefusal::NotItsMark);
        let mut foreign = wire("mark-resolve");
        foreign.key = Some(ID.to_owned());
        assert_eq!(rules().import(foreign).unwrap_err(), ImportRefusal::NotItsMark);
        let mut long = wire("status");
        long.body = "x".repeat(MAX_BODY + 1);
        assert!(matches!(rules().import(long), Err(ImportRefusal::Invalid(_))));
        let mut key = wire("status");
        key.key = Some(format!("episode:{}", "x".repeat(245)));
        assert!(
            matches!(rules().import(key), Err(ImportRefusal::Invalid(_))),
            "with the machine it is too long"
        );
        let mut scope = wire("status");
        scope.scope = "../etc".to_owned();
        assert!(matches!(rules().import(scope), Err(ImportRefusal::Invalid(_))));
    }

    #[test]
    fn a_permitted_machine_addresses_agents() {
        let mut sent = wire("status");
        sent.recipient = "agent:worker-2".to_owned();
        let rules = ImportRules { may_address_agents: true, ..rules() };
        assert_eq!(rules.import(sent).unwrap().draft.recipient.to_string(), "agent:worker-2");
    }

    #[test]
    fn marks_refer_to_messages_of_their_machine() {
        let import = |tag: &str, key: &str| {
            let mut sent = wire(tag);
            (sent.key, sent.body) = (Some(key.to_owned()), String::new());
            rules().import(sent).unwrap().draft.key
        };
        assert_eq!(import("mark-resolve", "episode:claude-1:2").as_deref(), Some("episode:claude-1:2@box"));
        assert_eq!(import("mark-read", ID).as_deref(), Some(ID));
    }

    #[test]
    fn the_text_of_a_mark_is_converted_for_this_machine() {
        let import = |tag: &str, body: &str, rules: ImportRules| {
            let mut sent = wire(tag);
            (sent.key, sent.body) = (Some(ID.to_owned()), body.to_owned());
            rules.import(sent).map(|imported| imported.draft.body)
        };
        let late = || ImportRules::new(MachineName::parse("box").unwrap(), false, 1_000_000, 400_000);
        assert_eq!(import("mark-snooze", "500000", late()).unwrap(), "1100000");
        assert_eq!(import("mark-snooze", "soon", rules()), Err(ImportRefusal::NotItsMark));
        // The text names a command of the other machine; here it could match one of the person's own.
        assert_eq!(import("mark-read", "command-1", rules()).unwrap(), "");
        assert_eq!(import("mark-clear", "command-1", rules()).unwrap(), "");
    }

    #[test]
    fn repositories_of_two_machines_are_never_the_same() {
        let scope = |machine: &str, scope: &str| {
            let rules = ImportRules::new(MachineName::parse(machine).unwrap(), false, 0, 0);
            rules.scope(scope).unwrap()
        };
        assert_eq!(scope("box", "0a1b2c3d").as_str(), "box_0a1b2c3d");
        let pairs = [("a.b", "c"), ("a-b", "c"), ("a-.b", "c"), ("a_b", "c"), ("a", "b_c"), ("a-db", "c")];
        let scopes: std::collections::BTreeSet<_> =
            pairs.iter().map(|(machine, id)| scope(machine, id)).collect();
        assert_eq!(scopes.len(), pairs.len(), "{scopes:?}");
    }

    #[test]
    fn a_clock_difference_is_corrected() {
        let machine = || MachineName::parse("box").unwrap();
        let sent = |rules: ImportRules| rules.import(wire("status")).unwrap().unix_ms;
        assert_eq!(sent(ImportRules::new(machine(), false, 1_000_000, 400_000)), 600_005);
        assert_eq!(sent(ImportRules::new(machine(), false, 1_000, 2_000)), 5, "a second is transit time");
        assert_eq!(sent(ImportRules::new(machine(), false, i64::MAX, i64::MIN)), i64::MAX);
    }

    proptest! {
        /// No input produces the name of an agent, a repository or a surface of this machine.
        #[test]
        fn no_message_claims_another_origin(
            tag in prop::sample::select(vec!["status", "question", "mark-read", "mark-resolve", "mark-answer"]),
            sender in ".{0,20}", scope in ".{0,20}", key in prop::option::of(".{0,20}"),
            question in prop::option::of(".{0,20}"), recipient in ".{0,12}", body in ".{0,20}",
        ) {
            let sent = WireMessage { sender, scope, key, question_id: question, recipient, body, ..wire(tag) };
            if let Ok(imported) = rules().import(sent) {
                let draft = imported.draft;
                prop_assert!(draft.sender.as_str().ends_with("@box"));
                prop_assert!(draft.scope.as_str().starts_with("box_"));
                prop_assert!(draft.recipient.agent().is_none());
                prop_assert!(draft.question_id.is_none_or(|id| id.as_str().ends_with("@box")));
                if let Some(key) = draft.key.filter(|key| key.starts_with(EPISODE_KEY_PREFIX)) {
                    prop_assert!(key.ends_with("@box"));
                }
            }
        }
    }
}
