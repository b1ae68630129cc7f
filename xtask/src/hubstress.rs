//! A hub that is killed at random moments under constant load, hubs that race to be the one, and hubs that end just
//! when something comes: whatever `notify` acknowledged is in the journal, reaches the person's command and desktop or
//! has a cause written down, and never needs another message to get there. A command may run twice, a popup is replaced.
//!
//! Bounds: writers begin nothing new after `--seconds-limit`; of a message only its id and its text are kept, of a popup
//! what happened to it.

mod desktop;
mod endings;
mod environment;
mod hooks;
mod kills;
mod plan;
mod popups;
mod races;
mod results;
mod writer;

use crate::binary;
use crate::failure::Failure;
use crate::parts::{self, Missing};
use crate::step_times::StepTimes;
use plan::Plan;
use results::HubStressResults;

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let plan = Plan::parse(arguments)?;
    StepTimes::around(|times| run_plan(&plan, times))
}

/// The form that is part of the tests: seconds, with the binary that is there already.
pub(crate) fn short(times: &mut StepTimes) -> Result<(), Failure> {
    run_plan(&Plan::short(), times)
}

fn run_plan(plan: &Plan, times: &mut StepTimes) -> Result<(), Failure> {
    let ringer = binary::ringer(plan.common.profile, times)?;
    let mut results = HubStressResults::default();
    eprintln!("{plan}");
    if plan.kills > 0 {
        parts::ensure_these(&[parts::BUS], Missing::Report, times)?;
        let server = desktop::server(times)?;
        times.time("hub, killed", || kills::run(plan, &ringer, &server, &mut results))?;
    }
    if plan.races > 0 {
        times.time("hubs, racing", || races::run(plan, &ringer, &mut results))?;
    }
    if plan.endings > 0 {
        times.time("hubs, ending", || endings::run(plan, &ringer, &mut results))?;
    }
    println!("{results}");
    results.check()
}
