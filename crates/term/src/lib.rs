//! Detects the terminal, encodes notifications for it, and parses the notifications that programs send to it.
//!
//! The crate is pure: an environment and bytes go in, values and bytes come out. It reads nothing from the process, runs
//! nothing and writes nothing. If a program or the terminal must be queried, the crate returns the query (arguments or bytes)
//! and parses the answer.
//!
//! # Notify the user through their terminal
//!
//! ```
//! use ringer_term::{choose_method, detect, AppleBell, Channel, Env, OutgoingNotification, NotificationId, Urgency};
//!
//! let env = Env::new([("TERM_PROGRAM", "kitty"), ("TERM_PROGRAM_VERSION", "0.48.2")]).tty(true); // usually: std::env::vars()
//! let detection = detect(&env);
//! let choice = choose_method(Channel::Auto, &detection, AppleBell::default());
//!
//! let id = NotificationId::four_digits(1234); // usually: a random number
//! let notice = OutgoingNotification { id: &id, title: Some("Claude Code"), body: "needs you", urgency: Urgency::Normal, icon: None };
//! let bytes = notice.encode(choice.method, &detection.multiplexers);
//! // Write the bytes to the terminal, all at once. Here, in kitty, they are an OSC 99 notification:
//! assert!(bytes.starts_with(b"\x1b]99;i=1234:d=0:p=title;Claude Code\x1b\\"));
//! ```
//!
//! # Read the notifications of a program in a PTY
//!
//! ```
//! use ringer_term::{TerminalEventKind, Scanner};
//!
//! let mut scanner = Scanner::new();
//! let mut seen = Vec::new();
//! // Pass each read on to the emulator, and to the scanner; reads may end anywhere.
//! for read in [&b"compiling...\x1b]777;notify;Bui"[..], b"ld;All tests pass\x07$ "] {
//!     scanner.feed(read, |event| seen.push(event));
//! }
//! assert_eq!(seen[0].offset, 12);
//! assert!(matches!(&seen[0].kind, TerminalEventKind::Notification(n) if n.title == "Build" && n.body == "All tests pass"));
//! ```
//!
//! # What it never does
//!
//! It never writes a control byte from a caller's text: every encoder sanitises its input ([`sanitise_line`]), ids are checked
//! ([`NotificationId`]), and no 8-bit control is ever written. It keeps no more of a stream than [`Scanner`] documents. It
//! panics on no input.
//!
//! # Inside
//!
//! Bytes in: `passthrough_parser` (framing and wrappers), `interpret` (the meaning of an OSC), `osc99_chunk` and
//! `osc99_assembler` (OSC 99), `scanner` (events), `notification_stripper` (events, and the remaining bytes). Bytes out:
//! `detect`, `identity` and `multiplexer` find the terminal, `channel` chooses the method, `encode` and `sanitise` make the
//! bytes. `hidden` is the only table of characters that are not text; `secret` masks keys and passwords.

#![forbid(unsafe_code)]

mod base64;
mod channel;
mod detect;
mod encode;
mod env;
mod event;
mod hidden;
mod identity;
mod interpret;
mod link;
mod multiplexer;
mod notification_stripper;
mod osc99;
mod osc99_assembler;
mod osc99_chunk;
pub mod outer;
mod passthrough_parser;
pub mod probe;
mod progress;
mod sanitise;
mod scanner;
mod secret;
mod spawn;
mod status;
mod title;

pub use channel::{
    CHANNELS, Channel, Method, MethodChoice, OutgoingNotification, UnknownChannel, choose_method,
};
pub use detect::{Detection, detect};
pub use encode::{
    BEL, TITLE_RESTORE, Terminator, TitleState, copy_to_clipboard, hyperlink, osc9, osc777, title,
    title_mark, window_title,
};
pub use env::Env;
pub use event::{
    Notification, Osc99Metadata, Prompt, PromptMark, Protocol, Query, TerminalEvent, TerminalEventKind,
};
pub use hidden::{escape_hidden, escape_json};
pub use identity::{TerminalIdentity, TerminalProgram, Version};
pub use link::{LinkTarget, file_path, link_target};
pub use multiplexer::{Multiplexer, SCREEN_PIECE, wrap};
pub use notification_stripper::NotificationStripper;
pub use osc99::{
    Actions, InvalidId, MAX_ENCODED, MAX_PLAIN, NotificationId, Occasion, Osc99Message, Urgency,
    alive99_reply, close99, query99, query99_reply,
};
pub use outer::{AppleBell, OuterTerminal, Passthrough};
pub use progress::{Percent, Progress, shows_progress};
pub use sanitise::{
    MAX_CHARS, is_shown_in_cell, sanitise_block, sanitise_line, sanitise_line_before, sanitise_text,
    tmux_text,
};
pub use scanner::Scanner;
pub use secret::mask_secrets;
pub use spawn::{EmulatedTerminal, SpawnLocation, identity_variables, spawn_env};
pub use status::{BlockedKind, MAX_STATUS, ProgramStatus, StatusState};
pub use title::{ParsedTitle, TITLE_DEBOUNCE, TitleChange, TitleMeaning, TitleTracker, parse_title};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
