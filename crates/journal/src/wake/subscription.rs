//! Subscriptions: which doorbell is woken by which messages.

use ringer_core::message::{Mark, QuestionId, Tag};
use ringer_core::{Draft, Recipient, Scope};
use rusqlite::{Connection, Transaction, params};

use crate::db::tables::{optional_text, text};

/// What a process waits for. Stored as text in the table `waiter`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Topic {
    /// Messages for the lead of a scope, except its own.
    Lead {
        /// The waiting agent.
        own: Option<String>,
    },
    /// Every message of every scope.
    Everything,
    /// Every message, and every change of an agent's state.
    EverythingAndAgents,
    /// The answer to a question.
    Answer(QuestionId),
    /// The answer to an agent's prompt or the prompt's end, by the key of its notification.
    Prompt(String),
    /// Messages for an agent, by its id and name. It may be the lead of the scope.
    Inbox { agent: String, name: Option<String> },
}

impl Topic {
    fn name(&self) -> String {
        match self {
            Self::Lead { .. } => "lead".to_owned(),
            Self::Everything => "everything".to_owned(),
            Self::EverythingAndAgents => "everything and agents".to_owned(),
            Self::Answer(question) => format!("answer:{question}"),
            Self::Prompt(key) => format!("prompt:{key}"),
            Self::Inbox { agent, .. } => format!("inbox:{agent}"),
        }
    }

    fn own(&self) -> Option<&str> {
        match self {
            Self::Lead { own } | Self::Inbox { name: own, .. } => own.as_deref(),
            Self::Everything | Self::EverythingAndAgents | Self::Answer(_) | Self::Prompt(_) => None,
        }
    }

    fn named(name: &str, own: Option<String>) -> Option<Self> {
        match name {
            "lead" => Some(Self::Lead { own }),
            "everything" => Some(Self::Everything),
            "everything and agents" => Some(Self::EverythingAndAgents),
            _ => match name.split_once(':')? {
                ("prompt", key) => Some(Self::Prompt(key.to_owned())),
                ("inbox", agent) => Some(Self::Inbox { agent: agent.to_owned(), name: own }),
                ("answer", question) => QuestionId::parse(question).ok().map(Self::Answer),
                _ => None,
            },
        }
    }

    /// Returns true if a message wakes a process with this topic in a scope.
    fn wants(&self, scope: &str, draft: &Draft) -> bool {
        match self {
            Self::Everything | Self::EverythingAndAgents => true,
            Self::Lead { own } => {
                draft.scope.as_str() == scope
                    && matches!(draft.tag, Tag::Notice(_))
                    && matches!(draft.recipient, Recipient::Default | Recipient::Lead | Recipient::All)
                    && own.as_deref() != Some(draft.sender.as_str())
            }
            Self::Inbox { agent, name } => {
                let is_own = |text: &str| text == agent || name.as_deref() == Some(text);
                match &draft.recipient {
                    Recipient::Agent(to) => is_own(to.as_str()),
                    Recipient::Person => false,
                    _ => {
                        draft.scope.as_str() == scope
                            && matches!(draft.tag, Tag::Notice(_))
                            && !is_own(draft.sender.as_str())
                    }
                }
            }
            Self::Prompt(key) => {
                matches!(draft.tag, Tag::Mark(Mark::Decision | Mark::Resolve))
                    && draft.key.as_ref() == Some(key)
            }
            Self::Answer(question) => {
                draft.tag == Tag::Mark(Mark::Answer) && draft.question_id.as_ref() == Some(question)
            }
        }
    }
}

/// Registers a doorbell by its name in the home, which is valid whatever path leads to the home.
pub(crate) fn register(
    transaction: &Transaction<'_>,
    bell: &str,
    topic: &Topic,
    scope: &Scope,
) -> rusqlite::Result<()> {
    transaction
        .prepare("INSERT OR REPLACE INTO waiter (bell, topic, scope, own) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![bell, topic.name(), scope.as_str(), topic.own()])?;
    Ok(())
}

/// Deletes all registrations but these, including those with damaged names.
pub(crate) fn keep_only(transaction: &Transaction<'_>, bells: &[String]) -> rusqlite::Result<()> {
    // Plain data: it cannot fail to be written.
    let bells = serde_json::to_string(bells).unwrap_or_default();
    transaction
        .prepare("DELETE FROM waiter WHERE bell NOT IN (SELECT value FROM json_each(?1))")?
        .execute([bells])?;
    Ok(())
}

/// The doorbells to wake for a message.
///
/// Call it in the transaction that appends the message. A process that registers later reads the journal afterwards and sees the
/// message; a process that registered before is woken.
pub(crate) fn doorbells_to_wake(
    transaction: &Transaction<'_>,
    draft: &Draft,
) -> rusqlite::Result<Vec<String>> {
    let mut statement = transaction.prepare_cached("SELECT bell, topic, scope, own FROM waiter")?;
    let mut rows = statement.query([])?;
    let mut bells = Vec::new();
    while let Some(row) = rows.next()? {
        let (topic, scope) = (text(row, 1)?, text(row, 2)?);
        // An unknown topic is damage. A needless wake-up costs one read, a missing one delays a message.
        if Topic::named(&topic, optional_text(row, 3)?).is_none_or(|topic| topic.wants(&scope, draft)) {
            bells.push(text(row, 0)?);
        }
    }
    Ok(bells)
}

/// The doorbells registered for a topic.
pub(crate) fn registered_for(connection: &Connection, topic: &Topic) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT bell FROM waiter WHERE topic = ?1")?;
    statement.query_map([topic.name()], |row| text(row, 0))?.collect()
}

