//! Many writers, several listeners, all of them whole processes, and with `--kill` a SIGKILL for a good part of them:
//! whatever `notify` acknowledged has to arrive, whole, under one id. And many hooks at the same moment: none is lost.
//!
//! Bounds: every message is made again from the seed when it is checked, so only its number, its id and how often it
//! came are kept; writers begin nothing new after `--seconds-limit`.

mod hooks;
mod ledger;
mod listener;
mod payload;
mod plan;
mod verdict;
mod writer;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::binary;
use crate::ending::Ending;
use crate::failure::Failure;
use crate::scene::Scene;
use crate::timetable::Timetable;
use ledger::{Consumer, Ledger};
use plan::Plan;
use verdict::Verdict;

/// For a process that nobody means to kill. The journal itself gives up after five seconds.
const PATIENCE: Duration = Duration::from_mins(1);

/// The exit code of somebody who waited for his turn as long as he may.
const TRY_AGAIN: i32 = 75;

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
        let verdict = course.run()?;
        println!("{verdict}");
        verdict.judge(plan.writers, &course.scene.first_complaints())
    })?;
    times.time("stress of hooks", || {
        let figures = hooks::run(plan, &ringer)?;
        println!("{figures}");
        figures.judge()
    })
}

/// What writers and listeners share while they run.
struct Course<'a> {
    plan: &'a Plan,
    scene: Scene,
    ledger: Mutex<Ledger>,
    writers_are_done: AtomicBool,
    deaths: Mutex<Deaths>,
}

/// Processes that did not succeed.
#[derive(Default, Clone, Copy)]
struct Deaths {
    kills: u64,
    /// They waited for their turn as long as they may, said so, and did nothing.
    busy: u64,
    /// They failed in another way, or hung, and nobody had killed them.
    failures: u64,
}

impl<'a> Course<'a> {
    fn new(plan: &'a Plan, scene: Scene) -> Self {
        Self {
            plan,
            scene,
            ledger: Mutex::new(Ledger::new(plan.frame.seed)),
            writers_are_done: AtomicBool::new(false),
            deaths: Mutex::new(Deaths::default()),
        }
    }

    fn run(&self) -> Result<Verdict, Failure> {
        let start = Instant::now();
        let over = start + self.plan.frame.limit;
        let wrote = thread::scope(|scope| {
            let listeners: Vec<_> = self
                .plan
                .consumers()
                .map(|(place, consumer)| scope.spawn(move || listener::run(self, place, consumer)))
                .collect();
            let writers: Vec<_> = (0..self.plan.writers)
                .map(|number| scope.spawn(move || writer::run(self, number, over)))
                .collect();
            let wrote = join(writers);
            let took = start.elapsed();
            self.writers_are_done.store(true, Ordering::Relaxed);
            // Even when writing failed: the listeners end at the flag, and the scope waits for them anyway.
            join(listeners).and(wrote).map(|()| took)
        })?;
        for consumer in Consumer::ALL {
            listener::drain(self, consumer)?;
        }
        Ok(Verdict::of(&self.ledger(), *lock(&self.deaths), wrote, start.elapsed()))
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        lock(&self.ledger)
    }

    fn is_over(&self) -> bool {
        self.writers_are_done.load(Ordering::Relaxed)
    }

    /// Counts a process that did not succeed, and had been given this much time.
    fn count(&self, ending: &Ending, time: Duration) {
        let mut deaths = lock(&self.deaths);
        if ending.is_kill() && time < PATIENCE {
            deaths.kills += 1;
        } else if ending.status().code() == Some(TRY_AGAIN) {
            deaths.busy += 1;
        } else {
            deaths.failures += 1;
        }
    }
}

/// A thread that panicked while it held one of ours left whole entries behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn join(threads: Vec<thread::ScopedJoinHandle<'_, Result<(), Failure>>>) -> Result<(), Failure> {
    let outcomes: Vec<_> = threads.into_iter().map(thread::ScopedJoinHandle::join).collect();
    outcomes.into_iter().try_for_each(|outcome| {
        outcome.unwrap_or_else(|_| Err(Failure::complaints("a thread of the stress run panicked".into())))
    })
}
