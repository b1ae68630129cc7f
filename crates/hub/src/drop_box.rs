//! Applies what processes in sandboxes leave in the drop box, and keeps the outbox up to date.
//!
//! Runs in a thread with its own journal connection, because an attacker may have made the files and the loop must not wait for
//! them. The loop reads what this thread appends like the messages of any other process. A claim's file is removed after the
//! claim is applied; applying a claim twice has no further effect.

mod changes;
mod intake;
mod publisher;

use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use ringer_core::Draft;
use ringer_ipc::drop_box::{Claim, ClaimedAction, DropBox};
use ringer_journal::{Error, Home, IdSource, Journal, JournalWatch, LockTimeout, monotonic};
use ringer_platform::{owned, wake_pair};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::changes::DropChanges;
use self::intake::{ClaimLimit, claim_names, read_claim, remove};
use self::publisher::Publisher;
use crate::log::Log;

/// Time between attempts after a failure.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Polling interval where the system does not announce file changes.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Refused files are logged at most this often, however many a sandbox creates.
const LOG_REFUSED_EVERY: Duration = Duration::from_mins(1);
/// The greatest plausible age of a claim; the machine or the hub may have been off. An older one gets the current time.
const OLDEST: Duration = Duration::from_hours(24);

/// The thread that serves the drop box.
#[derive(Debug)]
pub(crate) struct DropBoxService {
    /// Dropped to end the thread.
    running: UnixStream,
    ended: Receiver<()>,
}

impl DropBoxService {
    /// Creates the two directories and starts the thread.
    pub(crate) fn start(home: &Home, log: &Log) -> io::Result<Self> {
        let places = DropBox::of(home);
        // The outbox first: a process that sees the drop box uses the outbox to find out whether it is in a sandbox.
        for directory in [places.outbox().directory(), places.directory()] {
            make_directory(directory)?;
        }
        let (ending, running) = wake_pair()?;
        let (done, ended) = channel();
        let mut server = Server::new(home.clone(), places, log.clone());
        thread::Builder::new().name("drop box".to_owned()).spawn(move || {
            // Dropped when the thread ends.
            let _done = done;
            server.run(&ending);
        })?;
        Ok(Self { running, ended })
    }

    /// Ends the thread. It appends nothing after this returns, unless the disk hangs for longer than `within`.
    pub(crate) fn end(self, within: Duration) {
        drop(self.running);
        let _ = self.ended.recv_timeout(within);
    }
}

fn make_directory(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    owned::check_directory(directory).map(drop)
}

struct Server {
    home: Home,
    places: DropBox,
    log: Log,
    limit: ClaimLimit,
    publisher: Publisher,
    connection: Option<Connection>,
    /// The last problem that was logged, so that it is logged once.
    logged: Option<String>,
    /// The number of refused files that are not logged yet.
    refused: u64,
    log_refused_at: Duration,
}

/// The journal, open while there is something to apply or to publish.
struct Connection {
    journal: Journal,
    /// Wakes the thread for changes to publish. Registered only while something is published, because every message then rings
    /// one doorbell more.
    watch: Option<JournalWatch>,
}

impl Server {
    fn new(home: Home, places: DropBox, log: Log) -> Self {
        let now = monotonic();
        Self {
            limit: ClaimLimit::new(now),
            publisher: Publisher::new(places.outbox().clone(), log.clone(), now),
            connection: None,
            logged: None,
            refused: 0,
            log_refused_at: now,
            home,
            places,
            log,
        }
    }

    fn run(&mut self, ending: &UnixStream) {
        let mut changes = DropChanges::default();
        loop {
            changes.watch(self.places.directory());
            changes.drain();
            let mut wait = self.turn().unwrap_or_else(|error| {
                self.log_once(format!("the drop box waits: {error}"));
                self.connection = None;
                Some(RETRY_AFTER)
            });
            if changes.descriptor().is_none() {
                wait = Some(wait.map_or(LOOK_EVERY, |wait| wait.min(LOOK_EVERY)));
            }
            let bell = self.connection.as_ref().and_then(|connection| connection.watch.as_ref());
            if is_over(ending, bell, &changes, wait) {
                return;
            }
        }
    }

