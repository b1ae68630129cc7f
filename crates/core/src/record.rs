//! A notification as the store remembers it.

use serde::{Deserialize, Serialize};

use crate::id::{MessageId, QuestionId};
use crate::kind::Kind;
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
            unix_ms,
            kind,
            open_question: None,
            is_read: false,
            pane_flash: true,
            trail: Trail::default(),
        }
    }
}
