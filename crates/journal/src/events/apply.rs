//! Applies spooled events: each once, in the order in which they happened.
//!
//! Only the process that holds the hub's lock does this: the hub, or a command if no hub may be started. It may be killed at
//! any point. An event is applied and its file name recorded in one transaction, and its file is removed afterwards. So an
//! event is due if its file exists and its name is not recorded. Both are checked inside the transaction, because the lock
//! protects nothing once its file was removed. The transaction also deletes the recorded names of files that are gone.

use std::collections::HashSet;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{Duration, Instant, UNIX_EPOCH};
use std::{fs, thread};

use ringer_core::message::Agent;
use ringer_core::{Draft, Kind, Scope, Sender};
use rusqlite::{OptionalExtension, Transaction};
use serde::Deserialize;

use super::event::{AgentEvent, InboxRequest, SpooledEvent, VERSION};
use crate::db::tables::text;
use crate::db::write_lock::LockTimeout;
use crate::error::Error;
use crate::events::spool::{Entry, LostEvents, SHOWN_FOR, Spool};
use crate::home::{Home, hash};
use crate::ids::{IdSource, monotonic};
use crate::journal::agent::apply::EventTime;
use crate::journal::append;
use crate::journal::hub_reader::SpoolLock;
use crate::journal::schema::Journal;
use crate::wake::doorbell;

/// How many events are applied in one transaction. Each takes a fraction of a millisecond, during which other writers wait.
const MAX_AT_ONCE: usize = 256;

/// How long a command waits for the hub to apply spooled events. A running hub takes some milliseconds, starting one about 30
/// ms on an idle machine. A hub that cannot write delays a command no longer than this.
const SETTLE_WITHIN: Duration = Duration::from_secs(1);

/// Polling interval while waiting for the spool, doubled each time. A running hub is done after the first ones.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// The result of one [`Journal::apply_spool`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpoolProgress {
    /// Number of applied events.
    pub events: usize,
    /// Number of unreadable files that were quarantined.
    pub unreadable: usize,
    /// More events are waiting.
    pub more: bool,
}

/// The state of a home's spool, for `status` and `doctor`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpoolStatus {
    /// Number of events waiting to be applied.
    pub waiting: usize,
    /// Number of unreadable files that were quarantined within the last day.
    pub unreadable: usize,
    /// Events lost within the last day.
    pub lost: Option<LostEvents>,
}

impl SpoolStatus {
    /// Reads the state.
    pub fn of(home: &Home, unix_ms: i64) -> Self {
        let spool = Spool::of(home);
        let (waiting, unreadable) = spool.count();
        let day_ms = i64::try_from(SHOWN_FOR.as_millis()).unwrap_or(i64::MAX);
        Self { waiting, unreadable, lost: spool.lost_since(unix_ms.saturating_sub(day_ms)) }
    }
}

impl Journal {
    /// Waits until the events that are now in the spool are applied, one second at most. Wakes the hub, or starts one. If no
    /// hub may be started, applies them in this process, which may fail. An empty spool costs two directory listings.
    ///
    /// For a command, before it reads state that events change.
    pub fn settle_spool(&mut self) -> Result<(), Error> {
        self.settle_spool_within(SETTLE_WITHIN)
    }

    /// Like [`Self::settle_spool`], with another time limit.
    pub fn settle_spool_within(&mut self, limit: Duration) -> Result<(), Error> {
        let end = Instant::now() + limit;
        let (mut pause, mut hub_comes, mut busy) = (FIRST_PAUSE, false, None);
        // Only the events that are there now: others may be spooled all the time.
        let mut entries = Spool::of(&self.home).entries();
        while self.has_unapplied(&entries)? {
            if !hub_comes {
                hub_comes = doorbell::wake_hub(&self.home);
            }
            if !hub_comes {
                match self.home.hub_starter() {
                    Some(start) => {
                        start(&self.home);
                        hub_comes = true;
                    }
                    None => match self.apply_spool_as_command() {
                        Ok(Some(SpoolProgress { more: true, .. })) if Instant::now() < end => continue,
                        Ok(Some(_)) => return Ok(()),
                        // Another command, or a starting hub, applies them.
                        Ok(None) => {}
                        Err(error @ Error::Busy { .. }) => busy = Some(error),
                        Err(error) => return Err(error),
                    },
                }
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return busy.map_or(Ok(()), Err);
            }
            thread::sleep(pause.min(left));
            pause = (pause * 2).min(LONGEST_PAUSE);
            entries.retain(Entry::exists);
        }
        Ok(())
    }

