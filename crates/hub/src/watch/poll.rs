//! File changes through polling once a second, where the system does not report them.

use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Polling interval.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The state of a file: its inode, length and modification time. `None` if it does not exist.
type Look = Option<(u64, u64, i64, i64)>;

/// The files as of the last poll.
#[derive(Debug)]
pub(super) struct Changes {
    seen: HashMap<PathBuf, Look>,
    every: Duration,
    next: Instant,
}

impl Changes {
    /// Starts to watch. No later change is missed, except one that is undone within a second.
    #[expect(clippy::unnecessary_wraps, reason = "the one for Linux may fail")]
    pub(super) fn begin<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Option<Self> {
        let seen = paths.map(|path| (path.clone(), look(std::fs::metadata(path).ok().as_ref()))).collect();
        Some(Self { seen, every: LOOK_EVERY, next: Instant::now() + LOOK_EVERY })
    }

    /// Replaces another source. Changes since its last poll are still reported.
    pub(super) fn take_over(&mut self, other: &Self) -> Vec<PathBuf> {
        for (path, look) in &other.seen {
            self.seen.entry(path.clone()).and_modify(|seen| *seen = *look);
        }
        Vec::new()
    }

    /// Waits for changes, and returns the changed files. Cancel safe, because new states are stored only at the end.
    pub(super) async fn next(&mut self) -> Option<Vec<PathBuf>> {
        loop {
            sleep_until(self.next).await;
            let mut changed = Vec::new();
            for (path, seen) in &self.seen {
                let now = look(tokio::fs::metadata(path).await.ok().as_ref());
                if now != *seen {
                    changed.push((path.clone(), now));
                }
            }
            self.next = Instant::now() + self.every;
            if !changed.is_empty() {
                self.seen.extend(changed.iter().cloned());
                return Some(changed.into_iter().map(|(path, _)| path).collect());
            }
        }
    }
}

fn look(file: Option<&Metadata>) -> Look {
    file.map(|file| (file.ino(), file.len(), file.mtime(), file.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[tokio::test]
    async fn what_is_written_replaced_or_removed_has_changed() {
        let directory = tempfile::tempdir().unwrap();
        let (file, new) = (directory.path().join("a"), directory.path().join("new"));
        fs::write(&file, "1").unwrap();
        let changes = Changes::begin([&file, &directory.path().join("b")].into_iter()).unwrap();
        let mut changes = Changes { every: Duration::from_millis(1), next: Instant::now(), ..changes };
        let check = async |changes: &mut Changes| {
            let paths = tokio::time::timeout(Duration::from_secs(30), changes.next()).await.unwrap();
            assert_eq!(paths.unwrap(), std::slice::from_ref(&file));
        };
        fs::write(&file, "12").unwrap();
        check(&mut changes).await;
        fs::write(&new, "21").unwrap();
        fs::rename(&new, &file).unwrap();
        check(&mut changes).await;
        fs::remove_file(&file).unwrap();
        check(&mut changes).await;
        // The new source reports changes that the old one had not seen.
        fs::write(&file, "again").unwrap();
        let next = Changes::begin([&file].into_iter()).unwrap();
        let mut next = Changes { every: Duration::from_millis(1), next: Instant::now(), ..next };
        assert!(next.take_over(&changes).is_empty());
        check(&mut next).await;
    }
}
