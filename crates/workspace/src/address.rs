//! Where the server and the keeper of a home are.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ringer_ipc::discovery::{is_own_directory, runtime_directory, socket_directories, socket_path};
use ringer_journal::{Home, Lock};
use ringer_platform::owned;

/// The file with the session.
pub(crate) const SESSION: &str = "panes.json";

/// The names of the sockets of the server and the keeper.
const SERVER: &str = "ui.sock";
const KEEPER: &str = "pty.sock";

/// The sockets, the lock and the files of a home's panes.
#[derive(Debug, Clone)]
pub struct Places {
    home: PathBuf,
    sockets: PathBuf,
    screens: PathBuf,
}

impl Places {
    /// Those of a home. The directories of the sockets and of the screens are made if they are not there.
    pub fn of(home: &Home) -> io::Result<Self> {
        let best = socket_path(home, home.runtime())?.parent().map(Path::to_owned).unwrap_or_default();
        // Another version, or a process that knew of another runtime directory, may have put them elsewhere.
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

    /// Whether a home ever had panes.
    pub fn has_session(home: &Home) -> bool {
        home.path().join(SESSION).exists()
    }

    /// Where the screens of the panes are, for the next server.
    pub(crate) fn screens(&self) -> &Path {
        &self.screens
    }

    /// Goes on where the last server saved the screens, if that is there: it may have known of another runtime directory. Older versions
    /// saved them beside the sockets, and did not say so.
    pub(crate) fn keep_screens_in(&mut self, saved: Option<PathBuf>) {
        let directory = saved.unwrap_or_else(|| self.sockets.join("screens"));
        if owned::check_directory(&directory).is_ok() {
            self.screens = directory;
        }
    }

    /// Whether a keeper runs, which ends soon when it has no programs.
    pub fn has_programs(&self) -> bool {
        owned::connect(&self.keeper()).is_ok()
    }

    /// Makes this process the only one of its kind, until the lock is dropped. `None` if another one is.
    pub fn lock(&self, socket: &Path) -> io::Result<Option<Lock>> {
        Lock::take(&socket.with_extension("lock"), Some(Instant::now()))
    }
}

/// Whether a server or a keeper answers there.
fn is_used(directory: &Path) -> bool {
    [SERVER, KEEPER].iter().any(|name| owned::connect(&directory.join(name)).is_ok())
}
