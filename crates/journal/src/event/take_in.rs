//! Taking in what hooks spooled: each event once, in the order in which they happened.
//!
//! Several processes may do this at the same moment, and each may be killed anywhere. An event is applied, and its name
//! noted, in one transaction; its file is removed after that. So under the write lock an event counts if its file is there
//! and its name is not noted. Notes of files that are gone are removed, under the lock as well.

use std::io::ErrorKind;
use std::time::Duration;

use ringer_core::{Agent, Draft, Kind, Scope, Sender};
use rusqlite::{OptionalExtension, Transaction};
use serde::Deserialize;

use super::{AgentEvent, EventOutcome, SpooledEvent, VERSION, Wanted};
use crate::agent::EventTime;
use crate::append;
use crate::error::Error;
use crate::home::Home;
use crate::journal::Journal;
use crate::spool::{Entry, LostEvents, Spool};
use crate::stamp::Stamp;
use crate::turn::Patience;

/// Events taken in with one transaction. Each takes a fraction of a millisecond, and other writers wait for all of them.
const MAX_AT_ONCE: usize = 256;
/// How long lost events are shown in `status` and `doctor` after the person was told.
const SHOW_LOST_FOR_MS: i64 = 24 * 60 * 60 * 1000;

/// What came of taking in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TakenIn {
    /// Events that were applied.
    pub events: usize,
    /// Files that could not be read and were set aside.
    pub unreadable: usize,
    /// There are more.
    pub more: bool,
}

/// What is in the spool, and what never got there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpoolStatus {
    /// Events that wait to be taken in.
    pub waiting: usize,
    /// Files that were set aside because they could not be read.
    pub unreadable: usize,
    /// Events that were lost within the last day.
    pub lost: Option<LostEvents>,
}

impl SpoolStatus {
    /// The state of a home's spool.
    pub fn of(home: &Home, unix_ms: i64) -> Self {
        let spool = Spool::of(home);
        let (waiting, unreadable) = spool.count();
        Self { waiting, unreadable, lost: spool.lost_since(unix_ms.saturating_sub(SHOW_LOST_FOR_MS)) }
    }
}

impl Journal {
    /// Takes in what hooks spooled, at most 256 events, waiting for the write lock no longer than that. `now` is on the
    /// clock that never jumps. Costs next to nothing where there is nothing.
    pub fn take_in_spool(&mut self, now: Duration, patience: Patience) -> Result<TakenIn, Error> {
        let spool = Spool::of(&self.home);
        let mut entries = spool.entries(None);
        let lost = spool.lost();
        if entries.is_empty() && lost.is_none() {
            return Ok(TakenIn::default());
        }
        let more = entries.len() > MAX_AT_ONCE;
        entries.truncate(MAX_AT_ONCE);
        let taken =
            self.within(patience, |journal| journal.take_in(&spool, entries, None, lost.as_ref(), now));
        spool.remove_abandoned();
        taken.map(|(_, taken)| TakenIn { more, ..taken })
    }

    /// Makes sure that lost events can be counted when the disk is full. For the hub, while there is room.
    pub fn prepare_to_count_lost_events(&self) {
        Spool::of(&self.home).prepare_counter();
    }