    /// Applies one batch of spooled events if no hub may be started. For a hook that has spooled its event: otherwise the
    /// session would get no messages until some command runs.
    pub fn apply_spool_without_hub(&mut self) -> Result<(), Error> {
        if self.home.hub_starter().is_none() && !self.hub_was_woken() {
            self.apply_spool_as_command()?;
        }
        Ok(())
    }

    /// Applies one batch under the hub's lock. `None` if another process holds it. Releases the lock after each batch, so that
    /// a hub can start.
    fn apply_spool_as_command(&mut self) -> Result<Option<SpoolProgress>, Error> {
        let Some(lock) = SpoolLock::take(&self.home)? else { return Ok(None) };
        self.apply_spool(&lock, &monotonic, LockTimeout::HOOK).map(Some)
    }

    /// Returns true if [`Self::apply_spool`] would change something. Files of a newer version, and applied files that cannot be
    /// removed, do not count.
    pub fn has_spooled_events(&mut self) -> Result<bool, Error> {
        self.has_unapplied(&Spool::of(&self.home).entries())
    }

    fn has_unapplied(&mut self, entries: &[Entry]) -> Result<bool, Error> {
        if Spool::of(&self.home).lost().is_some() {
            return Ok(true);
        }
        if entries.is_empty() {
            return Ok(false);
        }
        let applied = self.applied_names()?;
        let mut left = entries.iter().filter(|entry| !applied.contains(&entry.full_name()));
        Ok(left.any(|entry| !matches!(SpoolFile::of(entry), None | Some(SpoolFile::Newer))))
    }

    /// Applies at most 256 spooled events, and reports lost events to the person. Waits for the write lock up to the timeout.
    pub fn apply_spool(
        &mut self,
        _: &SpoolLock,
        clock: &dyn Fn() -> Duration,
        lock_timeout: LockTimeout,
    ) -> Result<SpoolProgress, Error> {
        let spool = Spool::of(&self.home);
        spool.remove_abandoned();
        let (entries, lost) = (spool.entries(), spool.lost());
        if entries.is_empty() && lost.is_none() {
            return Ok(SpoolProgress::default());
        }
        self.with_lock_timeout(lock_timeout, |journal| {
            journal.apply_entries(&spool, entries, lost.as_ref(), clock)
        })
    }

    /// Reserves space so that lost events can be counted on a full disk. The hub calls it while there is room.
    pub fn prepare_to_count_lost_events(&self) {
        Spool::of(&self.home).prepare_counter();
    }

