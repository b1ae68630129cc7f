//! Applies what processes in sandboxes leave in the drop box, and keeps the outbox up to date.
//!
//! A thread beside the loop with a connection to the journal of its own: the files are those of an attacker, and nothing here may make
//! the loop wait. The loop hears of what this thread appends as it hears of any other process. A claim is applied before its file
//! is removed, and applying it twice is the same as once.

mod limit;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, SystemTime};

use ringer_core::message::QuestionId;
use ringer_core::{Draft, Sender};
use ringer_ipc::drop_box::{
    Claim, ClaimedAction, DropBox, ListenerFile, MAX_CLAIM, MAX_LISTENER_FILE, QuestionState, is_claim,
};
use ringer_journal::{Consumer, Error, Home, IdSource, Journal, JournalWatch, LockTimeout, monotonic};
use ringer_platform::{Durability, owned, replace_file, wake_pair};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};
use serde::Serialize;

use self::limit::ClaimLimit;
use crate::log::Log;

/// How long after a failure it is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// How often the directories are looked at where the system does not tell of changes.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Messages that the file of one listener has at most.
const MAX_MESSAGES: usize = 1_000;
/// Listeners that have a file at most. Beyond that the one that asked longest ago loses its file.
const MAX_LISTENERS: usize = 100;
/// How often files are looked through for those to remove, if something else happens.
const EXPIRE_EVERY: Duration = Duration::from_mins(10);
/// How long a file stays that nobody asked for again.
const KEPT_FOR: Duration = Duration::from_hours(24);
/// A claim may be older than this moment by so much: the machine or the hub was off. One that is older is dated now.
const OLDEST: Duration = Duration::from_hours(24);

/// The thread, as long as the hub runs.
#[derive(Debug)]
pub(crate) struct DropBoxService {
    /// Dropped to end the thread.
    running: UnixStream,
    ended: Receiver<()>,
}

impl DropBoxService {
    /// Makes the two directories and starts the thread.
    pub(crate) fn start(home: &Home, log: &Log) -> io::Result<Self> {
        let places = DropBox::of(home);
        // The outbox first: a process that sees the drop box looks at the outbox to know whether it is in a sandbox.
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

    /// Ends it: once this returns, it appends nothing more, unless the disk hangs for longer than `within`.
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
    connection: Option<Connection>,
    /// When files of the outbox are next looked through for those to remove.
    expire_at: Duration,
    /// The last problem that was logged, so that it is logged once.
    logged: Option<String>,
    /// The questions that still wait for an answer.
    open_questions: BTreeSet<QuestionId>,
    listeners: BTreeMap<(String, String), PublishedListener>,
}

/// A listener, and what its file says.
struct PublishedListener {
    consumer: Consumer,
    /// When it asked last, on the monotonic clock.
    asked: Duration,
    /// The sequence numbers of the first and the last message in its file. `None` before it is written.
    written: Option<(i64, i64)>,
}

/// The journal, open while there is something to apply or to publish.
struct Connection {
    journal: Journal,
    /// Rings for what is published. Registered only then: each message would ring one doorbell more.
    watch: Option<JournalWatch>,
}

impl Server {
    fn new(home: Home, places: DropBox, log: Log) -> Self {
        let (questions, listeners) = places.outbox().entries();
        let now = monotonic();
        let mut server = Self {
            home,
            places,
            log,
            limit: ClaimLimit::new(now),
            connection: None,
            expire_at: now,
            logged: None,
            open_questions: questions.into_iter().collect(),
            listeners: BTreeMap::new(),
        };
        for consumer in listeners {
            server.listen(consumer, now);
        }
        server
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

    /// Applies and publishes what there is. Returns how long to wait at most for the next change.
    fn turn(&mut self) -> Result<Option<Duration>, Error> {
        self.expire();
        let claims = claim_names(self.places.directory())
            .map_err(|error| self.home.error("reading the drop box", error))?;
        if claims.is_empty() && !self.publishes() {
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
        if connection.watch.is_none() && self.publishes() {
            connection.watch = Some(JournalWatch::register(&mut connection.journal)?);
        }
        self.publish(&mut connection.journal)?;
        self.logged = None;
        self.connection = Some(connection).filter(|_| again.is_some() || self.publishes());
        Ok(again)
    }

    /// Returns true if a file of the outbox may change.
    fn publishes(&self) -> bool {
        !self.open_questions.is_empty() || !self.listeners.is_empty()
    }

    /// Applies claims, the oldest first. Returns when to go on if there are more than may be applied now.
    fn apply(&mut self, journal: &mut Journal, mut names: Vec<OsString>) -> Result<Option<Duration>, Error> {
        let directory = owned::check_directory(self.places.directory()).and_then(File::open);
        let directory = directory.map_err(|error| self.home.error("opening the drop box", error))?;
        names.sort();
        let (mut refused, mut first_reason) = (0, None);
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
                Err(reason) => {
                    refused += 1;
                    first_reason.get_or_insert(reason);
                }
            }
            remove(&directory, &name);
        }
        if let Some(reason) = first_reason {
            self.log_once(format!(
                "{refused} files in the drop box are not claims and were removed: {reason}"
            ));
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
                self.listen(consumer, monotonic());
                // The file is written before the claim is removed.
                self.publish(journal)
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
                self.write(&self.places.outbox().question_path(&id), &QuestionState::Refused);
                return Ok(());
            }
        }
        self.open_questions.insert(id);
        self.publish(journal)
    }

