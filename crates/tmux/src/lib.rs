//! tmux as a host: lists panes, reports which ones the person looks at, and draws rings and badges.
//!
//! Ringer does not attach a client in control mode: such a client counts as focused, and programs in the panes would no longer
//! learn that the person went elsewhere. Instead tmux hooks signal a `wait-for` channel (the doorbell), and the state is then
//! read once. [`Servers`] runs two threads per server: its host, and one that waits for the doorbell. What the person looks at
//! (`snapshot`) and what has to be drawn (`Drawing::steps`) is computed without tmux.

mod drawing;
mod frame;
mod host;
mod offline;
mod panes;
mod scan;
mod server;
mod servers;
mod setup;
mod snapshot;

#[doc(hidden)]
pub use offline::{OfflineLook, OfflineTmux};
pub use panes::{TmuxPanes, outer_terminal, windows_of};
pub use scan::{PaneReaderMark, Scanning};
pub use server::{TmuxError, TmuxServer};
pub use servers::Servers;
pub use setup::{
    Binding, Inspection, inspect, install, is_installed, remove, set_binding, turn_on_focus_events,
};
