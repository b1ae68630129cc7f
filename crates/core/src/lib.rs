//! The notification engine: what a notification is, and how it is handled.
//!
//! This crate is pure: no clock, thread, file, socket, process or random number generator. Time and random bytes are
//! arguments; everything else is values in and values out.
//!
//! [`Engine`] combines all parts: `handle(now, Event)` returns the [`Order`]s that the caller executes. The crate root has
//! what an embedder starts with ([`Engine`], [`Event`], [`Order`], [`Preferences`], [`Now`]) and the types that every caller
//! needs ([`Message`], [`MessageId`], [`Draft`], [`Kind`], [`Scope`], [`Sender`], [`Recipient`]). Everything else is in a
//! module:
//!
//! * [`message`]: the vocabulary. Messages, ids, addresses, kinds, places.
//! * [`attention`]: what the person has not seen. Records and their store, badges, rings, trails.
//! * [`policy`]: what is decided about a notification. Rules, hooks and what they read and answer, delivery channels.
//! * [`toast`]: short texts in a host's footer, and the catalogue of conditions that show one.
//! * [`agent`]: an agent's state, the signals that change it, and the messages that a change causes.
//! * [`conversation`]: what enters an agent's conversation. Injections and their limits, channel messages and their senders.
//! * [`engine`]: the engine, its events and its orders.
//! * [`time`]: the clock's readings, as arguments.
//!
//! An enum that callers only create or compare is `#[non_exhaustive]`, so that it can grow. An enum that callers must act on
//! is not ([`Order`], [`Kind`], [`policy::DeliveryChannel`], [`policy::HookAnswer`] and the like): the compiler must report
//! where a new variant would be ignored.
//!
//! ```
//! use ringer_core::{Draft, Kind, Recipient, Scope, Sender};
//!
//! let draft = Draft::new(Scope::global(), Sender::system(), Kind::Complete, "Agent a1 completed its goal")?;
//! assert_eq!(draft.recipient, Recipient::Default);
//! assert!(Draft::new(Scope::global(), Sender::system(), Kind::Status, "  ").is_err());
//! # Ok::<(), ringer_core::message::InvalidName>(())
//! ```
//!
//! # Inside
//!
//! `engine` takes an [`Event`] and returns [`Order`]s: `arrivals`, `decisions`, `records`, `display`. It uses `arrival`
//! (surfaces, duplicates, the queue), `policy` (rules, hooks, the delivery plan), `attention` (records, badges, rings),
//! `toast` and `agent`; all share the types of `message`. Each step in the life of a notification is an [`attention::Cause`],
//! whose `Display` is the sentence that `ringer why` prints.

#![forbid(unsafe_code)]

pub mod agent;
mod arrival;
pub mod attention;
pub mod conversation;
pub mod engine;
pub mod hash;
pub mod message;
pub mod policy;
pub mod time;
pub mod toast;

pub use engine::{Engine, Event, Order, Preferences};
pub use message::{Draft, Kind, Message, MessageId, Recipient, Scope, Sender};
pub use time::Now;
