//! What a person should know about a client's files.

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
