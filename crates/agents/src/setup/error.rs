//! What can go wrong in setup.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::jsonc::JsoncError;

/// Why a setup or removal was refused. In every case the file concerned is as it was before.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The program cannot be called from everywhere, or not be known again.
    #[error("{} is not `ringer`, by a plain name or an absolute path", .0.display())]
    Program(PathBuf),
    /// Not a time of the form `20261115-060000`.
    #[error("{0:?} is not a time of the form YYYYMMDD-HHMMSS")]
    Stamp(String),
    /// A project was asked for, but none was given.
    #[error("the project directory is unknown")]
    NoProject,
    /// The file is not JSON with comments, or not of the client's shape.
    #[error("{} is not a valid settings file: {source}", path.display())]
    Jsonc {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: JsoncError,
    },
    /// The file is not TOML.
    #[error("{} is not valid TOML: {message}", path.display())]
    Toml {
        /// The file.
        path: PathBuf,
        /// What the TOML library says, with line and column.
        message: String,
    },
    /// aider's settings are not plain lines, so that none can be put before them.
    #[error("{} does not begin with a line of the form `name: value`", .0.display())]
    Yaml(PathBuf),
    /// The user has set the key that the setup would set, and it can have one value only.
    #[error("{} already sets {name}, which is not changed", path.display())]
    Taken {
        /// The file.
        path: PathBuf,
        /// The name of the setting.
        name: &'static str,
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
    /// A file that is not Ringer's is in the place of Ringer's.
    #[error("{} was not written by ringer", .0.display())]
    Foreign(PathBuf),
    /// The file is not what it was when the plan was made.
    #[error("{} was changed by another program; nothing was written", .0.display())]
    Changed(PathBuf),
    /// The record of what the setup wrote cannot be read.
    #[error("{} cannot be read: {message}", path.display())]
    SetupRecords {
        /// The record.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// A step on the file system failed.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// What was tried, for example `writing`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl SetupError {
    /// For a file that is not JSON with comments, or not of the client's shape.
    pub(crate) fn jsonc(path: &Path, source: JsoncError) -> Self {
        Self::Jsonc { path: path.to_path_buf(), source }
    }

    /// For `map_err`: an error of the file system with what was being done.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { doing, path, source }
    }
}

/// Something that a person should know about a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupNote {
    /// What is the case.
    pub what: String,
    /// What to do about it.
    pub hint: String,
}

/// A reason why a client does not run Ringer's hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// Of what kind.
    pub kind: ObstacleKind,
    /// What it is, and what to do about it.
    pub note: SetupNote,
}

impl Obstacle {
    /// A setting in a file switches a client's hooks off.
    pub(crate) fn switched_off(client: &str, path: &Path, what: &str, hint: &str) -> Self {
        let what = format!("{what} in {}, so {client} does not run them", path.display());
        Self { kind: ObstacleKind::SwitchedOff, note: SetupNote { what, hint: hint.to_owned() } }
    }
}

/// How hooks are kept from running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObstacleKind {
    /// The client does not take the file, because of how it is written.
    Unread,
    /// The person, or an administrator, has switched hooks off.
    SwitchedOff,
    /// Codex waits until the person trusts them.
    Untrusted,
}