    /// Takes in what is spooled of one agent, and with the event of that name also what is wanted for it.
    pub(super) fn take_in_own(
        &mut self,
        spool: &Spool,
        agent: &Agent,
        own: (&str, Wanted<'_>),
        now: Duration,
    ) -> Result<EventOutcome, Error> {
        let mut entries = spool.entries(Some(agent));
        // The oldest wait for the hub if there are more: the state is what the newest event says.
        entries.drain(..entries.len().saturating_sub(MAX_AT_ONCE));
        self.take_in(spool, entries, Some(own), None, now).map(|(outcome, _)| outcome)
    }

    fn take_in(
        &mut self,
        spool: &Spool,
        entries: Vec<Entry>,
        own: Option<(&str, Wanted<'_>)>,
        lost: Option<&LostEvents>,
        now: Duration,
    ) -> Result<(EventOutcome, TakenIn), Error> {
        let (events, unreadable) = read(entries);
        let (outcome, taken, bells) = self.write(|transaction| {
            let (mut outcome, mut bells) = (EventOutcome::default(), Vec::new());
            let mut taken = TakenIn { unreadable: unreadable.len(), ..TakenIn::default() };
            remove_notes(transaction, spool)?;
            for (entry, event) in &events {
                if !entry.exists() || is_noted(transaction, entry)? {
                    continue;
                }
                let own = own.filter(|(name, _)| entry.name == *name);
                let wanted = own.map(|(_, wanted)| wanted).unwrap_or_default();
                let (applied, more) = event.apply(transaction, wanted, time_of(entry, event, now))?;
                transaction.prepare("INSERT INTO spooled (name) VALUES (?1)")?.execute([&entry.name])?;
                bells.extend(more);
                taken.events += 1;
                if own.is_some() {
                    outcome = applied;
                }
            }
            for (text, stamp) in problems(&unreadable, lost) {
                if let Ok(draft) = Draft::new(Scope::global(), Sender::system(), Kind::Error, &text) {
                    bells.extend(append::put(transaction, &draft, &stamp.message_id(), stamp.unix_ms)?);
                }
            }
            Ok((outcome, taken, bells))
        })?;
        for (entry, _) in &events {
            entry.remove();
        }
        if lost.is_some() {
            spool.told_of_lost();
        }
        self.ring(&bells);
        Ok((outcome, taken))
    }
}

/// When an event happened, for the process that takes it in now.
fn time_of(entry: &Entry, event: &AgentEvent, now: Duration) -> EventTime {
    if entry.is_of_this_boot() {
        EventTime { mono: event.mono, now, earlier_boot_ms: None }
    } else {
        EventTime { mono: now, now, earlier_boot_ms: Some(event.stamp.unix_ms) }
    }
}

/// Reads files. What cannot be read is set aside, and given as the place where it is.
fn read(entries: Vec<Entry>) -> (Vec<(Entry, AgentEvent)>, Vec<String>) {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let (mut events, mut unreadable) = (Vec::new(), Vec::new());
    for entry in entries {
        let bytes = match entry.read() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::InvalidData => Vec::new(),
            // Taken in by another process in the meantime, or this process has no descriptors left.
            Err(_) => continue,
        };
        match serde_json::from_slice::<SpooledEvent>(&bytes) {
            Ok(spooled) if spooled.version == VERSION => events.push((entry, spooled.event)),
            // A newer version of Ringer wrote it and will take it in.
            _ if serde_json::from_slice::<Version>(&bytes).is_ok_and(|found| found.version > VERSION) => {}
            _ => unreadable.extend(entry.set_aside().ok().map(|path| path.display().to_string())),
        }
    }
    (events, unreadable)
}

/// What the person has to know. The stamp of a loss is the same however often that is told, so it is one message.
fn problems(unreadable: &[String], lost: Option<&LostEvents>) -> Vec<(String, Stamp)> {
    let events = |count| if count == 1 { "1 event".to_owned() } else { format!("{count} events") };
    let mut problems = Vec::new();
    if let Some(first) = unreadable.first() {
        let count = events(unreadable.len());
        let text = format!("Ringer could not read {count} of agents' hooks. Set aside: {first}");
        problems.push((text, Stamp::now()));
    }
    if let Some(lost) = lost {
        let text = format!(
            "Ringer lost {} of agents' hooks: {}. What it says of these agents is out of date until they report again.",
            events(lost.count),
            lost.why,
        );
        let mut random = [0; 16];
        random[..8].copy_from_slice(&(lost.count as u64).to_be_bytes());
        problems.push((text, Stamp { unix_ms: lost.since_ms, random }));
    }
    problems
}

fn is_noted(transaction: &Transaction<'_>, entry: &Entry) -> rusqlite::Result<bool> {
    transaction
        .prepare("SELECT 1 FROM spooled WHERE name = ?1")?
        .query_row([&entry.name], |_| Ok(()))
        .optional()
        .map(|found| found.is_some())
}

/// Removes the notes of files that are gone.
fn remove_notes(transaction: &Transaction<'_>, spool: &Spool) -> rusqlite::Result<()> {
    let mut notes = transaction.prepare("SELECT name FROM spooled")?;
    let names: Vec<String> = notes.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    for name in names.iter().filter(|name| !spool.holds(name)) {
        transaction.prepare("DELETE FROM spooled WHERE name = ?1")?.execute([name])?;
    }
    Ok(())
}
