//! Setup: making a client call Ringer, and taking that back.
//!
//! Four moves, so that the command can show and ask in between:
//!
//! 1. [`find()`] says which clients are here;
//! 2. [`read_files`] reads a client's files;
//! 3. [`plan()`] decides, without touching anything, what they should be: a [`Plan`] of [`FileChange`]s, each with a diff;
//! 4. [`apply()`] carries it out: dated backup, record, atomic replacement.
//!
//! Whether the client then runs what stands in its files is another matter: [`obstacles`] says why not.
//!
//! ```
//! use std::path::Path;
//! use ringer_agents::setup::{SetupAction, BackupTime, Client, ClientPaths, Entries, RingerProgram, SetupScope, SetupRecords, apply, plan, read_files};
//!
//! # let home = tempfile::tempdir()?;
//! # let (home, state) = (home.path(), home.path().join("state"));
//! let places = ClientPaths::new(home);
//! let action = SetupAction::Setup(RingerProgram::new(Path::new("/usr/bin/ringer"))?, Entries::Hooks);
//! let files = read_files(Client::Claude, &action, SetupScope::User, &places, &SetupRecords::load(&state)?)?;
//! let plan = plan(Client::Claude, &action, files)?;
//! assert!(plan.changes[0].diff().contains("+        \"hooks\": ["));
//! apply(&plan, &state, &BackupTime::new("20261115-060000")?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What it never does: write a file that it could not read wholly, change a byte that is not ours, overwrite a `notify`, a
//! plugin, a notification command or an MCP server that is not Ringer's, read the environment, run a program, or the clock
//! but to wait for a client that writes the same file.
//!
//! Bounds: files up to [`MAX_FILE`], nesting up to 128 levels, [`MAX_BACKUPS`] backups per file.

mod apply;
mod backup;
mod codex_toml;
mod conf;
mod dialect;
mod entries;
mod error;
mod files;
mod find;
mod hooks;
mod jsonc;
mod mcp;
mod obstacle;
mod plan;
mod record;
mod splice;

pub use crate::client::{Client, ClientPaths, Format, McpForm};
pub use apply::{Applied, MAX_BACKUPS, apply, apply_with_observer};
pub use backup::{BackupTime, backups};
pub(crate) use dialect::Dialect;
pub use entries::{Entries, RingerProgram};
pub use error::{Obstacle, ObstacleKind, SetupError, SetupNote};
pub use files::{Before, MAX_FILE, Step};
pub use find::{DetectedClient, SetupScope, Target, find};
pub use jsonc::JsoncError;
pub use mcp::has_mcp_server;
pub use obstacle::obstacles;
pub use plan::{
    CurrentFile, FileChange, FileHistory, Plan, SetupAction, plan, read_files, removals_elsewhere,
};
pub use record::SetupRecords;
pub(crate) use splice::split_bom;
