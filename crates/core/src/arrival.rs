//! The steps before anything is decided about a message: its surface is found, duplicates are dropped, and it waits in a
//! queue, in a burst for up to a second. Clearing empties the queue.

mod burst;
mod duplicate;
mod listing_limit;
mod queue;
mod surfaces;

pub(crate) use burst::{BurstLimit, text_with_count};
pub(crate) use duplicate::{DUPLICATE_WINDOW, DuplicateVerdict, DuplicateWindow, EventReport};
pub(crate) use listing_limit::{MAX_MACHINES, UPDATE_EVERY, UnlistedCount, UnlistedMessages, unlisted_text};
pub(crate) use queue::{Arrival, ArrivalQueue, DropReason, Fence};
pub use surfaces::Caller;
pub(crate) use surfaces::{MAX_SURFACES, SurfaceRegistry};
