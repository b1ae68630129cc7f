//! Hubs that end because they have nothing to do, just when something comes: it is shown all the same, by that hub or by
//! the next, and without another message.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::environment::{COMMAND_TIMEOUT, HubEnvironment};
use super::plan::Plan;
use super::results::HubStressResults;
use crate::background::until;
use crate::failure::Failure;
use crate::hubs;
use crate::random::Random;

/// How long these hubs stay.
const IDLE_MS: u64 = 20;
/// With no hub left, nothing can come any more; a new one that was just started is not in sight yet.
const GRACE: Duration = Duration::from_secs(10);

pub(super) fn run(plan: &Plan, ringer: &Path, results: &mut HubStressResults) -> Result<(), Failure> {
    let environment = HubEnvironment::new("hubendings", ringer, None)?.idle_after(IDLE_MS);
    let mut random = Random::new(plan.common.seed, 1);
    let begun = Instant::now();
    for number in 0..plan.endings {
        if begun.elapsed() >= plan.common.limit {
            break;
        }
        let body = format!("number {number}");
        let Some(id) = environment.notify(&body, &body)? else {
            results.unacknowledged += 1;
            continue;
        };
        results.endings += 1;
        let mut alone_since: Option<Instant> = None;
        let arrived = until(COMMAND_TIMEOUT, || {
            let no_hub = hubs::of(&environment.home()).is_empty();
            alone_since = if no_hub { alone_since.or(Some(Instant::now())) } else { None };
            environment.has_recorded(&id) || alone_since.is_some_and(|since| since.elapsed() > GRACE)
        }) && environment.has_recorded(&id);
        results.stranded += u64::from(!arrived);
        // Somewhere around the end of the hub that has just shown it.
        thread::sleep(Duration::from_micros(random.below(IDLE_MS * 3000)));
    }
    Ok(())
}
