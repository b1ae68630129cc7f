//! Kills `notify`, `listen` and `hook` before every system call they make, one call after the other, and looks each time
//! whether anything is lost, torn or stuck. What random kills find by luck, this finds by counting.
//!
//! strace does the killing; a call that the traced run made and the killed one did not come to is counted as missed.

mod boundary;
mod finding;
mod stage;

use std::path::Path;
use std::thread;

use crate::binary::{self, Profile};
use crate::failure::Failure;
use crate::flags;
use crate::timetable::Timetable;
use finding::Finding;
use stage::{Act, Stage, State};

struct Scenario {
    name: &'static str,
    act: Act,
    state: State,
}

const SCENARIOS: &[Scenario] = &[
    Scenario { name: "`notify`, the first ever", act: Act::Notify, state: State::New },
    Scenario { name: "`notify`", act: Act::Notify, state: State::Used },
    Scenario {
        name: "`notify` that copies the log into the database",
        act: Act::Notify,
        state: State::LogFull,
    },
    Scenario { name: "`listen`, a message waits", act: Act::Listen, state: State::Used },
    Scenario { name: "`listen`, woken from sleep", act: Act::ListenAsleep, state: State::Used },
    Scenario { name: "`listen`, the first ever, woken", act: Act::ListenAsleep, state: State::New },
    Scenario { name: "`hook` that spools its event", act: Act::HookSpools, state: State::Used },
    Scenario { name: "`hook` that takes in its session's spool", act: Act::HookTakesIn, state: State::Used },
    Scenario { name: "`listen` that takes in the spool", act: Act::ListenTakesIn, state: State::Used },
];

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let profile = match arguments {
        [] => Profile::Release,
        [flag, rest @ ..] if flag == "--profile" && rest.len() <= 1 => flags::profile(rest.first())?,
        [word, ..] => return Err(flags::unknown(word, "--profile NAME")),
    };
    Timetable::around(|times| carry_out(profile, times))
}

/// Every boundary, with the binary that the tests have built.
pub(crate) fn with_dev_binary(times: &mut Timetable) -> Result<(), Failure> {
    carry_out(Profile::Tested, times)
}

fn carry_out(profile: Profile, times: &mut Timetable) -> Result<(), Failure> {
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
        judge(&rows)
    })
}

/// Side by side: each has a stage of its own.
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

/// Calls differ a little from run to run (a lock that was taken has to be tried again), but a strace that kills nobody
/// proves nothing.
fn judge(rows: &[Row]) -> Result<(), Failure> {
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
        let stage = Stage::set(scenario.act, scenario.state, ringer)?;
        let found = stage.boundaries()?;
        let mut row =
            Self { boundaries: found.points.len(), skipped: found.before, finding: Finding::default() };
        for point in &found.points {
            let finding = stage.kill_at(point)?;
            if !finding.is_clean() {
                eprintln!("{}, {}: {finding}", scenario.name, point.injection());
            }
            row.finding.add(&finding);
        }
        Ok(row)
    }

    fn line(&self, name: &str) -> String {
        let Finding { lost, torn, wedged, litter, again, stored, missed } = self.finding;
        let Self { boundaries, skipped, .. } = self;
        format!(
            "| {name} | {boundaries} | {skipped} | {missed} | {stored} | {again} | {lost} | {torn} | {wedged} \
             | {litter} |"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{Finding, Row, judge, run};

    #[test]
    fn kills_that_did_not_happen_prove_nothing() {
        fn check(finding: Finding, expect: Option<&str>) {
            let found = judge(&[Row { boundaries: 200, skipped: 70, finding }]);
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
