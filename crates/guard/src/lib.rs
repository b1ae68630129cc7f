//! Decides who acts with a process: the person, a script, or an agent.
//!
//! Answering, trusting, muting and typing into panes are reserved for the person. [`examine`] looks for evidence that a process
//! acts for them: it finds the holder of the other end of the process's terminal, then the holder of that one's terminal, up to
//! a terminal emulator on a display, a login or sshd. It is a pure function of [`ProcessFacts`]; [`System`] reads them from
//! `/proc`.
//!
//! This is not a security boundary: a program of the same user can always attach a debugger to the person's shell. It stops what
//! one line of an injected prompt can do.
//!
//! Only Linux tells who holds a terminal. On other systems the processes above the caller decide alone.

#![forbid(unsafe_code)]

mod programs;
mod rule;
#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "other_systems.rs")]
mod system;

use std::collections::HashMap;

use ringer_core::message::Agent;

pub use programs::{Executable, Owner};
pub use rule::{Evidence, OF_CLIENTS, ProcessFacts, Refusal, Verdict, examine};
pub use system::System;

/// The processes of agents, by PID and start time.
pub type AgentProcesses = HashMap<(u32, u64), Agent>;

/// The windows that show panes, as the pane server reports them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PaneWindows {
    /// The PID of the pane server, which holds the terminals of all panes.
    pub server: u32,
    /// The PIDs of the processes that show panes in their terminals.
    pub windows: Vec<u32>,
}

/// The hub process of this home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HubProcess {
    /// No hub is running.
    None,
    /// A hub is running, with this PID and start time.
    Running(u32, Option<u64>),
}
