//! The programs of repositories that the person has trusted.
//!
//! A checkout can bring a file that names programs. None of them runs before the person has trusted it. Trust is stored as
//! a digest of everything that determines what runs, so an entry that changes has to be trusted again.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use ringer_core::policy::{Hook, HookIdentity};
use ringer_platform::{Durability, owned, replace_file};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::entry::{HookEntry, Watch};
use crate::reader::{Origin, Source};

/// The format version of the file.
const VERSION: u32 = 1;

/// An error with the trust file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not valid. Nothing is trusted, and the file is not overwritten.
    #[error("{}: {source}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// A newer version of Ringer wrote the file.
    #[error("{} has version {version}, but this program supports {VERSION}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
}

/// Stored with a digest, for `ringer trust` and for people who read the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    what: String,
    path: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    version: u32,
    #[serde(default)]
    trusted: BTreeMap<String, Note>,
}

/// The largest trust file, in bytes: enough for several thousand programs.
const MAX_FILE: u64 = 1024 * 1024;

/// Parsed first, to check whether the rest can be read.
#[derive(Debug, Deserialize)]
struct Version {
    version: u32,
}

/// The programs that the person has trusted. Only the person may be able to write the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trusted {
    entries: BTreeMap<String, Note>,
}

impl Trusted {
    /// Reads the file. If it is missing, nothing is trusted.
    pub fn load(path: &Path) -> Result<Self, TrustError> {
        let broken = |source| TrustError::Broken { path: path.to_owned(), source };
        let text = match owned::read(path, MAX_FILE) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(TrustError::Io { path: path.to_owned(), source }),
        };
        let Version { version } = serde_json::from_slice(&text).map_err(broken)?;
        if version > VERSION {
            return Err(TrustError::Newer { path: path.to_owned(), version });
        }
        let stored: Stored = serde_json::from_slice(&text).map_err(broken)?;
        Ok(Self { entries: stored.trusted })
    }

    /// Writes the file atomically.
    pub fn save(&self, path: &Path) -> Result<(), TrustError> {
        let stored = Stored { version: VERSION, trusted: self.entries.clone() };
        let mut text = serde_json::to_vec_pretty(&stored)
            .map_err(|source| TrustError::Broken { path: path.to_owned(), source })?;
        text.push(b'\n');
        replace_file(path, &text, Durability::Synced)
            .map_err(|source| TrustError::Io { path: path.to_owned(), source })
    }

    /// Returns true if an entry may run: it is in the person's own file, or its digest is trusted.
    pub fn is_trusted(&self, entry: &impl Trustable) -> bool {
        entry.source().origin == Origin::User || self.entries.contains_key(&entry.digest())
    }

    /// Records that the person trusts this entry.
    pub fn trust(&mut self, entry: &impl Trustable) {
        let path = entry.source().path.to_string_lossy().into_owned();
        self.entries.insert(entry.digest(), Note { what: entry.what(), path });
    }

    /// Returns the digest, the description and the file of every trusted program.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.entries.iter().map(|(digest, note)| (digest.as_str(), note.what.as_str(), note.path.as_str()))
    }

    pub(crate) fn digests(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Revokes trust in everything that was trusted from a file, whatever the file contains now. Returns the number of programs.
    pub fn distrust_file(&mut self, path: &Path) -> usize {
        let before = self.entries.len();
        let path = path.to_string_lossy();
        self.entries.retain(|_, note| note.path != path);
        before - self.entries.len()
    }
}

/// An entry that runs a program and may have come with a checkout.
pub trait Trustable {
    /// The file that contains it.
    fn source(&self) -> &Source;

    /// Describes the program when the person is asked to trust it. The text comes from a stranger's file and is shown in a
    /// terminal, so everything in it is quoted and escaped.
    fn what(&self) -> String;

    /// Returns a digest of everything that determines what runs, in lowercase hex.
    fn digest(&self) -> String;
}

impl Trustable for HookEntry {
    fn source(&self) -> &Source {
        &self.source
    }

    fn what(&self) -> String {
        format!("hook {:?}: {:?}", self.id, self.command)
    }

    fn digest(&self) -> String {
        let mut digest = Parts::new("hook");
        digest.add(self.id.as_bytes());
        digest.all(&self.command);
        digest.add(self.source.path.as_os_str().as_encoded_bytes());
        digest.finish()
    }
}

impl Trustable for Watch {
    fn source(&self) -> &Source {
        &self.source
    }

    fn what(&self) -> String {
        format!("watch of {:?}: {:?}", self.paths, self.command)
    }

    fn digest(&self) -> String {
        let mut digest = Parts::new("watch");
        digest.all(&self.command);
        digest.add(self.source.path.as_os_str().as_encoded_bytes());
        // The directory can select another program, the watched paths decide when it runs, and the agent reads its output.
        digest.add(self.working_directory().as_os_str().as_encoded_bytes());
        digest.add(self.agent.as_deref().unwrap_or_default().as_bytes());
        for path in &self.paths {
            digest.add(path.as_os_str().as_encoded_bytes());
        }
        digest.finish()
    }
}

impl HookEntry {
    /// Returns the identity of the hook in the settings of this revision.
    pub fn identity(&self, revision: u64) -> HookIdentity {
        HookIdentity { id: self.id.clone(), digest: self.digest(), revision }
    }

