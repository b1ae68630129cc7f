//! A notification as it is stored.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::attention::Trail;
use crate::message::{Kind, Message, MessageId, Place, QuestionId, Recipient, Tag};

/// A recorded notification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The id of the message it came from.
    pub id: MessageId,
    /// Where it rings.
    pub place: Place,
    /// The split of the surface, for hosts that have splits.
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
    pub sender: Arc<str>,
    /// The repository it belongs to.
    #[serde(default)]
    pub scope: Arc<str>,
    /// When, in milliseconds since 1970.
    pub unix_ms: i64,
    /// What it is about.
    pub kind: Kind,
    /// What caused it, by the names that clients use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Arc<str>>,
    /// The key of its message. A newer message of the same sender and key replaces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Arc<str>>,
    /// The question it asks, while that is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_question: Option<QuestionId>,
    /// Whether it was read.
    pub is_read: bool,
    /// Whether its pane is to flash.
    pub pane_flash: bool,
    /// What happened to it.
    #[serde(default)]
    pub trail: Trail,
}

impl Record {
    /// The record of a message that no hub has processed: unread, in its repository's workspace. `None` for a mark, and for
    /// a message that is not for the person.
    pub fn of(message: &Message) -> Option<Self> {
        let draft = &message.draft;
        let Tag::Notice(kind) = draft.tag else { return None };
        if matches!(draft.recipient, Recipient::Lead | Recipient::Agent(_)) {
            return None;
        }
        let place = Place::own_workspace(draft.scope.as_str());
        let record = Self::from_message(message, place, kind, draft.body.clone());
        Some(Self { title: draft.title.clone(), subtitle: draft.subtitle.clone(), ..record })
    }

    /// An unread notification of a message at a place, with this text and no headings.
    pub(crate) fn from_message(message: &Message, place: Place, kind: Kind, body: String) -> Self {
        let draft = &message.draft;
        let record = Self::new(message.id.clone(), place, kind, body, message.unix_ms);
        Self {
            sender: draft.sender.as_str().into(),
            scope: draft.scope.as_str().into(),
            category: draft.category.as_deref().map(Arc::from),
            key: draft.key.as_deref().map(Arc::from),
            open_question: draft.question_id.clone().filter(|_| kind == Kind::Question),
            ..record
        }
    }

    /// An unread notification with only a text.
    pub fn new(id: MessageId, place: Place, kind: Kind, body: impl Into<String>, unix_ms: i64) -> Self {
        Self {
            id,
            place,
            panel: None,
            title: None,
            subtitle: None,
            body: body.into(),
            sender: "system".into(),
            scope: "".into(),
            unix_ms,
            kind,
            category: None,
            key: None,
            open_question: None,
            is_read: false,
            pane_flash: true,
            trail: Trail::default(),
        }
    }
}
