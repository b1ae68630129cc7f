//! The home: the state directory with the databases, the doorbells and the locks; and the directories for small files of one boot.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use ringer_core::hash::fnv1a_64;
use ringer_core::message::Agent;
use ringer_platform::{owned, sync_directory};

use crate::error::Error;

/// File name of the journal.
pub(crate) const JOURNAL_FILE: &str = "ringer.db";

/// Starts a hub unless one is running, without waiting for it. Called repeatedly while a process waits for the hub to repair a
/// damaged file or to apply spooled events.
pub type HubStarter = fn(&Home);

/// The directory with all data of one person. Other users have no access to it.
#[derive(Debug, Clone)]
pub struct Home {
    path: PathBuf,
    runtime: Option<PathBuf>,
    hub_starter: Option<HubStarter>,
}

impl PartialEq for Home {
    fn eq(&self, other: &Self) -> bool {
        (&self.path, &self.runtime) == (&other.path, &other.runtime)
    }
}

impl Eq for Home {}

impl Home {
    /// The home at a path, which must be absolute: doorbells are found by their paths. Creates nothing.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), runtime: None, hub_starter: None }
    }

    /// Sets the runtime directory (`XDG_RUNTIME_DIR`), where events are spooled that cannot be written to the database at once.
    pub fn with_runtime(self, runtime: Option<PathBuf>) -> Self {
        Self { runtime: runtime.filter(|path| path.is_absolute()), ..self }
    }

    /// Sets the function that starts a hub. Without one, damage is an error at once, and commands apply spooled events
    /// themselves.
    pub fn with_hub_starter(self, hub_starter: Option<HubStarter>) -> Self {
        Self { hub_starter, ..self }
    }

    pub(crate) fn hub_starter(&self) -> Option<HubStarter> {
        self.hub_starter
    }

    /// The runtime directory, if one is set.
    pub fn runtime(&self) -> Option<&Path> {
        self.runtime.as_deref()
    }

    /// The path of the home.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the journal.
    pub fn database(&self) -> PathBuf {
        self.path.join(JOURNAL_FILE)
    }

    pub(crate) fn bells(&self) -> PathBuf {
        self.path.join("bells")
    }

    /// Directory of the consumers' locks.
    pub(crate) fn locks(&self) -> PathBuf {
        self.path.join("locks")
    }

    /// Refuses a home that another user owns, can write to or could replace. A home that does not exist passes if nobody else can
    /// create it first.
    pub fn check_owner(&self) -> Result<(), Error> {
        let checked = match owned::check_directory(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let mut above = self.path.ancestors().skip(1);
                above.find(|path| path.exists()).map_or(Ok(()), owned::check_base)
            }
            checked => checked.map(drop),
        };
        checked.map_err(|error| match error.kind() {
            // The check refused it; errors of the system have a code.
            ErrorKind::PermissionDenied if error.raw_os_error().is_none() => Error::UnsafeHome { why: error },
            _ => self.error("looking at the home", error),
        })
    }

    /// Creates the home and the directories in it that do not exist.
    pub(crate) fn make_directories(&self) -> io::Result<()> {
        let missing: Vec<&Path> = self.path.ancestors().take_while(|path| !path.exists()).collect();
        let bells = self.bells();
        let locks = self.locks();
        for directory in missing.into_iter().rev().chain([bells.as_path(), locks.as_path()]) {
            match DirBuilder::new().mode(0o700).create(directory) {
                Ok(()) => directory.parent().map_or(Ok(()), sync_directory)?,
                // Created by another process, or before.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Wraps an I/O error of a file in this home.
    pub fn error(&self, what: &str, source: io::Error) -> Error {
        Error::io(&self.path, what, source)
    }
}

/// A file that SQLite keeps beside a database: the same name with a suffix (`-wal`, `-shm`).
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Purposes of the directories, part of their names.
pub(crate) const SPOOL: &str = "spool";
pub(crate) const TOOLS: &str = "tools";

/// All such directories of a home, existing or not: those in the home and those in runtime directories.
pub fn runtime_directories(home: &Home) -> Vec<PathBuf> {
    let all = [SPOOL, TOOLS].map(|purpose| RuntimeDirectories::of(home, purpose));
    all.iter().flat_map(RuntimeDirectories::all).cloned().collect()
}

/// The directories of one home for one purpose: in the runtime directory (in memory, so unaffected by a full disk), else in the
/// home.
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
