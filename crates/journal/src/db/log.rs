//! Reads the write-ahead log of a database (`-wal`) and its index (`-shm`) without SQLite.
//!
//! The checksum of each frame covers the frame and the previous checksum. SQLite treats the first frame with a wrong checksum
//! as the end of the log and silently drops all later commits. This module detects such a log and tells which frames are
//! intact: each frame is verified against the stored checksum of its predecessor, so damage costs one frame and not all that
//! follow.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::home::beside;

/// Format version of logs and indexes.
const VERSION: u32 = 3_007_000;
/// First word of a log with checksums over little-endian words. Plus one: big-endian.
const MAGIC: u32 = 0x377f_0682;
const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// SQLite's default page size, assumed if the header is damaged.
const PAGE: usize = 4096;
const MAX_PAGE: usize = 65_536;

/// The header of an index. Two copies are followed by the number of checkpointed frames.
const INDEX_HEADER: usize = 48;
/// How many bytes of an index [`LogIndex::parse`] reads.
pub(crate) const INDEX_READ: usize = 2 * INDEX_HEADER + 4;

type Checksum = (u32, u32);
type Salt = [u8; 8];

/// The parts of a WAL index that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogIndex {
    salt: Salt,
    /// Number of committed frames.
    committed: usize,
    /// Number of frames that a checkpoint has copied into the database and synced.
    backfilled: usize,
}

impl LogIndex {
    /// Parses the start of an index. `None` unless both copies of the header are equal and match their checksum.
    pub(crate) fn parse(bytes: &[u8; INDEX_READ]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let (first, second) = (bytes.get(..INDEX_HEADER)?, bytes.get(INDEX_HEADER..2 * INDEX_HEADER)?);
        let sum = checksum(cfg!(target_endian = "big"), (0, 0), first.get(..40)?);
        let is_initialized = bytes[12] != 0;
        if first != second || !is_initialized || word(0)? != VERSION || sum != (word(40)?, word(44)?) {
            return None;
        }
        let salt = first.get(32..40)?.try_into().ok()?;
        let (committed, backfilled) = (usize::try_from(word(16)?).ok()?, usize::try_from(word(96)?).ok()?);
        Some(Self { salt, committed, backfilled: backfilled.min(committed) })
    }
}

/// A frame: a page as a transaction left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Frame {
    page: u32,
    /// For a commit frame, the size of the database in pages after the commit; otherwise 0.
    commits: u32,
    salt: Salt,
    is_intact: bool,
}

/// A parsed log.
#[derive(Debug)]
pub(crate) struct Log {
    page_size: usize,
    /// `None` if the header is damaged.
    salt: Option<Salt>,
    frames: Vec<Frame>,
    /// Number of frames that SQLite would use: up to the last commit before the first damage.
    readable: usize,
}

impl Log {
    /// Reads the log of a database. A missing log is empty.
    pub(crate) fn read(database: &Path) -> io::Result<Self> {
        match File::open(beside(database, "-wal")) {
            Ok(file) => Self::parse(BufReader::with_capacity(64 * 1024, file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Self::parse(io::empty()),
            Err(error) => Err(error),
        }
    }

    fn parse(mut from: impl Read) -> io::Result<Self> {
        let mut header = [0; HEADER];
        let has_header = read_whole(&mut from, &mut header)?;
        let magic = word(&header, 0);
        let big_endian = if magic & !1 == MAGIC { magic & 1 == 1 } else { cfg!(target_endian = "big") };
        let size = usize::try_from(word(&header, 8)).unwrap_or(0);
        let sum = checksum(big_endian, (0, 0), &header[..24]);
        let is_sound = has_header
            && magic & !1 == MAGIC
            && word(&header, 4) == VERSION
            && size.is_power_of_two()
            && (512..=MAX_PAGE).contains(&size)
            && sum == (word(&header, 24), word(&header, 28));
        let page_size = if is_sound { size } else { PAGE };
        let salt: Option<Salt> = is_sound.then(|| salt_at(&header, 16));
        let mut log = Self { page_size, salt, frames: Vec::new(), readable: 0 };
        let mut before = is_sound.then_some(sum);
        let mut is_unbroken = is_sound;
        let mut frame = vec![0; FRAME_HEADER + page_size];
        while read_whole(&mut from, &mut frame)? {
            let stored = (word(&frame, 16), word(&frame, 20));
            let (page, commits, salt) = (word(&frame, 0), word(&frame, 4), salt_at(&frame, 8));
            let is_intact = page != 0
                && before.is_some_and(|before| {
                    let sum = checksum(big_endian, before, &frame[..8]);
                    checksum(big_endian, sum, &frame[FRAME_HEADER..]) == stored
                });
            is_unbroken &= is_intact && Some(salt) == log.salt;
            log.frames.push(Frame { page, commits, salt, is_intact });
            if is_unbroken && commits != 0 {
                log.readable = log.frames.len();
            }
            before = Some(stored);
        }
        Ok(log)
    }

    /// The index, if it belongs to this log.
    fn own_index<'a>(&self, index: Option<&'a LogIndex>) -> Option<&'a LogIndex> {
        index.filter(|index| self.salt.is_none_or(|salt| salt == index.salt))
    }

