//! What wakes the host's thread.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use ringer_core::message::SurfaceId;
use serde::Deserialize;

use crate::kitty::KittyAddress;
use crate::kitty_worker::KittyNews;

/// What the hub orders, as far as a window can do it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
pub(crate) enum Order {
    /// To bring a surface to the front.
    Focus { surface_id: SurfaceId },
    /// To show that something on a surface is unread, or no longer.
    Ring { surface_id: SurfaceId, lit: bool },
}

#[derive(Debug)]
pub(crate) enum Wakeup {
    /// The hub heard from a surface.
    Heard(SurfaceId),
    Order(Order),
    /// Titles are marked from now on, or not.
    TitleMarks(bool),
    /// The connection of this number to the hub has ended.
    HubGone(u64),
    Kitty(KittyAddress, KittyNews),
}

/// Wakes the thread. Its other end is polled together with displays and processes.
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

    /// Something came from the hub on the connection of this number; nothing if it has ended.
    pub(crate) fn hub(&self, connection: u64, order: Option<Order>) {
        self.wake(order.map_or(Wakeup::HubGone(connection), Wakeup::Order));
    }
}
