//! Kills `notify`, `listen` and `hook` before each of their system calls in turn, and checks each time that nothing is
//! lost, torn or stuck. It is exhaustive where random kills rely on luck.
//!
//! strace kills the process. A call of the traced run that the killed run does not reach is counted as missed.

mod boundary;
mod environment;
mod finding;

use std::path::Path;
use std::thread;

use crate::binary::{self, Profile};
use crate::failure::Failure;
use crate::flags;
use crate::step_times::StepTimes;
use environment::{KillEnvironment, Operation, State};
use finding::Finding;

struct Scenario {
    name: &'static str,
    operation: Operation,
    state: State,
}

const SCENARIOS: &[Scenario] = &[
    Scenario { name: "`notify`, the first ever", operation: Operation::Notify, state: State::New },
    Scenario { name: "`notify`", operation: Operation::Notify, state: State::Used },
    Scenario {
        name: "`notify` that copies the log into the database",
        operation: Operation::Notify,
        state: State::LogFull,
    },
    Scenario { name: "`listen`, a message waits", operation: Operation::Listen, state: State::Used },
    Scenario { name: "`listen`, woken from sleep", operation: Operation::ListenAsleep, state: State::Used },
    Scenario {
        name: "`listen`, the first ever, woken",
        operation: Operation::ListenAsleep,
        state: State::New,
    },
    Scenario { name: "`hook` that spools its event", operation: Operation::HookSpools, state: State::Used },
    Scenario {
        name: "`hook` that applies its session's spool",
        operation: Operation::HookApplies,
        state: State::Used,
    },
    Scenario {
        name: "`listen` that applies the spool",
        operation: Operation::ListenApplies,
        state: State::Used,
    },
];

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let profile = match arguments {
        [] => Profile::Release,
        [flag, rest @ ..] if flag == "--profile" && rest.len() <= 1 => flags::profile(rest.first())?,
        [word, ..] => return Err(flags::unknown(word, "--profile NAME")),
    };
    StepTimes::around(|times| run_plan(profile, times))
}

/// Kills at every boundary, with the binary that the tests have built.
pub(crate) fn with_dev_binary(times: &mut StepTimes) -> Result<(), Failure> {
    run_plan(Profile::Tested, times)
}

fn run_plan(profile: Profile, times: &mut StepTimes) -> Result<(), Failure> {
    let ringer = binary::ringer(profile, times)?;
    times.time("killpoints", || {
        let rows = all(&ringer)?;
        println!(
            "| killed | boundaries | skipped: before the home is touched | missed | stored, not acknowledged \
             | delivered again | lost | torn | wedged | left behind |\n\
             |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
        );
        for (scenario, row) in SCENARIOS.iter().zip(&rows) {
            println!("{}", row.line(scenario.name));
        }
        check_rows(&rows)
    })
}

/// Runs all scenarios concurrently.
fn all(ringer: &Path) -> Result<Vec<Row>, Failure> {
    thread::scope(|scope| {
        let threads: Vec<_> =
            SCENARIOS.iter().map(|scenario| scope.spawn(move || Row::of(scenario, ringer))).collect();
        let rows: Vec<_> = threads.into_iter().map(thread::ScopedJoinHandle::join).collect();
        rows.into_iter()
            .map(|row| {
                row.unwrap_or_else(|_| {
                    Err(Failure::complaints("a thread of the kill points panicked".into()))
                })
            })
            .collect()
    })
}

/// Checks that strace killed processes. System calls differ slightly between runs (a busy lock is tried again), but a run
/// without kills proves nothing.
fn check_rows(rows: &[Row]) -> Result<(), Failure> {
    const MOST_MISSED_PERCENT: usize = 5;
    let mut sum = Finding::default();
    for row in rows {
        sum.add(&row.finding);
    }
    let boundaries: usize = rows.iter().map(|row| row.boundaries).sum();
    if !sum.is_clean() {
        Err(Failure::complaints(sum.to_string()))
    } else if sum.missed as usize * 100 > boundaries * MOST_MISSED_PERCENT {
        Err(Failure::complaints(format!(
            "only {} of {boundaries} kills happened",
            boundaries - sum.missed as usize
        )))
    } else {
        Ok(())
    }
}

struct Row {
    boundaries: usize,
    skipped: usize,
    finding: Finding,
}

impl Row {
    fn of(scenario: &Scenario, ringer: &Path) -> Result<Self, Failure> {
        let environment = KillEnvironment::new(scenario.operation, scenario.state, ringer)?;
        let found = environment.boundaries()?;
        let mut row =
            Self { boundaries: found.points.len(), skipped: found.before, finding: Finding::default() };
        for point in &found.points {
            let finding = environment.kill_at(point)?;
            if !finding.is_clean() {
                eprintln!("{}, {}: {finding}", scenario.name, point.injection());
            }
            row.finding.add(&finding);
        }
        Ok(row)
    }

    fn line(&self, name: &str) -> String {
        let Finding { lost, torn, wedged, leftovers, again, stored, missed } = self.finding;
        let Self { boundaries, skipped, .. } = self;
        format!(
            "| {name} | {boundaries} | {skipped} | {missed} | {stored} | {again} | {lost} | {torn} | {wedged} \
             | {leftovers} |"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{Finding, Row, check_rows, run};

    #[test]
    fn kills_that_did_not_happen_prove_nothing() {
        fn check(finding: Finding, expect: Option<&str>) {
            let found = check_rows(&[Row { boundaries: 200, skipped: 70, finding }]);
            assert_eq!(found.err().map(|failure| failure.to_string()).as_deref(), expect);
        }
        check(Finding { missed: 10, again: 9, ..Finding::default() }, None);
        check(Finding { missed: 11, ..Finding::default() }, Some("only 189 of 200 kills happened"));
        let lost = Some("1 lost, 0 torn, 0 wedged, 0 left behind");
        check(Finding { lost: 1, ..Finding::default() }, lost);
    }

    #[test]
    fn a_row_of_figures() {
        let finding = Finding { again: 3, missed: 1, ..Finding::default() };
        let row = Row { boundaries: 200, skipped: 70, finding };
        assert_eq!(row.line("`listen`"), "| `listen` | 200 | 70 | 1 | 0 | 3 | 0 | 0 | 0 | 0 |");
    }

    #[test]
    fn a_wrong_word_is_a_usage_error() {
        for line in ["--profil dev", "--profile", "--profile fast", "notify"] {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            assert_eq!(run(&words).map_err(|failure| failure.code()), Err(64), "{line}");
        }
    }
}
