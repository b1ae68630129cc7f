//! The journal: the durable, ordered record of every message.
//!
//! A message exists once it is in the journal. All other parts are readers with their own cursors; no reader can block a writer
//! or make it fail. The journal is one SQLite database in the person's [`Home`]; doorbells (FIFOs) wake waiting processes. The
//! hub stores its notifications in a separate database, the [`HubStore`].
//!
//! Everything here is synchronous: no runtime, no thread, no child process. Time and randomness are passed in as an
//! [`IdSource`], so that tests control them.
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
//! A message body has at most 64 KiB ([`ringer_core::message::MAX_BODY`]). A writer waits for the write lock up to its
//! [`LockTimeout`], then fails with [`Error::Busy`]. For what is kept and for how long, see [`Journal::prune`].
//!
//! # Inside
//!
//! `db` is one SQLite file: `Database` owns the connection, `tables` makes the tables, `write_lock` serialises writers, `damage` notes what a
//! process met, and `repair` rebuilds the file with what `rescue` and `log` can read. There are two such files: `journal` (`ringer.db`,
//! written by every process) and `hub_store` (`hub.db`, written by the hub alone). `wake` is how a process waits: a doorbell, a
//! subscription, a waiter. `events` is what a hook reports: `record` writes it, or puts it into the spool that `apply` empties.

#![forbid(unsafe_code)]

mod db;
mod error;
mod events;
mod git;
mod home;
mod hub_store;
mod ids;
mod journal;
mod lock;
mod process;
mod repository;
mod running_tools;
mod wake;

pub use db::damage::{Damage, RepairRecord};
pub use db::database::Database;
pub use db::repair::Repair;
pub use db::tables::Schema;
pub use db::write_lock::LockTimeout;
pub use error::{Error, SenderError};
#[doc(hidden)]
pub use events::apply::SpoolFile;
pub use events::apply::{SpoolProgress, SpoolStatus};
pub use events::event::{AgentEvent, Confirmation, EventOutcome, InboxRequest, spool_event};
pub use events::spool::LostEvents;
pub use home::{Home, HubStarter, runtime_directories};
pub use hub_store::{
    DeadLetter, HubChanges, HubPruning, HubSchema, HubStore, PendingDelivery, PlaceFlag, ShownPopup,
    StoredNotifications, UnreadableRecord,
};
pub use ids::{IdSource, Uptime, monotonic};
pub use journal::agent::update::LiveAgents;
pub use journal::agent::{AgentChange, AgentInfo, AgentUpdate, TERMINAL_CLIENT};
pub use journal::append::AppendRequest;
pub use journal::consumer::Consumer;
pub use journal::export::TeamNote;
pub use journal::hook_waiter::{CLIENT_SERVER, HookWaiter, HookWake};
pub use journal::hub_reader::{HubLock, SpoolLock};
pub use journal::inbox::{
    CLIENT_INBOX_PREFIX, CONFIRM_WITHIN, ClaimedParts, EnteredPart, InboxUpdate, LEASE, ReceiptRow,
    SelectParts,
};
pub use journal::lead::Lead;
pub use journal::listener::{ListenOutcome, Listener};
pub use journal::machine_name::{NameSource, NamingResult};
pub use journal::prompt::{DecideOutcome, Decision, PromptWaiter, StoredPrompt};
pub use journal::question::{PendingQuestion, Question};
pub use journal::read::{Age, Batch, CatchUp, Cursor, Filter, JournalFollower, JournalWatch, ReadPosition};
pub use journal::relay::{Import, ImportResult, ImportedMessage, OwnBatch};
pub use journal::retention::{PruneResult, RetentionLimits};
pub use journal::schema::{Journal, JournalSchema};
pub use journal::sender::{Caller, SenderClaim};
pub use journal::stats::{AgentSummary, JournalStats, RunningListener, StatusSummary, UnreadCount};
pub use lock::Lock;
pub use process::{
    ControllingTerminal, ProcessStat, SessionLeader, SessionLeaderError, run_different_programs,
};
pub use repository::{Leftover, Repository};
pub use running_tools::{NewestCalls, RunningTools};
pub use wake::doorbell::{LockOwner, Removal};
pub use wake::waiter::OnParentExit;