    /// Best estimate of the number of committed frames.
    fn committed(&self, index: Option<&LogIndex>) -> usize {
        if let Some(index) = self.own_index(index) {
            return index.committed.max(self.readable).min(self.frames.len());
        }
        let salt = self.salt.or_else(|| {
            // The header is damaged: use the salt of the first intact frame.
            self.frames.iter().find(|frame| frame.is_intact).map(|frame| frame.salt)
        });
        let is_commit = |frame: &Frame| frame.is_intact && frame.commits != 0 && Some(frame.salt) == salt;
        self.frames.iter().rposition(is_commit).map_or(0, |last| last + 1).max(self.readable)
    }

    /// Returns true if SQLite would drop commits of this log.
    ///
    /// Frames without a commit are not damage: a process that is killed while writing leaves them.
    pub(crate) fn is_damaged(&self, index: Option<&LogIndex>) -> bool {
        match self.own_index(index) {
            Some(index) => {
                // Checkpointed frames need no log, unless an older part of the log overwrites them again.
                let needs_no_log = self.readable == 0 && index.backfilled == index.committed;
                index.committed > self.readable && !needs_no_log
            }
            None => self.committed(None) > self.readable,
        }
    }

    /// The index of the newest usable frame of each page.
    fn newest(&self, index: Option<&LogIndex>, keeps_damaged: bool) -> BTreeMap<u32, usize> {
        let backfilled = self.own_index(index).map_or(0, |index| index.backfilled);
        let mut newest = BTreeMap::new();
        for (place, frame) in self.frames.iter().enumerate().take(self.committed(index)) {
            if frame.is_intact || (keeps_damaged && place >= backfilled && self.is_plausible(frame.page)) {
                newest.insert(frame.page, place);
            } else if place < backfilled {
                // Checkpointed: the database has a newer version than earlier frames.
                newest.remove(&frame.page);
            }
        }
        newest
    }

    /// Returns true if a page number is not above those of all intact frames.
    fn is_plausible(&self, page: u32) -> bool {
        let highest = self.frames.iter().filter(|frame| frame.is_intact);
        let highest = highest.map(|frame| frame.page.max(frame.commits)).max().unwrap_or(u32::MAX);
        page != 0 && page <= highest
    }

    /// Returns true if a committed frame is damaged.
    pub(crate) fn has_damaged_frames(&self, index: Option<&LogIndex>) -> bool {
        self.frames.iter().take(self.committed(index)).any(|frame| !frame.is_intact)
    }

