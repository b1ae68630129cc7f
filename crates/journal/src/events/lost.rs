//! Events that could be written nowhere: counted where that is possible, so that they can be reported to the person.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use rustix::fs::OFlags;

use super::spool::{Spool, read_plain};

/// The file that counts. Each line is one lost event: when, and why.
const FILE: &str = "lost-events";
/// The same file once it was reported to the person.
const REPORTED: &str = "lost-events.told";
/// The first line. The hub writes it while all is well, so that the file has a block of its own when the disk is full.
const HEADER: &str =
    "# Events of agents' hooks that could be written nowhere: milliseconds since 1970, reason.\n";
/// The longest file, in bytes. More lines would say nothing new.
const MAX_LENGTH: u64 = 256 * 1024;

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
        self.counters(FILE).any(|path| {
            // Never waits for a FIFO in its place.
            let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
            let opened =
                OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path);
            opened.is_ok_and(|mut file| {
                let is_short =
                    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() < MAX_LENGTH);
                is_short && file.write_all(line.as_bytes()).is_ok()
            })
        })
    }

    /// Makes room for the first lines while there is room.
    pub(crate) fn prepare_counter(&self) {
        let path = self.home.join(FILE);
        if let Ok(mut file) = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path) {
            let _ = file.write_all(HEADER.as_bytes());
        }
    }

    /// What was lost and not reported yet.
    pub(crate) fn lost(&self) -> Option<LostEvents> {
        summary(self.counters(FILE), i64::MIN)
    }

    /// What was lost since then, reported or not.
    pub(crate) fn lost_since(&self, unix_ms: i64) -> Option<LostEvents> {
        summary(self.counters(FILE).chain(self.counters(REPORTED)), unix_ms)
    }

    /// Marks the lost events as reported to the person.
    pub(crate) fn mark_lost_reported(&self) {
        for path in self.counters(FILE) {
            let _ = fs::rename(&path, path.with_file_name(REPORTED));
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
fn summary(files: impl Iterator<Item = PathBuf>, from_ms: i64) -> Option<LostEvents> {
    let mut lost: Vec<(i64, String)> = Vec::new();
    for bytes in files.filter_map(|path| read_plain(&path, 2 * MAX_LENGTH).ok()) {
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
