//! The worker's requests and events.

use ringer_core::MessageId;
use ringer_core::agent::PopupAnswer;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::popup::Popup;
use crate::error::Error;

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
