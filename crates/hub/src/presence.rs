//! Where the hub is found: its socket, and the file that names it.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ringer_journal::Home;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The longest path of a socket, in bytes: the kernel's field for it has 108 (macOS: 104), one of them for the end.
const MAX_SOCKET: usize = if cfg!(target_os = "macos") { 103 } else { 107 };

/// What a hub says of itself, in `hub.json` in the home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// Its socket.
    pub socket: PathBuf,
    /// Its process.
    pub pid: u32,
    /// Its version.
    pub version: String,
}

impl Presence {
    /// What the last hub of that home wrote. It may be gone.
    pub fn read(home: &Home) -> Option<Self> {
        serde_json::from_slice(&fs::read(file(home)).ok()?).ok()
    }

    /// Writes it, so that nobody ever reads half of it.
    pub(crate) fn write(&self, home: &Home) -> io::Result<()> {
        let (path, building) = (file(home), home.path().join("hub.json.building"));
        let mut out = File::create(&building)?;
        out.set_permissions(fs::Permissions::from_mode(0o600))?;
        out.write_all(&serde_json::to_vec(self)?)?;
        fs::rename(building, path)
    }

    /// Takes it away, unless it is another hub's by now.
    pub(crate) fn remove(&self, home: &Home) {
        if Self::read(home).as_ref() == Some(self) {
            let _ = fs::remove_file(file(home));
            let _ = fs::remove_file(&self.socket);
        }
    }
}

fn file(home: &Home) -> PathBuf {
    home.path().join("hub.json")
}

/// The place of a home's socket: under the runtime directory, or in the home itself where there is none. A path that is
/// too long for a socket falls back to a directory of our own under the temporary one.
pub(crate) fn socket_path(home: &Home, runtime: Option<&Path>) -> io::Result<PathBuf> {
    let digest = Sha256::digest(home.path().as_os_str().as_encoded_bytes());
    let name: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let own = rustix::process::geteuid().as_raw();
    let usable = runtime.filter(|path| fs::metadata(path).is_ok_and(|metadata| metadata.uid() == own));
    let short = std::env::temp_dir().join(format!("ringer-{own}")).join(&name);
    let directory = usable.map_or_else(|| home.path().to_owned(), |path| path.join("ringer").join(&name));
    let fits = |directory: &Path| directory.join("hub.sock").as_os_str().len() <= MAX_SOCKET;
    let directory = if fits(&directory) { directory } else { short };
    make_private(&directory, own)?;
    Ok(directory.join("hub.sock"))
}

/// Makes a directory that only its owner can enter. One that is somebody else's is refused: its owner could read along.
fn make_private(directory: &Path, own: u32) -> io::Result<()> {
    let missing: Vec<&Path> = directory.ancestors().take_while(|path| !path.exists()).collect();
    for path in missing.into_iter().rev() {
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    let metadata = fs::symlink_metadata(directory)?;
    if metadata.uid() != own || !metadata.is_dir() {
        return Err(io::Error::new(
            ErrorKind::PermissionDenied,
            format!("{} belongs to somebody else", directory.display()),
        ));
    }
    if metadata.mode() & 0o077 != 0 {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_is_private_and_its_path_fits() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path().join("home"));
        let runtime = directory.path().join("run");
        fs::create_dir(&runtime).unwrap();
        let socket = socket_path(&home, Some(&runtime)).unwrap();
        assert!(socket.starts_with(runtime.join("ringer")));
        let mode = fs::metadata(socket.parent().unwrap()).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);

        assert!(socket_path(&home, None).unwrap().starts_with(home.path()), "no runtime directory");
        let missing = directory.path().join("nowhere");
        assert!(socket_path(&home, Some(&missing)).unwrap().starts_with(home.path()));

        let long = Home::new(directory.path().join("x".repeat(200)));
        let socket = socket_path(&long, None).unwrap();
        assert!(socket.as_os_str().len() <= MAX_SOCKET, "{}", socket.display());
        fs::remove_dir_all(socket.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_hub_takes_away_its_own_file_only() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path());
        let one = Presence { socket: directory.path().join("s"), pid: 1, version: "1".into() };
        let two = Presence { pid: 2, ..one.clone() };
        one.write(&home).unwrap();
        two.write(&home).unwrap();
        one.remove(&home);
        assert_eq!(Presence::read(&home), Some(two.clone()));
        two.remove(&home);
        assert_eq!(Presence::read(&home), None);
    }
}
