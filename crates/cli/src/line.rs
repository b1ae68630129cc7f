//! Formats a message as one line: JSON for agents and programs, text for people.

use ringer_core::message::{MessageOrigin, QuestionId};
use ringer_core::{Message, Recipient};
use ringer_hub::Clock;
use ringer_term::sanitise_line_before;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::json;

/// The line that `listen` and `log` print. Agents are taught the first five fields; the order is part of the interface.
#[derive(Serialize)]
struct Line<'a> {
    ts: String,
    from: &'a str,
    r#type: &'static str,
    msg: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    question_id: Option<&'a QuestionId>,
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subtitle: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    scope: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'a MessageOrigin>,
}

/// Formats a message as one line of JSON, without the newline.
pub(crate) fn json_line(message: &Message, clock: &Clock) -> Result<String, Failure> {
    let draft = &message.draft;
    json(&Line {
        ts: clock.stamp(message.unix_ms),
        from: draft.sender.as_str(),
        r#type: draft.tag.as_str(),
        msg: &draft.body,
        question_id: draft.question_id.as_ref(),
        id: message.id.as_str(),
        to: (draft.recipient != Recipient::Default).then(|| draft.recipient.to_string()),
        title: draft.title.as_deref(),
        subtitle: draft.subtitle.as_deref(),
        category: draft.category.as_deref(),
        key: draft.key.as_deref(),
        scope: draft.scope.as_str(),
        origin: Some(&draft.origin).filter(|origin| **origin != MessageOrigin::default()),
    })
}

/// Formats a message as one line for a person, safe to print.
pub(crate) fn text_line(message: &Message, clock: &Clock) -> String {
    let draft = &message.draft;
    let title = draft.title.as_ref().map(|title| format!("{title}: ")).unwrap_or_default();
    let question = draft.question_id.as_ref().map(|id| format!(" [{id}]")).unwrap_or_default();
    let line = format!(
        "{}  {:<8}  {}  {title}{}",
        clock.short(message.unix_ms),
        draft.tag.as_str(),
        draft.sender,
        draft.body
    );
    // `ringer answer` takes the id, so a long text is cut before it.
    sanitise_line_before(&line, &question)
}
