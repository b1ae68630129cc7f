//! The vocabulary: a message, and the ids, addresses, kinds and places in it.

mod about;
mod address;
mod draft;
mod id;
mod kind;
mod short_id;
mod surface;

pub use about::{About, PersonText};
pub use address::{Agent, InvalidName, Recipient, Scope, Sender, validate_name, validate_text};
pub use draft::{
    Draft, EPISODE_KEY_PREFIX, EVIDENCE, ICON, MAX_BODY, MAX_PART, Message, MessageOrigin, MessagePart,
    TERMINAL_KEY_PREFIX, is_ended_by_key, part_count,
};
pub use id::{InvalidNonce, MessageId, QuestionId, SessionNonce};
pub use kind::{
    CLOSED_UNANSWERED, DONE_IN_TERMINAL, IDLE_PROMPT, Kind, Mark, MarkReach, PERMISSION_PROMPT,
    PERMISSION_REFUSED, REFUSED, ShownKind, Tag, Urgency, is_about_impostors,
};
pub use short_id::{IdMatch, IdReference, ShortId, ShortIds};
pub use surface::{
    MACHINE_PREFIX, PANE_PREFIX, Place, REPOSITORY_PREFIX, SurfaceId, TmuxSurface, TtySurface, WorkspaceId,
};
