//! A hook program: which one it is, and what its failure means.

use serde::{Deserialize, Serialize};

/// What happens to the notification when a hook fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnFailure {
    /// It continues as if the hook had changed nothing.
    #[default]
    Keep,
    /// It is suppressed: the hook fails closed.
    Suppress,
}

/// Which program a hook is. An order names a hook by this and never by its position: the settings may have changed
/// since the chain began, and another program may stand in the same position under the same id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HookIdentity {
    /// Its name.
    pub id: String,
    /// A digest of what decides which program runs: the id, the arguments, the file that names them.
    pub digest: String,
    /// The revision of the settings in which it stands.
    pub revision: u64,
}

/// A hook program, without what it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// Which program it is.
    pub identity: HookIdentity,
    /// The file that names it.
    pub config_path: Option<String>,
    /// What its failure means.
    pub on_failure: OnFailure,
    /// Whether the person trusted it in that revision. A hook that is not trusted is skipped.
    pub trusted: bool,
    /// The repository that names it; it runs for notifications of that repository only. `None` for a hook of the user's own
    /// settings, which runs for all.
    pub scope: Option<String>,
}
