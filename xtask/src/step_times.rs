use std::fmt;
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// The duration of each step, printed after the last one.
#[derive(Default)]
pub(crate) struct StepTimes {
    rows: Vec<Row>,
}

struct Row {
    name: &'static str,
    took: Duration,
    failed: bool,
}

impl StepTimes {
    pub(crate) fn time(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let start = Instant::now();
        let outcome = work();
        self.rows.push(Row { name, took: start.elapsed(), failed: outcome.is_err() });
        outcome
    }

    /// Runs `work` and prints the table, even if it failed.
    pub(crate) fn around(work: impl FnOnce(&mut Self) -> Result<(), Failure>) -> Result<(), Failure> {
        let mut times = Self::default();
        let outcome = work(&mut times);
        // If nothing ran because a part is missing, only the reason is printed.
        if !times.rows.is_empty() {
            eprint!("\n{times}");
        }
        outcome
    }
}

impl fmt::Display for StepTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Row { name, took, failed } in &self.rows {
            let outcome = if *failed { "  failed" } else { "" };
            writeln!(f, "{name:<12}{:>8.1} s{outcome}", took.as_secs_f64())?;
        }
        let total: Duration = self.rows.iter().map(|row| row.took).sum();
        writeln!(f, "{:<12}{:>8.1} s", "total", total.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::{Row, StepTimes};
    use std::time::Duration;

    #[test]
    fn names_the_step_that_failed() {
        let row = |name, millis, failed| Row { name, took: Duration::from_millis(millis), failed };
        let times = StepTimes { rows: vec![row("fmt", 800, false), row("clippy", 61_300, true)] };
        assert_eq!(
            times.to_string(),
            "fmt              0.8 s\nclippy          61.3 s  failed\ntotal           62.1 s\n"
        );
    }
}
