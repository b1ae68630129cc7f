//! Finds the hub: the places of its socket, and `hub.json`, which names it.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ringer_journal::Home;
use ringer_platform::{Durability, hex, is_on_shared_file_system, owned, replace_file};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The longest path of a socket, in bytes. `sun_path` has 108 bytes (104 on macOS), including the terminating NUL.
const MAX_SOCKET: usize = if cfg!(target_os = "macos") { 103 } else { 107 };

/// The file name of the socket.
const SOCKET: &str = "hub.sock";
/// The most bytes read from `hub.json`. Most of it is the socket's path.
const MAX_FILE: u64 = 16 * 1024;

/// The content of `hub.json` in the home, which the hub writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubAddress {
    /// The path of the socket.
    pub socket: PathBuf,
    /// The hub's process id.
    pub pid: u32,
    /// The hub's version.
    pub version: String,
}

impl HubAddress {
    /// Reads what the last hub of this home wrote; that hub may be gone. Ignores a file that another user can write, since it
    /// decides which socket to trust.
    pub fn read(home: &Home) -> Option<Self> {
        serde_json::from_slice(&read_own(&file(home), MAX_FILE)?).ok()
    }

    /// Writes the file atomically.
    pub fn write(&self, home: &Home) -> io::Result<()> {
        replace_file(&file(home), &serde_json::to_vec(self)?, Durability::Unsynced)
    }

    /// Removes the file and the socket, unless another hub has replaced the file.
    pub fn remove(&self, home: &Home) {
        if Self::read(home).as_ref() == Some(self) {
            let _ = fs::remove_file(file(home));
            let _ = fs::remove_file(&self.socket);
        }
    }
}

/// Checks that no other user could have created a socket: this user owns it and the directories that a hub creates for it.
pub(crate) fn check_path(home: &Home, socket: &Path) -> io::Result<()> {
    check_directories(home, socket)?;
    owned::check_socket(socket).map(drop)
}

fn check_directories(home: &Home, socket: &Path) -> io::Result<()> {
    let Some(directory) = socket.parent() else { return Err(ErrorKind::InvalidInput.into()) };
    let above = directory.parent().filter(|_| directory != home.path());
    above.into_iter().chain([directory]).try_for_each(|directory| owned::check_directory(directory).map(drop))
}

/// Returns the paths at which a hub of this home creates its socket, in order of preference.
pub(crate) fn usual_sockets(home: &Home) -> Vec<PathBuf> {
    socket_directories(home).iter().map(|directory| directory.join(SOCKET)).collect()
}

/// Returns the directories for sockets of this home, in order of preference. Does not create them.
pub fn socket_directories(home: &Home) -> Vec<PathBuf> {
    places(home, home.runtime()).iter().map(SocketPlace::directory).collect()
}

/// Returns true if only this user can create a socket in this directory.
pub fn is_own_directory(home: &Home, directory: &Path) -> bool {
    check_directories(home, &directory.join(SOCKET)).is_ok()
}

/// Returns a directory for files that need not survive this user's last logout, and creates it if necessary: under the runtime
/// directory, or else the directory of the socket.
pub fn runtime_directory(home: &Home) -> io::Result<PathBuf> {
    let made = runtime_place(home, home.runtime()).map(|place| make_directory(&place));
    match made {
        Some(Ok(directory)) => Ok(directory),
        _ => Ok(socket_path(home, home.runtime())?.parent().map(Path::to_owned).unwrap_or_default()),
    }
}

/// Returns the directories that hubs of this home create outside of it. Each is named after the home.
pub fn directories_outside(home: &Home) -> Vec<PathBuf> {
    let places = places(home, home.runtime()).into_iter().filter(|place| !place.folders.is_empty());
    places.map(|place| place.directory()).collect()
}

fn file(home: &Home) -> PathBuf {
    home.path().join("hub.json")
}

/// Reads at most `most` bytes of a file. Returns `None` if another user can write it.
pub(crate) fn read_own(path: &Path, most: u64) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    owned::open(path).ok()?.take(most).read_to_end(&mut text).ok()?;
    Some(text)
}

/// A directory for a hub's socket, which need not exist yet.
#[derive(Debug)]
pub(crate) struct SocketPlace {
    /// The directory that exists already.
    base: PathBuf,
    /// The nested directories below it that the hub creates.
    folders: Vec<String>,
}

impl SocketPlace {
    pub(crate) fn directory(&self) -> PathBuf {
        self.folders.iter().fold(self.base.clone(), |path, folder| path.join(folder))
    }
}

