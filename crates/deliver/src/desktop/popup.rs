//! Popups, and the requests and events of the worker that shows them.

use ringer_core::MessageId;
use ringer_core::agent::{PopupAnswer, PromptContent};
use ringer_core::message::ShownKind;
use ringer_term::sanitise_line;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::error::Error;
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

/// How many popups are remembered. The oldest is forgotten first: Ringer can no longer replace or withdraw it.
pub const MAX_POPUPS: usize = 1024;

/// Where a popup is shown: the server's number for it, and which server that is. A server that was restarted counts
/// from the beginning, so a number alone could name another program's popup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PopupHandle {
    /// The server's number. macOS gives none; there Ringer counts.
    pub number: u32,
    /// The bus and the name of the server on it, or macOS. Opaque.
    pub server: String,
}

/// A popup that is shown, as the caller has to keep it for the next hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisplayedPopup {
    /// Where.
    pub shown: PopupHandle,
    /// What it says and which answers it offers, if it offers any. Opaque.
    pub offer: Option<String>,
}

/// A popup that an earlier hub has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousPopup {
    /// What it was shown for; see [`Popup::key`].
    pub key: String,
    /// The notification.
    pub id: MessageId,
    /// What [`super::Desktop::show`] gave back for it.
    pub shown: PopupHandle,
    /// The same; see [`DisplayedPopup::offer`].
    pub offer: Option<String>,
}

/// What the person did to a popup. One that merely ran out of time is no event: the person has not read it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DesktopEvent {
    /// Closed it by hand.
    Dismissed(MessageId),
    /// Wants to be taken to it. The token lets a window come to the front under Wayland.
    Show(MessageId, Option<String>),
    /// Pressed the button of an answer that the popup offered.
    Answer(MessageId, PopupAnswer),
}

/// What the worker is asked for.
#[derive(Debug)]
pub(super) enum DesktopRequest {
    Show {
        popup: Popup,
        by: Instant,
        /// Closed when the caller has given up; then the popup is not wanted any more.
        answer: oneshot::Sender<Result<DisplayedPopup, Error>>,
    },
    #[cfg_attr(target_os = "macos", expect(dead_code, reason = "nothing can be taken back there"))]
    Withdraw {
        id: MessageId,
        /// Answered when it is gone. The caller may have dropped the receiver.
        answer: oneshot::Sender<Result<(), Error>>,
    },
    #[cfg_attr(target_os = "macos", expect(dead_code, reason = "there is no bus"))]
    UseBus {
        address: String,
        answer: oneshot::Sender<Result<(), Error>>,
    },
    Describe {
        answer: oneshot::Sender<DesktopStatus>,
    },
}

/// Where popups are shown at present.
#[derive(Debug)]
pub struct DesktopStatus {
    /// The address of the session bus, if one is known.
    pub bus: Option<String>,
    /// Who would show a popup there, in words; or why none can be shown.
    pub server: Result<String, Error>,
}

#[cfg(test)]
mod tests {
    use crate::note::example;

    use super::*;

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
