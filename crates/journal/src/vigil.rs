//! Keeping vigil: a registered doorbell to sleep at.
//!
//! The order is what loses nothing: register, then look in the journal, and only then sleep.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use ringer_core::Scope;
use rusqlite::Transaction;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, getppid};

use crate::doorbell::{self, Doorbell, Holder};
use crate::error::Error;
use crate::journal::Journal;
use crate::lock::FileNumber;
use crate::process::started;
use crate::stamp::Stamp;
use crate::waiter::{self, Topic};

/// What to do when the process that started us ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parent {
    /// End too: the agent that waited is gone, and must not swallow what the next one should read.
    Watch,
    /// Go on.
    Ignore,
}

/// Why somebody woke up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woke {
    /// Somebody rang.
    Rang,
    /// The deadline passed.
    TimedOut,
    /// The parent ended.
    Orphaned,
}

#[derive(Debug)]
pub(crate) struct Vigil {
    bell: Doorbell,
    topic: Topic,
    scope: Scope,
    parent: Option<ParentWatch>,
    /// The database we are registered in.
    registered: FileNumber,
}

impl Vigil {
    /// Hangs a doorbell and registers it, together with `also`, in one transaction. Clears away what the dead left.
    pub(crate) fn keep<T>(
        journal: &mut Journal,
        topic: Topic,
        scope: &Scope,
        consumer: &str,
        parent: Parent,
        also: impl Fn(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<(Self, T), Error> {
        let holder = Holder {
            pid: std::process::id(),
            started: started(std::process::id()),
            consumer: consumer.to_owned(),
            scope: scope.to_string(),
        };
        // Somebody may have tidied up.
        let made = journal.home.make_directories();
        made.map_err(|error| journal.home.error("making the home", error))?;
        let bell = Doorbell::hang(&journal.home, &Stamp::now().name(), &holder, None)
            .map_err(|error| journal.home.error("hanging a doorbell", error))?;
        let home = journal.home.clone();
        doorbell::clear_strays(&home);
        let done = journal.write(|transaction| {
            let (dead, living): (Vec<String>, Vec<String>) =
                waiter::registered(transaction)?.into_iter().partition(|name| {
                    name != bell.name() && doorbell::clear_if_dead(&doorbell::named(&home, name))
                });
            if !dead.is_empty() {
                waiter::keep_only(transaction, &living)?;
            }
            waiter::register(transaction, bell.name(), &topic, scope)?;
            also(transaction)
        })?;
        let parent = (parent == Parent::Watch).then(ParentWatch::begin).flatten();
        Ok((Self { bell, topic, scope: scope.clone(), parent, registered: journal.file() }, done))
    }

    /// To be called before each look in the journal: forgets the rings so far, and opens the database of that name if it
    /// is another one by now.
    pub(crate) fn prepare(&mut self, journal: &mut Journal) -> Result<(), Error> {
        self.bell.empty().map_err(|error| journal.home.error("emptying the doorbell", error))?;
        journal.refresh()?;
        self.register_anew(journal).map(drop)
    }

    /// Registers again if the database is another one than we are registered in. Gives whether that was so.
    fn register_anew(&mut self, journal: &mut Journal) -> Result<bool, Error> {
        let anew = self.registered != journal.file();
        if anew {
            journal.write(|transaction| {
                waiter::register(transaction, self.bell.name(), &self.topic, &self.scope)
            })?;
            self.registered = journal.file();
        }
        Ok(anew)
    }

    /// Sleeps until somebody rings. Nothing else wakes it but the deadline and the parent's end.
    ///
    /// If the database was set aside while we looked, nobody would know to ring us: then it does not sleep at all.
    pub(crate) fn sleep(&mut self, journal: &mut Journal, deadline: Option<Instant>) -> Result<Woke, Error> {
        if self.register_anew(journal)? {
            return Ok(Woke::Rang);
        }
        loop {
            if self.is_orphaned() {
                return Ok(Woke::Orphaned);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(Woke::TimedOut);
            }
            let timeout = left.map(|left| Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            });
            let mut waits = vec![PollFd::new(&self.bell, PollFlags::IN)];
            if let Some(end) = self.parent.as_ref().and_then(|parent| parent.end.as_ref()) {
                waits.push(PollFd::from_borrowed_fd(end.as_fd(), PollFlags::IN));
            }
            match poll(&mut waits, timeout.as_ref()) {
                Ok(_) if waits[0].revents().contains(PollFlags::IN) && !self.is_orphaned() => {
                    return Ok(Woke::Rang);
                }
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(journal.home.error("waiting at the doorbell", error.into())),
            }
        }
    }

    /// Whether the process that started us has gone.
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