    /// Converts the entry to a hook of the engine.
    pub(crate) fn to_rule(&self, revision: u64, trusted: bool) -> Hook {
        Hook {
            identity: self.identity(revision),
            config_path: Some(self.source.path.to_string_lossy().into_owned()),
            on_failure: self.on_failure,
            trusted,
            scope: self.scope.clone(),
        }
    }
}

/// A digest of several parts. Each part is preceded by its length, so that `a bc` and `ab c` differ.
struct Parts(Sha256);

impl Parts {
    fn new(what: &str) -> Self {
        let mut parts = Self(Sha256::new());
        parts.add(b"ringer-trust-1");
        parts.add(what.as_bytes());
        parts
    }

    fn add(&mut self, part: &[u8]) {
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    fn all(&mut self, parts: &[String]) {
        self.0.update((parts.len() as u64).to_le_bytes());
        for part in parts {
            self.add(part.as_bytes());
        }
    }

    fn finish(self) -> String {
        ringer_platform::hex(&self.0.finalize())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::{RepositorySettings, Rules, parse, parse_repository};

    const TEXT: &str = "[[hook]]\nid = \"a\"\ncommand = [\"x\", \"y z\"]\n\
                        [[watch]]\npaths = [\"f\"]\ncommand = [\"x\"]\n";

    fn repository(path: &str, text: &str) -> RepositorySettings {
        parse_repository(Path::new(path), None, text).unwrap()
    }

    #[test]
    fn changed_content_asks_again() {
        let trusted = repository("/r/.ringer.toml", TEXT);
        let mut set = Trusted::default();
        assert!(!set.is_trusted(&trusted.hooks[0]) && !set.is_trusted(&trusted.watches[0]));
        set.trust(&trusted.hooks[0]);
        set.trust(&trusted.watches[0]);
        let check = |path: &str, from: &str, to: &str, expected: (bool, bool)| {
            let now = repository(path, &TEXT.replace(from, to));
            let found = (set.is_trusted(&now.hooks[0]), set.is_trusted(&now.watches[0]));
            assert_eq!(found, expected, "{path}: {from} -> {to}");
        };
        check("/r/.ringer.toml", "", "", (true, true));
        check("/r/.ringer.toml", "\"a\"", "\"b\"", (false, true));
        check("/r/.ringer.toml", "\"x\", \"y z\"", "\"x\", \"y\", \"z\"", (false, true));
        check("/r/.ringer.toml", "\"x\", \"y z\"", "\"x y z\"", (false, true));
        check("/r/.ringer.toml", "[\"f\"]", "[\"g\"]", (true, false));
        check("/r/.ringer.toml", "command = [\"x\"]", "command = [\"rm\"]", (true, false));
        check("/other/.ringer.toml", "", "", (false, false));
        // The timeout and the failure mode do not change what runs.
        check("/r/.ringer.toml", "id = ", "timeout_ms = 5\nid = ", (true, true));
    }

    #[test]
    fn a_digest_is_sha256_and_stays_the_same() {
        let digest = repository("/r/.ringer.toml", TEXT).hooks[0].digest();
        assert!(digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{digest}");
        assert_eq!(digest, digest.to_lowercase());
        assert_eq!(digest, "a147ebd85acb59eedad108f44b859a6949a2488d091ca1edacac9a8977544adb");
    }

    #[test]
    fn what_is_asked_cannot_disguise_itself() {
        let text = TEXT.replace("y z", "\\u001b[2K\\u202esafe");
        let what = repository("/r/.ringer.toml", &text).hooks[0].what();
        assert_eq!(what, r#"hook "a": ["x", "\u{1b}[2K\u{202e}safe"]"#);
    }

    #[test]
    fn the_person_s_own_are_always_trusted() {
        let own = parse(Path::new("/h/config.toml"), None, TEXT, &Rules::default()).unwrap();
        assert!(
            Trusted::default().is_trusted(&own.hooks[0]) && Trusted::default().is_trusted(&own.watches[0])
        );
    }

    #[test]
    fn it_is_kept_for_the_person_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trust.json");
        assert_eq!(Trusted::load(&path).unwrap(), Trusted::default());
        let repository = repository("/r/.ringer.toml", TEXT);
        let mut set = Trusted::default();
        set.trust(&repository.hooks[0]);
        set.trust(&repository.watches[0]);
        set.save(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left beside it");
        let mut again = Trusted::load(&path).unwrap();
        assert_eq!(again, set);
        assert_eq!(again.distrust_file(Path::new("/r/.ringer.toml")), 2);
        assert!(!again.is_trusted(&repository.hooks[0]));
        assert_eq!(again, Trusted::default());
    }

    #[test]
    fn old_readers_and_new_writers_meet() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trust.json");
        let load = |text: &str| {
            fs::write(&path, text).unwrap();
            Trusted::load(&path)
        };
        assert!(load(r#"{"version":1,"colour":"red"}"#).is_ok(), "a newer one may add to it");
        assert!(matches!(load(r#"{"version":2,"trusted":[]}"#), Err(TrustError::Newer { version: 2, .. })));
        for broken in ["", "[]", "{", r#"{"version":1,"trusted":3}"#] {
            assert!(matches!(load(broken), Err(TrustError::Broken { .. })), "{broken}");
        }
        assert!(matches!(Trusted::load(directory.path()), Err(TrustError::Io { .. })));
        assert!(Trusted::default().save(&directory.path().join("none/trust.json")).is_err());
    }
}
