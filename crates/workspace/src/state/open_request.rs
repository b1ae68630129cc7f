//! What to open.

use crate::layout::{PaneId, SplitDirection};
use crate::view::ClientFacts;

/// Whether a new pane is shown and has the keys at once. If not, what the person types goes on to where it went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum TakesKeys {
    #[default]
    Never,
    /// If the pane in which the command was called has the keys of the window that was used last: the person typed it there.
    FromCaller,
    Always,
}

/// What to open.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenRequest {
    /// A shell if it is empty.
    pub(crate) command: Vec<String>,
    pub(crate) name: Option<String>,
    /// By its name. If none is named, the one of the caller, else the one that is shown.
    pub(crate) workspace: Option<String>,
    /// Where it goes beside another pane, if that was chosen.
    pub(crate) split: Option<SplitDirection>,
    pub(crate) takes_keys: TakesKeys,
    /// The pane in which the command was called that opens it.
    pub(crate) caller: Option<PaneId>,
    pub(crate) facts: ClientFacts,
}
