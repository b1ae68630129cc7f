//! An agent whose turns end all the while: its hooks find the journal busy, and hubs that are killed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::environment::{COMMAND_TIMEOUT, HubEnvironment};
use crate::codex::turn_ended;
use crate::failure::Failure;
use crate::process_result::ProcessResult;

/// The text of a turn's message before its number.
const WORDS: &str = "turn number ";

/// Calls one hook after the other until it is over, each of a session of its own. Gives how many ended well.
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

/// How many of these are not on the list, and how many are there twice.
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