    /// Writes a log for `to` that SQLite reads to its end: one commit with the newest frame of each page in the log of `from`.
    /// Damaged frames are left out, or included as they are, because most of their content may be readable.
    pub(crate) fn write_readable(
        &self,
        (from, to): (&Path, &Path),
        index: Option<&LogIndex>,
        keeps_damaged: bool,
    ) -> io::Result<()> {
        let mut places: Vec<usize> = self.newest(index, keeps_damaged).into_values().collect();
        places.sort_unstable();
        if places.is_empty() {
            return Ok(());
        }
        let old = File::open(beside(from, "-wal"))?;
        let in_file = from.metadata()?.len() / self.page_size as u64;
        let mut committed = self.frames.iter().take(self.committed(index));
        let last_commit = committed.rfind(|frame| frame.is_intact && frame.commits != 0);
        let highest = places.iter().map(|place| self.frames[*place].page).max();
        let in_file = Some(u32::try_from(in_file).unwrap_or(u32::MAX));
        let pages = [last_commit.map(|frame| frame.commits), highest, in_file].into_iter().flatten().max();
        let mut new = BufWriter::new(File::create(beside(to, "-wal"))?);
        let mut header = [0; HEADER];
        let page_size = u32::try_from(self.page_size).unwrap_or(0);
        for (number, value) in [MAGIC, VERSION, page_size, 0, 1, 1].into_iter().enumerate() {
            header[number * 4..number * 4 + 4].copy_from_slice(&value.to_be_bytes());
        }
        let mut sum = checksum(false, (0, 0), &header[..24]);
        put_checksum(&mut header[24..], sum);
        new.write_all(&header)?;
        let mut frame = vec![0; FRAME_HEADER + self.page_size];
        for (number, place) in places.iter().enumerate() {
            old.read_exact_at(&mut frame, (HEADER + place * (FRAME_HEADER + self.page_size)) as u64)?;
            let is_last = number + 1 == places.len();
            let commits = if is_last { pages.unwrap_or(1) } else { 0 };
            frame[4..8].copy_from_slice(&commits.to_be_bytes());
            frame[8..16].copy_from_slice(&header[16..24]);
            sum = checksum(false, sum, &frame[..8]);
            sum = checksum(false, sum, &frame[FRAME_HEADER..]);
            put_checksum(&mut frame[16..24], sum);
            new.write_all(&frame)?;
        }
        new.flush()
    }
}

