//! The kinds of messages, and how people read and name them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::message::InvalidName;

/// The kinds of notification.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An agent finished what it was asked to do.
    Complete,
    /// An agent waits for input.
    Waiting,
    /// An agent asks something.
    Question,
    /// An agent makes no progress.
    Stuck,
    /// Something failed.
    Error,
    /// Anything else worth knowing.
    #[default]
    Status,
}

const KINDS: [(&str, Kind); 6] = [
    ("complete", Kind::Complete),
    ("waiting", Kind::Waiting),
    ("question", Kind::Question),
    ("stuck", Kind::Stuck),
    ("error", Kind::Error),
    ("status", Kind::Status),
];

impl Kind {
    /// Every kind, in the order in which documents list them.
    pub fn all() -> impl Iterator<Item = Self> {
        KINDS.iter().map(|(_, kind)| *kind)
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        name_of(&KINDS, self)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = InvalidName;

    fn from_str(word: &str) -> Result<Self, InvalidName> {
        value_of(&KINDS, word).ok_or_else(|| unknown(&KINDS, word))
    }
}

/// The category of a notification that asks for a permission.
pub const PERMISSION_PROMPT: &str = "permission_prompt";
/// The category of a notification that an agent was refused a permission because no person attends its run.
pub const PERMISSION_REFUSED: &str = "permission_refused";

/// Category and key of the notification that something tried to do what only the person may do.
pub const REFUSED: &str = "agent_refused";
/// The category of the notification that something acted for the person without proof that it was the person, for example in a
/// terminal whose other end Ringer cannot see.
pub const DONE_IN_TERMINAL: &str = "done_in_terminal";

/// Returns true for the category of a notification that somebody acted for the person, or tried to. Mutes do not silence it,
/// and no command hides it unless it names the notification: whoever acted may have muted and cleared as well.
pub fn is_about_impostors(category: Option<&str>) -> bool {
    matches!(category, Some(REFUSED | DONE_IN_TERMINAL))
}

/// The category of a notification that an agent has been waiting for its user.
pub const IDLE_PROMPT: &str = "idle_prompt";

/// The category of a [`Mark::Answer`] that closes a question without an answer.
pub const CLOSED_UNANSWERED: &str = "closed_unanswered";

/// A change to earlier messages. A mark is a message that consumers apply and never show, so reading, clearing and
/// answering work while no consumer runs, and reach other machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mark {
    /// Seen.
    Read,
    /// To be seen again.
    Unread,
    /// Taken off the list.
    Clear,
    /// A question was answered, or closed without an answer: [`CLOSED_UNANSWERED`].
    Answer,
    /// The cause of a notification has ended.
    Resolve,
    /// The last command is undone.
    Undo,
    /// An agent's prompt was answered from elsewhere. Its text is the answer, its category how the answer was given.
    Decision,
    /// Snoozed until a moment: its text, in milliseconds since 1970.
    Snooze,
    /// A mute begins. Its text is the mute.
    Mute,
    /// A mute ends, or all of them.
    Unmute,
}

const MARKS: [(&str, Mark); 10] = [
    ("mark-read", Mark::Read),
    ("mark-unread", Mark::Unread),
    ("mark-clear", Mark::Clear),
    ("mark-answer", Mark::Answer),
    ("mark-resolve", Mark::Resolve),
    ("mark-undo", Mark::Undo),
    ("mark-decision", Mark::Decision),
    ("mark-snooze", Mark::Snooze),
    ("mark-mute", Mark::Mute),
    ("mark-unmute", Mark::Unmute),
];

/// How far a mark reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkReach {
    /// An agent's mark on its own messages. It goes to every linked machine.
    Everywhere,
    /// The person's mark on notifications. One that names a single notification goes to the machines with which the person shares
    /// marks.
    PersonsMachines,
    /// It stays on this machine: it is about what this machine does.
    ThisMachine,
}

impl Mark {
    /// How far the mark reaches.
    pub fn reach(self) -> MarkReach {
        match self {
            Self::Answer | Self::Resolve | Self::Decision => MarkReach::Everywhere,
            Self::Read | Self::Unread | Self::Clear | Self::Snooze => MarkReach::PersonsMachines,
            Self::Undo | Self::Mute | Self::Unmute => MarkReach::ThisMachine,
        }
    }

    /// The words used in the journal for all marks of a reach.
    pub fn words(reach: MarkReach) -> impl Iterator<Item = &'static str> {
        MARKS.iter().filter(move |(_, mark)| mark.reach() == reach).map(|(word, _)| *word)
    }
}

/// The type of a message in the journal: a notification of some kind, or a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
pub enum Tag {
    /// To be shown.
    Notice(Kind),
    /// To be applied.
    Mark(Mark),
}

impl Tag {
    /// The word used in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Notice(kind) => kind.as_str(),
            Self::Mark(mark) => name_of(&MARKS, mark),
        }
    }

    /// Parses the word used in the journal.
    pub fn named(word: &str) -> Option<Self> {
        value_of(&KINDS, word).map(Self::Notice).or_else(|| value_of(&MARKS, word).map(Self::Mark))
    }
}

impl From<Tag> for &'static str {
    fn from(tag: Tag) -> Self {
        tag.as_str()
    }
}

impl TryFrom<String> for Tag {
    type Error = InvalidName;

    fn try_from(word: String) -> Result<Self, InvalidName> {
        let known = || KINDS.iter().map(|(name, _)| *name).chain(MARKS.iter().map(|(name, _)| *name));
        Self::named(&word).ok_or_else(|| InvalidName::Unknown {
            what: "tag",
            known: known().collect::<Vec<_>>().join(", "),
            word,
        })
    }
}

fn name_of<T: Copy + PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    names.iter().find(|(_, own)| *own == value).map_or("", |(name, _)| name)
}

fn value_of<T: Copy>(names: &[(&str, T)], name: &str) -> Option<T> {
    names.iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
}

fn unknown<T>(kinds: &[(&str, T)], word: &str) -> InvalidName {
    let known: Vec<&str> = kinds.iter().map(|(name, _)| *name).collect();
    InvalidName::Unknown { what: "kind", word: word.to_owned(), known: known.join(", ") }
}

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

const SHOWN_KINDS: [(&str, ShownKind); 8] = [
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
        SHOWN_KINDS.iter().map(|(_, kind)| *kind)
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
        name_of(&SHOWN_KINDS, self)
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
        value_of(&SHOWN_KINDS, word).ok_or_else(|| unknown(&SHOWN_KINDS, word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_marks_are_read_back_from_their_words() {
        for kind in Kind::all() {
            assert_eq!(kind.as_str().parse(), Ok(kind));
            assert_eq!(Tag::named(kind.as_str()), Some(Tag::Notice(kind)));
        }
        for (word, mark) in MARKS {
            assert_eq!(Tag::named(word), Some(Tag::Mark(mark)));
            assert_eq!(Tag::Mark(mark).as_str(), word);
            assert!(word.parse::<Kind>().is_err(), "a mark cannot be sent as a notification");
        }
        assert_eq!(Tag::named("dance"), None);
    }

    #[test]
    fn the_error_for_an_unknown_kind_lists_the_known_ones() {
        let error = "done".parse::<Kind>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown kind \"done\" (known: complete, waiting, question, stuck, error, status)"
        );
    }

    #[test]
    fn shown_kinds_are_read_back_from_their_words_and_stored_kinds() {
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
