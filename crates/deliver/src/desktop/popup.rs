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
    /// The id of the notification.
    pub id: MessageId,
    /// Usually the surface. There is one popup per key: a newer one replaces it.
    pub key: String,
    /// The heading.
    pub title: String,
    /// The second heading; may be empty.
    pub subtitle: String,
    /// The text.
    pub body: String,
    /// The kind of notification.
    pub kind: ShownKind,
    /// The name of the icon that the sender chose.
    pub icon: Option<String>,
    /// The prompt of an agent, if the popup can answer it.
    pub prompt: Option<Box<PromptContent>>,
}

impl Popup {
    /// The popup for a note. Its key is the surface. A prompt, or a note without a surface, is its own key: two prompts may be
    /// open on one surface.
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
            icon: note.icon.clone(),
            prompt: None,
        }
    }

    /// The heading for display: one sanitised line, never empty.
    pub(super) fn heading(&self) -> String {
        let heading = sanitise_line(&self.title);
        if heading.trim().is_empty() { "Ringer".to_owned() } else { heading }
    }
}

/// How many popups are remembered. The oldest is forgotten first, and can no longer be replaced or withdrawn.
pub const MAX_POPUPS: usize = 1024;

/// Identifies a popup: the number that the server gave it, and the server. A restarted server counts from the beginning, so a
/// number alone could name another program's popup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PopupHandle {
    /// The number from the server. macOS gives none; there Ringer counts.
    pub number: u32,
    /// The bus and the unique name of the server on it, or macOS. Opaque.
    pub server: String,
}

/// A popup on the screen. The caller stores it for the next hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisplayedPopup {
    /// Its number and server.
    pub handle: PopupHandle,
    /// Its content and the answers that it offers, if any. Opaque.
    pub offer: Option<String>,
}

/// A popup of an earlier hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousPopup {
    /// See [`Popup::key`].
    pub key: String,
    /// The id of the notification.
    pub id: MessageId,
    /// See [`DisplayedPopup::handle`].
    pub handle: PopupHandle,
    /// See [`DisplayedPopup::offer`].
    pub offer: Option<String>,
}

/// An action of the person on a popup. A popup that expired is no event: the person has not read it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DesktopEvent {
    /// The person closed it.
    Dismissed(MessageId),
    /// The person wants to go to its surface. The activation token lets a window come to the front under Wayland.
    Show(MessageId, Option<String>),
    /// The person pressed the button of an answer.
    Answer(MessageId, PopupAnswer),
}

/// A request to the worker.
#[derive(Debug)]
pub(super) enum DesktopRequest {
    Show {
        popup: Popup,
        by: Instant,
        /// Closed if the caller no longer wants the popup.
        answer: oneshot::Sender<Result<DisplayedPopup, Error>>,
    },
    #[cfg_attr(target_os = "macos", expect(dead_code, reason = "nothing can be taken back there"))]
    Withdraw {
        id: MessageId,
        /// Answered when the popup is gone. The caller may have dropped the receiver.
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

/// The notification server in use.
#[derive(Debug)]
pub struct DesktopStatus {
    /// The address of the session bus, if one is known.
    pub bus: Option<String>,
    /// A description of the server, or why no popup can be shown.
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
