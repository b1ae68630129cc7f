//! Windows of terminals as a host: what the person looks at under X11 and in kitty, and going there.
//!
//! A terminal tells the programs in it which window they are in: `WINDOWID` on a display of X11, `KITTY_LISTEN_ON` for the
//! socket of kitty. [`Windows`] is a thread of the hub's process that reads this from the environment of the session's leader,
//! follows which window is active, and says so on the hub's socket. Each kitty is asked on a thread of its own, because it may hang. It is attached only while it knows a window, and sleeps
//! while nothing changes.
//!
//! # What it never does
//!
//! It polls nothing. For one answer of an X server or of kitty it waits for a second at most. It says of no surface that the person looks
//! at it unless it would also learn that they no longer do: what is looked at is read without a popup.

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod display;
mod display_name;
mod host;
mod hub_side;
mod inspect;
mod kitties;
mod kitty;
mod kitty_listing;
mod kitty_marks;
mod kitty_worker;
mod looks;
mod terminal;
mod wakeup;
mod windows;

pub use inspect::{WindowReport, inspect};
#[doc(hidden)]
pub use kitty::{read_listing, title_request};
#[doc(hidden)]
pub use kitty_listing::{KittyWindow, Listing, wanted_title};
pub use windows::Windows;
