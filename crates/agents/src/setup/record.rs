//! The record of what setup wrote, so that a removal can restore the original bytes.
//!
//! It is one file, `setup.json`, in the caller's state directory. For each settings file it has fingerprints of what setup wrote
//! and replaced, and the original: a backup, or nothing. It is written *before* the settings file is replaced, so it is true
//! whichever content a crash leaves behind.
//!
//! Without the record, a removal still takes out Ringer's entries and leaves the rest.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::SetupError;

/// The version of the file.
const VERSION: u32 = 1;

const NAME: &str = "setup.json";

/// Everything that setup is known to have written.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetupRecords {
    version: u32,
    files: BTreeMap<PathBuf, SetupRecord>,
}

/// What setup did to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SetupRecord {
    /// Fingerprints of the contents that mean "not edited since": what setup wrote, and what it replaced.
    pub(crate) left: Vec<String>,
    pub(crate) original: OriginalFile,
    /// Directories that setup created for it, deepest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) made: Vec<PathBuf>,
}

/// The content of a path before the first change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OriginalFile {
    /// No file.
    Absent,
    /// A backup, valid only if it still has this fingerprint.
    Backup { path: PathBuf, fingerprint: String },
}

impl Default for SetupRecords {
    fn default() -> Self {
        Self { version: VERSION, files: BTreeMap::new() }
    }
}

impl SetupRecords {
    /// Reads the record in a directory; empty if there is none.
    pub fn load(directory: &Path) -> Result<Self, SetupError> {
        let path = directory.join(NAME);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(SetupError::io("reading", &path)(error)),
        };
        let unreadable = |message: String| SetupError::SetupRecords { path: path.clone(), message };
        let value: serde_json::Value =
            serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
        match value.get("version").and_then(serde_json::Value::as_u64) {
            Some(version) if version <= u64::from(VERSION) => {
                serde_json::from_value(value).map_err(|error| unreadable(error.to_string()))
            }
            Some(version) => {
                Err(unreadable(format!("it is of version {version}, written by a newer ringer")))
            }
            None => Err(unreadable("it has no version".to_owned())),
        }
    }

    /// The path and bytes of the record, for writing.
    pub(crate) fn file(&self, directory: &Path) -> Result<(PathBuf, Vec<u8>), SetupError> {
        let path = directory.join(NAME);
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| SetupError::SetupRecords { path: path.clone(), message: error.to_string() })?;
        Ok((path, format!("{text}\n").into_bytes()))
    }

    /// Returns true if there is a record of a path.
    pub fn contains(&self, path: &Path) -> bool {
        self.files.contains_key(path)
    }

    /// The recorded files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.keys().map(PathBuf::as_path)
    }

    pub(crate) fn get(&self, path: &Path) -> Option<&SetupRecord> {
        self.files.get(path)
    }

    pub(crate) fn put(&mut self, path: &Path, record: SetupRecord) {
        self.files.insert(path.to_path_buf(), record);
    }

    pub(crate) fn remove(&mut self, path: &Path) -> Option<SetupRecord> {
        self.files.remove(path)
    }

    /// Returns true if a backup has the original file, and must stay.
    pub(crate) fn uses_backup(&self, backup: &Path) -> bool {
        self.files
            .values()
            .any(|record| matches!(&record.original, OriginalFile::Backup { path, .. } if path == backup))
    }
}

/// A fingerprint of a file's bytes: FNV-1a over 128 bits, and the length.
///
/// It detects edits; it does not protect against forgery, since a forger could write the file itself.
pub(crate) fn fingerprint(bytes: &[u8]) -> String {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let start: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let hash = bytes.iter().fold(start, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME));
    format!("fnv1a128:{hash:032x}:{}", bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_is_the_published_one() {
        // Test vectors of the FNV authors: the empty string and "a".
        assert_eq!(fingerprint(b""), "fnv1a128:6c62272e07bb014262b821756295c58d:0");
        assert_eq!(fingerprint(b"a"), "fnv1a128:d228cb696f1a8caf78912b704e4a8964:1");
    }

    #[test]
    fn a_record_comes_back_and_a_newer_one_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        assert!(SetupRecords::load(directory.path()).unwrap().files.is_empty());
        let mut records = SetupRecords::default();
        let record = SetupRecord { left: vec!["x".into()], original: OriginalFile::Absent, made: Vec::new() };
        records.put(Path::new("/a"), record.clone());
        let (path, bytes) = records.file(directory.path()).unwrap();
        fs::write(&path, bytes).unwrap();
        assert_eq!(SetupRecords::load(directory.path()).unwrap().get(Path::new("/a")), Some(&record));
        for bad in ["{\"version\": 2, \"files\": 7}", "{}", "nonsense"] {
            fs::write(&path, bad).unwrap();
            assert!(SetupRecords::load(directory.path()).is_err(), "{bad}");
        }
    }
}
