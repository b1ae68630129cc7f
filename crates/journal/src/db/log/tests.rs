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
        let bad: Vec<usize> = (0..log.frames.len()).filter(|place| !log.frames[*place].is_intact).collect();
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
            let count: i64 = connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
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
