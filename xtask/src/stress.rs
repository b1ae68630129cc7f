//! Many writers and several listeners, all in separate processes; with `--kill`, many of these get SIGKILL. Every message
//! that `notify` acknowledged must arrive intact under one id. Also many concurrent hooks, of which none may be lost.
//!
//! Limits: a message is regenerated from the seed when it is checked, so only its number, its id and its arrival count are
//! kept; writers start nothing new after `--seconds-limit`.

mod delivery_record;
mod hooks;
mod listener;
mod payload;
mod plan;
mod results;
mod shared_state;
mod writer;

use std::thread;
use std::time::Instant;

use crate::binary;
use crate::environment::TestEnvironment;
use crate::failure::Failure;
use crate::step_times::StepTimes;
use delivery_record::Consumer;
use plan::Plan;
use results::StressResults;
use shared_state::SharedState;

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
    times.time("stress", || {
        eprintln!("{plan}");
        let state = SharedState::new(plan, TestEnvironment::new("stress", &ringer)?);
        let results = run_all(&state)?;
        println!("{results}");
        results.check(plan.writers, &state.environment.first_errors())
    })?;
    times.time("stress of hooks", || {
        let figures = hooks::run(plan, &ringer)?;
        println!("{figures}");
        figures.check()
    })
}

fn run_all(state: &SharedState<'_>) -> Result<StressResults, Failure> {
    let start = Instant::now();
    let over = start + state.plan.common.limit;
    let wrote = thread::scope(|scope| {
        let listeners: Vec<_> = state
            .plan
            .consumers()
            .map(|(index, consumer)| scope.spawn(move || listener::run(state, index, consumer)))
            .collect();
        let writers: Vec<_> = (0..state.plan.writers)
            .map(|number| scope.spawn(move || writer::run(state, number, over)))
            .collect();
        let wrote = join(writers);
        let took = start.elapsed();
        state.end_writing();
        // Also if writing failed: the listeners end at the flag, and the scope waits for them anyway.
        join(listeners).and(wrote).map(|()| took)
    })?;
    for consumer in Consumer::ALL {
        listener::drain(state, consumer)?;
    }
    Ok(StressResults::of(&state.record(), state.process_failures(), wrote, start.elapsed()))
}

fn join(threads: Vec<thread::ScopedJoinHandle<'_, Result<(), Failure>>>) -> Result<(), Failure> {
    let outcomes: Vec<_> = threads.into_iter().map(thread::ScopedJoinHandle::join).collect();
    outcomes.into_iter().try_for_each(|outcome| {
        outcome.unwrap_or_else(|_| Err(Failure::complaints("a thread of the stress run panicked".into())))
    })
}
