//! The journal: the durable, ordered record of every message.
//!
//! A message exists when it is in the journal, and not before. All other parts are readers with their own cursors; no
//! reader can make a writer wait or fail. The journal is one SQLite database in the person's [`Home`]; doorbells (FIFOs)
//! wake waiting processes. The hub keeps its notifications beside it, in the [`HubStore`].
//!
//! Everything here is synchronous: no runtime, no thread, no child process. The clock and randomness come in as a
//! [`IdSource`], so tests can say what time it is.
//!
//! ```
//! use ringer_core::{Draft, Kind, Scope, Sender};
//! use ringer_journal::{Home, IdSource, Journal};
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path();
//! let mut journal = Journal::open(&Home::new(path))?;
//! let draft = Draft::new(Scope::global(), Sender::system(), Kind::Status, "hello")?;
//! let id = journal.append(&draft, &IdSource::now())?; // on disk now, and waiting processes are awake
//! assert_eq!(journal.messages_after(0, 10)?[0].id, id);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Bounds
//!
//! A body has at most 64 KiB ([`ringer_core::MAX_BODY`]). A writer waits for the write lock until its [`LockTimeout`], then
//! fails with [`Error::Busy`]. What is kept: see [`Journal::prune`].

#![forbid(unsafe_code)]

mod agent;
mod agent_note;
mod agent_question;
mod append;
mod consumer;
mod cursor;
mod database;
mod doorbell;
mod error;
mod event;
mod git;
mod home;
mod hub_reader;
mod hub_store;
mod ids;
mod inbox;
mod journal;
mod lead;
mod listener;
mod lock;
mod process;
mod question;
mod read;
mod repair;
mod repository;
mod retention;
mod row;
mod schema;
mod spool;
mod stats;
mod status_summary;
mod subscription;
mod transaction;
mod waiter;
mod write_lock;

pub use agent::{AgentChange, AgentInfo, AgentUpdate};
pub use consumer::Consumer;
pub use cursor::{Age, CatchUp, Cursor, ReadPosition};
pub use database::{Database, Schema};
pub use doorbell::LockOwner;
pub use error::Error;
pub use event::{AgentEvent, Confirms, EventOutcome, InboxRequest, SpoolProgress, SpoolStatus, spool_event};
pub use home::Home;
pub use hub_reader::HubLock;
pub use hub_store::{HubSchema, HubStore, StoredNotifications, UnreadableRecord};
pub use ids::{IdSource, Uptime, monotonic};
pub use inbox::{CONFIRM_WITHIN, Choose, Claim, Claimed, INTO_INBOX, LEASE, ReceiptRow};
pub use journal::{Journal, JournalSchema};
pub use lead::Lead;
pub use listener::{ListenOutcome, Listener};
pub use process::ProcessStat;
pub use question::{PendingQuestion, Question};
pub use read::{Batch, Filter, JournalFollower};
pub use repair::{Damage, Repair, RepairRecord};
pub use repository::{Leftover, Repository};
pub use retention::{Pruned, RetentionLimits};
pub use spool::LostEvents;
pub use stats::{JournalStats, KnownAgent, RunningListener, UnreadCount};
pub use status_summary::StatusSummary;
pub use transaction::{DeadLetter, HubTransaction, PendingDelivery, PlaceFlag, ShownPopup};
pub use waiter::OnParentExit;
pub use write_lock::LockTimeout;
