//! Directories for small files that belong to one boot: in the runtime directory (in memory, so unaffected by a full disk), else
//! in the home.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use ringer_core::hash::fnv1a_64;
use ringer_core::message::Agent;
use ringer_platform::owned;

use crate::home::Home;

/// Purposes of the directories, part of their names.
pub(crate) const SPOOL: &str = "spool";
pub(crate) const TOOLS: &str = "tools";

/// All such directories of a home, existing or not: those in the home and those in runtime directories.
pub fn runtime_directories(home: &Home) -> Vec<PathBuf> {
    let all = [SPOOL, TOOLS].map(|purpose| RuntimeDirectories::of(home, purpose));
    all.iter().flat_map(RuntimeDirectories::all).cloned().collect()
}

/// The directories of one home for one purpose.
#[derive(Debug, Clone)]
pub(crate) struct RuntimeDirectories {
    /// Where files are written, in order of preference. All of them are read.
    pub(crate) written: Vec<PathBuf>,
    /// Only read, never created: lets a hub that was started with another `XDG_RUNTIME_DIR`, or without one, find the files of a
    /// login session's hooks.
    also_read: Option<PathBuf>,
}

impl RuntimeDirectories {
    pub(crate) fn of(home: &Home, purpose: &str) -> Self {
        // `/home` and `/home/` are one home.
        let path: PathBuf = home.path().components().collect();
        let name = format!("{purpose}-{:016x}", hash(path.as_os_str().as_encoded_bytes()));
        let below = |runtime: &Path| runtime.join("ringer").join(&name);
        let runtime = home.runtime().filter(|path| is_private(path)).map(below);
        let also_read = Some(below(&usual_runtime())).filter(|usual| runtime.as_ref() != Some(usual));
        let written = runtime.into_iter().chain([home.path().join(purpose)]).collect();
        Self { written, also_read }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.written.iter().chain(&self.also_read)
    }

    /// The names of all files, each with its directory.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&Path, String)> {
        let listed = self.all().filter(|directory| is_private(directory));
        listed.flat_map(|directory| {
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            entries
                .filter_map(move |entry| Some((directory.as_path(), entry.file_name().into_string().ok()?)))
        })
    }
}

/// Creates a directory with mode 0700, and its missing parents. Fails if another user could change it.
pub(crate) fn make_private(directory: &Path) -> io::Result<()> {
    if is_private(directory) {
        return Ok(());
    }
    if let Some(parent) = directory.parent().filter(|parent| !parent.exists()) {
        make_private(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    owned::check_directory(directory).map(drop)
}

fn is_private(directory: &Path) -> bool {
    owned::check_directory(directory).is_ok()
}

/// An agent's id as part of a file name. Ids come from clients and may contain anything, so unusual ones are hashed.
pub(crate) fn file_name_part(agent: &Agent) -> String {
    let id = agent.as_str();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if id.len() <= 64 && id.chars().all(is_plain) {
        id.to_owned()
    } else {
        format!("x{:016x}", hash(id.as_bytes()))
    }
}

/// A hash for file names. It need not resist attacks, and a cryptographic one would make every hook call detect CPU features.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    fnv1a_64(bytes.iter().copied())
}

/// Where systemd creates the runtime directory of this user.
fn usual_runtime() -> PathBuf {
    PathBuf::from(format!("/run/user/{}", rustix::process::geteuid().as_raw()))
}
