//! Who may write: what the person's settings say, and the allowlist that `ringer mcp pair` writes.

use std::collections::BTreeSet;
use std::time::SystemTime;

use ringer_core::policy::McpChannels;
use ringer_journal::{Home, IdSource, Uptime};
use ringer_turn::{Access, AdmittedSender, ChannelSender, McpServer, WaitingSender};

use super::files::{AccessError, allowlist_stamp, load};

/// The senders of all servers. Nothing that comes over a channel changes who may write.
#[derive(Debug)]
pub(super) struct Senders {
    home: Home,
    access: Access,
    /// The version of the allowlist that was read last.
    stamp: Option<(u64, SystemTime)>,
}

impl Senders {
    pub(super) fn new(home: Home) -> Self {
        Self { home, access: Access::default(), stamp: None }
    }

    /// Those that the person's own settings name.
    pub(super) fn set_configured(&mut self, channels: &McpChannels) {
        let named = channels.servers.iter().flat_map(|server| {
            let sender = |user: &String| ChannelSender::new(McpServer::new(&server.name).ok()?, user).ok();
            server.allow.iter().filter_map(sender)
        });
        self.access.set_configured(named.collect::<BTreeSet<_>>());
    }

    /// Reads the allowlist if it is another one. One that cannot be read changes nothing, and is told once.
    pub(super) fn refresh(&mut self) -> Result<(), AccessError> {
        let stamp = allowlist_stamp(&self.home);
        if stamp == self.stamp {
            return Ok(());
        }
        self.stamp = stamp;
        Ok(self.access.set_allowlist(load(&self.home)?)?)
    }

    pub(super) fn admit<'a>(&self, sender: &'a ChannelSender) -> Option<AdmittedSender<'a>> {
        self.access.admit(sender)
    }

    /// A code for a sender who may not write. Gives it if it is a new one: `None` if the sender waits already, or too many do.
    pub(super) fn offer_code(&mut self, sender: &ChannelSender) -> Option<String> {
        let (now, [a, b, c, ..]) = (Uptime::now().since_boot, IdSource::now().random);
        let waits = |access: &Access| access.waiting(now).any(|waiting| waiting.sender == *sender);
        if waits(&self.access) {
            return None;
        }
        self.access.offer_code(now, sender, [a, b, c]).ok().map(|code| code.to_string())
    }

    pub(super) fn waiting(&self) -> Vec<WaitingSender> {
        self.access.waiting(Uptime::now().since_boot).collect()
    }
}
