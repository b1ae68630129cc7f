//! Two hubs at once, in a home where the last one was killed: exactly one wins.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Instant;

use super::plan::Plan;
use super::stage::{PATIENCE, Stage};
use super::verdict::Verdict;
use crate::failure::Failure;
use crate::service::until;

/// The exit code of the one that was too late.
const TRY_AGAIN: i32 = 75;

pub(super) fn run(plan: &Plan, ringer: &Path, verdict: &mut Verdict) -> Result<(), Failure> {
    let stage = Stage::new("hubraces", ringer, None)?;
    let begun = Instant::now();
    for _ in 0..plan.races {
        if begun.elapsed() >= plan.frame.limit {
            break;
        }
        let mut two = [begin(&stage)?, begin(&stage)?];
        let won = decide(&stage, &mut two);
        for child in &mut two {
            // The loser has ended already.
            let _ = child.kill();
            child.wait().map_err(|error| Failure::io("ringer hub run", &error))?;
        }
        verdict.races += 1;
        verdict.undecided += u64::from(!won?);
    }
    Ok(())
}

fn begin(stage: &Stage) -> Result<Child, Failure> {
    let mut command = stage.ringer(["hub", "run"])?;
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    child.map_err(|error| Failure::io("ringer hub run", &error))
}

/// Whether one of them goes, and the other one answers.
fn decide(stage: &Stage, two: &mut [Child; 2]) -> Result<bool, Failure> {
    let mut ended: Vec<(usize, Option<i32>)> = Vec::new();
    until(PATIENCE, || {
        let end = |(place, child): (usize, &mut Child)| Some((place, child.try_wait().ok()??.code()));
        ended = two.iter_mut().enumerate().filter_map(end).collect();
        !ended.is_empty()
    });
    let [(loser, Some(TRY_AGAIN))] = ended[..] else { return Ok(false) };
    let winner = two[1 - loser].id().to_string();
    let mut answers = false;
    let mut failed = None;
    until(PATIENCE, || match stage.ask(["hub", "status", "--json"]) {
        Ok(status) => {
            answers = status.is_some_and(|status| {
                status.word("running") == Some("true") && status.word("pid") == Some(winner.as_str())
            });
            answers
        }
        Err(failure) => {
            failed = Some(failure);
            true
        }
    });
    failed.map_or(Ok(answers), Err)
}
