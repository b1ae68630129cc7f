//! Where small files are that belong to this boot: in the person's runtime directory (memory: a full disk does not matter
//! there), else in the home.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use ringer_core::hash::fnv1a_64;
use ringer_core::message::Agent;
use ringer_platform::owned;

use crate::home::Home;

/// What the directories are for, which is a part of their names.
pub(crate) const SPOOL: &str = "spool";
pub(crate) const TOOLS: &str = "tools";

/// Every such directory of a home, whether it is there or not: those in the home, and those that are named after it.
pub fn runtime_directories(home: &Home) -> Vec<PathBuf> {
    let all = [SPOOL, TOOLS].map(|purpose| RuntimeDirectories::of(home, purpose));
    all.iter().flat_map(RuntimeDirectories::all).cloned().collect()
}

/// The directories of one home for one purpose.
#[derive(Debug, Clone)]
pub(crate) struct RuntimeDirectories {
    /// Where files are written, the best first. All of them are read.
    pub(crate) written: Vec<PathBuf>,
    /// Read as well, and never made: a hub that was started with another `XDG_RUNTIME_DIR`, or without one, finds what
    /// hooks of a login session put there.
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

    /// The files in them, each with its directory.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&Path, String)> {
        let listed = self.all().filter(|directory| is_private(directory));
        listed.flat_map(|directory| {
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            entries
                .filter_map(move |entry| Some((directory.as_path(), entry.file_name().into_string().ok()?)))
        })
    }
}

/// Makes a directory that only its owner can enter, and whatever lies between it and a private one.
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

/// An agent's id as a part of a file name. Ids are words of clients, which may hold anything.
pub(crate) fn file_name_part(agent: &Agent) -> String {
    let id = agent.as_str();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if id.len() <= 64 && id.chars().all(is_plain) {
        id.to_owned()
    } else {
        format!("x{:016x}", hash(id.as_bytes()))
    }
}

/// Names files of one person; a cryptographic hash would cost every hook call a look at the processor's features.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    fnv1a_64(bytes.iter().copied())
}

/// Where systemd puts the runtime directory of this user.
fn usual_runtime() -> PathBuf {
    PathBuf::from(format!("/run/user/{}", rustix::process::geteuid().as_raw()))
}
