//! Kills hubs at random moments under constant load, lets two hubs race for the role, and sends messages just when a hub
//! exits. Every message that `notify` acknowledged must be in the journal, and must reach the person's command and desktop
//! or have a recorded reason, without the help of another message. A command may run twice; a popup is replaced.
//!
//! Limits: writers start nothing new after `--seconds-limit`; only the id and text of a message and the events of a popup
//! are kept.

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

/// The short form for the test suite: it takes seconds and uses the binary that the tests have built.
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
