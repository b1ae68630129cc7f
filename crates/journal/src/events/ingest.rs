//! Applies the events that hooks spooled: each event once, in the order in which they happened.
//!
//! Several processes may do this at the same moment, and each may be killed anywhere. An event is applied and its name
//! recorded in one transaction; its file is removed after that. So under the write lock an event is applied if its file
//! exists and its name is not recorded. Names of files that are gone are removed, under the lock as well.

use std::collections::HashSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use ringer_core::message::Agent;
use ringer_core::{Draft, Kind, Scope, Sender};
use rusqlite::{OptionalExtension, Transaction};
use serde::Deserialize;

use super::event::{AgentEvent, EventOutcome, InboxRequest, SpooledEvent, VERSION};
use super::lost::LostEvents;
use crate::db::text::text;
use crate::db::write_lock::LockTimeout;
use crate::error::Error;
use crate::events::spool::{Entry, SHOWN_FOR, Spool};
use crate::home::Home;
use crate::ids::IdSource;
use crate::journal::agent::apply::EventTime;
use crate::journal::append;
use crate::journal::schema::Journal;
use crate::runtime_directory::hash;

/// Events applied in one transaction. Each takes a fraction of a millisecond, and other writers wait for all of them.
const MAX_AT_ONCE: usize = 256;

/// What one call of [`Journal::ingest_spool`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpoolProgress {
    /// Events that were applied.
    pub events: usize,
    /// Files that could not be read and were quarantined.
    pub unreadable: usize,
    /// There are more.
    pub more: bool,
}

/// What is in the spool, and what never got there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpoolStatus {
    /// Events that wait to be applied.
    pub waiting: usize,
    /// Files of the last day that could not be read and were quarantined.
    pub unreadable: usize,
    /// Events that were lost within the last day.
    pub lost: Option<LostEvents>,
}

impl SpoolStatus {
    /// The state of a home's spool.
    pub fn of(home: &Home, unix_ms: i64) -> Self {
        let spool = Spool::of(home);
        let (waiting, unreadable) = spool.count();
        let day_ms = i64::try_from(SHOWN_FOR.as_millis()).unwrap_or(i64::MAX);
        Self { waiting, unreadable, lost: spool.lost_since(unix_ms.saturating_sub(day_ms)) }
    }
}

impl Journal {
    /// Applies at most 256 spooled events, waiting for the write lock no longer than the timeout. An empty spool costs two
    /// directory listings.
    pub fn ingest_spool(
        &mut self,
        clock: &dyn Fn() -> Duration,
        lock_timeout: LockTimeout,
    ) -> Result<SpoolProgress, Error> {
        let spool = Spool::of(&self.home);
        spool.remove_abandoned();
        let (entries, lost) = (spool.entries(None), spool.lost());
        if entries.is_empty() && lost.is_none() {
            return Ok(SpoolProgress::default());
        }
        let options = IngestOptions { own: None, lost };
        let taken =
            self.with_lock_timeout(lock_timeout, |journal| journal.ingest(&spool, entries, &options, clock));
        taken.map(|(_, taken)| taken)
    }

    /// Makes sure that lost events can be counted when the disk is full. For the hub, while there is room.
    pub fn prepare_to_count_lost_events(&self) {
        Spool::of(&self.home).prepare_counter();
    }

    /// Applies the spooled events of one agent, and with the event of that name also its inbox request.
    pub(super) fn ingest_session(
        &mut self,
        spool: &Spool,
        agent: &Agent,
        own: (&str, InboxRequest<'_>),
        clock: &dyn Fn() -> Duration,
    ) -> Result<EventOutcome, Error> {
        let mut entries = spool.entries(Some(agent));
        // The oldest wait for the hub if there are more: the state is what the newest event says.
        entries.drain(..entries.len().saturating_sub(MAX_AT_ONCE));
        let options = IngestOptions { own: Some(own), lost: None };
        let (own, _) = self.ingest(spool, entries, &options, clock)?;
        // Another process has it, or will.
        Ok(own.unwrap_or(EventOutcome { spooled: true, ..EventOutcome::default() }))
    }

    fn ingest(
        &mut self,
        spool: &Spool,
        entries: Vec<Entry>,
        options: &IngestOptions<'_>,
        clock: &dyn Fn() -> Duration,
    ) -> Result<(Option<EventOutcome>, SpoolProgress), Error> {
        let applied_names = self.applied_names()?;
        let (done, mut entries): (Vec<Entry>, Vec<Entry>) =
            entries.into_iter().partition(|entry| applied_names.contains(&entry.note()));
        // Applied by a process that was killed before it removed them.
        done.iter().for_each(Entry::remove);
        let (mut events, mut unreadable, more) = read(&mut entries);
        if events.is_empty() && unreadable.is_empty() && options.lost.is_none() {
            return Ok((None, SpoolProgress::default()));
        }
        let (own, applied, failed, bells) = self.write(|transaction| {
            let (mut own, mut applied, mut failed, mut bells) = (None, 0, Vec::new(), Vec::new());
            remove_notes(transaction)?;
            let now = clock();
            for (place, (entry, event)) in events.iter().enumerate() {
                if !entry.exists() || is_noted(transaction, entry)? {
                    continue;
                }
                let wanted = options.own.filter(|(name, _)| entry.name == *name).map(|(_, wanted)| wanted);
                let time = time_of(entry, event, now);
                // An event that cannot be applied must not keep the others from being so.
                transaction.execute_batch("SAVEPOINT event")?;
                match event.apply(transaction, wanted.unwrap_or_default(), time) {
                    Ok((outcome, more)) => {
                        bells.extend(more);
                        applied += 1;
                        own = wanted.map(|_| outcome).or(own);
                        note(transaction, entry)?;
                    }
                    // The database itself: nothing can be applied now.
                    Err(error) if !is_about_the_event(&error) => return Err(error),
                    Err(_) => {
                        transaction.execute_batch("ROLLBACK TO event")?;
                        failed.push(place);
                    }
                }
                transaction.execute_batch("RELEASE event")?;
            }
            let bad = unreadable.iter().chain(failed.iter().map(|place| &events[*place].0));
            for (text, stamp) in problems(&bad.collect::<Vec<_>>(), options.lost.as_ref()) {
                if let Ok(draft) = Draft::new(Scope::global(), Sender::system(), Kind::Error, &text) {
                    bells.extend(append::put(transaction, &draft, &stamp.message_id(), stamp.unix_ms)?);
                }
            }
            Ok((own, applied, failed, bells))
        })?;
        for place in failed.into_iter().rev() {
            unreadable.push(events.swap_remove(place).0);
        }
        // After the transaction that reports them. One that cannot be moved is tried and reported again, under the same id.
        let moved = unreadable.iter().filter(|entry| entry.quarantine().is_ok()).count();
        for (entry, _) in &events {
            entry.remove();
        }
        if options.lost.is_some() {
            spool.mark_lost_reported();
        }
        self.wake(&bells);
        let made_progress = moved > 0 || events.iter().any(|(entry, _)| !entry.exists());
        let taken = SpoolProgress { events: applied, unreadable: moved, more: more && made_progress };
        Ok((own, taken))
    }

    /// The events that were applied and whose files are still there.
    fn applied_names(&mut self) -> Result<HashSet<String>, Error> {
        self.read(|connection| {
            let mut notes = connection.prepare("SELECT name FROM spooled")?;
            notes.query_map([], |row| text(row, 0))?.collect()
        })
    }
}

/// What to do besides applying events.
struct IngestOptions<'a> {
    /// The event of the hook that runs this, by its name, and its inbox request.
    own: Option<(&'a str, InboxRequest<'a>)>,
    /// Lost events to report.
    lost: Option<LostEvents>,
}

