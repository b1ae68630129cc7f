//! Runs a program on a PTY inside the real terminal, and reports its notifications to the hub.
//!
//! The program notices nothing: bytes, sizes, signals and job control pass unchanged. Only its own notifications go to the hub
//! instead of the terminal, as long as there is a hub ([`ringer_term::NotificationStripper`]).
//!
//! [`run`] is one blocking loop over the terminal, the PTY and signals. The hub is served on separate threads
//! ([`ringer_ipc::HostLink`]), so a hub that hangs does not block the program. A process between the loop and the program leads
//! the session on the PTY ([`lead_session`]): a program without a parent in its own session cannot be stopped with Ctrl-Z.
//!
//! # What it never does
//!
//! It answers no query, changes no byte of a key or a paste, and buffers about 64 KiB each way: a program that writes faster
//! than its terminal reads blocks, as it would without Ringer.
//!
//! # Inside
//!
//! `run_loop` polls the outer terminal, the PTY, the signals and the hub. Output and input pass `focus`, and
//! both end in a bounded [`ringer_platform::ByteQueue`]. `reporter` decides what the hub is sent.

mod focus;
mod launch;
mod outer_terminal;
mod reporter;
mod run_loop;

pub use launch::{Launch, exec_in_foreground, lead_session};
pub use reporter::{HubSurface, OwnSurface};
pub use run_loop::{RunResult, run};
