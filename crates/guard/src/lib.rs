//! Who decides: the person, a script, or an agent.
//!
//! Answering, trusting, muting and typing into panes are for the person alone. [`examine`] looks for evidence that a process acts
//! for them: who holds the other end of its terminal, and who holds the end of that one, up to a terminal emulator on a display, a
//! login or sshd. It is a pure function of [`ProcessFacts`]; [`System`] reads them from `/proc`.
//!
//! Programs of the same user can always attach a debugger to the person's shell, so this is no wall. It refuses what one line
//! of an injected prompt can do.
//!
//! Only Linux tells who holds a terminal. Elsewhere the processes above the caller decide alone.

#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
mod linux;
mod programs;
mod rule;

#[cfg(not(target_os = "linux"))]
#[path = "other_systems.rs"]
mod linux;

use std::collections::HashMap;

use ringer_core::message::Agent;

pub use linux::System;
pub use programs::{Executable, Owner};
pub use rule::{Evidence, OF_CLIENTS, ProcessFacts, Refusal, Verdict, examine};

/// The processes of agents: number and start time.
pub type AgentProcesses = HashMap<(u32, u64), Agent>;

/// The windows that show panes, as the server of panes knows them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PaneWindows {
    /// The server. It holds the terminals of all panes.
    pub server: u32,
    /// The processes that show panes in their terminals.
    pub windows: Vec<u32>,
}

/// The hub of this home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HubProcess {
    /// None runs.
    None,
    /// One runs, with this number and start time.
    Running(u32, Option<u64>),
}
