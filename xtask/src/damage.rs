//! Damages a random file of a home, with or without a hub that has it open, and checks that no command hangs or crashes,
//! the next message is acknowledged, delivered and listed, undamaged data is kept, and the person is notified of a repair
//! once.
//!
//! Limits: nothing new starts after `--seconds-limit`; each worker has one home, which is restored before each round.

mod mutation;
mod round;
mod template;

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use crate::binary::{self, Profile};
use crate::failure::Failure;
use crate::flags::{CommonOptions, Flags};
use crate::step_times::StepTimes;
use round::Outcome;
use template::Template;

const FLAGS: &str = "--rounds N, --first N, --workers N";

/// The default seed.
const SEED: u64 = 1;

/// At most this many problems are printed.
const MAX_PROBLEMS: usize = 10;

/// The options.
#[derive(PartialEq, Debug)]
struct Plan {
    rounds: u64,
    /// The number of the first round. A round is determined by its number and the seed.
    first: u64,
    workers: u64,
    common: CommonOptions,
}

impl Plan {
    fn short() -> Self {
        Self {
            rounds: 300,
            first: 0,
            workers: 2,
            common: CommonOptions { profile: Profile::Tested, ..CommonOptions::new(SEED) },
        }
    }

    fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let mut plan = Self { rounds: 10_000, first: 0, workers: 2, common: CommonOptions::new(SEED) };
        let mut flags = Flags::of(arguments, FLAGS);
        while let Some(name) = flags.next_flag() {
            match name {
                "--rounds" => plan.rounds = flags.number(1..=10_000_000)?,
                "--first" => plan.first = flags.number(0..=10_000_000)?,
                "--workers" => plan.workers = flags.number(1..=64)?,
                _ => plan.common.parse_flag(&mut flags)?,
            }
        }
        Ok(plan)
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let plan = Plan::parse(arguments)?;
    StepTimes::around(|times| run_plan(&plan, times))
}

/// The short form for the test suite.
pub(crate) fn short(times: &mut StepTimes) -> Result<(), Failure> {
    run_plan(&Plan::short(), times)
}

fn run_plan(plan: &Plan, times: &mut StepTimes) -> Result<(), Failure> {
    let ringer = binary::ringer(plan.common.profile, times)?;
    eprintln!("{} rounds of damage; --seed {}", plan.rounds, plan.common.seed);
    times.time("damage", || {
        let figures = all(plan, &ringer)?;
        println!("{figures}");
        figures.check()
    })
}

fn all(plan: &Plan, ringer: &Path) -> Result<Figures, Failure> {
    let next = AtomicU64::new(plan.first);
    let figures = Mutex::new(Figures::default());
    let begun = Instant::now();
    let work = |worker: u64| -> Result<(), Failure> {
        let template = Template::new(worker, ringer)?;
        loop {
            let round = next.fetch_add(1, Ordering::Relaxed);
            if round >= plan.first + plan.rounds || begun.elapsed() >= plan.common.limit {
                return Ok(());
            }
            let outcome = round::run(&template, plan.common.seed, round)?;
            figures.lock().unwrap_or_else(PoisonError::into_inner).add(round, outcome);
        }
    };
    thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> = (0..plan.workers).map(|worker| scope.spawn(move || work(worker))).collect();
        let panicked = |_| Err(Failure::complaints("a worker panicked".into()));
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(panicked))
    })?;
    Ok(figures.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The results of all rounds.
#[derive(Default)]
struct Figures {
    rounds: u64,
    with_hub: u64,
    /// Rounds after which the person was notified of a repair.
    told: u64,
    /// Rounds that lost messages which only the damaged file contained.
    unreadable: u64,
    /// Those of them without a notification, for example because bits of a text changed, which SQLite does not detect.
    untold: u64,
    complaints: Vec<String>,
}

impl Figures {
    fn add(&mut self, round: u64, outcome: Outcome) {
        self.rounds += 1;
        self.with_hub += u64::from(outcome.with_hub);
        self.told += u64::from(outcome.was_told);
        self.unreadable += u64::from(outcome.has_lost_messages);
        if outcome.has_lost_messages && !outcome.was_told {
            self.untold += 1;
            eprintln!("round {round} ({}): messages were lost, and nobody was told", outcome.what);
        }
        if let Some(complaint) = outcome.complaint {
            eprintln!("round {round} ({}): {complaint}", outcome.what);
            self.complaints.push(format!("round {round} ({}): {complaint}", outcome.what));
        }
    }

    fn check(&self) -> Result<(), Failure> {
        if self.complaints.is_empty() {
            return Ok(());
        }
        let first: Vec<&str> = self.complaints.iter().take(MAX_PROBLEMS).map(String::as_str).collect();
        let count = self.complaints.len();
        Err(Failure::complaints(format!("{count} rounds were not survived:\n{}", first.join("\n"))))
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, with_hub, told, unreadable, untold, complaints } = self;
        writeln!(
            f,
            "| rounds | under a hub | told of a repair | messages lost with the damaged part | of these untold | not survived |"
        )?;
        writeln!(f, "|---:|---:|---:|---:|---:|---:|")?;
        write!(f, "| {rounds} | {with_hub} | {told} | {unreadable} | {untold} | {} |", complaints.len())
    }
}

#[cfg(test)]
mod tests {
    use super::Plan;

    #[test]
    fn rounds_and_workers_can_be_chosen() {
        fn check(line: &str, expect: Result<(u64, u64), u8>) {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let plan = Plan::parse(&words).map(|plan| (plan.rounds, plan.workers));
            assert_eq!(plan.map_err(|failure| failure.code()), expect, "{line}");
        }
        check("", Ok((10_000, 2)));
        check("--rounds 3 --workers 1 --seed 7", Ok((3, 1)));
        check("--rounds 0", Err(64));
        check("--round 3", Err(64));
    }
}
