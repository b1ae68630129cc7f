//! The drop box: how a process in an agent's sandbox reaches the hub through two directories.
//!
//! A sandbox that could write the whole home could change what Ringer trusts, answer for the person and type into panes. So it may
//! write `drop` only, where it leaves claims, and read `outbox`, where the hub leaves answers and messages. The hub applies a claim
//! and removes its file; nothing in a claim is believed.

mod claim;
mod outbox;

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringer_journal::{Consumer, Home};
use ringer_platform::{Durability, replace_file};
use rustix::fs::{Access, OFlags};
use rustix::process::getppid;
use serde::{Deserialize, Serialize};

pub use claim::{Claim, ClaimError, ClaimRequest, ClaimedAction, ClaimedNotice};
pub use outbox::{ListenerFile, MAX_LISTENER_FILE, Outbox, QuestionState};

/// The largest claim.
pub const MAX_CLAIM: u64 = 64 * 1024;
/// Claims that wait at most. More are refused by the command that would leave them.
pub const MAX_CLAIMS: usize = 1_000;
/// The extension of a claim's file.
const CLAIM_SUFFIX: &str = ".json";

/// How often a waiting command looks whether its parent is still there, and for what the system did not announce.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The two directories of a home.
#[derive(Debug, Clone)]
pub struct DropBox {
    drop: PathBuf,
    outbox: Outbox,
}

/// How far a listener in a sandbox has read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ListenerPosition {
    seq: i64,
}

/// Why waiting for a file ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxWait {
    /// Something may have changed.
    Look,
    /// The deadline passed.
    TimedOut,
    /// The parent process has ended.
    Orphaned,
}

impl DropBox {
    /// That of a home.
    pub fn of(home: &Home) -> Self {
        Self { drop: home.path().join("drop"), outbox: Outbox::new(home.path().join("outbox")) }
    }

    /// The drop box, if this process is in a sandbox that leaves it no other way: the drop box is there, and the journal cannot be
    /// opened to write it.
    ///
    /// The write lock is opened for that, since only opening shows what Landlock forbids. A container may have the two directories
    /// and nothing else of the home; then the outbox shows that it is one.
    pub fn if_sandboxed(home: &Home) -> Option<Self> {
        let own = Self::of(home);
        if !own.drop.is_dir() {
            return None;
        }
        let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
        let opened = OpenOptions::new().write(true).custom_flags(flags).open(home.path().join("write.lock"));
        let is_sandboxed = match opened {
            Ok(_) => false,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                rustix::fs::access(own.outbox.directory(), Access::WRITE_OK).is_err()
            }
            Err(error) => matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem),
        };
        is_sandboxed.then_some(own)
    }

    /// The directory that a sandbox may write.
    pub fn directory(&self) -> &Path {
        &self.drop
    }

    /// The directory that a sandbox may read.
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Leaves a claim. When this returns, it is on disk.
    pub fn leave(&self, claim: &Claim) -> io::Result<()> {
        let bytes = claim.to_bytes();
        if bytes.len() as u64 > MAX_CLAIM {
            return Err(ErrorKind::FileTooLarge.into());
        }
        if self.waiting() >= MAX_CLAIMS {
            return Err(ErrorKind::QuotaExceeded.into());
        }
        replace_file(&self.path_of(claim), &bytes, Durability::Synced)
    }

    /// Returns true once the hub has applied a claim, or refused it.
    pub fn is_applied(&self, claim: &Claim) -> bool {
        fs::symlink_metadata(self.path_of(claim)).is_err_and(|error| error.kind() == ErrorKind::NotFound)
    }

    /// How many claims wait.
    pub fn waiting(&self) -> usize {
        let entries = fs::read_dir(&self.drop).into_iter().flatten().flatten();
        entries.filter(|entry| is_claim(&entry.file_name())).count()
    }

    /// How far this listener has read: the sequence number of its last message. The listener itself keeps that, in the drop box.
    pub fn position(&self, listener: &Consumer) -> i64 {
        let bytes = ringer_platform::owned::read(&self.position_path(listener), MAX_CLAIM).ok();
        let position = bytes.and_then(|bytes| serde_json::from_slice::<ListenerPosition>(&bytes).ok());
        position.unwrap_or_default().seq
    }

    /// Remembers how far this listener has read.
    pub fn set_position(&self, listener: &Consumer, seq: i64) -> io::Result<()> {
        let bytes = serde_json::to_vec(&ListenerPosition { seq })?;
        replace_file(&self.position_path(listener), &bytes, Durability::Unsynced)
    }

    fn position_path(&self, listener: &Consumer) -> PathBuf {
        self.drop.join(format!("{}.position", outbox::listener_name(listener)))
    }

    fn path_of(&self, claim: &Claim) -> PathBuf {
        self.drop.join(format!("{}{CLAIM_SUFFIX}", claim.id()))
    }
}

/// Returns true for the name of a claim's file.
pub fn is_claim(name: &std::ffi::OsStr) -> bool {
    name.to_str().is_some_and(|name| !name.starts_with('.') && name.ends_with(CLAIM_SUFFIX))
}

/// Waits for changes of the two directories.
#[derive(Debug)]
pub struct SandboxWatch {
    #[cfg(target_os = "linux")]
    changes: ringer_platform::DirectoryChanges,
    parent: Option<rustix::process::Pid>,
}

impl SandboxWatch {
    /// From here on no change is missed.
    pub fn begin(drop_box: &DropBox) -> io::Result<Self> {
        let directories = [drop_box.directory(), drop_box.outbox().directory()];
        Ok(Self {
            #[cfg(target_os = "linux")]
            changes: ringer_platform::DirectoryChanges::begin(directories.into_iter())?,
            parent: getppid(),
        })
    }

    /// Waits until something changes, for a second at most, or until the deadline.
    pub fn wait(&self, deadline: Option<Instant>) -> io::Result<SandboxWait> {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Ok(SandboxWait::TimedOut);
        }
        self.pause(left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY)))?;
        Ok(if getppid() == self.parent { SandboxWait::Look } else { SandboxWait::Orphaned })
    }

    #[cfg(target_os = "linux")]
    fn pause(&self, most: Duration) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let timeout = Timespec::try_from(most).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&self.changes, PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.changes.read();
        Ok(())
    }

    /// Where the system tells of no changes, the files are looked at.
    #[cfg(not(target_os = "linux"))]
    fn pause(&self, most: Duration) -> io::Result<()> {
        std::thread::sleep(most.min(Duration::from_millis(200)));
        Ok(())
    }
}
