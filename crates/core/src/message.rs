//! The vocabulary: a message, and the ids, addresses, kinds and places in it.

mod about;
mod address;
mod draft;
mod id;
mod kind;
mod names;
mod nonce;
mod part;
mod short_id;
mod shown_kind;
mod surface;

pub use about::{About, PersonText};
pub use address::{Agent, Recipient, Scope, Sender};
pub use draft::{
    Draft, EPISODE_KEY_PREFIX, EVIDENCE, MAX_BODY, Message, MessageOrigin, TERMINAL_KEY_PREFIX,
    is_ended_by_key,
};
pub use id::{MessageId, QuestionId};
pub use kind::{
    CLOSED_UNANSWERED, DONE_IN_TERMINAL, IDLE_PROMPT, Kind, Mark, MarkReach, PERMISSION_PROMPT,
    PERMISSION_REFUSED, REFUSED, Tag, is_about_impostors,
};
pub use names::{InvalidName, validate_name, validate_text};
pub use nonce::{InvalidNonce, SessionNonce};
pub use part::{MAX_PART, MessagePart, part_count};
pub use short_id::{IdReference, Named, ShortId, ShortIds};
pub use shown_kind::{ShownKind, Urgency};
pub use surface::{
    MACHINE_PREFIX, PANE_PREFIX, Place, REPOSITORY_PREFIX, SurfaceId, TmuxSurface, TtySurface, WorkspaceId,
};
