//! Messages to the thread of the host.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use ringer_core::message::SurfaceId;
use serde::Deserialize;

use crate::kitty::KittyAddress;
use crate::kitty_worker::KittyEvent;

/// A command from the hub that a window can execute.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
pub(crate) enum HostCommand {
    /// Bring a surface to the front.
    Focus { surface_id: SurfaceId },
    /// Show whether a surface has unread notifications.
    Ring { surface_id: SurfaceId, lit: bool },
}

#[derive(Debug)]
pub(crate) enum Wakeup {
    /// A program on the surface has contacted the hub.
    SurfaceActive(SurfaceId),
    Command(HostCommand),
    /// Title marks were turned on or off.
    TitleMarks(bool),
    Kitty(KittyAddress, KittyEvent),
}

/// Sends messages to the thread, which polls the other end of the socket together with displays and processes.
#[derive(Debug, Clone)]
pub(crate) struct Waker {
    sender: Sender<Wakeup>,
    wakes: Arc<UnixStream>,
}

impl Waker {
    pub(crate) fn new(sender: Sender<Wakeup>, wakes: UnixStream) -> Self {
        Self { sender, wakes: Arc::new(wakes) }
    }

    pub(crate) fn wake(&self, wakeup: Wakeup) {
        // The thread ends only with the process.
        let _ = self.sender.send(wakeup);
        ringer_platform::wake(&self.wakes);
    }
}