    fn apply_entries(
        &mut self,
        spool: &Spool,
        entries: Vec<Entry>,
        lost: Option<&LostEvents>,
        clock: &dyn Fn() -> Duration,
    ) -> Result<SpoolProgress, Error> {
        let applied_names = self.applied_names()?;
        let (done, entries): (Vec<Entry>, Vec<Entry>) =
            entries.into_iter().partition(|entry| applied_names.contains(&entry.full_name()));
        // Already applied by a process that was killed before it removed them.
        done.iter().for_each(Entry::remove);
        let Batch { mut events, mut unreadable, more } = Batch::read(entries);
        if events.is_empty() && unreadable.is_empty() && lost.is_none() {
            return Ok(SpoolProgress::default());
        }
        let (applied, failed, bells) = self.write(|transaction| {
            let (mut applied, mut failed, mut bells) = (0, Vec::new(), Vec::new());
            forget_removed_files(transaction)?;
            let now = clock();
            for (place, (entry, event)) in events.iter().enumerate() {
                if !entry.exists() || is_recorded(transaction, entry)? {
                    continue;
                }
                let time = time_of(entry, event, now);
                // An event that cannot be applied must not block the others.
                transaction.execute_batch("SAVEPOINT event")?;
                match event.apply(transaction, InboxRequest::default(), time) {
                    Ok((_, more)) => {
                        bells.extend(more);
                        applied += 1;
                        record_applied(transaction, entry)?;
                    }
                    // The database failed: nothing can be applied now.
                    Err(error) if !is_about_the_event(&error) => return Err(error),
                    Err(_) => {
                        transaction.execute_batch("ROLLBACK TO event")?;
                        failed.push(place);
                    }
                }
                transaction.execute_batch("RELEASE event")?;
            }
            let bad = unreadable.iter().chain(failed.iter().map(|place| &events[*place].0));
            for (text, stamp) in problems(&bad.collect::<Vec<_>>(), lost) {
                if let Ok(draft) = Draft::new(Scope::global(), Sender::system(), Kind::Error, &text) {
                    bells.extend(append::put(transaction, &draft, &stamp.message_id(), stamp.unix_ms)?);
                }
            }
            Ok((applied, failed, bells))
        })?;
        for place in failed.into_iter().rev() {
            unreadable.push(events.swap_remove(place).0);
        }
        // After the transaction that reports them. A file that cannot be moved is reported again, under the same message id.
        let moved = unreadable.iter().filter(|entry| entry.quarantine().is_ok()).count();
        for (entry, _) in &events {
            entry.remove();
        }
        if lost.is_some() {
            spool.mark_lost_reported();
        }
        self.wake(&bells);
        let made_progress = moved > 0 || events.iter().any(|(entry, _)| !entry.exists());
        Ok(SpoolProgress { events: applied, unreadable: moved, more: more && made_progress })
    }

    /// Names of applied events whose files may still exist.
    fn applied_names(&mut self) -> Result<HashSet<String>, Error> {
        self.read(|connection| {
            let mut notes = connection.prepare("SELECT name FROM spooled")?;
            notes.query_map([], |row| text(row, 0))?.collect()
        })
    }
}

/// The content of a spool file.
#[doc(hidden)]
#[derive(Debug, PartialEq, Eq)]
pub enum SpoolFile {
    /// An event.
    Event(Box<AgentEvent>),
    /// Written by a newer version of Ringer, which will apply it.
    Newer,
    /// Not written by a hook, or damaged.
    Unreadable,
}

impl SpoolFile {
    /// Parses the content of a file.
    pub fn read(bytes: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        match serde_json::from_slice::<SpooledEvent>(bytes) {
            Ok(SpooledEvent { version: VERSION, event }) if is_valid(&event) => Self::Event(Box::new(event)),
            _ if serde_json::from_slice::<Version>(bytes).is_ok_and(|found| found.version > VERSION) => {
                Self::Newer
            }
            _ => Self::Unreadable,
        }
    }

    /// `None` if the file is gone because its event was applied, or if this process has no descriptors left.
    fn of(entry: &Entry) -> Option<Self> {
        match entry.read() {
            Ok(bytes) => Some(Self::read(&bytes)),
            Err(error) if error.kind() == ErrorKind::InvalidData => Some(Self::Unreadable),
            Err(_) => None,
        }
    }

    /// Writes arbitrary bytes into the spool of a home as an agent's event. For fuzzing.
    pub fn put(home: &Home, agent: &Agent, mono: Duration, bytes: &[u8]) -> io::Result<()> {
        Spool::of(home).begin(agent, IdSource::now().number())?.finish(mono, bytes).map(drop)
    }
}

/// The oldest files of the spool, at most [`MAX_AT_ONCE`].
#[derive(Default)]
struct Batch {
    events: Vec<(Entry, Box<AgentEvent>)>,
    unreadable: Vec<Entry>,
    /// More files are waiting.
    more: bool,
}

impl Batch {
    fn read(entries: Vec<Entry>) -> Self {
        let mut batch = Self::default();
        for entry in entries {
            if batch.events.len() + batch.unreadable.len() == MAX_AT_ONCE {
                batch.more = true;
                break;
            }
            match SpoolFile::of(&entry) {
                Some(SpoolFile::Event(event)) => batch.events.push((entry, event)),
                Some(SpoolFile::Unreadable) => batch.unreadable.push(entry),
                Some(SpoolFile::Newer) | None => {}
            }
        }
        batch
    }
}

