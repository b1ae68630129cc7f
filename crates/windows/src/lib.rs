//! Terminal windows as a host: reports which windows the person looks at under X11 and in kitty, and brings windows to the front.
//!
//! A terminal tells its programs which window they are in: `WINDOWID` on an X11 display, `KITTY_LISTEN_ON` for the socket of
//! kitty. [`Windows`] is a thread of the hub process. It reads these variables from the environment of the session leader,
//! follows which window is active, and reports it to the hub. Each kitty is queried on a separate thread, because it may hang.
//! The host is attached to the hub only while it knows a window, and sleeps while nothing changes.
//!
//! # What it never does
//!
//! It never polls on a timer. It waits for one second at most for an X server or kitty. It reports that the person looks at a
//! surface only if it would also notice that they look away: notifications on a visible surface are marked read without a popup.

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod display;
mod display_name;
mod host;
mod inspect;
mod kitties;
mod kitty;
mod kitty_listing;
mod kitty_marks;
mod kitty_worker;
mod terminal;
mod visibility;
mod wakeup;
mod windows;

pub use inspect::{WindowReport, inspect};
#[doc(hidden)]
pub use kitty::{read_listing, title_request};
#[doc(hidden)]
pub use kitty_listing::{KittyWindow, Listing, wanted_title};
pub use windows::Windows;
