//! What the person has not seen: the records of notifications, and the badges and rings that follow from them.

mod badges;
mod cause;
mod focus;
mod mark;
mod reason;
mod record;
mod session;
mod store;
mod trail;

pub use badges::{Attention, Badge, UnreadReason};
pub use cause::Cause;
pub(crate) use focus::Focus;
pub use focus::View;
pub use mark::{MarkTarget, apply_mark};
pub use reason::{PlaceReason, ReadReason, ResolvedBy};
pub use record::Record;
pub use session::{NewerSession, Session};
pub use store::{Added, NotificationStore};
pub use trail::{MAX_TRAIL_STEPS, Trail, TrailStep};
