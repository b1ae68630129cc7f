//! Reads the files of the drop box. A sandbox may create them in any form.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use ringer_ipc::drop_box::{Claim, ClaimedAction, MAX_CLAIM, is_claim};
use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};

/// The names of the claims, in no order.
pub(super) fn claim_names(directory: &Path) -> io::Result<Vec<OsString>> {
    let names = fs::read_dir(directory)?.flatten().map(|entry| entry.file_name());
    Ok(names.filter(|name| is_claim(name)).collect())
}

/// Reads a claim and checks it.
pub(super) fn read_claim(directory: &File, name: &OsStr) -> Result<(Claim, ClaimedAction), String> {
    let bytes = read_plain(directory, name).map_err(|error| error.to_string())?;
    Claim::parse(&bytes).map_err(|error| error.to_string())
}

/// Reads a file of at most 64 KiB. Never blocks and follows no symlink. Refuses a file with a second hard link, because the
/// sandbox could have linked one that it cannot read itself.
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
pub(super) fn remove(directory: &File, name: &OsStr) {
    if unlinkat(directory, name, AtFlags::empty()).is_err() {
        let _ = unlinkat(directory, name, AtFlags::REMOVEDIR);
    }
}

/// The most claims that are applied at once.
const BURST: u32 = 60;
/// Time between claims after that.
const INTERVAL: Duration = Duration::from_secs(1);

/// A token bucket for claims.
#[derive(Debug)]
pub(super) struct ClaimLimit {
    left: u32,
    /// When the latest token was added.
    since: Duration,
}

impl ClaimLimit {
    pub(super) fn new(now: Duration) -> Self {
        Self { left: BURST, since: now }
    }

    /// Takes a token. `Err` is the time until the next one.
    pub(super) fn take(&mut self, now: Duration) -> Result<(), Duration> {
        let passed = now.saturating_sub(self.since);
        let new = u32::try_from(passed.as_secs() / INTERVAL.as_secs()).unwrap_or(u32::MAX);
        self.since += INTERVAL.saturating_mul(new);
        self.left = self.left.saturating_add(new).min(BURST);
        if self.left == 0 {
            return Err(INTERVAL.saturating_sub(now.saturating_sub(self.since)));
        }
        self.left -= 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_one_a_second() {
        let start = Duration::from_secs(1_000);
        let mut limit = ClaimLimit::new(start);
        for _ in 0..BURST {
            assert_eq!(limit.take(start), Ok(()));
        }
        assert_eq!(limit.take(start + Duration::from_millis(400)), Err(Duration::from_millis(600)));
        assert_eq!(limit.take(start + INTERVAL), Ok(()));
        assert!(limit.take(start + INTERVAL).is_err());
        let later = start + Duration::from_hours(1);
        let passed = (0..1_000).filter(|_| limit.take(later).is_ok()).count();
        assert_eq!(passed, BURST as usize, "what was not used does not add up");
    }
}