/// Every registered doorbell.
pub(crate) fn registered(transaction: &Transaction<'_>) -> rusqlite::Result<Vec<String>> {
    let mut statement = transaction.prepare("SELECT bell FROM waiter")?;
    statement.query_map([], |row| text(row, 0))?.collect()
}

#[cfg(test)]
mod tests {
    use ringer_core::message::Agent;
    use ringer_core::{Kind, Sender};

    use super::*;

    fn draft(sender: &str, recipient: Recipient) -> Draft {
        let mut draft = Draft::new(Scope::global(), Sender::new(sender).unwrap(), Kind::Status, "x").unwrap();
        draft.recipient = recipient;
        draft
    }

    #[test]
    fn a_lead_is_woken_by_what_it_reads_and_not_by_itself() {
        let lead = Topic::Lead { own: Some("lead-1".into()) };
        let wakes = |scope, sender, recipient| lead.wants(scope, &draft(sender, recipient));
        assert!(wakes("global", "worker", Recipient::Default));
        assert!(wakes("global", "worker", Recipient::Lead));
        assert!(wakes("global", "worker", Recipient::All));
        assert!(!wakes("global", "worker", Recipient::Person));
        assert!(!wakes("global", "worker", Recipient::Agent(Agent::new("other").unwrap())));
        assert!(!wakes("global", "lead-1", Recipient::Default), "an agent is not woken by its own message");
        assert!(!wakes("0a0a0a0a", "worker", Recipient::Default), "another repository");
        let mark = Draft::tagged(Scope::global(), Sender::system(), Tag::Mark(Mark::Read), "");
        assert!(!lead.wants("global", &mark) && Topic::Everything.wants("global", &mark));
    }

    #[test]
    fn an_idle_agent_is_woken_by_what_may_enter_its_inbox() {
        let idle = Topic::Inbox { agent: "opencode-1".into(), name: Some("painter".into()) };
        let wakes = |scope, sender, recipient| idle.wants(scope, &draft(sender, recipient));
        let to = |agent| Recipient::Agent(Agent::new(agent).unwrap());
        assert!(wakes("global", "worker", to("opencode-1")));
        assert!(wakes("0a0a0a0a", "worker", to("painter")), "from another repository, by its name");
        assert!(!wakes("global", "worker", to("other")));
        assert!(!wakes("global", "worker", Recipient::Person));
        assert!(wakes("global", "worker", Recipient::All));
        assert!(wakes("global", "worker", Recipient::Lead), "it may be the lead");
        assert!(!wakes("global", "painter", Recipient::Lead), "its own message");
        assert!(!wakes("0a0a0a0a", "worker", Recipient::All), "another repository");
        let mark = Draft::tagged(Scope::global(), Sender::system(), Tag::Mark(Mark::Read), "");
        assert!(!idle.wants("global", &mark));
    }

    #[test]
    fn an_answer_wakes_the_one_who_asked() {
        let (one, two) = (QuestionId::new(1, 1), QuestionId::new(2, 2));
        let mut answer = Draft::tagged(Scope::global(), Sender::system(), Tag::Mark(Mark::Answer), "yes");
        answer.question_id = Some(one.clone());
        assert!(Topic::Answer(one.clone()).wants("other", &answer));
        assert!(!Topic::Answer(two).wants("global", &answer));
        answer.tag = Tag::Notice(Kind::Question);
        assert!(!Topic::Answer(one).wants("global", &answer), "the question itself is no answer");
    }

    #[test]
    fn names_both_ways() {
        for topic in [
            Topic::Lead { own: None },
            Topic::Lead { own: Some("a".into()) },
            Topic::Everything,
            Topic::EverythingAndAgents,
            Topic::Answer(QuestionId::new(1, 1)),
            Topic::Prompt("episode:claude-1:2".into()),
            Topic::Inbox { agent: "opencode-1".into(), name: None },
            Topic::Inbox { agent: "opencode-1".into(), name: Some("painter".into()) },
        ] {
            let own = topic.own().map(str::to_owned);
            assert_eq!(Topic::named(&topic.name(), own), Some(topic));
        }
        assert_eq!(Topic::named("dance", None), None);
    }
}
