//! Terminal bytes: which terminal is this, how does one notify through it, and what does a program tell it?
//!
//! Everything here is pure: an environment and bytes go in, values and bytes come out. Nothing is read from the process,
//! nothing is run, nothing is written. Where the outside has to be asked, the crate gives the question (arguments or
//! bytes) and reads the answer.
//!
//! # Tell the user something through their terminal
//!
//! ```
//! use ringer_term::{choose, detect, AppleBell, Channel, Env, Notice, NotificationId, Urgency};
//!
//! let env = Env::new([("TERM_PROGRAM", "kitty"), ("TERM_PROGRAM_VERSION", "0.48.2")]).tty(true); // usually: std::env::vars()
//! let detection = detect(&env);
//! let choice = choose(Channel::Auto, &detection, AppleBell::default());
//!
//! let id = NotificationId::four_digits(1234); // usually: a random number
//! let notice = Notice { id: &id, title: Some("Claude Code"), body: "needs you", urgency: Urgency::Normal };
//! let bytes = notice.encode(choice.method, &detection.multiplexers);
//! // Write the bytes to the terminal, all at once. Here, in kitty, they are an OSC 99 notification:
//! assert!(bytes.starts_with(b"\x1b]99;i=1234:d=0:p=title;Claude Code\x1b\\"));
//! ```
//!
//! # Watch what a program in my PTY is telling its terminal
//!
//! ```
//! use ringer_term::{EventKind, Scanner};
//!
//! let mut scanner = Scanner::new();
//! let mut seen = Vec::new();
//! // Pass each read on to the emulator, and to the scanner; reads may end anywhere.
//! for read in [&b"compiling...\x1b]777;notify;Bui"[..], b"ld;All tests pass\x07$ "] {
//!     scanner.feed(read, |event| seen.push(event));
//! }
//! assert_eq!(seen[0].offset, 12);
//! assert!(matches!(&seen[0].kind, EventKind::Notification(n) if n.title == "Build" && n.body == "All tests pass"));
//! ```
//!
//! # What it never does
//!
//! It emits no control byte of anybody's text: every encoder sanitises its input ([`sanitise_line`]), ids are checked
//! ([`NotificationId`]), and no 8-bit control is ever written. It keeps no more of a stream than [`Scanner`] says. It
//! panics on no input.

#![forbid(unsafe_code)]

mod assembly;
mod base64;
mod channel;
mod chunk99;
mod detect;
mod encode;
mod env;
mod event;
mod hidden;
mod id;
mod identity;
mod interpret;
mod json;
mod layer;
mod multiplexer;
mod notice;
mod osc;
mod osc99;
pub mod outer;
pub mod probe;
mod progress;
mod sanitise;
mod scanner;
mod spawn;
mod status;
mod title;

pub use channel::{CHANNELS, Channel, Choice, Method, UnknownChannel, choose};
pub use detect::{Detection, detect};
pub use encode::{BEL, TITLE_BACK, TitleState, hyperlink, osc9, osc777, title, title_mark};
pub use env::Env;
pub use event::{Event, EventKind, Keys, Notification, Prompt, PromptMark, Protocol, Query};
pub use id::{InvalidId, NotificationId};
pub use identity::{Identity, Program, Version};
pub use json::escape_json;
pub use multiplexer::{Multiplexer, SCREEN_PIECE, wrap};
pub use notice::Notice;
pub use osc::Terminator;
pub use osc99::{
    Actions, MAX_ENCODED, MAX_PLAIN, Message99, Occasion, Urgency, alive99_reply, close99, query99,
    query99_reply,
};
pub use outer::{AppleBell, Outer, Passthrough};
pub use progress::{Percent, Progress, shows_progress};
pub use sanitise::{
    MAX_CHARS, sanitise_block, sanitise_line, sanitise_line_before, sanitise_text, tmux_text,
};
pub use scanner::Scanner;
pub use spawn::{Flavour, Place, spawn_env};
pub use status::{BlockedKind, MAX_STATUS, ProgramStatus, StatusState};
pub use title::{ReadTitle, SETTLE, TitleMeaning, TitleTracker, Turn, read_title};
