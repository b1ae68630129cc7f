//! What the person has not seen: notification records, and the badges and rings derived from them.

mod badges;
mod cause;
mod digest;
mod mark;
mod presence;
mod reason;
mod record;
mod store;
mod undo_log;

pub use badges::{Attention, Badge, Ring, UnreadReason};
pub use cause::{Cause, MAX_TRAIL_STEPS, Trail, TrailStep};
pub use digest::{DIGEST_TITLE, Digest, digest_id};
pub(crate) use mark::snooze_end;
pub use mark::{MarkTarget, is_open_to_other_machines};
pub use presence::{AwayPeriod, DesktopSession, View};
pub(crate) use presence::{Focus, Presence};
pub use reason::{AnsweredWith, PlaceReason, ReadBy, ReadReason, ResolvedBy, UndoKind};
pub use record::{OptionalTime, Record, local_first};
pub use store::{AddOutcome, NotificationStore};
pub use undo_log::{Command, MAX_UNDO_COMMANDS, MAX_UNDO_NOTIFICATIONS, PreviousState, UndoItem, UndoLog};
