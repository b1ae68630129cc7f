use std::fmt;
use std::time::Duration;

use super::delivery_record::{DeliveryRecord, Faults, Totals};
use super::shared_state::ProcessFailures;
use crate::failure::Failure;

/// Up to this many concurrent writers must never fail with "try again": they wait up to 5 s for the write lock. With more,
/// some may.
const NEVER_BUSY: u32 = 64;

/// The results of a run.
pub(super) struct StressResults {
    totals: Totals,
    faults: Faults,
    process_failures: ProcessFailures,
    /// The time from the first writer's start to the last one's end.
    wrote: Duration,
    took: Duration,
}

impl StressResults {
    pub(super) fn of(
        record: &DeliveryRecord,
        process_failures: ProcessFailures,
        wrote: Duration,
        took: Duration,
    ) -> Self {
        let Faults { torn, never_sent, clashes } = record.faults;
        let faults = Faults { torn, never_sent, clashes: clashes + record.ids_beyond_messages() };
        Self { totals: record.totals(), faults, process_failures, wrote, took }
    }

    /// Fails if there is a problem that no kill explains.
    pub(super) fn check(&self, writers: u32, complaints: &str) -> Result<(), Failure> {
        let busy = if writers <= NEVER_BUSY { self.process_failures.busy } else { 0 };
        let problems = [
            (self.totals.lost, "lost"),
            (self.faults.torn, "torn"),
            (self.faults.never_sent, "delivered but never sent"),
            (self.faults.clashes, "with an id that is not their own"),
            (self.totals.unexplained, "delivered twice by listeners that finished"),
            (busy, "processes did not get their turn"),
            (self.process_failures.failures, "processes failed by themselves"),
        ];
        Failure::unless_zero(&problems, complaints)
    }
}

impl fmt::Display for StressResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Totals { sent, acknowledged, lost, duplicates, unexplained, unacknowledged_but_there } =
            self.totals;
        let Faults { torn, never_sent, clashes } = self.faults;
        let ProcessFailures { kills, busy, failures } = self.process_failures;
        let seconds = self.took.as_secs_f64();
        // The count is far below 2^52, so the conversion is exact.
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
            "| {sent} | {acknowledged} | {unacknowledged_but_there} | {lost} | {torn} | {never_sent} | {clashes} \
             | {duplicates} | {unexplained} | {kills} | {busy} | {failures} | {seconds:.1} | {speed:.0} |"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::StressResults;
    use crate::stress::delivery_record::{Faults, Totals};
    use crate::stress::shared_state::ProcessFailures;
    use std::time::Duration;

    fn results(totals: Totals, faults: Faults, process_failures: ProcessFailures) -> StressResults {
        StressResults {
            totals,
            faults,
            process_failures,
            wrote: Duration::from_secs(2),
            took: Duration::from_secs(4),
        }
    }

    #[test]
    fn one_row_of_figures() {
        let totals = Totals { sent: 10, acknowledged: 8, duplicates: 1, ..Totals::default() };
        let process_failures = ProcessFailures { kills: 3, ..ProcessFailures::default() };
        let text = results(totals, Faults::default(), process_failures).to_string();
        let row = text.lines().last();
        assert_eq!(row, Some("| 10 | 8 | 0 | 0 | 0 | 0 | 0 | 1 | 0 | 3 | 0 | 0 | 4.0 | 4 |"), "{text}");
        assert!(text.lines().all(|line| line.matches('|').count() == 15), "{text}");
    }

    #[test]
    fn a_duplicate_needs_a_death() {
        let check = |duplicates, unexplained, expect: bool| {
            let totals = Totals { duplicates, unexplained, ..Totals::default() };
            let outcome = results(totals, Faults::default(), ProcessFailures::default()).check(64, "");
            assert_eq!(outcome.is_ok(), expect, "{duplicates} {unexplained}");
        };
        check(1, 0, true);
        check(1, 1, false);
    }

    #[test]
    fn sixty_four_are_never_told_to_try_again() {
        let process_failures = ProcessFailures { busy: 1, ..ProcessFailures::default() };
        let results = results(Totals::default(), Faults::default(), process_failures);
        assert!(results.check(64, "").is_err() && results.check(1000, "").is_ok());
    }

    #[test]
    fn everything_wrong_is_named_and_exits_1() {
        let faults = Faults { torn: 2, ..Faults::default() };
        let totals = Totals { lost: 1, ..Totals::default() };
        let process_failures = ProcessFailures { failures: 1, ..ProcessFailures::default() };
        let failure =
            results(totals, faults, process_failures).check(64, "ringer: oh").expect_err("a lot is wrong");
        assert_eq!(failure.code(), 1);
        assert_eq!(failure.to_string(), "1 lost, 2 torn, 1 processes failed by themselves\nringer: oh");
    }
}
