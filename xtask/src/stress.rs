//! Many writers, several listeners, all of them whole processes, and with `--kill` a SIGKILL for a good part of them:
//! whatever `notify` acknowledged has to arrive, whole, under one id. And many hooks at the same moment: none is lost.
//!
//! Bounds: every message is made again from the seed when it is checked, so only its number, its id and how often it
//! came are kept; writers begin nothing new after `--seconds-limit`.

mod course;
mod hooks;
mod ledger;
mod listener;
mod payload;
mod plan;
mod verdict;
mod writer;

use std::thread;
use std::time::Instant;

use crate::binary;
use crate::failure::Failure;
use crate::scene::Scene;
use crate::timetable::Timetable;
use course::Course;
use ledger::Consumer;
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
    times.time("stress", || {
        eprintln!("{plan}");
        let course = Course::new(plan, Scene::new("stress", &ringer)?);
        let verdict = run_course(&course)?;
        println!("{verdict}");
        verdict.judge(plan.writers, &course.scene.first_complaints())
    })?;
    times.time("stress of hooks", || {
        let figures = hooks::run(plan, &ringer)?;
        println!("{figures}");
        figures.judge()
    })
}

fn run_course(course: &Course<'_>) -> Result<Verdict, Failure> {
    let start = Instant::now();
    let over = start + course.plan.frame.limit;
    let wrote = thread::scope(|scope| {
        let listeners: Vec<_> = course
            .plan
            .consumers()
            .map(|(place, consumer)| scope.spawn(move || listener::run(course, place, consumer)))
            .collect();
        let writers: Vec<_> = (0..course.plan.writers)
            .map(|number| scope.spawn(move || writer::run(course, number, over)))
            .collect();
        let wrote = join(writers);
        let took = start.elapsed();
        course.end_writing();
        // Even when writing failed: the listeners end at the flag, and the scope waits for them anyway.
        join(listeners).and(wrote).map(|()| took)
    })?;
    for consumer in Consumer::ALL {
        listener::drain(course, consumer)?;
    }
    Ok(Verdict::of(&course.ledger(), course.deaths(), wrote, start.elapsed()))
}

fn join(threads: Vec<thread::ScopedJoinHandle<'_, Result<(), Failure>>>) -> Result<(), Failure> {
    let outcomes: Vec<_> = threads.into_iter().map(thread::ScopedJoinHandle::join).collect();
    outcomes.into_iter().try_for_each(|outcome| {
        outcome.unwrap_or_else(|_| Err(Failure::complaints("a thread of the stress run panicked".into())))
    })
}
