//! The spool: one file for each event that could not be written to the database at once, and a count of lost events.
//!
//! A hook must not delay its agent, so it gives up on the write lock after 50 ms. It then writes its event to a temporary file
//! and renames it, so that it is either complete or absent. The hub applies it. The files are in the runtime directory (in
//! memory, so unaffected by a full disk), else in the home. They are not synced: they survive the death of any process, and
//! after a power loss the agents are gone as well.
//!
//! The file name contains the time of the event and the agent: `BOOT-NANOSECONDS-RANDOM-AGENT.event`. A file that is being
//! written is `RANDOM-AGENT.tmp`. While one exists, other hooks of the session spool their events too, even those without an
//! effect, so that their order is preserved.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ringer_core::message::Agent;
use rustix::fs::OFlags;

use crate::home::{Home, RuntimeDirectories, SPOOL, file_name_part, make_private};
use crate::ids::Uptime;

/// Maximum number of files per directory: a hundred events for each of a hundred agents.
pub(crate) const MAX_FILES: usize = 10_000;
/// Maximum size of a directory: the runtime directory is in memory.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Maximum size of an event. Its texts are cut to a few KiB before.
pub(crate) const MAX_EVENT: u64 = 128 * 1024;
/// Age at which a temporary file counts as left by a killed process: writing one takes less than a millisecond.
const ABANDONED_AFTER: Duration = Duration::from_mins(1);

/// How long `status` and `doctor` show lost and unreadable events.
pub(crate) const SHOWN_FOR: Duration = Duration::from_hours(24);

const EVENT: &str = ".event";
const TEMPORARY: &str = ".tmp";

/// The spool of a home.
#[derive(Debug, Clone)]
pub(crate) struct Spool {
    directories: RuntimeDirectories,
    home: PathBuf,
}

/// A spooled event. Ordered by the time of the event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// First, so that events of an earlier boot sort before: their agents are gone.
    is_of_this_boot: bool,
    pub(crate) mono: Duration,
    /// File name. It identifies the event and is recorded in the transaction that applies it.
    pub(crate) name: String,
    directory: PathBuf,
}

impl Spool {
    pub(crate) fn of(home: &Home) -> Self {
        Self { directories: RuntimeDirectories::of(home, SPOOL), home: home.path().to_owned() }
    }

