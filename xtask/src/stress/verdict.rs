use std::fmt;
use std::time::Duration;

use super::course::Deaths;
use super::ledger::{Faults, Ledger, Sums};
use crate::failure::Failure;

/// So many at once have to get their turn; of more, some may be told to try again.
const NEVER_BUSY: u32 = 64;

/// The figures of a run.
pub(super) struct Verdict {
    sums: Sums,
    faults: Faults,
    deaths: Deaths,
    /// From the first writer's start to the last one's end.
    wrote: Duration,
    took: Duration,
}

impl Verdict {
    pub(super) fn of(ledger: &Ledger, deaths: Deaths, wrote: Duration, took: Duration) -> Self {
        let Faults { torn, strangers, clashes } = ledger.faults;
        let faults = Faults { torn, strangers, clashes: clashes + ledger.ids_beyond_messages() };
        Self { sums: ledger.sums(), faults, deaths, wrote, took }
    }

    /// Fails when anything is wrong that no death explains.
    pub(super) fn judge(&self, writers: u32, complaints: &str) -> Result<(), Failure> {
        let busy = if writers <= NEVER_BUSY { self.deaths.busy } else { 0 };
        let wrongs = [
            (self.sums.lost, "lost"),
            (self.faults.torn, "torn"),
            (self.faults.strangers, "delivered but never sent"),
            (self.faults.clashes, "with an id that is not their own"),
            (self.sums.unexplained, "delivered twice by listeners that finished"),
            (busy, "processes did not get their turn"),
            (self.deaths.failures, "processes failed by themselves"),
        ];
        let wrongs: Vec<String> = wrongs
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if wrongs.is_empty() {
            return Ok(());
        }
        Err(Failure::complaints(format!("{}\n{complaints}", wrongs.join(", ")).trim_end().to_owned()))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sums { sent, acknowledged, lost, duplicates, unexplained, unacknowledged_but_there } = self.sums;
        let Faults { torn, strangers, clashes } = self.faults;
        let Deaths { kills, busy, failures } = self.deaths;
        let seconds = self.took.as_secs_f64();
        // A count far below 2^52: nothing is rounded.
        #[expect(clippy::cast_precision_loss, reason = "messages of one run")]
        let speed = acknowledged as f64 / self.wrote.as_secs_f64().max(f64::EPSILON);
        writeln!(
            f,
            "| sent | acknowledged | not acknowledged but there | lost | torn | never sent | id clashes | duplicates \
             | unexplained | kills | busy | failed | seconds | messages/s |\n\
             |---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
        )?;
        write!(
            f,
            "| {sent} | {acknowledged} | {unacknowledged_but_there} | {lost} | {torn} | {strangers} | {clashes} \
             | {duplicates} | {unexplained} | {kills} | {busy} | {failures} | {seconds:.1} | {speed:.0} |"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict;
    use crate::stress::course::Deaths;
    use crate::stress::ledger::{Faults, Sums};
    use std::time::Duration;

    fn verdict(sums: Sums, faults: Faults, deaths: Deaths) -> Verdict {
        Verdict { sums, faults, deaths, wrote: Duration::from_secs(2), took: Duration::from_secs(4) }
    }

    #[test]
    fn one_row_of_figures() {
        let sums = Sums { sent: 10, acknowledged: 8, duplicates: 1, ..Sums::default() };
        let deaths = Deaths { kills: 3, ..Deaths::default() };
        let text = verdict(sums, Faults::default(), deaths).to_string();
        let row = text.lines().last();
        assert_eq!(row, Some("| 10 | 8 | 0 | 0 | 0 | 0 | 0 | 1 | 0 | 3 | 0 | 0 | 4.0 | 4 |"), "{text}");
        assert!(text.lines().all(|line| line.matches('|').count() == 15), "{text}");
    }

    #[test]
    fn a_duplicate_needs_a_death() {
        let check = |duplicates, unexplained, expect: bool| {
            let sums = Sums { duplicates, unexplained, ..Sums::default() };
            let outcome = verdict(sums, Faults::default(), Deaths::default()).judge(64, "");
            assert_eq!(outcome.is_ok(), expect, "{duplicates} {unexplained}");
        };
        check(1, 0, true);
        check(1, 1, false);
    }

    #[test]
    fn sixty_four_are_never_told_to_try_again() {
        let deaths = Deaths { busy: 1, ..Deaths::default() };
        let verdict = verdict(Sums::default(), Faults::default(), deaths);
        assert!(verdict.judge(64, "").is_err() && verdict.judge(1000, "").is_ok());
    }

    #[test]
    fn everything_wrong_is_named_and_exits_1() {
        let faults = Faults { torn: 2, ..Faults::default() };
        let sums = Sums { lost: 1, ..Sums::default() };
        let deaths = Deaths { failures: 1, ..Deaths::default() };
        let failure = verdict(sums, faults, deaths).judge(64, "ringer: oh").expect_err("a lot is wrong");
        assert_eq!(failure.code(), 1);
        assert_eq!(failure.to_string(), "1 lost, 2 torn, 1 processes failed by themselves\nringer: oh");
    }
}