/// Returns true for errors caused by an event, or by its agent's row, and not by the database.
fn is_about_the_event(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{ConstraintViolation, TooBig, TypeMismatch};
    matches!(error.sqlite_error_code(), None | Some(ConstraintViolation | TooBig | TypeMismatch))
}

/// The time of an event, as seen by the process that applies it.
fn time_of(entry: &Entry, event: &AgentEvent, now: Duration) -> EventTime {
    if entry.is_of_this_boot() {
        EventTime { mono: entry.mono.min(now), now, earlier_boot_ms: None }
    } else {
        EventTime { mono: now, now, earlier_boot_ms: Some(event.stamp.unix_ms) }
    }
}

/// Returns true if the names in an event are valid, which deserialising does not check.
fn is_valid(event: &AgentEvent) -> bool {
    let agents = [Some(&event.agent.id), event.agent.manager.as_ref()];
    agents.into_iter().flatten().all(|agent| Agent::new(agent.as_str()).is_ok())
        && Scope::new(event.agent.scope.as_str()).is_ok()
}

/// Messages to the person about unreadable and lost events. The stamp depends only on the problem, so a repeated report is the
/// same message.
fn problems(unreadable: &[&Entry], lost: Option<&LostEvents>) -> Vec<(String, IdSource)> {
    let events = |count| if count == 1 { "1 event".to_owned() } else { format!("{count} events") };
    let stamp = |unix_ms: i64, number: u64| {
        let mut random = [0; 16];
        random[..8].copy_from_slice(&number.to_be_bytes());
        IdSource { unix_ms, random }
    };
    let mut problems = Vec::new();
    if let Some(first) = unreadable.first() {
        let count = events(unreadable.len());
        let text = format!(
            "Ringer could not read {count} of agents' hooks. Set aside: {}",
            first.bad_path().display()
        );
        let modified = fs::symlink_metadata(first.path()).and_then(|metadata| metadata.modified());
        let since = modified.ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
        let unix_ms = i64::try_from(since.as_millis()).unwrap_or(0);
        problems.push((text, stamp(unix_ms, hash(first.name.as_bytes()))));
    }
    if let Some(lost) = lost {
        let text = format!(
            "Ringer lost {} of agents' hooks: {}. What it says of these agents is out of date until they report again.",
            events(lost.count),
            lost.why,
        );
        problems.push((text, stamp(lost.since_ms, lost.count as u64)));
    }
    problems
}

impl Entry {
    /// The name under which it is recorded: the full path, because two directories may contain files with the same name.
    fn full_name(&self) -> String {
        self.path().to_string_lossy().into_owned()
    }
}

fn record_applied(transaction: &Transaction<'_>, entry: &Entry) -> rusqlite::Result<()> {
    transaction.prepare("INSERT INTO spooled (name) VALUES (?1)")?.execute([entry.full_name()]).map(drop)
}

fn is_recorded(transaction: &Transaction<'_>, entry: &Entry) -> rusqlite::Result<bool> {
    transaction
        .prepare("SELECT 1 FROM spooled WHERE name = ?1")?
        .query_row([entry.full_name()], |_| Ok(()))
        .optional()
        .map(|found| found.is_some())
}

/// Deletes recorded names whose files are gone. A name in a directory that this process cannot see stays: its file may exist.
fn forget_removed_files(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let is_gone = |name: &String| {
        let path = Path::new(name);
        let missing = fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound);
        missing && path.parent().is_some_and(Path::is_dir)
    };
    let mut notes = transaction.prepare("SELECT name FROM spooled")?;
    let names: Vec<String> = notes.query_map([], |row| text(row, 0))?.collect::<rusqlite::Result<_>>()?;
    for name in names.iter().filter(|name| is_gone(name)) {
        transaction.prepare("DELETE FROM spooled WHERE name = ?1")?.execute([name])?;
    }
    Ok(())
}
