//! The status of the links, as the hub knows it: the only owner of the file that `ringer relay status` reads.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ringer_journal::{Home, HubLock, IdSource};
use ringer_platform::{Durability, replace_file};
use serde::{Deserialize, Serialize};

/// The name of the file in the home.
pub(crate) const STATUS_FILE: &str = "relay-status.json";
/// The largest file that is read.
const MAX_FILE: u64 = 1024 * 1024;

/// The state of a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    /// Its program runs, and the other machine has not sent anything.
    #[default]
    Connecting,
    /// Messages go both ways.
    Connected,
    /// It is retried after a pause.
    Failed,
}

/// The status of a link since the hub started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkStatus {
    /// The name of the machine here.
    pub name: String,
    /// The current state.
    pub state: LinkState,
    /// When the state began, in milliseconds since 1970.
    pub since_ms: i64,
    /// The id of the machine, once it was connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The version of its program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// For a team, the address of the connected server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Why it is not connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The time of the next retry, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again_ms: Option<i64>,
    /// Why the agents of a team are not listed, here or on its other machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents_refused: Option<String>,
    /// The number of received messages.
    pub messages: u64,
    /// The approximate number of messages that wait on the other machine, from its last report.
    pub waiting_there: u64,
    /// The number of refused messages.
    pub refused: u64,
    /// The reason for the last refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_why: Option<String>,
}

/// The status of all links.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RelayStatus {
    hub: u32,
    /// The links.
    pub links: Vec<LinkStatus>,
}

impl RelayStatus {
    /// Returns the status from the running hub; `None` if none runs.
    pub fn read(home: &Home) -> Option<Self> {
        let hub = HubLock::owner(home)?.pid;
        Self::read_last(home).filter(|status| status.hub == hub)
    }

    /// Returns the status that the last hub wrote.
    pub fn read_last(home: &Home) -> Option<Self> {
        let mut bytes = Vec::new();
        File::open(home.path().join(STATUS_FILE)).ok()?.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Returns the status of a link.
    pub fn link(&self, name: &str) -> Option<&LinkStatus> {
        self.links.iter().find(|link| link.name == name)
    }
}

/// Writes the file. All threads of links share it.
#[derive(Debug)]
pub(crate) struct StatusFile {
    home: Home,
    links: Mutex<BTreeMap<String, LinkStatus>>,
}

impl StatusFile {
    pub(crate) fn new(home: Home) -> Self {
        Self { home, links: Mutex::default() }
    }

    /// Keeps only the status of these configured links.
    pub(crate) fn keep(&self, names: &[&str]) {
        let mut links = self.lock();
        links.retain(|name, _| names.contains(&name.as_str()));
        self.write(&links);
    }

    /// Changes the status of a link.
    pub(crate) fn change(&self, name: &str, change: impl FnOnce(&mut LinkStatus)) {
        let mut links = self.lock();
        let status = links.entry(name.to_owned()).or_default();
        let before = status.state;
        name.clone_into(&mut status.name);
        change(status);
        if before != status.state || status.since_ms == 0 {
            status.since_ms = IdSource::now().unix_ms;
        }
        self.write(&links);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, LinkStatus>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the file. Errors are ignored, because only `ringer relay status` needs it. It is not synced, so it is fast enough
    /// to be written for each frame, which has up to 256 messages.
    fn write(&self, links: &BTreeMap<String, LinkStatus>) {
        let status = RelayStatus { hub: std::process::id(), links: links.values().cloned().collect() };
        if let Ok(bytes) = serde_json::to_vec(&status) {
            let _ = replace_file(&self.home.path().join(STATUS_FILE), &bytes, Durability::Unsynced);
        }
    }
}
