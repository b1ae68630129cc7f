//! Lets a hook, or a client's MCP server, sleep until something about its agent may have changed.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use ringer_core::Scope;
use ringer_core::message::Agent;

use crate::error::Error;
use crate::home::Home;
use crate::journal::schema::Journal;
use crate::wake::doorbell::Removal;
use crate::wake::subscription::Topic;
use crate::wake::waiter::{OnParentExit, Waiter, WakeReason};

/// Consumer name of a client's MCP server. It must not be ended like other waiting processes: the client would lose its tools.
pub const CLIENT_SERVER: &str = "mcp";

/// A waiting process. It keeps no database open while it sleeps.
#[derive(Debug)]
pub struct HookWaiter {
    home: Home,
    waiter: Waiter,
    /// Signals that the doorbell was removed.
    removal: Option<Removal>,
}

/// Why a hook woke up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HookWake {
    /// The awaited state may have changed.
    Changed,
    /// Another descriptor is ready, or hung up.
    Other,
    /// The deadline passed.
    TimedOut,
    /// The client exited.
    ClientEnded,
}

impl Journal {
    /// Registers this process for messages to an agent. `None` if the agent is unknown.
    pub fn wait_for_messages(&mut self, agent: &Agent) -> Result<Option<HookWaiter>, Error> {
        let Some(info) = self.agent_info(agent)? else { return Ok(None) };
        let topic = Topic::Inbox { agent: info.id.as_str().to_owned(), name: info.name };
        HookWaiter::register(self, topic, &info.scope, "inbox", OnParentExit::Stop).map(Some)
    }

    /// Registers this process for messages to an agent that may not be known yet, whatever its parent. Without an agent, every
    /// message wakes it, because the agent may turn out to be any recipient. `scope` is used for an unknown agent.
    pub fn wait_for_messages_of_client(
        &mut self,
        agent: Option<&Agent>,
        scope: &Scope,
    ) -> Result<HookWaiter, Error> {
        let info = agent.map(|agent| self.agent_info(agent)).transpose()?.flatten();
        let scope = info.as_ref().map_or(scope, |info| &info.scope);
        let topic = agent.map_or(Topic::Everything, |agent| Topic::Inbox {
            agent: agent.as_str().to_owned(),
            name: info.as_ref().and_then(|info| info.name.clone()),
        });
        HookWaiter::register(self, topic, scope, CLIENT_SERVER, OnParentExit::Continue)
    }
}

impl HookWaiter {
    pub(crate) fn register(
        journal: &mut Journal,
        topic: Topic,
        scope: &Scope,
        what: &str,
        parent: OnParentExit,
    ) -> Result<Self, Error> {
        let (waiter, ()) = Waiter::register(journal, topic, scope, what, parent, |_| Ok(()))?;
        let removal = waiter.doorbell().removal();
        Ok(Self { home: journal.home.clone(), waiter, removal })
    }

    /// Opens the journal to check the awaited state. `None` if nothing can wake this process any more. Call it before each
    /// [`Self::sleep`].
    pub fn journal(&mut self) -> Result<Option<Journal>, Error> {
        // Checked here, so it need not wake this process again.
        if let Some(removal) = &self.removal {
            removal.drain();
        }
        if self.waiter.doorbell().is_gone() {
            return Ok(None);
        }
        let Some(mut journal) = Journal::open_existing(&self.home)? else { return Ok(None) };
        self.waiter.prepare(&mut journal)?;
        Ok(Some(journal))
    }

    /// Sleeps until something changes, one of `others` is readable or hung up, or `hung_up` is hung up.
    pub fn sleep(
        &mut self,
        others: &[BorrowedFd<'_>],
        hung_up: Option<BorrowedFd<'_>>,
        deadline: Option<Instant>,
    ) -> Result<HookWake, Error> {
        let others: Vec<BorrowedFd<'_>> =
            others.iter().copied().chain(self.removal.as_ref().map(AsFd::as_fd)).collect();
        let reason = self.waiter.sleep(&others, hung_up, deadline);
        let reason = reason.map_err(|error| self.home.error("waiting at the doorbell", error.into()))?;
        Ok(match reason {
            WakeReason::Rung => HookWake::Changed,
            WakeReason::Other => HookWake::Other,
            WakeReason::TimedOut => HookWake::TimedOut,
            WakeReason::Orphaned => HookWake::ClientEnded,
        })
    }
}
