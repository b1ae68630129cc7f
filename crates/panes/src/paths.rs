//! Paths of the sockets, locks and files of a home's panes.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ringer_ipc::discovery::{is_own_directory, runtime_directory, socket_directories, socket_path};
use ringer_journal::{Home, Lock};
use ringer_platform::owned;

/// The file that holds the saved session.
pub(crate) const SESSION: &str = "panes.json";

/// File names of the server's and the keeper's socket.
const SERVER: &str = "ui.sock";
const KEEPER: &str = "pty.sock";

/// Paths of the sockets, locks and files of a home's panes.
#[derive(Debug, Clone)]
pub struct PanePaths {
    home: PathBuf,
    sockets: PathBuf,
    screens: PathBuf,
}

impl PanePaths {
    /// Finds the paths for a home, and creates the directories of the sockets and screens if necessary.
    pub fn of(home: &Home) -> io::Result<Self> {
        let best = socket_path(home, home.runtime())?.parent().map(Path::to_owned).unwrap_or_default();
        // A server of another version, or one started with another runtime directory, may have its sockets elsewhere.
        let other = || {
            let usual = socket_directories(home).into_iter();
            usual
                .filter(|directory| *directory != best && is_own_directory(home, directory))
                .find(|it| is_used(it))
        };
        let sockets = if is_used(&best) { best } else { other().unwrap_or(best) };
        let screens = runtime_directory(home)?.join("screens");
        Ok(Self { home: home.path().to_owned(), sockets, screens })
    }

    /// The socket of the server.
    pub fn server(&self) -> PathBuf {
        self.sockets.join(SERVER)
    }

    /// The socket of the keeper.
    pub fn keeper(&self) -> PathBuf {
        self.sockets.join(KEEPER)
    }

    /// The state directory of Ringer.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// The session that is restored after a reboot.
    pub(crate) fn session(&self) -> PathBuf {
        self.home.join(SESSION)
    }

    /// Returns true if the home ever had panes.
    pub fn has_session(home: &Home) -> bool {
        home.path().join(SESSION).exists()
    }

    /// The directory of the saved screens, which the next server reads.
    pub(crate) fn screens(&self) -> &Path {
        &self.screens
    }

    /// Uses the directory where the last server saved the screens, if it still exists: that server may have had another runtime
    /// directory. Older versions saved the screens beside the sockets, and did not record the path.
    pub(crate) fn keep_screens_in(&mut self, saved: Option<PathBuf>) {
        let directory = saved.unwrap_or_else(|| self.sockets.join("screens"));
        if owned::check_directory(&directory).is_ok() {
            self.screens = directory;
        }
    }

    /// Returns true if a keeper is running. A keeper without programs exits soon.
    pub fn has_programs(&self) -> bool {
        owned::connect(&self.keeper()).is_ok()
    }

    /// Takes the lock that belongs to a socket. Returns `None` if another process holds it.
    pub fn lock(&self, socket: &Path) -> io::Result<Option<Lock>> {
        Lock::take(&socket.with_extension("lock"), Some(Instant::now()))
    }
}

/// Returns true if a server or a keeper accepts connections in the directory.
fn is_used(directory: &Path) -> bool {
    [SERVER, KEEPER].iter().any(|name| owned::connect(&directory.join(name)).is_ok())
}
