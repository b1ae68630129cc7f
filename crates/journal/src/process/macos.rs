//! Processes on macOS, which has no `/proc`: the kernel is asked directly.

use std::fmt::Display;

use proc_pidinfo::{Pid, ProcBSDInfo, proc_pidinfo};

use super::ProcessStat;

/// How far up is looked for the first process of a terminal.
const MAX_ANCESTORS: usize = 32;

/// What the kernel says of a process without a terminal (`NODEV`).
const NO_DEVICE: u32 = u32::MAX;

impl ProcessStat {
    /// Of a process that runs, by its number or as `self`.
    ///
    /// Only of one's own processes: of a stranger's, the kernel tells nothing.
    pub fn of(pid: impl Display) -> Option<Self> {
        let pid = match pid.to_string().as_str() {
            "self" => std::process::id(),
            number => number.parse().ok()?,
        };
        let info = info(pid)?;
        Some(Self {
            parent: info.pbi_ppid.0,
            group: info.pbi_pgid,
            session: session(&info),
            tty: if info.e_tdev == NO_DEVICE { 0 } else { info.e_tdev },
            foreground_group: info.e_tpgid.cast_signed(),
            // Microseconds since 1970.
            started: info.pbi_start_tvsec.saturating_mul(1_000_000).saturating_add(info.pbi_start_tvusec),
        })
    }
}

fn info(pid: u32) -> Option<ProcBSDInfo> {
    proc_pidinfo::<ProcBSDInfo>(Pid(pid)).ok().flatten()
}

/// The process that leads the session. Under Terminal.app that is `login`, which is root's; then the first one below it
/// on the same terminal stands for it, usually the shell.
fn session(info: &ProcBSDInfo) -> u32 {
    let pid = i32::try_from(info.pbi_pid.0).ok().and_then(rustix::process::Pid::from_raw);
    let leader = pid.and_then(|pid| rustix::process::getsid(Some(pid)).ok());
    let leader = leader.map(|leader| leader.as_raw_nonzero().get().cast_unsigned());
    if let Some(leader) = leader.filter(|leader| self::info(*leader).is_some()) {
        return leader;
    }
    let mut first = *info;
    for _ in 0..MAX_ANCESTORS {
        match self::info(first.pbi_ppid.0) {
            Some(parent) if parent.e_tdev == info.e_tdev => first = parent,
            _ => break,
        }
    }
    first.pbi_pid.0
}
