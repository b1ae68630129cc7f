//! Hubs that end because they have nothing to do, just when something comes: it is shown all the same, by that hub or by
//! the next, and without anybody having to send another message.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::plan::Plan;
use super::stage::{PATIENCE, Stage};
use super::verdict::Verdict;
use crate::chance::Chance;
use crate::failure::Failure;
use crate::hubs;
use crate::service::until;

/// How long these hubs stay.
const IDLE_MS: u64 = 20;
/// With no hub left, nothing can come any more; a new one that was just started is not in sight yet.
const GRACE: Duration = Duration::from_secs(2);

pub(super) fn run(plan: &Plan, ringer: &Path, verdict: &mut Verdict) -> Result<(), Failure> {
    let stage = Stage::new("hubendings", ringer, None)?.idle_after(IDLE_MS);
    let mut chance = Chance::new(plan.frame.seed, 1);
    let begun = Instant::now();
    for number in 0..plan.endings {
        if begun.elapsed() >= plan.frame.limit {
            break;
        }
        let body = format!("number {number}");
        let Some(id) = stage.notify(&body, &body)? else {
            verdict.unacknowledged += 1;
            continue;
        };
        verdict.endings += 1;
        let mut alone_since: Option<Instant> = None;
        let arrived = until(PATIENCE, || {
            let nobody = hubs::of(&stage.home()).is_empty();
            alone_since = if nobody { alone_since.or(Some(Instant::now())) } else { None };
            stage.has_recorded(&id) || alone_since.is_some_and(|since| since.elapsed() > GRACE)
        }) && stage.has_recorded(&id);
        verdict.stranded += u64::from(!arrived);
        // Somewhere around the end of the hub that has just shown it.
        thread::sleep(Duration::from_micros(chance.below(IDLE_MS * 3000)));
    }
    Ok(())
}
