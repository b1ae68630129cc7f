//! Errors of setup, and notes for the person.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::jsonc::JsoncError;

/// Why a setup or removal was refused. The file concerned is unchanged.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The program cannot be called from every directory, or could not be recognised later.
    #[error("{} is not `ringer`, by a plain name or an absolute path", .0.display())]
    Program(PathBuf),
    /// Not a time of the form `20261115-060000`.
    #[error("{0:?} is not a time of the form YYYYMMDD-HHMMSS")]
    BackupTime(String),
    /// No project directory was given.
    #[error("the project directory is unknown")]
    NoProject,
    /// The file is not JSON with comments, or does not have the client's structure.
    #[error("{} is not a valid settings file: {source}", path.display())]
    Jsonc {
        /// The file.
        path: PathBuf,
        /// The error.
        source: JsoncError,
    },
    /// The file is not TOML.
    #[error("{} is not valid TOML: {message}", path.display())]
    Toml {
        /// The file.
        path: PathBuf,
        /// The error of the TOML library, with line and column.
        message: String,
    },
    /// The file is not text.
    #[error("{} is not UTF-8 text", .0.display())]
    NotText(PathBuf),
    /// The file is too large to be a settings file.
    #[error("{} is larger than {limit} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The largest file that is read.
        limit: u64,
    },
    /// A file that is not Ringer's has the path of Ringer's.
    #[error("{} was not written by ringer", .0.display())]
    Foreign(PathBuf),
    /// The file has changed since the plan was made.
    #[error("{} was changed by another program; nothing was written", .0.display())]
    ChangedMeanwhile(PathBuf),
    /// The record of previous setups cannot be read.
    #[error("{} cannot be read: {message}", path.display())]
    SetupRecords {
        /// The record.
        path: PathBuf,
        /// The error.
        message: String,
    },
    /// A file operation failed.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// The operation, for example `writing`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl SetupError {
    /// Adds the path to a JSON error.
    pub(crate) fn jsonc(path: &Path, source: JsoncError) -> Self {
        Self::Jsonc { path: path.to_path_buf(), source }
    }

    /// For `map_err`: adds the operation and the path to an I/O error.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { doing, path, source }
    }
}

/// Something that the person should know about a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupNote {
    /// The fact.
    pub what: String,
    /// What to do about it.
    pub hint: String,
}

/// A reason why a client does not run Ringer's hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// How the hooks are kept from running.
    pub kind: ObstacleKind,
    /// The reason, and what to do about it.
    pub note: SetupNote,
}

impl Obstacle {
    /// A setting in a file that switches the client's hooks off.
    pub(crate) fn switched_off(client: &str, path: &Path, what: &str, hint: &str) -> Self {
        let what = format!("{what} in {}, so {client} does not run them", path.display());
        Self { kind: ObstacleKind::SwitchedOff, note: SetupNote { what, hint: hint.to_owned() } }
    }
}

/// How hooks are kept from running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObstacleKind {
    /// The client rejects the syntax of the file.
    Unread,
    /// The person or an administrator has switched hooks off.
    SwitchedOff,
    /// Codex waits until the person trusts the hooks.
    Untrusted,
}