    /// Applies claims and publishes files. Returns how long to wait at most for the next change.
    fn turn(&mut self) -> Result<Option<Duration>, Error> {
        self.publisher.expire(monotonic());
        let claims = claim_names(self.places.directory())
            .map_err(|error| self.home.error("reading the drop box", error))?;
        if claims.is_empty() && !self.publisher.has_work() {
            self.connection = None;
            return Ok(None);
        }
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection {
                journal: Journal::open_without_repair(&self.home, LockTimeout::COMMAND)?,
                watch: None,
            },
        };
        match &mut connection.watch {
            Some(watch) => watch.prepare(&mut connection.journal)?,
            None => connection.journal.refresh()?,
        }
        let again = self.apply(&mut connection.journal, claims)?;
        if connection.watch.is_none() && self.publisher.has_work() {
            connection.watch = Some(JournalWatch::register(&mut connection.journal)?);
        }
        self.publisher.publish(&mut connection.journal)?;
        self.logged = None;
        self.connection = Some(connection).filter(|_| again.is_some() || self.publisher.has_work());
        Ok(again)
    }

    /// Applies claims, the oldest first. Returns the time to wait if the rate limit stopped it.
    fn apply(&mut self, journal: &mut Journal, mut names: Vec<OsString>) -> Result<Option<Duration>, Error> {
        let directory = owned::check_directory(self.places.directory()).and_then(File::open);
        let directory = directory.map_err(|error| self.home.error("opening the drop box", error))?;
        names.sort();
        let mut again = None;
        for name in names {
            match read_claim(&directory, &name) {
                Ok((claim, action)) => {
                    if let Err(wait) = self.limit.take(monotonic()) {
                        again = Some(wait);
                        break;
                    }
                    self.apply_claim(journal, &claim, action)?;
                }
                Err(reason) => self.refuse(&reason),
            }
            remove(&directory, &name);
        }
        Ok(again)
    }

    fn apply_claim(
        &mut self,
        journal: &mut Journal,
        claim: &Claim,
        action: ClaimedAction,
    ) -> Result<(), Error> {
        let unix_ms = plausible(claim.stamp.unix_ms, IdSource::now().unix_ms);
        match action {
            ClaimedAction::Append(draft) => journal.append_as(&draft, &claim.id(), unix_ms),
            ClaimedAction::Ask { draft, question, options } => {
                let stamp = IdSource { unix_ms, ..claim.stamp };
                self.ask(journal, &draft, &question, &options, &stamp)
            }
            ClaimedAction::Listen(consumer) => {
                self.publisher.add_listener(consumer, monotonic());
                // The file is written before the claim is removed.
                self.publisher.publish(journal)
            }
        }
    }

    fn ask(
        &mut self,
        journal: &mut Journal,
        draft: &Draft,
        question: &str,
        options: &[String],
        stamp: &IdSource,
    ) -> Result<(), Error> {
        let Some(id) = draft.question_id.clone() else { return Ok(()) };
        match journal.question(&id)? {
            None => journal.ask(draft, question, options, stamp, None).map(drop)?,
            // This claim was applied by a hub that was killed before it removed the file.
            Some(found) if found.asker == draft.sender && found.question == question => {}
            Some(_) => {
                self.publisher.refuse_question(&id);
                return Ok(());
            }
        }
        self.publisher.add_question(id);
        self.publisher.publish(journal)
    }

    fn refuse(&mut self, reason: &str) {
        self.refused += 1;
        let now = monotonic();
        if now >= self.log_refused_at {
            self.log_refused_at = now + LOG_REFUSED_EVERY;
            let refused = std::mem::take(&mut self.refused);
            self.log
                .line(format!("{refused} files in the drop box were no claims and were removed: {reason}"));
        }
    }

    fn log_once(&mut self, line: String) {
        if self.logged.as_ref() != Some(&line) {
            self.log.line(&line);
            self.logged = Some(line);
        }
    }
}

/// Waits for a change of the drop box or the journal. Returns true once the other end of `ending` is gone.
fn is_over(
    ending: &UnixStream,
    bell: Option<&JournalWatch>,
    changes: &DropChanges,
    most: Option<Duration>,
) -> bool {
    let others = bell.map(AsFd::as_fd).into_iter().chain(changes.descriptor());
    let mut polled = vec![PollFd::new(ending, PollFlags::IN)];
    polled.extend(others.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    let timeout = most.and_then(|most| Timespec::try_from(most).ok());
    match poll(&mut polled, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => !polled[0].revents().is_empty(),
        Err(_) => true,
    }
}

/// The time of a claim, or now if it is in the future or too old.
fn plausible(claimed_ms: i64, now_ms: i64) -> i64 {
    let oldest = now_ms.saturating_sub(i64::try_from(OLDEST.as_millis()).unwrap_or(i64::MAX));
    if (oldest..=now_ms).contains(&claimed_ms) { claimed_ms } else { now_ms }
}

#[cfg(test)]
mod tests;
