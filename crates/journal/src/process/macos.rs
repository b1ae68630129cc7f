//! Processes on macOS, which has no `/proc`: read with `proc_pidinfo`.

use std::fmt::Display;

use proc_pidinfo::{Pid, ProcBSDInfo, proc_pidinfo};

use super::ProcessStat;

/// How many ancestors are searched for the first process of a terminal.
const MAX_ANCESTORS: usize = 32;

/// The terminal of a process that has none (`NODEV`).
const NO_DEVICE: u32 = u32::MAX;

impl ProcessStat {
    /// Reads a running process of this user by its PID or as `self`. The kernel does not report other users' processes.
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

/// The session leader. Under Terminal.app that is `login`, which belongs to root and cannot be read; then its first descendant on
/// the same terminal, usually the shell, stands in for it.
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
