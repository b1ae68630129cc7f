//! The status of the servers: the only writer of the file that `ringer mcp status` reads.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ringer_config::ChannelEntry;
use ringer_core::conversation::{GateRefusal, WaitingSender};
use ringer_journal::{Home, Uptime};
use ringer_platform::{Durability, replace_file};

use super::files::{ChannelState, ChannelStatus, ChannelsStatus, status_path};

/// The shortest interval between two writes of changed counters.
const MIN_WRITE_INTERVAL: Duration = Duration::from_secs(1);

/// A counter of [`ChannelStatus`].
#[derive(Debug, Clone, Copy)]
pub(super) enum ChannelCounter {
    Message,
    Refused,
    OverRate,
    Invalid,
    /// An answer to a permission request.
    Answer,
    /// An answer that came too late.
    LateAnswer,
}

#[derive(Debug)]
pub(super) struct StatusFile {
    home: Home,
    servers: BTreeMap<String, ChannelStatus>,
    waiting: Vec<WaitingSender>,
    /// When the file was last written.
    written: Option<Instant>,
    is_stale: bool,
}

impl StatusFile {
    pub(super) fn new(home: Home) -> Self {
        Self { home, servers: BTreeMap::new(), waiting: Vec::new(), written: None, is_stale: false }
    }

    /// Drops the status of servers that are no longer in the settings.
    pub(super) fn keep(&mut self, servers: &[ChannelEntry]) {
        let before = self.servers.len();
        self.servers.retain(|name, _| servers.iter().any(|server| server.name == *name));
        if self.servers.len() != before {
            self.write();
        }
    }

    pub(super) fn starting(&mut self, server: &ChannelEntry, pid: u32) {
        let status = self.status(server);
        status.starts += 1;
        set(status, ChannelState::Starting, None, None);
        status.pid = Some(pid);
        self.write();
    }

    pub(super) fn connected(&mut self, server: &ChannelEntry) {
        let status = self.status(server);
        status.state = ChannelState::Connected;
        self.write();
    }

    pub(super) fn refused(&mut self, server: &ChannelEntry, refusal: &GateRefusal) {
        let status = self.status(server);
        let before = status.clone();
        set(status, ChannelState::Refused, Some(refusal.why.clone()), Some(refusal.remedy.clone()));
        status.gate = Some(refusal.gate.number());
        if *status != before {
            self.write();
        }
    }

    pub(super) fn failed(&mut self, server: &ChannelEntry, why: String, again_in: Duration) {
        let remedy = format!("it is started again in {} s", again_in.as_secs());
        set(self.status(server), ChannelState::Failed, Some(why), Some(remedy));
        self.write();
    }

    /// Increments a counter. The next [`Self::write_if_due`] writes it.
    pub(super) fn count(&mut self, server: &ChannelEntry, what: ChannelCounter) {
        let status = self.status(server);
        let count = match what {
            ChannelCounter::Message => &mut status.messages,
            ChannelCounter::Refused => &mut status.refused,
            ChannelCounter::OverRate => &mut status.over_rate,
            ChannelCounter::Invalid => &mut status.invalid,
            ChannelCounter::Answer => &mut status.answers,
            ChannelCounter::LateAnswer => &mut status.late_answers,
        };
        *count = count.saturating_add(1);
        self.is_stale = true;
    }

    /// Sets the senders that are waiting to be paired.
    pub(super) fn set_waiting(&mut self, waiting: Vec<WaitingSender>) {
        if self.waiting != waiting {
            self.waiting = waiting;
            self.write();
        }
    }

    /// Writes unsaved changes. If the last write was less than [`MIN_WRITE_INTERVAL`] ago, returns when to try again instead.
    pub(super) fn write_if_due(&mut self) -> Option<Instant> {
        if !self.is_stale {
            return None;
        }
        let due =
            self.written.map(|written| written + MIN_WRITE_INTERVAL).filter(|due| *due > Instant::now());
        if due.is_none() {
            self.write();
        }
        due
    }

    /// Writes the file. Errors are ignored: only `ringer mcp status` depends on it.
    fn write(&mut self) {
        let status = ChannelsStatus {
            hub: std::process::id(),
            boot: Uptime::now().boot,
            servers: self.servers.values().cloned().collect(),
            waiting: self.waiting.clone(),
        };
        if let Ok(bytes) = serde_json::to_vec(&status) {
            let _ = replace_file(&status_path(&self.home), &bytes, Durability::Unsynced);
        }
        (self.written, self.is_stale) = (Some(Instant::now()), false);
    }

    fn status(&mut self, server: &ChannelEntry) -> &mut ChannelStatus {
        let status = self.servers.entry(server.name.clone()).or_insert_with(|| ChannelStatus {
            name: server.name.clone(),
            to: String::new(),
            state: ChannelState::Starting,
            gate: None,
            why: None,
            remedy: None,
            pid: None,
            starts: 0,
            messages: 0,
            refused: 0,
            over_rate: 0,
            invalid: 0,
            answers: 0,
            late_answers: 0,
        });
        status.to.clone_from(&server.to);
        status
    }
}

fn set(status: &mut ChannelStatus, state: ChannelState, why: Option<String>, remedy: Option<String>) {
    (status.state, status.why, status.remedy) = (state, why, remedy);
    (status.gate, status.pid) = (None, None);
}
