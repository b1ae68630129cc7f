//! The connection of a host to the hub: requests go out, orders come in. For hosts that run as threads of the hub's process.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use ringer_core::message::SurfaceId;
use ringer_journal::Home;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::client::{HubClient, HubClientError, HubWriter};

/// How long a hub may take until it can be connected to, and how often that is tried.
const HUB_STARTS: (u32, Duration) = (100, Duration::from_millis(50));
/// Notifications that are looked through for surfaces when a hub begins.
const MAX_LISTED: usize = 1000;

/// Waits until the hub takes connections: its threads are there before its socket is.
pub fn connect_to_starting(home: &Home) -> Option<HubClient> {
    let (tries, pause) = HUB_STARTS;
    (0..tries).find_map(|_| {
        let client = HubClient::connect(home).ok();
        if client.is_none() {
            thread::sleep(pause);
        }
        client
    })
}

/// The surfaces from which the newest notifications came, as soon as the hub takes connections.
pub fn listed_surfaces(home: &Home) -> BTreeSet<SurfaceId> {
    let list = connect_to_starting(home)
        .map(|mut hub| hub.call("notification.list", &json!({ "limit": MAX_LISTED })));
    let rows = list.and_then(Result::ok).and_then(|list| list.as_array().cloned()).unwrap_or_default();
    rows.iter().filter_map(|row| row["surface"].as_str().map(SurfaceId::new)).collect()
}

/// The way to the hub.
#[derive(Debug)]
pub struct HostConnection {
    writer: HubWriter,
}

impl HostConnection {
    /// Attaches a host. `order` is called for what the hub orders, as far as it can be read as `Order`, on another thread; with
    /// `None` when the connection has ended.
    pub fn attach<Order: DeserializeOwned>(
        home: &Home,
        host: &Value,
        order: impl Fn(Option<Order>) + Send + 'static,
    ) -> Result<Self, HubClientError> {
        let mut client = HubClient::connect(home)?;
        client.call("host.attach", host)?;
        let (mut reader, writer) = client.split()?;
        thread::spawn(move || {
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

    /// Tells the hub something.
    pub fn send(&mut self, method: &str, params: &Value) -> Result<(), HubClientError> {
        self.writer.send(method, params)
    }
}
