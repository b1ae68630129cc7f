//! A hub that is killed at random moments under constant load, hubs that race to be the one, and hubs that end just
//! when something comes: whatever `notify` acknowledged is in the journal, reaches the person's command and desktop or
//! has a cause written down, and never needs another message to get there. A command may run twice, a popup is replaced.
//!
//! Bounds: writers begin nothing new after `--seconds-limit`; of a message only its id and its text are kept, of a popup
//! what happened to it.

mod course;
mod desktop;
mod endings;
mod hooks;
mod plan;
mod popups;
mod races;
mod stage;
mod verdict;
mod writer;

use crate::binary;
use crate::failure::Failure;
use crate::parts::{self, Missing};
use crate::timetable::Timetable;
use plan::Plan;
use verdict::Verdict;

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let plan = Plan::parse(arguments)?;
    Timetable::around(|times| carry_out(&plan, times))
}

/// The form that is part of the tests: seconds, with the binary that is there already.
pub(crate) fn short(times: &mut Timetable) -> Result<(), Failure> {
    carry_out(&Plan::short(), times)
}

fn carry_out(plan: &Plan, times: &mut Timetable) -> Result<(), Failure> {
    let ringer = binary::ringer(plan.frame.profile, times)?;
    let mut verdict = Verdict::default();
    eprintln!("{plan}");
    if plan.kills > 0 {
        parts::ensure_these(&[parts::BUS], Missing::Report, times)?;
        let server = desktop::server(times)?;
        times.time("hub, killed", || course::run(plan, &ringer, &server, &mut verdict))?;
    }
    if plan.races > 0 {
        times.time("hubs, racing", || races::run(plan, &ringer, &mut verdict))?;
    }
    if plan.endings > 0 {
        times.time("hubs, ending", || endings::run(plan, &ringer, &mut verdict))?;
    }
    println!("{verdict}");
    verdict.judge()
}