    fn listen(&mut self, consumer: Consumer, now: Duration) {
        let key = (consumer.name().to_owned(), consumer.scope().to_string());
        let written = self.listeners.get(&key).and_then(|listener| listener.written);
        self.listeners.insert(key, PublishedListener { consumer, asked: now, written });
        while self.listeners.len() > MAX_LISTENERS
            && let Some(oldest) = self.listeners.iter().min_by_key(|(_, listener)| listener.asked)
        {
            let key = oldest.0.clone();
            if let Some(listener) = self.listeners.remove(&key) {
                let _ = fs::remove_file(self.places.outbox().listener_path(&listener.consumer));
            }
        }
    }

    /// Writes the files of the outbox that have changed.
    fn publish(&mut self, journal: &mut Journal) -> Result<(), Error> {
        let mut closed = Vec::new();
        for id in &self.open_questions {
            let question = journal.question(id)?.filter(|question| question.asker == Sender::unverified());
            let state = match &question {
                // Pruned, or never one of a sandbox: there is nothing to say.
                None => None,
                Some(question) if question.answered_ms.is_none() => Some(QuestionState::Open),
                Some(question) => {
                    Some(question.answer.clone().map_or(QuestionState::Closed, QuestionState::Answered))
                }
            };
            let path = self.places.outbox().question_path(id);
            match state {
                None => drop(fs::remove_file(&path)),
                Some(state) if self.places.outbox().question(id).as_ref() == Some(&state) => {}
                Some(ref state) => self.write(&path, state),
            }
            if question.is_none_or(|question| question.answered_ms.is_some()) {
                closed.push(id.clone());
            }
        }
        for id in closed {
            self.open_questions.remove(&id);
        }
        let unix_ms = IdSource::now().unix_ms;
        let outbox = self.places.outbox().clone();
        let mut files = Vec::new();
        for listener in self.listeners.values_mut() {
            let (newest, messages) = journal.newest_unread(&listener.consumer, unix_ms, MAX_MESSAGES)?;
            let ends =
                messages.first().zip(messages.last()).map_or((0, 0), |(first, last)| (first.seq, last.seq));
            if listener.written.replace(ends) != Some(ends) {
                files.push((outbox.listener_path(&listener.consumer), ListenerFile { newest, messages }));
            }
        }
        for (path, file) in files {
            self.write(&path, &fitting(file));
        }
        Ok(())
    }

