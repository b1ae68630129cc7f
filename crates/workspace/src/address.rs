//! Where the server and the keeper of a home are.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ringer_ipc::discovery::socket_path;
use ringer_journal::{Home, Lock};
use ringer_platform::connect_at_once;

/// The file with the session.
pub(crate) const SESSION: &str = "panes.json";

/// The sockets, the lock and the files of a home's panes.
#[derive(Debug, Clone)]
pub struct Places {
    home: PathBuf,
    sockets: PathBuf,
}

impl Places {
    /// Those of a home. The directory of the sockets is made if it is not there.
    pub fn of(home: &Home) -> io::Result<Self> {
        let hub = socket_path(home, home.runtime())?;
        let sockets = hub.parent().map(Path::to_owned).unwrap_or_default();
        Ok(Self { home: home.path().to_owned(), sockets })
    }

    /// The socket of the server.
    pub fn server(&self) -> PathBuf {
        self.sockets.join("ui.sock")
    }

    /// The socket of the keeper.
    pub fn keeper(&self) -> PathBuf {
        self.sockets.join("pty.sock")
    }

    /// The state directory of Ringer.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// The session that is restored after a reboot.
    pub(crate) fn session(&self) -> PathBuf {
        self.home.join(SESSION)
    }

    /// Whether a home ever had panes.
    pub fn has_session(home: &Home) -> bool {
        home.path().join(SESSION).exists()
    }

    /// Where the screens of the panes are, for the next server.
    pub(crate) fn screens(&self) -> PathBuf {
        self.sockets.join("screens")
    }

    /// Whether a keeper runs, which ends soon when it has no programs.
    pub fn has_programs(&self) -> bool {
        connect_at_once(&self.keeper()).is_ok()
    }

    /// Makes this process the only one of its kind, until the lock is dropped. `None` if another one is.
    pub fn lock(&self, socket: &Path) -> io::Result<Option<Lock>> {
        Lock::take(&socket.with_extension("lock"), Some(Instant::now()))
    }
}
