//! Starts two hubs at once in a home where the last one was killed: exactly one must win.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Instant;

use super::environment::{COMMAND_TIMEOUT, HubEnvironment};
use super::plan::Plan;
use super::results::HubStressResults;
use crate::background::until;
use crate::failure::Failure;

/// The exit code of the loser.
const TRY_AGAIN: i32 = 75;

pub(super) fn run(plan: &Plan, ringer: &Path, results: &mut HubStressResults) -> Result<(), Failure> {
    let environment = HubEnvironment::new("hubraces", ringer, None)?;
    let begun = Instant::now();
    for _ in 0..plan.races {
        if begun.elapsed() >= plan.common.limit {
            break;
        }
        let mut two = [begin(&environment)?, begin(&environment)?];
        let won = decide(&environment, &mut two);
        for child in &mut two {
            // The loser has already exited.
            let _ = child.kill();
            child.wait().map_err(|error| Failure::io("ringer hub run", &error))?;
        }
        results.races += 1;
        results.undecided += u64::from(!won?);
    }
    Ok(())
}

fn begin(environment: &HubEnvironment) -> Result<Child, Failure> {
    let mut command = environment.ringer(["hub", "run"])?;
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    child.map_err(|error| Failure::io("ringer hub run", &error))
}

/// Returns true if one of them exits and the other one answers.
fn decide(environment: &HubEnvironment, two: &mut [Child; 2]) -> Result<bool, Failure> {
    let mut ended: Vec<(usize, Option<i32>)> = Vec::new();
    until(COMMAND_TIMEOUT, || {
        let end = |(place, child): (usize, &mut Child)| Some((place, child.try_wait().ok()??.code()));
        ended = two.iter_mut().enumerate().filter_map(end).collect();
        !ended.is_empty()
    });
    let [(loser, Some(TRY_AGAIN))] = ended[..] else { return Ok(false) };
    let winner = two[1 - loser].id();
    let mut answers = false;
    let mut failed = None;
    until(COMMAND_TIMEOUT, || match environment.ask(["hub", "status", "--json"]) {
        Ok(status) => {
            answers = status.is_some_and(|status| status["running"] == true && status["pid"] == winner);
            answers
        }
        Err(failure) => {
            failed = Some(failure);
            true
        }
    });
    failed.map_or(Ok(answers), Err)
}
