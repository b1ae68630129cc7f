//! A popup: what is to be shown, and what for.

use ringer_core::MessageId;
use ringer_core::agent::PromptContent;
use ringer_core::message::ShownKind;
use ringer_term::sanitise_line;

use crate::note::Note;

/// A popup to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Popup {
    /// The notification.
    pub id: MessageId,
    /// What it is shown for, usually a surface: there is one popup per key, and a newer one takes its place.
    pub key: String,
    /// A heading.
    pub title: String,
    /// A second heading; may be empty.
    pub subtitle: String,
    /// The text.
    pub body: String,
    /// What it is about.
    pub kind: ShownKind,
    /// What an agent asks, if the popup can answer that.
    pub prompt: Option<Box<PromptContent>>,
}

impl Popup {
    /// The popup of a note. Its key is the surface; what has none stands for itself, and so does what an agent waits for: two
    /// of these may be open on one surface.
    pub fn of(note: &Note) -> Self {
        let title = note.heading().to_owned();
        let subtitle = if note.subtitle == title { String::new() } else { note.subtitle.clone() };
        let surface = note.surface.as_ref().filter(|_| !note.kind.is_prompt());
        let key = surface.map_or(note.id.as_str(), |surface| surface.as_str());
        Self {
            id: note.id.clone(),
            key: key.to_owned(),
            title,
            subtitle,
            body: note.body.clone(),
            kind: note.kind,
            prompt: None,
        }
    }

    /// The heading as it is shown: one safe line, never empty.
    pub(super) fn heading(&self) -> String {
        let heading = sanitise_line(&self.title);
        if heading.trim().is_empty() { "Ringer".to_owned() } else { heading }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::example;

    #[test]
    fn the_key_is_the_surface() {
        let note = Note { kind: ShownKind::Complete, ..example() };
        assert_eq!(Popup::of(&note).key, "s1");
        assert_eq!(Popup::of(&Note { surface: None, ..note.clone() }).key, note.id.as_str());
        assert_eq!(Popup::of(&Note { kind: ShownKind::Question, ..note.clone() }).key, note.id.as_str());
        let untitled = Popup::of(&Note { title: String::new(), ..note });
        assert_eq!((untitled.title.as_str(), untitled.subtitle.as_str()), ("ringer", ""));
    }
}
