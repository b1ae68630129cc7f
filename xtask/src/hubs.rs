//! The hubs of a home, as the kernel sees them: nobody here is their parent.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::failure::Failure;

/// The processes that are, or try to become, the hub of that home.
pub(crate) fn of(home: &Path) -> Vec<u32> {
    let ours = format!("RINGER_HOME={}", home.display());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| is_hub(*pid, &ours)).collect()
}

fn is_hub(pid: u32, ours: &str) -> bool {
    let holds = |name: &str, word: &str| {
        let bytes = fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        bytes.split(|byte| *byte == 0).any(|own| own == word.as_bytes())
    };
    // A zombie has neither.
    holds("cmdline", "run") && holds("cmdline", "hub") && holds("environ", ours)
}

/// Kills a process. `false` when it had gone already.
pub(crate) fn kill(pid: u32) -> Result<bool, Failure> {
    let status = Command::new("kill")
        .args(["-KILL", &pid.to_string()])
        .stderr(Stdio::null())
        .status()
        .map_err(|error| Failure::io("kill", &error))?;
    Ok(status.success())
}
