//! The spool: events of hooks that could not be written to the database at once, one file each.
//!
//! A hook must not make its agent wait, so it gives up on the write lock after 50 ms. Its event is then in a file that
//! was written aside and renamed: complete, or not there. The hub applies it. The files are in the runtime directory (memory: a full disk does
//! not matter there), else in the home. They are not synced: they survive the death of every process, and after a power
//! loss the agents are gone as well.
//!
//! A file's name says when the event happened and to which agent: `BOOT-NANOSECONDS-RANDOM-AGENT.event`. A file that is
//! still being written is `RANDOM-AGENT.tmp`: a hook of the same session that sees one writes its own event down, even if
//! that changes nothing, so that the two are put in order.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ringer_core::message::Agent;
use rustix::fs::OFlags;

use crate::home::Home;
use crate::ids::Uptime;
use crate::runtime_directory::{RuntimeDirectories, SPOOL, file_name_part, make_private};

/// Files that one directory holds at most. A session makes a few events a second, so this is an hour of a hundred agents.
pub(crate) const MAX_FILES: usize = 10_000;
/// Bytes that one directory holds at most: the runtime directory is memory.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The largest file of one event. The texts of an event are cut to a few KiB before.
pub(crate) const MAX_EVENT: u64 = 128 * 1024;
/// A temporary file of this age was left by a process that was killed: writing one takes less than a millisecond.
const ABANDONED_AFTER: Duration = Duration::from_mins(1);

/// How long what went wrong is shown in `status` and `doctor`.
pub(crate) const SHOWN_FOR: Duration = Duration::from_hours(24);

const EVENT: &str = ".event";
const TEMPORARY: &str = ".tmp";

/// The directories of one home's spool.
#[derive(Debug, Clone)]
pub(crate) struct Spool {
    directories: RuntimeDirectories,
    home: PathBuf,
}

/// One file of the spool. Ordered by when its event happened.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// Events of an earlier boot come first: their agents are gone.
    is_of_this_boot: bool,
    pub(crate) mono: Duration,
    /// The name identifies the event: it is recorded in the transaction that applies the event.
    pub(crate) name: String,
    directory: PathBuf,
}

impl Spool {
    pub(crate) fn of(home: &Home) -> Self {
        Self { directories: RuntimeDirectories::of(home, SPOOL), home: home.path().to_owned() }
    }

