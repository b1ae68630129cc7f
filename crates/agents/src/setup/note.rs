//! What a person should know about a client's files.

use std::path::Path;

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
