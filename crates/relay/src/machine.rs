//! The id and the names of machines, and the lock that allows one connection to each.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ringer_journal::{Home, IdSource, Lock};
use ringer_platform::{hex, sync_directory};
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The name of the file in the home.
const FILE: &str = "machine-id";
/// The number of digits in an id: 16 random bytes.
const DIGITS: usize = 32;
/// The longest name of a machine, in bytes.
const MAX_NAME: usize = 64;

/// The id of a machine, or rather of a home: random, generated once, and permanent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MachineId(String);

impl MachineId {
    /// Parses an id: 32 lowercase hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == DIGITS && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    /// Returns the id of a home, generating one if necessary.
    pub fn of(home: &Home) -> Result<Self, Error> {
        let path = home.path().join(FILE);
        if let Some(id) = read(&path)? {
            return Ok(id);
        }
        let id = Self(hex(&IdSource::now().random));
        let failed = |source| Error::Io { what: format!("cannot write {}", path.display()), source };
        let temporary = home.path().join(format!(".{FILE}.{}.new", id.0));
        let write = || {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
            file.write_all(format!("{}\n", id.0).as_bytes())?;
            file.sync_all()?;
            // A hard link fails if the file exists, so of two processes that generate an id one wins.
            let linked = fs::hard_link(&temporary, &path);
            let _ = fs::remove_file(&temporary);
            match linked {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                linked => linked.and_then(|()| sync_directory(home.path())),
            }
        };
        write().map_err(failed)?;
        read(&path)?.ok_or_else(|| failed(io::Error::other("it is not there after it was written")))
    }

    /// Returns the digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Reads the file. Returns `None` if there is none. Invalid content is an error, because a new id would restart all links.
fn read(path: &std::path::Path) -> Result<Option<MachineId>, Error> {
    let mut text = String::new();
    let read = fs::File::open(path).and_then(|file| file.take(1024).read_to_string(&mut text));
    match read {
        Ok(_) => {
            MachineId::parse(text.trim_end()).map(Some).ok_or_else(|| Error::NoMachineId(path.to_owned()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Io { what: format!("cannot read {}", path.display()), source }),
    }
}

impl TryFrom<String> for MachineId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| "a machine id has 32 hexadecimal digits".to_owned())
    }
}

impl From<MachineId> for String {
    fn from(id: MachineId) -> Self {
        id.0
    }
}

/// The name of a machine in lists and after the `@` of an address: letters, digits, `-`, `_` and `.`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MachineName(String);

impl MachineName {
    /// Parses a name.
    ///
    /// ```
    /// use ringer_relay::MachineName;
    ///
    /// assert_eq!(MachineName::parse("box.lan").unwrap().as_str(), "box.lan");
    /// assert!(MachineName::parse("-oProxyCommand=x").is_none() && MachineName::parse("a@b").is_none());
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let begins_well = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        let is_name = begins_well && text.len() <= MAX_NAME && text.bytes().all(is_allowed);
        is_name.then(|| Self(text.to_owned()))
    }

    /// Converts any text to a name: invalid characters become `-`.
    pub fn from_text(text: &str) -> Self {
        let allowed = |character: char| {
            if character.is_ascii_alphanumeric() || "-_.".contains(character) { character } else { '-' }
        };
        let name: String = text.chars().take(MAX_NAME).map(allowed).collect();
        let name = name.trim_start_matches(['-', '_', '.']);
        Self(if name.is_empty() { "machine".to_owned() } else { name.to_owned() })
    }

    /// Returns the name for the machine with this number among machines of the same name. The first keeps the name.
    pub(crate) fn numbered(&self, number: usize) -> Self {
        if number < 2 {
            return self.clone();
        }
        let end = format!("-{number}");
        let kept = self.0.len().min(MAX_NAME - end.len());
        Self(format!("{}{end}", &self.0[..kept]))
    }

    /// Returns the name of this machine: its host name up to the first dot.
    pub fn of_host() -> Self {
        let system = rustix::system::uname();
        let name = system.nodename().to_string_lossy();
        Self::from_text(name.split('.').next().unwrap_or_default())
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MachineName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Time limit for the process of the previous connection to exit.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);

/// Held during a connection to a machine: a second connection would send everything twice.
#[derive(Debug)]
pub(crate) struct PeerLock {
    _lock: Lock,
}

pub(crate) fn lock_path(home: &Home, machine: &MachineId) -> PathBuf {
    home.path().join(format!("relay-{}.lock", machine.as_str()))
}

impl PeerLock {
    /// Takes the lock. `name` returns the machine's name for the error.
    pub(crate) fn take(
        home: &Home,
        machine: &MachineId,
        name: impl FnOnce() -> String,
    ) -> Result<Self, Error> {
        let path = lock_path(home, machine);
        match Lock::take(&path, Some(Instant::now() + LOCK_TIMEOUT)) {
            Ok(Some(lock)) => Ok(Self { _lock: lock }),
            Ok(None) => Err(Error::Connected(name())),
            Err(source) => Err(Error::Io { what: format!("cannot lock {}", path.display()), source }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_id_is_created_once_in_a_private_file() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path());
        let id = MachineId::of(&home).unwrap();
        assert_eq!(MachineId::of(&home).unwrap(), id);
        let mode = fs::metadata(directory.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn concurrent_processes_create_one_id() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path());
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let home = home.clone();
                std::thread::spawn(move || MachineId::of(&home).unwrap())
            })
            .collect();
        let ids: std::collections::BTreeSet<_> =
            threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(ids.len(), 1);
    }

    #[test]
    fn a_damaged_id_file_is_reported_and_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(FILE), "short\n").unwrap();
        assert!(matches!(MachineId::of(&Home::new(directory.path())), Err(Error::NoMachineId(_))));
    }

    #[test]
    fn any_text_becomes_a_name() {
        let check = |text: &str, name: &str| assert_eq!(MachineName::from_text(text).as_str(), name);
        check("build box", "build-box");
        check("--x", "x");
        check("é", "machine");
        check("", "machine");
        check(&"a".repeat(100), &"a".repeat(64));
        assert!(MachineName::parse(MachineName::of_host().as_str()).is_some());
    }

    #[test]
    fn machines_with_the_same_name_are_numbered() {
        let name = MachineName::from_text("laptop");
        assert_eq!([1, 2, 10].map(|number| name.numbered(number).0), ["laptop", "laptop-2", "laptop-10"]);
        assert_eq!(MachineName::from_text(&"a".repeat(64)).numbered(2).as_str().len(), 64);
    }
}
