//! Sends messages just when an idle hub exits: each must be shown by that hub or the next one, without the help of another
//! message.

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

/// The idle timeout of these hubs.
const IDLE_MS: u64 = 20;
/// Without a hub nothing more can be shown, but a hub that was just started may not be visible yet.
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
        // A random moment around the exit of the hub that has just shown the message.
        thread::sleep(Duration::from_micros(random.below(IDLE_MS * 3000)));
    }
    Ok(())
}