/// Whether an event could not be applied because of what it says, or what its agent's row says.
fn is_about_the_event(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{ConstraintViolation, TooBig, TypeMismatch};
    matches!(error.sqlite_error_code(), None | Some(ConstraintViolation | TooBig | TypeMismatch))
}

/// When an event happened, for the process that applies it now.
fn time_of(entry: &Entry, event: &AgentEvent, now: Duration) -> EventTime {
    if entry.is_of_this_boot() {
        EventTime { mono: entry.mono.min(now), now, earlier_boot_ms: None }
    } else {
        EventTime { mono: now, now, earlier_boot_ms: Some(event.stamp.unix_ms) }
    }
}

/// Reads the oldest files, at most [`MAX_AT_ONCE`]. Gives the events, what no hook wrote, and whether there are more.
fn read(entries: &mut Vec<Entry>) -> (Vec<(Entry, AgentEvent)>, Vec<Entry>, bool) {
    let (mut events, mut unreadable) = (Vec::new(), Vec::new());
    for entry in entries.drain(..) {
        if events.len() + unreadable.len() == MAX_AT_ONCE {
            return (events, unreadable, true);
        }
        let bytes = match entry.read() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::InvalidData => Vec::new(),
            // Applied by another process in the meantime, or this process has no descriptors left.
            Err(_) => continue,
        };
        match SpoolFile::read(&bytes) {
            SpoolFile::Event(event) => events.push((entry, *event)),
            SpoolFile::Newer => {}
            SpoolFile::Unreadable => unreadable.push(entry),
        }
    }
    (events, unreadable, false)
}

/// What a file of the spool says.
#[doc(hidden)]
#[derive(Debug, PartialEq, Eq)]
pub enum SpoolFile {
    /// An event.
    Event(Box<AgentEvent>),
    /// A newer version of Ringer wrote it and will apply it.
    Newer,
    /// No hook wrote it.
    Unreadable,
}

impl SpoolFile {
    /// Reads the bytes of a file.
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

    /// Puts bytes into the spool of a home, as a file of an agent whose event happened then: for fuzzing.
    pub fn put(home: &Home, agent: &Agent, mono: Duration, bytes: &[u8]) -> io::Result<()> {
        Spool::of(home).begin(agent, IdSource::now().number())?.finish(mono, bytes).map(drop)
    }
}

/// Whether its names are names. Reading them back does not check that.
fn is_valid(event: &AgentEvent) -> bool {
    let agents = [Some(&event.agent.id), event.agent.manager.as_ref()];
    agents.into_iter().flatten().all(|agent| Agent::new(agent.as_str()).is_ok())
        && Scope::new(event.agent.scope.as_str()).is_ok()
}

/// The problems to report to the person. Each has the same stamp however often it is reported, so it is one message.
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
    /// The name under which it is recorded. The whole path: two directories may hold files of one name.
    fn note(&self) -> String {
        self.path().to_string_lossy().into_owned()
    }
}

fn note(transaction: &Transaction<'_>, entry: &Entry) -> rusqlite::Result<()> {
    transaction.prepare("INSERT INTO spooled (name) VALUES (?1)")?.execute([entry.note()]).map(drop)
}

fn is_noted(transaction: &Transaction<'_>, entry: &Entry) -> rusqlite::Result<bool> {
    transaction
        .prepare("SELECT 1 FROM spooled WHERE name = ?1")?
        .query_row([entry.note()], |_| Ok(()))
        .optional()
        .map(|found| found.is_some())
}

/// Removes the notes of files that are gone. A note of a directory that this process cannot see stays: its file may be
/// there.
fn remove_notes(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
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
