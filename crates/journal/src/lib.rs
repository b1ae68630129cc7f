//! The journal: the durable, ordered record of every message.
//!
//! A message exists when it is in the journal, and not before. Everything else is a reader with a cursor of its own; no
//! reader can make a writer wait or fail. The journal is one SQLite database in the person's [`Home`]; doorbells (FIFOs)
//! wake those who wait. What the hub made of the messages is beside it, in its [`Memory`].
//!
//! Everything here is synchronous: no runtime, no thread, no child process. The clock and randomness come in as a
//! [`Stamp`], so tests can say what time it is.
//!
//! ```
//! use ringer_core::{Draft, Kind, Scope, Sender};
//! use ringer_journal::{Home, Journal, Stamp};
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path();
//! let mut journal = Journal::open(&Home::new(path))?;
//! let draft = Draft::new(Scope::global(), Sender::system(), Kind::Status, "hello")?;
//! let id = journal.append(&draft, &Stamp::now())?; // on disk now, and whoever waits is awake
//! assert_eq!(journal.messages_after(0, 10)?[0].id, id);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Bounds
//!
//! A body has at most 64 KiB ([`ringer_core::MAX_BODY`]). A writer waits for its turn for as long as its [`Patience`] says,
//! then fails with [`Error::Busy`]. What is kept: see [`Journal::prune`].

#![forbid(unsafe_code)]

mod agent;
mod append;
mod consumer;
mod cursor;
mod doorbell;
mod error;
mod event;
mod git;
mod glance;
mod home;
mod hub;
mod inbox;
mod inventory;
mod journal;
mod lead;
mod listener;
mod lock;
mod memory;
mod note;
mod process;
mod prompt;
mod question;
mod reading;
mod repair;
mod retention;
mod row;
mod schema;
mod scope;
mod settlement;
mod spool;
mod stamp;
mod store;
mod turn;
mod vigil;
mod waiter;

pub use agent::{AgentChange, Sighting, Signals};
pub use consumer::Consumer;
pub use cursor::{Age, CatchUp, Cursor, Taken};
pub use doorbell::Holder;
pub use error::Error;
pub use event::{AgentEvent, Confirms, EventOutcome, SpoolStatus, TakenIn, Wanted, spool_event};
pub use glance::Glance;
pub use home::Home;
pub use hub::HubBell;
pub use inbox::{CONFIRM_WITHIN, Choose, Claim, Claimed, INTO_INBOX, LEASE, ReceiptRow};
pub use inventory::{Inventory, KnownAgent, Listening, Unread};
pub use journal::{Journal, Messages};
pub use lead::Lead;
pub use listener::{Heard, Listener};
pub use memory::{Memory, Notices, Remembered, UnreadableRecord};
pub use process::ProcessStat;
pub use question::{Asked, Question};
pub use reading::{Batch, Filter, Watch};
pub use repair::{Damage, NotedRepair, Repair};
pub use retention::{Limits, Pruned};
pub use scope::{Remains, Repository};
pub use settlement::{DeadLetter, Flag, Outgoing, Settlement, ShownPopup};
pub use spool::LostEvents;
pub use stamp::{Stamp, Uptime, monotonic};
pub use store::{Form, Store};
pub use turn::Patience;
pub use vigil::Parent;