/// Fills the buffer. Returns false if the file ends first.
fn read_whole(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn salt_at(bytes: &[u8], at: usize) -> Salt {
    let mut salt = Salt::default();
    salt.copy_from_slice(&bytes[at..at + 8]);
    salt
}

fn put_checksum(place: &mut [u8], (first, second): Checksum) {
    place[..4].copy_from_slice(&first.to_be_bytes());
    place[4..8].copy_from_slice(&second.to_be_bytes());
}

/// SQLite's WAL checksum, over pairs of words.
fn checksum(big_endian: bool, (mut first, mut second): Checksum, bytes: &[u8]) -> Checksum {
    let (pairs, _) = bytes.as_chunks::<8>();
    for &[a, b, c, d, e, f, g, h] in pairs {
        let (one, two) = ([a, b, c, d], [e, f, g, h]);
        let read = if big_endian { u32::from_be_bytes } else { u32::from_le_bytes };
        first = first.wrapping_add(read(one)).wrapping_add(second);
        second = second.wrapping_add(read(two)).wrapping_add(first);
    }
    (first, second)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use rusqlite::Connection;

    use super::*;

    struct Written {
        _directory: tempfile::TempDir,
        database: PathBuf,
        index: LogIndex,
        /// Keeps the index unchanged.
        _connection: Connection,
    }

    /// A database with this many commits in its WAL, of rows in one table.
    fn written(commits: u32) -> Written {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("db");
        let connection = Connection::open(&database).unwrap();
        connection
            .execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (n INTEGER PRIMARY KEY, x)")
            .unwrap();
        for number in 0..commits {
            connection.execute("INSERT INTO t VALUES (?1, ?2)", (number, "x".repeat(900))).unwrap();
        }
        let mut bytes = [0; INDEX_READ];
        bytes.copy_from_slice(&fs::read(beside(&database, "-shm")).unwrap()[..INDEX_READ]);
        let index = LogIndex::parse(&bytes).unwrap();
        Written { _directory: directory, database, index, _connection: connection }
    }

    fn parsed(bytes: &[u8]) -> Log {
        Log::parse(bytes).unwrap()
    }

    #[test]
    fn a_log_of_sqlite_is_read_to_its_end() {
        let written = written(10);
        let log = Log::read(&written.database).unwrap();
        assert_eq!((log.readable, log.frames.len()), (written.index.committed, written.index.committed));
        assert!(!log.is_damaged(Some(&written.index)) && !log.is_damaged(None));
        assert!(!log.has_damaged_frames(Some(&written.index)));
        let empty = parsed(&[]);
        assert!(!empty.is_damaged(None) && empty.is_damaged(Some(&written.index)), "it was cut");
    }

    /// With the index, damage to any commit is detected; without it, to any but the last one, which could also be an incomplete
    /// commit.
    #[test]
    fn a_byte_that_is_wrong_costs_its_frame_alone() {
        let written = written(10);
        let bytes = fs::read(beside(&written.database, "-wal")).unwrap();
        let size = FRAME_HEADER + PAGE;
        let last_commit = parsed(&bytes).frames.iter().rposition(|frame| frame.commits != 0).unwrap();
        for at in (0..bytes.len()).step_by(97).chain(0..HEADER + FRAME_HEADER) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            let log = parsed(&damaged);
            assert!(log.is_damaged(Some(&written.index)), "{at}");
            let bad: Vec<usize> =
                (0..log.frames.len()).filter(|place| !log.frames[*place].is_intact).collect();
            let frame = at.checked_sub(HEADER).map_or(0, |at| at / size);
            let is_checksum = at >= HEADER && (16..24).contains(&((at - HEADER) % size));
            // The checksum of a frame does not cover its salt.
            let is_salt = at >= HEADER && (8..16).contains(&((at - HEADER) % size));
            match (is_salt, is_checksum) {
                (true, _) => assert_eq!(bad, Vec::<usize>::new(), "{at}"),
                (_, true) => assert!(bad == [frame] || bad == [frame, frame + 1], "{at}: {bad:?}"),
                // The next frame is verified against the stored checksum, so it is intact.
                _ => assert_eq!(bad, [frame], "{at}"),
            }
            if frame + 2 < last_commit && !is_salt {
                assert!(log.is_damaged(None), "{at}");
            }
        }
    }

    /// Also if the last commits were written after the damaged frame.
    #[test]
    fn a_readable_log_has_what_is_intact() {
        let written = written(12);
        let bytes = fs::read(beside(&written.database, "-wal")).unwrap();
        let frames = parsed(&bytes).frames.len();
        for frame in 0..frames {
            let mut damaged = bytes.clone();
            damaged[HEADER + frame * (FRAME_HEADER + PAGE) + FRAME_HEADER + 2000] ^= 1;
            fs::write(beside(&written.database, "-wal"), &damaged).unwrap();
            let log = Log::read(&written.database).unwrap();
            for index in [Some(&written.index), None] {
                let readable = written.database.with_extension("readable");
                fs::copy(&written.database, &readable).unwrap();
                log.write_readable((&written.database, &readable), index, true).unwrap();
                let connection = Connection::open(&readable).unwrap();
                let count: i64 =
                    connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
                // Without the index, a damaged last commit does not count as committed.
                let lost = i64::from(index.is_none() && frame + 1 == frames);
                assert_eq!(count, 12 - lost, "frame {frame}");
                drop(connection);
                for ending in ["", "-wal", "-shm"] {
                    let _ = fs::remove_file(beside(&readable, ending));
                }
            }
        }
    }

    #[test]
    fn an_index_that_was_damaged_is_none() {
        let written = written(3);
        let bytes = fs::read(beside(&written.database, "-shm")).unwrap();
        for at in 0..2 * INDEX_HEADER {
            let mut damaged = [0; INDEX_READ];
            damaged.copy_from_slice(&bytes[..INDEX_READ]);
            damaged[at] ^= 4;
            assert_eq!(LogIndex::parse(&damaged), None, "{at}");
        }
    }
}
