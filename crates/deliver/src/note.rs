//! The notification that every delivery channel sends.

use ringer_core::engine::Delivery;
use ringer_core::message::{ShownKind, SurfaceId, WorkspaceId};
use ringer_core::{MessageId, Sender};
use ringer_term::mask_secrets;
use serde::Serialize;

/// A notification for the delivery channels. Known secrets are masked, because a channel may leave this machine or be seen by
/// others. Otherwise the text is as it was sent: each channel sanitises it for its own output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The id of the notification.
    pub id: MessageId,
    /// The kind of notification.
    pub kind: ShownKind,
    /// The sender.
    pub sender: Sender,
    /// The heading; may be empty.
    pub title: String,
    /// The second heading; may be empty.
    pub subtitle: String,
    /// The text.
    pub body: String,
    /// The workspace in which it rings.
    pub workspace: WorkspaceId,
    /// The surface on which it rings, if known.
    pub surface: Option<SurfaceId>,
    /// The name of the icon that the sender chose. Only popups have icons.
    #[serde(skip)]
    pub icon: Option<String>,
}

impl From<&Delivery> for Note {
    fn from(delivery: &Delivery) -> Self {
        let masked = |text: &str| mask_secrets(text).into_owned();
        Self {
            id: delivery.id.clone(),
            kind: delivery.kind,
            sender: Sender::new(&delivery.sender).unwrap_or_else(|_| Sender::system()),
            title: masked(&delivery.title),
            subtitle: masked(&delivery.subtitle),
            body: masked(&delivery.body),
            workspace: delivery.place.workspace.clone(),
            surface: delivery.place.surface.clone(),
            icon: delivery.icon.clone(),
        }
    }
}

impl Note {
    /// A heading that is never empty: the title, else the second heading, else the sender.
    pub fn heading(&self) -> &str {
        [&self.title, &self.subtitle]
            .into_iter()
            .find(|text| !text.trim().is_empty())
            .map_or_else(|| self.sender.as_str(), String::as_str)
    }

    /// The second heading and the text, for channels that have only one heading.
    pub fn text_below_heading(&self) -> String {
        let subtitle = if self.heading() == self.subtitle { "" } else { self.subtitle.trim() };
        match (subtitle, self.body.trim()) {
            ("", body) => body.to_owned(),
            (subtitle, "") => subtitle.to_owned(),
            (subtitle, body) => format!("{subtitle}\n{body}"),
        }
    }
}

/// The name of the icon of a kind, as OSC 99 defines it.
pub fn kind_icon(kind: ShownKind) -> &'static str {
    match kind {
        ShownKind::Error => "error",
        ShownKind::Stuck => "warning",
        ShownKind::Permission | ShownKind::Question | ShownKind::Waiting => "question",
        ShownKind::Complete | ShownKind::Idle | ShownKind::Status => "info",
    }
}

#[cfg(test)]
pub(crate) fn example() -> Note {
    Note {
        id: MessageId::new(1_771_338_605_000, [7; 10]),
        kind: ShownKind::Question,
        sender: Sender::new("claude-1a2b").unwrap(),
        title: "Claude Code".to_owned(),
        subtitle: "ringer".to_owned(),
        body: "May I?".to_owned(),
        workspace: WorkspaceId::new("w1"),
        surface: Some(SurfaceId::new("s1")),
        icon: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringer_core::message::Place;
    use ringer_core::policy::DeliveryChannel;

    #[test]
    fn a_delivery_becomes_a_note() {
        let expected = example();
        let delivery = Delivery {
            id: expected.id.clone(),
            place: Place::surface(expected.workspace.clone(), SurfaceId::new("s1")),
            channel: DeliveryChannel::Webhook,
            title: expected.title.clone(),
            subtitle: expected.subtitle.clone(),
            body: expected.body.clone(),
            kind: expected.kind,
            sender: expected.sender.as_str().to_owned(),
            replaces: None,
            icon: None,
        };
        assert_eq!(Note::from(&delivery), expected);
        let title = "curl -H 'Authorization: Bearer 0123456789'".to_owned();
        let body = "DEPLOY_TOKEN=0123456789 make deploy".to_owned();
        let note = Note::from(&Delivery { title, body, ..delivery });
        assert_eq!(note.title, "curl -H 'Authorization: Bearer [masked]'");
        assert_eq!(note.body, "DEPLOY_TOKEN=[masked] make deploy");
    }

    #[test]
    fn there_is_always_a_heading_and_nothing_is_said_twice() {
        let check = |title: &str, subtitle: &str, body: &str, heading: &str, below: &str| {
            let note =
                Note { title: title.into(), subtitle: subtitle.into(), body: body.into(), ..example() };
            assert_eq!((note.heading(), note.text_below_heading().as_str()), (heading, below));
        };
        check("T", "S", "B", "T", "S\nB");
        check("T", "", "B", "T", "B");
        check(" ", "S", "B", "S", "B");
        check("", "", "B", "claude-1a2b", "B");
        check("T", "S", "", "T", "S");
    }
}