    /// Starts to spool an event. From now on, other hooks of the session see that there is one.
    pub(crate) fn begin(&self, agent: &Agent, random: u32) -> io::Result<SpoolWriter> {
        let mut failure = io::Error::from(ErrorKind::NotFound);
        for directory in &self.directories.written {
            match self.begin_in(directory, agent, random) {
                Ok(writer) => return Ok(writer),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn begin_in(&self, directory: &Path, agent: &Agent, random: u32) -> io::Result<SpoolWriter> {
        if directory.parent() == Some(self.home.as_path()) {
            // This hook may be the first process to use the home.
            DirBuilder::new().recursive(true).mode(0o700).create(&self.home)?;
        }
        make_private(directory)?;
        has_room(directory)?;
        let agent = file_name_part(agent);
        let temporary = directory.join(format!("{random:08x}-{agent}{TEMPORARY}"));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        Ok(SpoolWriter { file, temporary, random, agent })
    }

    /// Returns true if an event of the agent is spooled or being spooled.
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

    /// The spooled events, oldest first.
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

    /// The number of spooled events, and of unreadable files that were quarantined within the last day.
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

    /// Removes temporary files of killed processes.
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

    /// Returns true if the event is of the current boot, so that its monotonic time is comparable.
    pub(crate) fn is_of_this_boot(&self) -> bool {
        self.is_of_this_boot
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join(&self.name)
    }

    /// Its path after quarantine.
    pub(crate) fn bad_path(&self) -> PathBuf {
        self.directory.join("bad").join(&self.name)
    }

    /// Returns true if the file exists. Under the write lock, a missing file means that the event was applied.
    pub(crate) fn exists(&self) -> bool {
        fs::symlink_metadata(self.path()).is_ok()
    }

    /// Reads the file. Never blocks and never reads more than [`MAX_EVENT`]. Fails with [`ErrorKind::InvalidData`] if it is not
    /// a file that a hook wrote.
    pub(crate) fn read(&self) -> io::Result<Vec<u8>> {
        read_plain(&self.path(), MAX_EVENT)
    }

    /// Removes the file after the event was applied.
    pub(crate) fn remove(&self) {
        // If this fails, its recorded name prevents it from being applied again.
        let _ = fs::remove_file(self.path());
    }

    /// Quarantines an unreadable file.
    pub(crate) fn quarantine(&self) -> io::Result<()> {
        make_private(&self.directory.join("bad"))?;
        fs::rename(self.path(), self.bad_path())
    }
}

/// Reads a regular file of at most `most` bytes. Never blocks: refuses FIFOs and devices.
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

/// An event that is being spooled. Dropping it without `finish` removes the temporary file.
#[derive(Debug)]
pub(crate) struct SpoolWriter {
    file: File,
    temporary: PathBuf,
    random: u32,
    agent: String,
}

impl SpoolWriter {
    /// Writes the event. When this returns, a kill does not lose it. Returns its file name.
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

impl Drop for SpoolWriter {
    fn drop(&mut self) {
        // After the rename in `finish` this file does not exist.
        let _ = fs::remove_file(&self.temporary);
    }
}

fn has_room(directory: &Path) -> io::Result<()> {
    let files: Vec<_> = fs::read_dir(directory)?.flatten().collect();
    // Sizes are read only if they can matter.
    let may_be_large = files.len() as u64 * MAX_EVENT > MAX_BYTES;
    let sizes = || files.iter().filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len());
    if files.len() >= MAX_FILES || (may_be_large && sizes().sum::<u64>() >= MAX_BYTES) {
        return Err(ErrorKind::QuotaExceeded.into());
    }
    Ok(())
}

/// The first eight digits of the boot id. Without one (macOS), all boots count as one.
fn boot_id() -> String {
    Uptime::now().boot.get(..8).unwrap_or("00000000").to_owned()
}

/// The file that counts lost events. Each line is one event: time and reason.
const LOST_EVENTS: &str = "lost-events";
/// Its name after its events were reported to the person.
const REPORTED_EVENTS: &str = "lost-events.told";
/// The first line. The hub writes it in advance, so that the file already has a disk block when the disk is full.
const LOST_HEADER: &str =
    "# Events of agents' hooks that could be written nowhere: milliseconds since 1970, reason.\n";
/// Maximum length of the file, in bytes.
const MAX_LOST_LENGTH: u64 = 256 * 1024;

/// Events that could be written neither to the database nor to the spool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostEvents {
    /// Number of lost events.
    pub count: usize,
    /// Time of the first one, in milliseconds since 1970.
    pub since_ms: i64,
    /// Reason for the last one.
    pub why: String,
}

impl Spool {
    /// Counts a lost event. Returns true if it could be counted.
    pub(crate) fn count_lost(&self, unix_ms: i64, why: &str) -> bool {
        let line = format!("{unix_ms} {}\n", why.replace('\n', " "));
        self.counters(LOST_EVENTS).any(|path| {
            // Does not block if a FIFO is in its place.
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

    /// Creates the file with its first line, to reserve disk space.
    pub(crate) fn prepare_counter(&self) {
        let path = self.home.join(LOST_EVENTS);
        if let Ok(mut file) = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path) {
            let _ = file.write_all(LOST_HEADER.as_bytes());
        }
    }

    /// Lost events that were not yet reported.
    pub(crate) fn lost(&self) -> Option<LostEvents> {
        lost_in(self.counters(LOST_EVENTS), i64::MIN)
    }

    /// Events lost since a time, reported or not.
    pub(crate) fn lost_since(&self, unix_ms: i64) -> Option<LostEvents> {
        lost_in(self.counters(LOST_EVENTS).chain(self.counters(REPORTED_EVENTS)), unix_ms)
    }

    /// Marks all lost events as reported to the person.
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

/// Summarises the lines of these files since a time.
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
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::events::spool::LostEvents;
    use crate::wake::doorbell::make_fifo;

    struct Place {
        directory: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            for name in ["home", "run"] {
                DirBuilder::new().mode(0o700).create(directory.path().join(name)).unwrap();
            }
            Self { directory }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.directory.path().join(name)
        }

        fn spool(&self) -> Spool {
            Spool::of(&Home::new(self.path("home")).with_runtime(Some(self.path("run"))))
        }
    }

    fn agent(id: &str) -> Agent {
        Agent::new(id).unwrap()
    }

    fn put(spool: &Spool, id: &str, at: u64, random: u32) -> String {
        spool.begin(&agent(id), random).unwrap().finish(Duration::from_secs(at), b"event").unwrap()
    }

    #[test]
    fn events_come_back_in_the_order_in_which_they_happened() {
        let place = Place::new();
        let spool = place.spool();
        put(&spool, "claude-b", 30, 1);
        put(&spool, "claude-a", 10, 2);
        put(&spool, "claude-a", 20, 3);
        let times: Vec<u64> = spool.entries().iter().map(|entry| entry.mono.as_secs()).collect();
        assert_eq!(times, [10, 20, 30]);
        assert!(spool.has_any_of(&agent("claude-a")));
        assert!(!spool.has_any_of(&agent("a")), "an agent whose name ends the same is another one");
        let entries = spool.entries();
        assert_eq!(entries[0].read().unwrap(), b"event");
        assert!(entries[0].exists() && entries[0].is_of_this_boot());
        entries.iter().for_each(Entry::remove);
        assert_eq!((spool.entries(), spool.count()), (Vec::new(), (0, 0)));
    }

    #[test]
    fn an_event_that_is_being_written_is_known_and_not_read() {
        let place = Place::new();
        let spool = place.spool();
        let writer = spool.begin(&agent("claude-a"), 7).unwrap();
        assert!(spool.has_any_of(&agent("claude-a")) && !spool.has_any_of(&agent("claude-b")));
        assert_eq!(spool.entries(), []);
        drop(writer);
        assert!(!spool.has_any_of(&agent("claude-a")), "given up, it leaves nothing");
    }

    #[test]
    fn what_happened_before_the_machine_was_started_comes_first() {
        let place = Place::new();
        let spool = place.spool();
        let name = put(&spool, "claude-a", 5, 1);
        let (boot, rest) = name.split_once('-').unwrap();
        let folder = spool.directories.written[0].clone();
        let earlier = format!("{}-{}", "0badb007", rest.replace("00005000000000", "99000000000000"));
        assert_ne!(boot, "0badb007");
        fs::write(folder.join(earlier), "event").unwrap();
        let boots: Vec<bool> = spool.entries().iter().map(Entry::is_of_this_boot).collect();
        assert_eq!(boots, [false, true]);
    }

    #[test]
    fn the_runtime_directory_is_used_where_it_is_private() {
        let place = Place::new();
        put(&place.spool(), "a", 1, 1);
        assert!(place.path("run/ringer").is_dir() && !place.path("home/spool").exists());
        for (mode, what) in [(0o777, "others can write there"), (0o500, "it cannot be written")] {
            fs::remove_dir_all(place.path("run/ringer")).unwrap();
            fs::set_permissions(place.path("run"), fs::Permissions::from_mode(mode)).unwrap();
            // Root ignores the permissions of a directory.
            if mode == 0o777 || !rustix::process::geteuid().is_root() {
                put(&place.spool(), "a", 1, mode);
                assert_eq!(fs::read_dir(place.path("home/spool")).unwrap().count(), 1, "{what}");
                fs::remove_dir_all(place.path("home/spool")).unwrap();
            }
            fs::set_permissions(place.path("run"), fs::Permissions::from_mode(0o700)).unwrap();
            fs::create_dir_all(place.path("run/ringer")).unwrap();
        }
    }

    #[test]
    fn what_no_hook_wrote_is_set_aside_unread() {
        let place = Place::new();
        let spool = place.spool();
        put(&spool, "a", 1, 1);
        let folder = spool.directories.written[0].clone();
        let name = |number: u32| format!("00000000-{number:020}-00000000-a{EVENT}");
        fs::create_dir(folder.join(name(1))).unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.join(name(2))).unwrap();
        fs::write(folder.join(name(3)), vec![b' '; usize::try_from(MAX_EVENT).unwrap() + 1]).unwrap();
        make_fifo(&folder.join(name(4))).unwrap();
        for entry in spool.entries().iter().filter(|entry| !entry.is_of_this_boot()) {
            assert_eq!(entry.read().unwrap_err().kind(), ErrorKind::InvalidData, "{}", entry.name);
            entry.quarantine().unwrap();
        }
        assert_eq!(spool.count(), (1, 4));
        assert_eq!(spool.entries().len(), 1);
    }

    #[test]
    fn a_spool_that_is_full_says_so() {
        let place = Place::new();
        let spool = place.spool();
        put(&spool, "a", 1, 0);
        let folder = spool.directories.written[0].clone();
        for number in 1..MAX_FILES {
            fs::write(folder.join(number.to_string()), "").unwrap();
        }
        // The home is used if the runtime directory cannot be.
        put(&spool, "a", 2, 2);
        assert_eq!(fs::read_dir(place.path("home/spool")).unwrap().count(), 1);
    }

    #[test]
    fn ids_that_are_no_file_names_are_told_apart_all_the_same() {
        let place = Place::new();
        let spool = place.spool();
        for (number, id) in ["../../x", "a/b", ".", "ä"].iter().enumerate() {
            put(&spool, id, 1, u32::try_from(number).unwrap());
            assert!(spool.has_any_of(&agent(id)));
        }
        assert_eq!(spool.entries().len(), 4);
        assert!(!spool.has_any_of(&agent("a_b")));
    }

    #[test]
    fn lost_events_are_counted_and_told_once() {
        let place = Place::new();
        let spool = place.spool();
        spool.prepare_counter();
        assert_eq!(spool.lost(), None);
        assert!(spool.count_lost(1000, "no space left") && spool.count_lost(2000, "read-only\nfile system"));
        let lost = LostEvents { count: 2, since_ms: 1000, why: "read-only file system".into() };
        assert_eq!(spool.lost(), Some(lost.clone()));
        spool.mark_lost_reported();
        assert_eq!((spool.lost(), spool.lost_since(1000)), (None, Some(lost)));
        assert_eq!(spool.lost_since(2000).unwrap().count, 1);
        assert!(spool.count_lost(3000, "again"));
        assert_eq!(spool.lost().unwrap().count, 1);
    }

    #[test]
    fn what_the_killed_left_half_written_goes_in_the_end() {
        let place = Place::new();
        let spool = place.spool();
        put(&spool, "a", 1, 1);
        let folder = spool.directories.written[0].clone();
        let (old, new) =
            (folder.join(format!("00000001-a{TEMPORARY}")), folder.join(format!("00000002-a{TEMPORARY}")));
        fs::write(&old, "ha").unwrap();
        fs::write(&new, "ha").unwrap();
        let long_ago = SystemTime::now() - ABANDONED_AFTER * 2;
        File::options().write(true).open(&old).unwrap().set_modified(long_ago).unwrap();
        spool.remove_abandoned();
        assert!(!old.exists() && new.exists());
    }
}