    /// Begins to spool an event of an agent. From here on other hooks of that session know that there is one.
    pub(crate) fn begin(&self, agent: &Agent, random: u32) -> io::Result<Unfinished> {
        let mut failure = io::Error::from(ErrorKind::NotFound);
        for directory in &self.directories.written {
            match self.begin_in(directory, agent, random) {
                Ok(unfinished) => return Ok(unfinished),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn begin_in(&self, directory: &Path, agent: &Agent, random: u32) -> io::Result<Unfinished> {
        if directory.parent() == Some(self.home.as_path()) {
            // A hook before any other command of that home.
            DirBuilder::new().recursive(true).mode(0o700).create(&self.home)?;
        }
        make_private(directory)?;
        has_room(directory)?;
        let agent = file_name_part(agent);
        let temporary = directory.join(format!("{random:08x}-{agent}{TEMPORARY}"));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        Ok(Unfinished { file, temporary, random, agent })
    }

    /// Whether an event of that agent is spooled, or being spooled.
    pub(crate) fn has_any_of(&self, agent: &Agent) -> bool {
        let word = file_name_part(agent);
        let agent_of = |name: &str| {
            let (stem, parts) = match name.strip_suffix(EVENT) {
                Some(stem) => (stem, 4),
                None => (name.strip_suffix(TEMPORARY)?, 2),
            };
            stem.splitn(parts, '-').nth(parts - 1).map(str::to_owned)
        };
        self.directories.files().any(|(_, name)| agent_of(&name).is_some_and(|agent| agent == word))
    }

    /// The spooled events in the order in which they happened.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let names: Vec<(&Path, String)> = self.directories.files().collect();
        if names.is_empty() {
            return Vec::new();
        }
        let boot = boot_id();
        let mut entries: Vec<Entry> =
            names.into_iter().filter_map(|(directory, name)| Entry::parse(directory, name, &boot)).collect();
        entries.sort();
        entries
    }

    /// How many events are spooled, and how many files of the last day could not be read and were quarantined.
    pub(crate) fn count(&self) -> (usize, usize) {
        let events = self.directories.files().filter(|(_, name)| name.ends_with(EVENT)).count();
        let is_recent = |file: &fs::DirEntry| {
            let moved = file.metadata().and_then(|metadata| metadata.modified());
            moved.is_ok_and(|moved| moved.elapsed().unwrap_or_default() < SHOWN_FOR)
        };
        let bad = self
            .directories
            .all()
            .flat_map(|directory| fs::read_dir(directory.join("bad")).into_iter().flatten());
        (events, bad.flatten().filter(is_recent).count())
    }

    /// Removes temporary files that killed processes left.
    pub(crate) fn remove_abandoned(&self) {
        for (directory, name) in self.directories.files().filter(|(_, name)| name.ends_with(TEMPORARY)) {
            let path = directory.join(name);
            let written = fs::symlink_metadata(&path).and_then(|metadata| metadata.modified());
            let age = written.map(|written| SystemTime::now().duration_since(written).unwrap_or_default());
            if age.is_ok_and(|age| age > ABANDONED_AFTER) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

impl Entry {
    fn parse(directory: &Path, name: String, this_boot: &str) -> Option<Self> {
        let mut parts = name.strip_suffix(EVENT)?.splitn(4, '-');
        let (boot, nanoseconds) = (parts.next()?, parts.next()?.parse().ok()?);
        let (_random, _agent) = (parts.next()?, parts.next()?);
        let is_of_this_boot = boot == this_boot;
        let mono = Duration::from_nanos(nanoseconds);
        Some(Self { is_of_this_boot, mono, name, directory: directory.to_owned() })
    }

    /// Whether its time is of the clock that runs now.
    pub(crate) fn is_of_this_boot(&self) -> bool {
        self.is_of_this_boot
    }

    /// Where it is.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join(&self.name)
    }

    /// Where it is once it was quarantined.
    pub(crate) fn bad_path(&self) -> PathBuf {
        self.directory.join("bad").join(&self.name)
    }

    /// Whether it is still there. Checked under the write lock: an event that is gone was applied.
    pub(crate) fn exists(&self) -> bool {
        fs::symlink_metadata(self.path()).is_ok()
    }

    /// The bytes. Never waits and never reads more than [`MAX_EVENT`], whatever was put in this place;
    /// [`ErrorKind::InvalidData`] for what no hook wrote.
    pub(crate) fn read(&self) -> io::Result<Vec<u8>> {
        read_plain(&self.path(), MAX_EVENT)
    }

    /// Removes it, once what it says is on disk.
    pub(crate) fn remove(&self) {
        // One that stays is skipped by its note and removed the next time.
        let _ = fs::remove_file(self.path());
    }

    /// Moves it away, because it cannot be read.
    pub(crate) fn quarantine(&self) -> io::Result<()> {
        make_private(&self.directory.join("bad"))?;
        fs::rename(self.path(), self.bad_path())
    }
}

/// Reads a regular file of at most `most` bytes. Never waits: a FIFO or a device in its place is refused.
fn read_plain(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let is_plain = |metadata: &Metadata| metadata.is_file() && metadata.len() <= most;
    if !is_plain(&fs::symlink_metadata(path)?) {
        return Err(ErrorKind::InvalidData.into());
    }
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// An event that is being spooled. Dropped before it is finished, it leaves nothing.
#[derive(Debug)]
pub(crate) struct Unfinished {
    file: File,
    temporary: PathBuf,
    random: u32,
    agent: String,
}

impl Unfinished {
    /// Writes the event, which happened at that time. When this returns, no kill loses it. Gives its name.
    pub(crate) fn finish(mut self, mono: Duration, event: &[u8]) -> io::Result<String> {
        if event.len() as u64 > MAX_EVENT {
            return Err(ErrorKind::FileTooLarge.into());
        }
        self.file.write_all(event)?;
        let name = format!("{}-{:020}-{:08x}-{}{EVENT}", boot_id(), mono.as_nanos(), self.random, self.agent);
        fs::rename(&self.temporary, self.temporary.with_file_name(&name))?;
        Ok(name)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After a rename there is no file of this name any more.
        let _ = fs::remove_file(&self.temporary);
    }
}

fn has_room(directory: &Path) -> io::Result<()> {
    let files: Vec<_> = fs::read_dir(directory)?.flatten().collect();
    // Sizes are asked for only where they can matter.
    let may_be_large = files.len() as u64 * MAX_EVENT > MAX_BYTES;
    let sizes = || files.iter().filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len());
    if files.len() >= MAX_FILES || (may_be_large && sizes().sum::<u64>() >= MAX_BYTES) {
        return Err(ErrorKind::QuotaExceeded.into());
    }
    Ok(())
}

/// The first eight digits of what the kernel calls this boot. Without one (macOS) all boots count as one.
fn boot_id() -> String {
    Uptime::now().boot.get(..8).unwrap_or("00000000").to_owned()
}

/// The file that counts. Each line is one lost event: when, and why.
const LOST_EVENTS: &str = "lost-events";
/// The same file once it was reported to the person.
const REPORTED_EVENTS: &str = "lost-events.told";
/// The first line. The hub writes it while all is well, so that the file has a block of its own when the disk is full.
const LOST_HEADER: &str =
    "# Events of agents' hooks that could be written nowhere: milliseconds since 1970, reason.\n";
/// The longest file, in bytes. More lines would say nothing new.
const MAX_LOST_LENGTH: u64 = 256 * 1024;

/// Events of hooks that were lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostEvents {
    /// How many.
    pub count: usize,
    /// Since when, in milliseconds since 1970.
    pub since_ms: i64,
    /// Why the last one was lost.
    pub why: String,
}

impl Spool {
    /// Counts an event that could be written nowhere. Gives whether it could be counted.
    pub(crate) fn count_lost(&self, unix_ms: i64, why: &str) -> bool {
        let line = format!("{unix_ms} {}\n", why.replace('\n', " "));
        self.counters(LOST_EVENTS).any(|path| {
            // Never waits for a FIFO in its place.
            let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
            let opened =
                OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path);
            opened.is_ok_and(|mut file| {
                let is_short = file
                    .metadata()
                    .is_ok_and(|metadata| metadata.is_file() && metadata.len() < MAX_LOST_LENGTH);
                is_short && file.write_all(line.as_bytes()).is_ok()
            })
        })
    }

    /// Makes room for the first lines while there is room.
    pub(crate) fn prepare_counter(&self) {
        let path = self.home.join(LOST_EVENTS);
        if let Ok(mut file) = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path) {
            let _ = file.write_all(LOST_HEADER.as_bytes());
        }
    }

    /// What was lost and not reported yet.
    pub(crate) fn lost(&self) -> Option<LostEvents> {
        lost_in(self.counters(LOST_EVENTS), i64::MIN)
    }

    /// What was lost since then, reported or not.
    pub(crate) fn lost_since(&self, unix_ms: i64) -> Option<LostEvents> {
        lost_in(self.counters(LOST_EVENTS).chain(self.counters(REPORTED_EVENTS)), unix_ms)
    }

    /// Marks the lost events as reported to the person.
    pub(crate) fn mark_lost_reported(&self) {
        for path in self.counters(LOST_EVENTS) {
            let _ = fs::rename(&path, path.with_file_name(REPORTED_EVENTS));
        }
        self.prepare_counter();
    }

    fn counters(&self, name: &'static str) -> impl Iterator<Item = PathBuf> {
        [self.home.clone()]
            .into_iter()
            .chain(self.directories.written.clone())
            .map(move |directory| directory.join(name))
    }
}

/// Counts the lines of these files that are not older than that.
fn lost_in(files: impl Iterator<Item = PathBuf>, from_ms: i64) -> Option<LostEvents> {
    let mut lost: Vec<(i64, String)> = Vec::new();
    for bytes in files.filter_map(|path| read_plain(&path, 2 * MAX_LOST_LENGTH).ok()) {
        let text = String::from_utf8_lossy(&bytes);
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (when, why) = line.split_once(' ').unwrap_or((line, ""));
            lost.push((when.parse().unwrap_or(from_ms), why.to_owned()));
        }
    }
    lost.retain(|(when, _)| *when >= from_ms);
    lost.sort();
    let (since_ms, why) = (lost.first()?.0, lost.last()?.1.clone());
    Some(LostEvents { count: lost.len(), since_ms, why })
}

#[cfg(test)]
mod tests;