/// Returns the places for a home's socket, in order of preference: the home, which every process of this user finds and which
/// survives a logout; the runtime directory; and, if those paths are too long for a socket, our own directory below the
/// temporary one. If other machines may share the home, it comes last, because its socket would conflict with theirs.
pub(crate) fn places(home: &Home, runtime: Option<&Path>) -> Vec<SocketPlace> {
    places_with(home, runtime, &std::env::temp_dir(), is_on_shared_file_system(home.path()))
}

fn places_with(home: &Home, runtime: Option<&Path>, temporary: &Path, is_shared: bool) -> Vec<SocketPlace> {
    let in_home = SocketPlace { base: home.path().to_owned(), folders: Vec::new() };
    let own_folder = format!("ringer-{}", own_uid());
    let in_temporary = SocketPlace { base: temporary.to_owned(), folders: vec![own_folder, name_of(home)] };
    let mut places: Vec<SocketPlace> =
        runtime_place(home, runtime).into_iter().chain([in_temporary]).collect();
    let at = if is_shared { places.len() - 1 } else { 0 };
    places.insert(at, in_home);
    places
}

fn runtime_place(home: &Home, runtime: Option<&Path>) -> Option<SocketPlace> {
    let folders = vec!["ringer".to_owned(), name_of(home)];
    runtime.map(|base| SocketPlace { base: base.to_owned(), folders })
}

/// Returns a directory name that is unique to a home.
fn name_of(home: &Home) -> String {
    hex(&Sha256::digest(home.path().as_os_str().as_encoded_bytes())[..4])
}

/// Returns the path for a home's socket, and creates its directory if necessary. Skips places that another user could change.
pub fn socket_path(home: &Home, runtime: Option<&Path>) -> io::Result<PathBuf> {
    socket_in(&places(home, runtime))
}

fn socket_in(places: &[SocketPlace]) -> io::Result<PathBuf> {
    let mut refused = None;
    for place in places {
        if place.directory().join(SOCKET).as_os_str().len() > MAX_SOCKET {
            continue;
        }
        match make_directory(place) {
            Ok(directory) => return Ok(directory.join(SOCKET)),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.unwrap_or_else(|| {
        io::Error::new(
            ErrorKind::InvalidFilename,
            "every path for it is too long; set XDG_RUNTIME_DIR to a short one",
        )
    }))
}

/// Creates the directories of a place, accessible only to this user.
pub(crate) fn make_directory(place: &SocketPlace) -> io::Result<PathBuf> {
    if place.folders.is_empty() {
        owned::check_directory(&place.base)?;
        return Ok(place.base.clone());
    }
    owned::check_base(&place.base)?;
    let mut path = place.base.clone();
    for folder in &place.folders {
        path.push(folder);
        make_folder(&path)?;
    }
    Ok(path)
}

fn make_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() {
        return Err(io::Error::new(
            ErrorKind::NotADirectory,
            format!("{} is not a directory", path.display()),
        ));
    }
    close(path, &found)?;
    owned::check_directory(path).map(drop)
}

