//! Runs hooks at the end of turns throughout the run, while the journal is busy and hubs are killed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::environment::{COMMAND_TIMEOUT, HubEnvironment};
use crate::codex::turn_ended;
use crate::failure::Failure;
use crate::process_result::ProcessResult;

/// The text of a turn's message, followed by its number.
const WORDS: &str = "turn number ";

/// Runs one hook after the other until the run is over, each in a new session. Returns how many succeeded.
pub(super) fn run(environment: &HubEnvironment, over: &AtomicBool) -> Result<u64, Failure> {
    let mut ended = 0;
    while !over.load(Ordering::Relaxed) {
        let event = turn_ended(ended, 1, &format!("{WORDS}{ended}"));
        let ending = ProcessResult::of(&mut environment.hook(["codex", "notify", &event])?, COMMAND_TIMEOUT)?;
        if !ending.is_success() {
            return Err(Failure::complaints(format!("a hook failed: {}", ending.status())));
        }
        ended += 1;
    }
    Ok(ended)
}

/// Returns how many turns are missing from the list, and how many are in it twice.
pub(super) fn check<'a>(ended: u64, rows: impl Iterator<Item = &'a Value>) -> (u64, u64) {
    let mut times: HashMap<u64, u64> = HashMap::new();
    for row in rows {
        let number = row["body"].as_str().and_then(|body| body.rsplit_once(WORDS)?.1.parse().ok());
        if let Some(number) = number {
            *times.entry(number).or_default() += 1;
        }
    }
    let lost = (0..ended).filter(|number| !times.contains_key(number)).count();
    let doubled = times.values().filter(|times| **times > 1).count();
    (lost as u64, doubled as u64)
}
