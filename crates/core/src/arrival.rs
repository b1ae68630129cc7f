//! The steps before anything is decided about a message: its surface is found, duplicates are dropped, and it waits in a
//! queue. Clearing empties the queue.

mod duplicate;
mod listing_limit;
mod queue;
mod surfaces;

pub(crate) use duplicate::{DUPLICATE_WINDOW, DuplicateVerdict, DuplicateWindow, EventReport};
pub(crate) use listing_limit::ListingLimit;
pub(crate) use queue::{Arrival, ArrivalQueue, Coalesce, Displaced, Fence};
pub use surfaces::Caller;
pub(crate) use surfaces::{MAX_SURFACES, SurfaceRegistry};