    /// Removes files that nobody has asked for in a day.
    fn expire(&mut self) {
        let now = monotonic();
        if now < self.expire_at {
            return;
        }
        self.expire_at = now + EXPIRE_EVERY;
        let outbox = self.places.outbox().clone();
        self.listeners.retain(|_, listener| {
            let stays = now.saturating_sub(listener.asked) < KEPT_FOR;
            if !stays {
                let _ = fs::remove_file(outbox.listener_path(&listener.consumer));
            }
            stays
        });
        let (questions, _) = outbox.entries();
        for id in questions.iter().filter(|id| !self.open_questions.contains(*id)) {
            let path = outbox.question_path(id);
            if age(&path).is_some_and(|age| age > KEPT_FOR) {
                let _ = fs::remove_file(path);
            }
        }
        for entry in fs::read_dir(self.places.directory()).into_iter().flatten().flatten() {
            let is_left_over =
                !is_claim(&entry.file_name()) && age(&entry.path()).is_some_and(|age| age > KEPT_FOR * 30);
            if is_left_over {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn write(&self, path: &Path, content: &impl Serialize) {
        let bytes = serde_json::to_vec(content).unwrap_or_default();
        if let Err(error) = replace_file(path, &bytes, Durability::Unsynced) {
            self.log.quiet_line(format!("cannot write the outbox: {error}"));
        }
    }

    fn log_once(&mut self, line: String) {
        if self.logged.as_ref() != Some(&line) {
            self.log.line(&line);
            self.logged = Some(line);
        }
    }
}

/// What announces changes of the drop box, where the system does.
#[derive(Debug, Default)]
struct DropChanges {
    #[cfg(target_os = "linux")]
    changes: Option<ringer_platform::DirectoryChanges>,
}

#[cfg(target_os = "linux")]
impl DropChanges {
    /// Watches the directory, unless it does already. From here on no change is missed.
    fn watch(&mut self, directory: &Path) {
        if self.changes.is_none() {
            self.changes = ringer_platform::DirectoryChanges::begin(std::iter::once(directory)).ok();
        }
    }

    fn drain(&self) {
        if let Some(changes) = &self.changes {
            changes.read();
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.changes.as_ref().map(AsFd::as_fd)
    }
}

#[cfg(not(target_os = "linux"))]
impl DropChanges {
    fn watch(&mut self, _: &Path) {}

    fn drain(&self) {}

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
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

/// The names of the claims, in no order.
fn claim_names(directory: &Path) -> io::Result<Vec<OsString>> {
    let names = fs::read_dir(directory)?.flatten().map(|entry| entry.file_name());
    Ok(names.filter(|name| is_claim(name)).collect())
}

/// Reads a claim and checks it.
fn read_claim(directory: &File, name: &OsStr) -> Result<(Claim, ClaimedAction), String> {
    let bytes = read_plain(directory, name).map_err(|error| error.to_string())?;
    Claim::parse(&bytes).map_err(|error| error.to_string())
}

/// Reads a file of at most 64 KiB. Never waits, follows no link, and takes no file that has another name elsewhere: the sandbox could
/// have linked one that it cannot read itself.
fn read_plain(directory: &File, name: &OsStr) -> io::Result<Vec<u8>> {
    let refused = |why: &str| io::Error::new(ErrorKind::InvalidData, why);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(directory, name, flags, Mode::empty())?);
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(refused("it is not a regular file"));
    }
    if found.nlink() != 1 {
        return Err(refused("it has another name"));
    }
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own && found.uid() != 0 {
        return Err(refused("it belongs to another user"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_CLAIM + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_CLAIM {
        return Err(refused("it is longer than 64 KiB"));
    }
    Ok(bytes)
}

/// Removes a claim, or an empty directory with the name of one.
fn remove(directory: &File, name: &OsStr) {
    if unlinkat(directory, name, AtFlags::empty()).is_err() {
        let _ = unlinkat(directory, name, AtFlags::REMOVEDIR);
    }
}

/// The time of a claim: what it says, unless that lies ahead or too far back.
fn plausible(claimed_ms: i64, now_ms: i64) -> i64 {
    let oldest = now_ms.saturating_sub(i64::try_from(OLDEST.as_millis()).unwrap_or(i64::MAX));
    if (oldest..=now_ms).contains(&claimed_ms) { claimed_ms } else { now_ms }
}

/// Leaves out the oldest messages until the rest fits.
fn fitting(mut file: ListenerFile) -> ListenerFile {
    let mut room = MAX_LISTENER_FILE;
    let sizes = file
        .messages
        .iter()
        .rev()
        .map(|message| serde_json::to_vec(message).map_or(0, |bytes| bytes.len() + 1));
    let fit = sizes
        .take_while(|size| {
            let fits = *size <= room;
            room = room.saturating_sub(*size);
            fits
        })
        .count();
    file.messages.drain(..file.messages.len() - fit);
    file
}

fn age(path: &Path) -> Option<Duration> {
    let modified = fs::symlink_metadata(path).and_then(|metadata| metadata.modified()).ok()?;
    SystemTime::now().duration_since(modified).ok()
}

#[cfg(test)]
mod tests;
