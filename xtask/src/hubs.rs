//! Finds the hubs of a home in `/proc`, because they are not children of this process.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::failure::Failure;

/// Returns the processes that are, or try to become, the hub of this home.
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
    // Both are empty for a zombie.
    holds("cmdline", "run") && holds("cmdline", "hub") && holds("environ", ours)
}

/// Kills a process. Returns false if it did not exist any more.
pub(crate) fn kill(pid: u32) -> Result<bool, Failure> {
    let status = Command::new("kill")
        .args(["-KILL", &pid.to_string()])
        .stderr(Stdio::null())
        .status()
        .map_err(|error| Failure::io("kill", &error))?;
    Ok(status.success())
}

/// Returns true if a hub runs and is idle, according to `ringer hub status --json`.
pub(crate) fn is_idle(status: &Value) -> bool {
    status["running"] == true && status["undecided"] == 0 && status["under_way"] == 0
}

#[cfg(test)]
mod tests {
    use super::is_idle;
    use serde_json::json;

    #[test]
    fn an_idle_hub_runs_and_has_nothing_to_do() {
        let check = |undecided, under_way, expect| {
            let status = json!({ "running": true, "undecided": undecided, "under_way": under_way });
            assert_eq!(is_idle(&status), expect, "{status}");
        };
        check(0, 0, true);
        check(1, 0, false);
        check(0, 1, false);
        assert!(!is_idle(&json!({ "running": false })));
    }
}
