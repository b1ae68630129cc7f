//! Reads the files of the drop box, which a sandbox may make in any form.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

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

/// Reads a file of at most 64 KiB. Never waits, follows no link, and takes no file that has another name elsewhere: the sandbox could
/// have linked one that it cannot read itself.
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
