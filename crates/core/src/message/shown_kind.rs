//! Kinds as people read and name them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::message::{IDLE_PROMPT, InvalidName, Kind, PERMISSION_PROMPT};

/// The kind of a notification, in the words for people: `waiting` in the journal is a permission, an idle agent, or anything
/// else that waits for input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShownKind {
    /// An agent finished what it was asked to do.
    Complete,
    /// An agent waits for input, and cannot go on without it.
    Waiting,
    /// An agent asks for permission.
    Permission,
    /// An agent has been waiting for its next task for a while.
    Idle,
    /// An agent asks something.
    Question,
    /// An agent makes no progress.
    Stuck,
    /// Something failed.
    Error,
    /// Anything else worth knowing.
    Status,
}

/// How soon a person should look at something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Urgency {
    /// Whenever there is time.
    Low,
    /// When the current work is done.
    Normal,
    /// Now: something does not go on by itself.
    High,
}

const KINDS: [(&str, ShownKind); 8] = [
    ("complete", ShownKind::Complete),
    ("waiting", ShownKind::Waiting),
    ("permission", ShownKind::Permission),
    ("idle", ShownKind::Idle),
    ("question", ShownKind::Question),
    ("stuck", ShownKind::Stuck),
    ("error", ShownKind::Error),
    ("status", ShownKind::Status),
];

impl ShownKind {
    /// Returns true if notifications of this kind escalate.
    pub fn escalates(self) -> bool {
        matches!(self, Self::Question | Self::Permission | Self::Stuck | Self::Error)
    }

    /// Returns the shown kind of a message.
    ///
    /// ```
    /// use ringer_core::Kind;
    /// use ringer_core::message::ShownKind;
    ///
    /// assert_eq!(ShownKind::of(Kind::Waiting, Some("permission_prompt")), ShownKind::Permission);
    /// assert_eq!(ShownKind::of(Kind::Waiting, Some("auth_prompt")), ShownKind::Waiting);
    /// ```
    pub fn of(kind: Kind, category: Option<&str>) -> Self {
        match (kind, category) {
            (Kind::Waiting, Some(PERMISSION_PROMPT)) => Self::Permission,
            (Kind::Waiting, Some(IDLE_PROMPT)) => Self::Idle,
            (Kind::Waiting, _) => Self::Waiting,
            (Kind::Complete, _) => Self::Complete,
            (Kind::Question, _) => Self::Question,
            (Kind::Stuck, _) => Self::Stuck,
            (Kind::Error, _) => Self::Error,
            (Kind::Status, _) => Self::Status,
        }
    }

    /// Every kind, in the order in which documents list them.
    pub fn all() -> impl Iterator<Item = Self> {
        KINDS.iter().map(|(_, kind)| *kind)
    }

    /// Returns the kind and category in the journal that are shown as this kind.
    pub fn stored(self) -> (Kind, Option<&'static str>) {
        match self {
            Self::Complete => (Kind::Complete, None),
            Self::Waiting => (Kind::Waiting, None),
            Self::Permission => (Kind::Waiting, Some(PERMISSION_PROMPT)),
            Self::Idle => (Kind::Waiting, Some(IDLE_PROMPT)),
            Self::Question => (Kind::Question, None),
            Self::Stuck => (Kind::Stuck, None),
            Self::Error => (Kind::Error, None),
            Self::Status => (Kind::Status, None),
        }
    }

    /// Returns how soon a person should look at it.
    pub fn urgency(self) -> Urgency {
        match self {
            Self::Question | Self::Permission | Self::Waiting | Self::Stuck | Self::Error => Urgency::High,
            Self::Complete => Urgency::Normal,
            Self::Idle | Self::Status => Urgency::Low,
        }
    }

    /// Returns true if an agent cannot continue without a person: a permission, an answer, a login, an instruction.
    pub fn is_prompt(self) -> bool {
        matches!(self, Self::Question | Self::Permission | Self::Waiting)
    }

    /// Returns true if its popup stays until it is answered.
    pub fn stays(self) -> bool {
        matches!(self, Self::Question | Self::Permission)
    }

    /// Returns the urgency of its popup. Desktops show a popup of high urgency until it is closed, so only popups that stay
    /// have it.
    pub fn popup_urgency(self) -> Urgency {
        if self.stays() { Urgency::High } else { self.urgency().min(Urgency::Normal) }
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        KINDS.iter().find(|(_, own)| *own == self).map_or("", |(word, _)| word)
    }
}

impl fmt::Display for ShownKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for ShownKind {
    type Err = InvalidName;

    fn from_str(word: &str) -> Result<Self, InvalidName> {
        let found = KINDS.iter().find(|(own, _)| *own == word).map(|(_, kind)| *kind);
        found.ok_or_else(|| {
            let known: Vec<&str> = KINDS.iter().map(|(word, _)| *word).collect();
            InvalidName::Unknown { what: "kind", word: word.to_owned(), known: known.join(", ") }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_stored_kinds_both_ways() {
        for kind in ShownKind::all() {
            assert_eq!(kind.as_str().parse(), Ok(kind));
            let (stored, category) = kind.stored();
            assert_eq!(ShownKind::of(stored, category), kind);
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        // The words for kinds of messages are valid, too.
        for kind in Kind::all() {
            assert_eq!(kind.as_str().parse(), Ok(ShownKind::of(kind, None)));
        }
    }

    #[test]
    fn only_waiting_is_split_by_its_category() {
        for kind in Kind::all().filter(|kind| *kind != Kind::Waiting) {
            assert_eq!(ShownKind::of(kind, Some(PERMISSION_PROMPT)), ShownKind::of(kind, None));
        }
    }

    #[test]
    fn what_does_not_go_on_by_itself_is_urgent() {
        let urgent: Vec<&str> =
            ShownKind::all().filter(|kind| kind.urgency() == Urgency::High).map(ShownKind::as_str).collect();
        assert_eq!(urgent, ["waiting", "permission", "question", "stuck", "error"]);
        assert_eq!(ShownKind::Idle.urgency(), Urgency::Low);
    }

    #[test]
    fn only_a_popup_that_stays_has_high_urgency() {
        let popups = |urgency: Urgency| -> Vec<&str> {
            ShownKind::all().filter(|kind| kind.popup_urgency() == urgency).map(ShownKind::as_str).collect()
        };
        assert_eq!(popups(Urgency::High), ["permission", "question"]);
        assert_eq!(popups(Urgency::Normal), ["complete", "waiting", "stuck", "error"]);
        assert_eq!(popups(Urgency::Low), ["idle", "status"]);
    }
}