/// Removes the permissions of other users from a directory of this user.
fn close(path: &Path, metadata: &fs::Metadata) -> io::Result<()> {
    if metadata.uid() == own_uid() && metadata.mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The socket of a home that other machines use, too.
    fn in_shared(home: &Home, runtime: Option<&Path>) -> PathBuf {
        socket_in(&places_with(home, runtime, &std::env::temp_dir(), true)).unwrap()
    }

    #[test]
    fn the_socket_is_private_and_its_path_fits() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path().join("home"));
        fs::create_dir(home.path()).unwrap();
        let runtime = directory.path().join("run");
        fs::create_dir(&runtime).unwrap();
        for runtime in [Some(runtime.as_path()), None] {
            let socket = socket_path(&home, runtime).unwrap();
            assert_eq!(
                socket.parent(),
                Some(home.path()),
                "whatever the process knows of a runtime directory"
            );
        }
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        allow(home.path(), 0o702);
        assert!(socket_path(&home, Some(&runtime)).unwrap().starts_with(&runtime), "others could change it");
        allow(home.path(), 0o755);
        assert!(socket_path(&home, Some(&runtime)).unwrap().starts_with(home.path()));
        assert_eq!(mode(home.path()), 0o755, "it is the person's");

        let socket = in_shared(&home, Some(&runtime));
        assert!(socket.starts_with(runtime.join("ringer")));
        assert_eq!(mode(socket.parent().unwrap()), 0o700);
        assert!(in_shared(&home, None).starts_with(home.path()), "no runtime directory");
        let missing = directory.path().join("nowhere");
        assert!(in_shared(&home, Some(&missing)).starts_with(home.path()));

        let long = Home::new(directory.path().join("x".repeat(200)));
        let temporary = directory.path().join("tmp");
        fs::create_dir(&temporary).unwrap();
        let socket = socket_in(&places_with(&long, None, &temporary, false)).unwrap();
        assert!(socket.starts_with(&temporary) && socket.as_os_str().len() <= MAX_SOCKET, "{socket:?}");
        assert_eq!(mode(socket.parent().unwrap().parent().unwrap()), 0o700);
        let nowhere = directory.path().join("y".repeat(200));
        let error = socket_in(&places_with(&long, None, &nowhere, false)).unwrap_err().to_string();
        assert!(error.contains("XDG_RUNTIME_DIR"), "{error}");
    }

    fn allow(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_place_that_others_can_write_to_is_passed_over() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path().join("home"));
        fs::create_dir(home.path()).unwrap();
        let runtime = directory.path().join("run");
        fs::create_dir(&runtime).unwrap();
        allow(&runtime, 0o777);
        assert!(in_shared(&home, Some(&runtime)).starts_with(home.path()));
        allow(&runtime, 0o1777);
        assert!(in_shared(&home, Some(&runtime)).starts_with(&runtime), "as /tmp");
        // A directory of this user is made private again.
        allow(&runtime.join("ringer"), 0o777);
        let socket = in_shared(&home, Some(&runtime));
        let address = HubAddress { socket, pid: 1, version: "1".into() };
        check_directories(&home, &address.socket).unwrap();
        allow(&runtime.join("ringer"), 0o702);
        let error = check_directories(&home, &address.socket).unwrap_err().to_string();
        assert_eq!(error, format!("{} can be written by other users", runtime.join("ringer").display()));
        // A symbolic link does not count as our own directory.
        fs::rename(runtime.join("ringer"), runtime.join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", runtime.join("ringer")).unwrap();
        assert!(in_shared(&home, Some(&runtime)).starts_with(home.path()));
    }

    #[test]
    fn a_place_of_another_user_is_passed_over() {
        use std::os::unix::fs::chown;
        if !test_support::is_root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path().join("home"));
        fs::create_dir(home.path()).unwrap();
        let runtime = directory.path().join("run");
        fs::create_dir(&runtime).unwrap();
        let socket = in_shared(&home, Some(&runtime));
        for theirs in [runtime.clone(), runtime.join("ringer"), socket.parent().unwrap().to_owned()] {
            chown(&theirs, Some(65534), None).unwrap();
            assert!(in_shared(&home, Some(&runtime)).starts_with(home.path()), "{theirs:?}");
            chown(&theirs, Some(0), None).unwrap();
        }
        // A former bug: the parent belongs to another user, the leaf to this one.
        let long = Home::new(directory.path().join("x".repeat(200)));
        let socket = socket_in(&places_with(&long, None, &runtime, false)).unwrap();
        let address = HubAddress { socket, pid: 1, version: "1".into() };
        check_directories(&long, &address.socket).unwrap();
        chown(runtime.join("ringer-0"), Some(65534), None).unwrap();
        let expected = format!("{} belongs to another user (uid 65534)", runtime.join("ringer-0").display());
        assert_eq!(socket_in(&places_with(&long, None, &runtime, false)).unwrap_err().to_string(), expected);
        assert_eq!(check_directories(&long, &address.socket).unwrap_err().to_string(), expected);
    }

    #[test]
    fn a_file_that_others_can_write_is_not_believed() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path());
        let address = HubAddress { socket: directory.path().join("s"), pid: 1, version: "1".into() };
        address.write(&home).unwrap();
        assert_eq!(HubAddress::read(&home).as_ref(), Some(&address));
        allow(&file(&home), 0o666);
        assert_eq!(HubAddress::read(&home), None);
        allow(&file(&home), 0o600);
        fs::rename(file(&home), directory.path().join("other")).unwrap();
        std::os::unix::fs::symlink("other", file(&home)).unwrap();
        assert_eq!(HubAddress::read(&home).as_ref(), Some(&address), "a link that only this user can change");
    }

    #[test]
    fn a_hub_takes_away_its_own_file_only() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path());
        let one = HubAddress { socket: directory.path().join("s"), pid: 1, version: "1".into() };
        let two = HubAddress { pid: 2, ..one.clone() };
        one.write(&home).unwrap();
        two.write(&home).unwrap();
        one.remove(&home);
        assert_eq!(HubAddress::read(&home), Some(two.clone()));
        two.remove(&home);
        assert_eq!(HubAddress::read(&home), None);
    }
}
