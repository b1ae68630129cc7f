//! A notification as the store remembers it.

use serde::{Deserialize, Serialize};

use crate::address::Recipient;
use crate::id::{MessageId, QuestionId};
use crate::kind::{Kind, Tag};
use crate::message::Message;
use crate::surface::Place;
use crate::trail::Trail;

/// A notification that was decided to be worth remembering.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The id of the message it came from.
    pub id: MessageId,
    /// Where it rang.
    pub place: Place,
    /// The split of the surface, where the host has such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panel: Option<String>,
    /// A heading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A second heading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtitle: Option<String>,
    /// The text.
    pub body: String,
    /// Who sent it.
    pub sender: String,
    /// The repository it belongs to.
    #[serde(default)]
    pub scope: String,
    /// When, in milliseconds since 1970.
    pub unix_ms: i64,
    /// What it is about.
    pub kind: Kind,
    /// The question it asks, while that is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_question: Option<QuestionId>,
    /// Whether somebody has seen it.
    pub is_read: bool,
    /// Whether its pane is to flash.
    pub pane_flash: bool,
    /// What became of it.
    #[serde(default)]
    pub trail: Trail,
}

impl Record {
    /// What a message of the journal would be that nobody has taken yet: unread, in its repository's workspace. `None`
    /// for a mark, and for what is not for the person.
    pub fn of(message: &Message) -> Option<Self> {
        let draft = &message.draft;
        let Tag::Notice(kind) = draft.tag else { return None };
        if matches!(draft.recipient, Recipient::Lead | Recipient::Agent(_)) {
            return None;
        }
        let place = Place::own_workspace(draft.scope.as_str());
        let record = Self::new(message.id.clone(), place, kind, draft.body.clone(), message.unix_ms);
        Some(Self {
            title: draft.title.clone(),
            subtitle: draft.subtitle.clone(),
            sender: draft.sender.to_string(),
            scope: draft.scope.to_string(),
            open_question: draft.question_id.clone().filter(|_| kind == Kind::Question),
            ..record
        })
    }

    /// An unread notification with nothing but a text.
    pub fn new(id: MessageId, place: Place, kind: Kind, body: impl Into<String>, unix_ms: i64) -> Self {
        Self {
            id,
            place,
            panel: None,
            title: None,
            subtitle: None,
            body: body.into(),
            sender: "system".to_owned(),
            scope: String::new(),
            unix_ms,
            kind,
            open_question: None,
            is_read: false,
            pane_flash: true,
            trail: Trail::default(),
        }
    }
}
