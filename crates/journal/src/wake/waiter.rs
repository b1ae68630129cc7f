//! Waits at a registered doorbell.
//!
//! No message is lost in this order: register, read the journal, then wait.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use ringer_core::Scope;
use rusqlite::Transaction;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, getppid};

use crate::db::database::Database;
use crate::db::tables::Schema;
use crate::error::Error;
use crate::ids::IdSource;
use crate::lock::FileId;
use crate::process::started;
use crate::wake::doorbell::{self, Doorbell, LockOwner};
use crate::wake::subscription::{self, Topic};

/// What a waiting process does when its parent exits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnParentExit {
    /// Stop: the agent is gone, and must not consume messages that are for the next one.
    Stop,
    /// Keep waiting.
    Continue,
}

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WakeReason {
    /// Another process wrote to the doorbell.
    Rung,
    /// The deadline passed.
    TimedOut,
    /// The parent process exited.
    Orphaned,
    /// Another descriptor is ready.
    Other,
}

#[derive(Debug)]
pub(crate) struct Waiter {
    bell: Doorbell,
    topic: Topic,
    scope: Scope,
    parent: Option<ParentWatch>,
    /// The database file that contains the registration.
    registered: FileId,
}

impl Waiter {
    /// Creates a doorbell, registers it and runs `also` in the same transaction. Removes the registrations of dead processes.
    pub(crate) fn register<T, S: Schema>(
        journal: &mut Database<S>,
        topic: Topic,
        scope: &Scope,
        consumer: &str,
        parent: OnParentExit,
        also: impl Fn(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<(Self, T), Error> {
        let owner = LockOwner {
            pid: std::process::id(),
            started: started(std::process::id()),
            consumer: consumer.to_owned(),
            scope: scope.to_string(),
        };
        // They may have been removed since the journal was opened.
        let made = journal.home.make_directories();
        made.map_err(|error| journal.home.error("cannot create the state directory", error))?;
        let bell = Doorbell::create(&journal.home, &IdSource::now().name(), &owner, None)
            .map_err(|error| journal.home.error("hanging a doorbell", error))?;
        let home = journal.home.clone();
        doorbell::remove_stale(&home);
        let done = journal.write(|transaction| {
            let (dead, living): (Vec<String>, Vec<String>) =
                subscription::registered(transaction)?.into_iter().partition(|name| {
                    name != bell.name() && doorbell::remove_if_stale(&doorbell::named(&home, name))
                });
            if !dead.is_empty() {
                subscription::keep_only(transaction, &living)?;
            }
            subscription::register(transaction, bell.name(), &topic, scope)?;
            also(transaction)
        })?;
        let parent = (parent == OnParentExit::Stop).then(ParentWatch::begin).flatten();
        Ok((Self { bell, topic, scope: scope.clone(), parent, registered: journal.file() }, done))
    }

    /// Drains the doorbell, and reopens the database if its file was replaced. Call it before each read of the journal.
    pub(crate) fn prepare<S: Schema>(&mut self, journal: &mut Database<S>) -> Result<(), Error> {
        self.bell.drain().map_err(|error| journal.home.error("emptying the doorbell", error))?;
        journal.refresh()?;
        self.register_again(journal).map(drop)
    }

    /// Registers again if the database file was replaced. Returns true if it was.
    fn register_again<S: Schema>(&mut self, journal: &mut Database<S>) -> Result<bool, Error> {
        let was_replaced = self.registered != journal.file();
        if was_replaced {
            journal.write(|transaction| {
                subscription::register(transaction, self.bell.name(), &self.topic, &self.scope)
            })?;
            self.registered = journal.file();
        }
        Ok(was_replaced)
    }

    /// Waits until the doorbell rings, one of `others` is readable or hung up, the deadline passes, or the parent exits.
    ///
    /// Returns at once if the database was replaced: until now the doorbell was not registered in the new file.
    pub(crate) fn wait<S: Schema>(
        &mut self,
        journal: &mut Database<S>,
        others: &[BorrowedFd<'_>],
        deadline: Option<Instant>,
    ) -> Result<WakeReason, Error> {
        if self.register_again(journal)? {
            return Ok(WakeReason::Rung);
        }
        let reason = self.sleep(others, None, deadline);
        reason.map_err(|error| journal.home.error("waiting at the doorbell", error.into()))
    }

    /// Like [`Self::wait`], without a database, and also ends when the peer of `hung_up` closes it. The caller has to read the
    /// journal afterwards.
    pub(crate) fn sleep(
        &self,
        others: &[BorrowedFd<'_>],
        hung_up: Option<BorrowedFd<'_>>,
        deadline: Option<Instant>,
    ) -> rustix::io::Result<WakeReason> {
        let end = self.parent.as_ref().and_then(|parent| parent.end.as_ref());
        loop {
            if self.is_orphaned() {
                return Ok(WakeReason::Orphaned);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(WakeReason::TimedOut);
            }
            // Too long for the kernel: wait without a timeout.
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            let mut waits = vec![PollFd::new(&self.bell, PollFlags::IN)];
            let on_end = end.map(|end| PollFd::from_borrowed_fd(end.as_fd(), PollFlags::IN));
            waits.extend(on_end);
            let first_other = waits.len();
            waits.extend(others.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)));
            waits.extend(hung_up.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::empty())));
            match poll(&mut waits, timeout.as_ref()) {
                Ok(_) if self.is_orphaned() => {}
                Ok(_) if waits[0].revents().contains(PollFlags::IN) => return Ok(WakeReason::Rung),
                Ok(_) if waits[first_other..].iter().any(|other| !other.revents().is_empty()) => {
                    return Ok(WakeReason::Other);
                }
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) fn doorbell(&self) -> &Doorbell {
        &self.bell
    }

    /// Returns true if the parent process has exited.
    pub(crate) fn is_orphaned(&self) -> bool {
        self.parent.as_ref().is_some_and(|parent| getppid() != Some(parent.pid))
    }
}

#[derive(Debug)]
struct ParentWatch {
    pid: Pid,
    /// Becomes readable when the parent exits. Without it, the parent's PID is checked at every wake-up.
    end: Option<OwnedFd>,
}

impl ParentWatch {
    fn begin() -> Option<Self> {
        let pid = getppid()?;
        #[cfg(target_os = "linux")]
        let end = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok();
        #[cfg(not(target_os = "linux"))]
        let end = None;
        Some(Self { pid, end })
    }
}
