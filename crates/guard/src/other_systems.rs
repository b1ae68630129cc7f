//! Systems whose kernel does not tell who holds a terminal: the processes above the caller decide alone.

use ringer_journal::ProcessStat;

use crate::programs::{Executable, Owner};
use crate::rule::ProcessFacts;
use crate::{HubProcess, PaneWindows};

/// The processes of this machine. Every terminal counts as the person's.
#[derive(Debug, Default)]
pub struct System;

impl System {
    /// Ignores both arguments.
    pub fn new(_: HubProcess, _: &dyn Fn() -> Option<PaneWindows>) -> Self {
        Self
    }

    /// Returns the PID of this process.
    pub fn own_pid() -> Option<u32> {
        Some(std::process::id())
    }

    /// Returns true: executables are not compared here.
    pub fn runs_this_program(_: u32) -> bool {
        true
    }

    /// Returns `None`: times are not converted here.
    pub fn ticks_at(_: i64) -> Option<u64> {
        None
    }
}

impl ProcessFacts for System {
    fn stat(&self, pid: u32) -> Option<ProcessStat> {
        // This user cannot read process 1, so the chain of parents ends below it.
        let stat = ProcessStat::of(pid)?;
        Some(ProcessStat { parent: if stat.parent == 1 { 0 } else { stat.parent }, ..stat })
    }

    fn executable(&self, _: u32) -> Option<Executable> {
        Some(Executable { path: "/login".to_owned(), owner: Owner::Root })
    }

    fn name_if_root(&self, _: u32) -> Option<String> {
        Some("login".to_owned())
    }

    fn is_hidden(&self, _: u32) -> bool {
        false
    }

    fn variable(&self, _: u32, _: &str) -> Option<String> {
        None
    }

    fn is_elsewhere(&self, _: u32) -> bool {
        false
    }

    fn is_container(&self) -> bool {
        false
    }

    fn holders(&self, _: u32) -> Vec<u32> {
        Vec::new()
    }

    fn tmux_clients(&self, _: u32, _: u32) -> Vec<u32> {
        Vec::new()
    }

    fn pane_windows(&self, _: u32) -> Vec<u32> {
        Vec::new()
    }
}
