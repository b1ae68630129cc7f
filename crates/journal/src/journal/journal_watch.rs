//! What wakes a connection to other machines when something was written here.

use std::os::fd::{AsFd, BorrowedFd};

use ringer_core::Scope;

use crate::error::Error;
use crate::journal::schema::Journal;
use crate::wake::subscription::Topic;
use crate::wake::waiter::{OnParentExit, Waiter};

/// A doorbell that rings for every message, and when an agent is in another state. What it announces is read after [`JournalWatch::prepare`].
#[derive(Debug)]
pub struct JournalWatch {
    waiter: Waiter,
}

impl JournalWatch {
    /// Registers it. From here on nothing is missed.
    pub fn register(journal: &mut Journal) -> Result<Self, Error> {
        // No repository has this id, so `ringer nuke` of a repository ends no link.
        let scope = Scope::new("links").unwrap_or_else(|_| Scope::global());
        let parent = OnParentExit::Continue;
        let (waiter, ()) =
            Waiter::register(journal, Topic::EverythingAndAgents, &scope, "relay", parent, |_| Ok(()))?;
        Ok(Self { waiter })
    }

    /// To be called before each read of the journal: drains the doorbell, and opens the journal again if another file has
    /// its name by now.
    pub fn prepare(&mut self, journal: &mut Journal) -> Result<(), Error> {
        self.waiter.prepare(journal)
    }
}

impl AsFd for JournalWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waiter.doorbell().as_fd()
    }
}
