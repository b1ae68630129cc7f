//! The connection of a host to the hub: requests go out, orders come in.

use ringer_core::message::{ShownKind, SurfaceId};
use ringer_ipc::{HubClient, HubClientError, HubWriter};
use ringer_journal::Home;
use serde::Deserialize;
use serde_json::{Value, json};

/// What the hub orders, as far as tmux can do it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
pub(crate) enum Order {
    Ring {
        surface_id: SurfaceId,
        lit: bool,
        #[serde(default)]
        unread: usize,
        #[serde(default)]
        kind: Option<ShownKind>,
    },
}

/// The way to the hub.
#[derive(Debug)]
pub(crate) struct Connection {
    writer: HubWriter,
}

impl Connection {
    /// Attaches a host. `order` is called for what the hub orders, on another thread; with `None` when the connection has
    /// ended.
    pub(crate) fn attach(
        home: &Home,
        order: impl Fn(Option<Order>) + Send + 'static,
    ) -> Result<Self, HubClientError> {
        let mut client = HubClient::connect(home)?;
        client.call("host.attach", &json!({ "name": "tmux", "version": 1 }))?;
        let (mut reader, writer) = client.split()?;
        std::thread::spawn(move || {
            // Answers and orders for other kinds of hosts are no orders.
            while let Ok(Some(line)) = reader.next_line() {
                if let Ok(read) = serde_json::from_str(&line) {
                    order(Some(read));
                }
            }
            order(None);
        });
        Ok(Self { writer })
    }

    pub(crate) fn send(&mut self, method: &str, params: &Value) -> Result<(), HubClientError> {
        self.writer.send(method, params)
    }
}
