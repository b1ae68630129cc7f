//! tmux as a host: which panes there are, what the person looks at, rings and badges.
//!
//! Nothing here is a client of tmux that stays: one in control mode counts as focused, and programs inside no longer learn
//! that the person went elsewhere. Instead tmux's own hooks ring a doorbell (`wait-for`), and then the state is read once.
//! [`Servers`] has for each server a thread that is its host and one that waits for the doorbell. What is looked at (`look`) and
//! what is to be drawn (`Drawing::steps`) is decided without tmux.

mod drawing;
mod frame;
mod host;
mod look;
mod offline;
mod scan;
mod server;
mod servers;
mod setup;

#[doc(hidden)]
pub use offline::{OfflineLook, OfflineTmux};
pub use scan::{PaneReaderMark, Scanning};
pub use server::{TmuxError, TmuxServer};
pub use servers::Servers;
pub use setup::{
    Binding, Inspection, inspect, install, is_installed, remove, set_binding, turn_on_focus_events,
};
