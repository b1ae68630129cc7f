//! A registered doorbell at which a process waits.
//!
//! The order loses no message: register, then read the journal, and only then wait.

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

/// What to do when the parent process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnParentExit {
    /// End too: the agent that waited is gone, and must not consume what the next one should read.
    Stop,
    /// Keep waiting.
    Continue,
}

/// Why waiting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WakeReason {
    /// Another process wrote to the doorbell.
    Rung,
    /// The deadline passed.
    TimedOut,
    /// The parent ended.
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
    /// The database we are registered in.
    registered: FileId,
}

impl Waiter {
    /// Creates a doorbell, registers it and runs `also` in the same transaction; removes registrations of dead processes.
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
        // The directories may have been removed since the journal was opened.
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

    /// To be called before each read of the journal: drains the doorbell, and opens the database again if another file has
    /// its name by now.
    pub(crate) fn prepare<S: Schema>(&mut self, journal: &mut Database<S>) -> Result<(), Error> {
        self.bell.drain().map_err(|error| journal.home.error("emptying the doorbell", error))?;
        journal.refresh()?;
        self.register_again(journal).map(drop)
    }

    /// Registers again if the open database is not the one that this doorbell is registered in. Gives whether that was so.
    fn register_again<S: Schema>(&mut self, journal: &mut Database<S>) -> Result<bool, Error> {
        let anew = self.registered != journal.file();
        if anew {
            journal.write(|transaction| {
                subscription::register(transaction, self.bell.name(), &self.topic, &self.scope)
            })?;
            self.registered = journal.file();
        }
        Ok(anew)
    }

    /// Waits until another process writes to the doorbell, one of `others` can be read or is hung up, the deadline passes or
    /// the parent ends.
    ///
    /// If the database was quarantined in the meantime, this doorbell was registered nowhere: then it returns at once.
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

    /// Waits as [`Self::wait`] does, without a database, and also until one of `others` can be read or `hung_up` is closed at
    /// its other end. The caller reads the journal after that.
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
            // A time that is too long for the kernel is as good as none.
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

    /// Its doorbell.
    pub(crate) fn doorbell(&self) -> &Doorbell {
        &self.bell
    }

    /// Whether the parent process has ended.
    pub(crate) fn is_orphaned(&self) -> bool {
        self.parent.as_ref().is_some_and(|parent| getppid() != Some(parent.pid))
    }
}

#[derive(Debug)]
struct ParentWatch {
    pid: Pid,
    /// Readable when the parent has ended. Where the system has no such thing, the pid is looked at on every waking.
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
