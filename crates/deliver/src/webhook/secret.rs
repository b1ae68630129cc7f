//! The secret of a webhook, from a file that only its owner can read.

use std::fmt;
use std::io::Read;
use std::path::PathBuf;

use ringer_platform::owned;

use crate::error::Error;

/// The longest secret, in bytes. A longer file is a mistake and is refused.
pub const MAX_SECRET: u64 = 4096;

/// A file that holds a secret. It is read for every attempt, so a change takes effect at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretFile(PathBuf);

/// The content of a [`SecretFile`]. `Debug` does not print it.
pub(super) struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

impl SecretFile {
    /// The file at a path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Reads the file, and checks its content.
    pub(super) fn read_for(&self, check: impl Fn(&str) -> Result<(), &'static str>) -> Result<Secret, Error> {
        let secret = self.read()?;
        check(secret.as_str()).map_err(|why| self.invalid(why))?;
        Ok(secret)
    }

    /// Reads the file, if this user owns it and no other user may read it.
    fn read(&self) -> Result<Secret, Error> {
        let bad = |why: &str| self.invalid(why);
        let file = owned::open_secret(&self.0).map_err(|error| bad(&error.to_string()))?;
        let mut text = String::new();
        file.take(MAX_SECRET + 1).read_to_string(&mut text).map_err(|_| bad("it is not text"))?;
        if text.len() as u64 > MAX_SECRET {
            return Err(bad("it is too long"));
        }
        match text.trim() {
            "" => Err(bad("it is empty")),
            secret if secret.chars().all(|character| character.is_ascii_graphic()) => {
                Ok(Secret(secret.to_owned()))
            }
            _ => Err(bad("it holds characters that cannot be sent")),
        }
    }

    /// The error for a secret that cannot be used.
    fn invalid(&self, why: &str) -> Error {
        Error::Secret { path: self.0.clone(), why: why.to_owned() }
    }
}

impl Secret {
    #[cfg(test)]
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn check(content: &[u8], mode: u32, expected: Result<&str, &str>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        match (SecretFile::new(&path).read(), expected) {
            (Ok(secret), Ok(expected)) => assert_eq!(secret.as_str(), expected),
            (Err(error), Err(expected)) => {
                let words = error.to_string();
                assert!(words.contains(expected), "{words}");
                assert!(!words.contains("hunter2"), "{words}");
            }
            (found, expected) => assert!(found.is_ok() == expected.is_ok(), "{found:?} {expected:?}"),
        }
    }

    #[test]
    fn only_a_file_of_our_own_is_read() {
        check(b" hunter2\n", 0o600, Ok("hunter2"));
        check(b"hunter2", 0o400, Ok("hunter2"));
        check(b"hunter2", 0o640, Err("chmod 600"));
        check(b"hunter2", 0o604, Err("chmod 600"));
        check(b"\n", 0o600, Err("empty"));
        check(b"hunter2\r\nX-Evil: 1", 0o600, Err("cannot be sent"));
        check(&[b'x'; 5000], 0o600, Err("too long"));
        check(b"\xff", 0o600, Err("not text"));
        let error = SecretFile::new("/").read().unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{error}");
        assert!(SecretFile::new("/nowhere/at/all").read().is_err());
    }

    #[test]
    fn a_secret_is_never_shown() {
        assert_eq!(format!("{:?}", Secret("hunter2".to_owned())), "Secret(…)");
    }
}
