//! Setup makes a client call Ringer, and undoes that.
//!
//! It has four steps, so that the command can show the plan and ask in between:
//!
//! 1. [`find()`] detects installed clients;
//! 2. [`read_files`] reads a client's files;
//! 3. [`plan()`] computes the new content, without touching anything: a [`Plan`] of [`FileChange`]s, each with a diff;
//! 4. [`apply()`] carries the plan out: dated backup, record, atomic replacement.
//!
//! A client may still ignore its hooks: [`obstacles`] says why.
//!
//! ```
//! use std::path::Path;
//! use ringer_agents::setup::{SetupAction, BackupTime, Client, ClientPaths, Entries, RingerProgram, SetupScope, SetupRecords, apply, plan, read_files};
//!
//! # let home = tempfile::tempdir()?;
//! # let (home, state) = (home.path(), home.path().join("state"));
//! let paths = ClientPaths::new(home);
//! let action = SetupAction::Setup(RingerProgram::new(Path::new("/usr/bin/ringer"))?, Entries::Hooks);
//! let files = read_files(Client::Claude, &action, SetupScope::User, &paths, &SetupRecords::load(&state)?)?;
//! let plan = plan(Client::Claude, &action, files)?;
//! assert!(plan.changes[0].diff().contains("+        \"hooks\": ["));
//! apply(&plan, &state, &BackupTime::new("20261115-060000")?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It never writes a file that it could not read completely, changes a byte that is not Ringer's, or overwrites a `notify`,
//! plugin or MCP server that is not Ringer's. It does not read the environment or run a program. It uses
//! the clock only to wait for a client that is writing the same file.
//!
//! Bounds: files up to [`MAX_FILE`], nesting up to 128 levels, [`MAX_BACKUPS`] backups per file.

mod apply;
mod codex_toml;
mod entries;
mod error;
mod files;
mod find;
mod hooks;
mod jsonc;
mod mcp;
mod plan;
mod record;
mod splice;

pub use crate::client::{Client, ClientPaths, Format, McpForm};
pub use apply::{ApplyResult, BackupTime, MAX_BACKUPS, apply, apply_with_observer, backups};
pub use entries::{Entries, RingerProgram};
pub use error::{Obstacle, ObstacleKind, SetupError, SetupNote};
pub use files::{MAX_FILE, OriginalContent, Step};
pub use find::{DetectedClient, SetupScope, Target, find, obstacles};
pub(crate) use jsonc::Dialect;
pub use jsonc::JsoncError;
pub use mcp::has_mcp_server;
pub use plan::{
    CurrentFile, FileChange, FileHistory, Plan, SetupAction, plan, read_files, removals_elsewhere,
};
pub use record::SetupRecords;
pub(crate) use splice::split_bom;
