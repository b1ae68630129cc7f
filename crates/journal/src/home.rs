//! The home: the directory that holds the database, the doorbells and the locks.

use std::fs::DirBuilder;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use ringer_platform::{owned, sync_directory};

use crate::error::Error;

/// The name of the journal in the home.
pub(crate) const JOURNAL_FILE: &str = "ringer.db";

/// Starts a hub unless one runs, and does not wait for it. Called again while the hub's work is waited for: the repair of a
/// damaged file, the events in the spool.
pub type HubStarter = fn(&Home);

/// The directory with all data of one person. Other users have no access.
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
    /// The home at a path; nothing is made yet. It has to be absolute, because doorbells are found by their path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), runtime: None, hub_starter: None }
    }

    /// The same home with the person's runtime directory (`XDG_RUNTIME_DIR`), where events are spooled that cannot be
    /// written to the database at once.
    pub fn with_runtime(self, runtime: Option<PathBuf>) -> Self {
        Self { runtime: runtime.filter(|path| path.is_absolute()), ..self }
    }

    /// The same home, with how a hub is started. Where none may be started, damage is an error at once, and commands apply
    /// spooled events themselves.
    pub fn with_hub_starter(self, hub_starter: Option<HubStarter>) -> Self {
        Self { hub_starter, ..self }
    }

    pub(crate) fn hub_starter(&self) -> Option<HubStarter> {
        self.hub_starter
    }

    /// The person's runtime directory, where one is known.
    pub fn runtime(&self) -> Option<&Path> {
        self.runtime.as_deref()
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The journal.
    pub fn database(&self) -> PathBuf {
        self.path.join(JOURNAL_FILE)
    }

    /// The directory of the doorbells.
    pub(crate) fn bells(&self) -> PathBuf {
        self.path.join("bells")
    }

    /// Where the locks of consumers are.
    pub(crate) fn locks(&self) -> PathBuf {
        self.path.join("locks")
    }

    /// Refuses a home that another user owns, can write or could exchange. One that does not exist yet passes if nobody else can make
    /// it first.
    pub fn check_owner(&self) -> Result<(), Error> {
        let checked = match owned::check_directory(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let mut above = self.path.ancestors().skip(1);
                above.find(|path| path.exists()).map_or(Ok(()), owned::check_base)
            }
            checked => checked.map(drop),
        };
        checked.map_err(|error| match error.kind() {
            // A refusal of the check itself, not of the system.
            ErrorKind::PermissionDenied if error.raw_os_error().is_none() => Error::UnsafeHome { why: error },
            _ => self.error("looking at the home", error),
        })
    }

    /// Makes what is missing of the home.
    pub(crate) fn make_directories(&self) -> io::Result<()> {
        let missing: Vec<&Path> = self.path.ancestors().take_while(|path| !path.exists()).collect();
        let bells = self.bells();
        let locks = self.locks();
        for directory in missing.into_iter().rev().chain([bells.as_path(), locks.as_path()]) {
            match DirBuilder::new().mode(0o700).create(directory) {
                Ok(()) => directory.parent().map_or(Ok(()), sync_directory)?,
                // Another process made it, or it was there.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The error of a file or directory of this home.
    pub fn error(&self, what: &str, source: io::Error) -> Error {
        Error::io(&self.path, what, source)
    }
}

/// What SQLite keeps beside a database: the same name with an ending.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
