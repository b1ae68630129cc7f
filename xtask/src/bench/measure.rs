use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::environment::failed;
use crate::failure::Failure;

/// A command to measure, and its name in the table.
pub(crate) struct Contender {
    name: String,
    command: Command,
    preparation: Option<Preparation>,
    input: Option<PathBuf>,
}

/// Runs before each measurement, outside the measured time.
type Preparation = Box<dyn FnMut() -> Result<(), Failure>>;

impl Contender {
    /// Discards the command's streams, because the cost of a terminal does not count. Removes cargo's `LD_LIBRARY_PATH`, with
    /// which the loader would search cargo's folders first for every library.
    pub(crate) fn new(name: &str, mut command: Command) -> Self {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .env_remove("LD_LIBRARY_PATH");
        Self { name: name.to_owned(), command, preparation: None, input: None }
    }

    /// Uses this file as standard input, from the beginning in each run.
    pub(crate) fn reading(mut self, input: &Path) -> Self {
        self.input = Some(input.to_owned());
        self
    }

    pub(crate) fn after(mut self, preparation: impl FnMut() -> Result<(), Failure> + 'static) -> Self {
        self.preparation = Some(Box::new(preparation));
        self
    }

    /// Returns the wall time from before the spawn to after the wait, as a caller experiences it.
    fn run(&mut self) -> Result<Duration, Failure> {
        if let Some(prepare) = &mut self.preparation {
            prepare()?;
        }
        if let Some(path) = &self.input {
            self.command.stdin(File::open(path).map_err(|error| failed(path, &error))?);
        }
        let start = Instant::now();
        let outcome = self.command.status();
        let took = start.elapsed();
        let status = outcome.map_err(|error| Failure::io(&self.name, &error))?;
        // A failed run would measure something else.
        if status.success() {
            Ok(took)
        } else {
            Err(Failure::complaints(format!("{} failed while it was measured: {status}", self.name)))
        }
    }
}

/// How often each contender runs.
#[derive(Clone, Copy)]
pub(crate) struct Rounds {
    /// Runs that are not counted; they warm up page cache, branch predictors and clock speed.
    pub(crate) warm_ups: usize,
    pub(crate) measured: usize,
    /// A pause before each run, so that work that the last one caused in other processes can finish.
    pub(crate) pause: Duration,
}

/// The times of one contender, shortest first; never empty.
pub(crate) struct Samples {
    name: String,
    sorted: Vec<Duration>,
}

impl Samples {
    pub(crate) fn new(name: String, mut durations: Vec<Duration>) -> Self {
        durations.sort_unstable();
        Self { name, sorted: durations }
    }

    /// Returns the nearest-rank percentile: a measured time, never an interpolated one. Zero without samples.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.sorted.len() * percent).div_ceil(100);
        self.sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }
}

/// Interleaves the contenders (ABAB…, each round starting with the next one), so that disturbances of the machine affect all
/// of them alike.
pub(crate) fn interleave(contenders: Vec<Contender>, rounds: Rounds) -> Result<Vec<Samples>, Failure> {
    let mut entries: Vec<(Contender, Vec<Duration>)> =
        contenders.into_iter().map(|contender| (contender, Vec::with_capacity(rounds.measured))).collect();
    for round in 0..rounds.warm_ups + rounds.measured {
        for place in order(round, entries.len()) {
            let (contender, durations) = &mut entries[place];
            thread::sleep(rounds.pause);
            let took = contender.run()?;
            if round >= rounds.warm_ups {
                durations.push(took);
            }
        }
    }
    Ok(entries.into_iter().map(|(contender, durations)| Samples::new(contender.name, durations)).collect())
}

pub(crate) fn order(round: usize, contenders: usize) -> impl Iterator<Item = usize> {
    (0..contenders).map(move |place| (place + round) % contenders)
}

/// Returns a Markdown table with one row per contender. Ratios are relative to the last one, the baseline.
pub(crate) fn table(title: &str, samples: &[Samples]) -> String {
    let mut text =
        format!("| {title} | p50 | p90 | p99 | p50 ratio | p99 ratio |\n|---|---:|---:|---:|---:|---:|\n");
    let Some(baseline) = samples.last() else { return text };
    for sample in samples {
        let [p50, p90, p99] = [50, 90, 99].map(|percent| milliseconds(sample.percentile(percent)));
        let [of_p50, of_p99] = [50, 99].map(|percent| {
            sample.percentile(percent).as_secs_f64() / baseline.percentile(percent).as_secs_f64()
        });
        // Writing into a String cannot fail.
        let _ = writeln!(text, "| {} | {p50} | {p90} | {p99} | {of_p50:.2} × | {of_p99:.2} × |", sample.name);
    }
    text
}

fn milliseconds(duration: Duration) -> String {
    format!("{:.3} ms", duration.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::{Contender, Rounds, Samples, interleave, order, table};
    use std::process::Command;
    use std::time::Duration;

    fn samples(name: &str, micros: impl IntoIterator<Item = u64>) -> Samples {
        Samples::new(name.to_owned(), micros.into_iter().map(Duration::from_micros).collect())
    }

    #[test]
    fn percentiles_are_measured_times() {
        fn check(micros: &[u64], percent: usize, expect: u64) {
            let found = samples("", micros.iter().copied()).percentile(percent);
            assert_eq!(found, Duration::from_micros(expect), "p{percent} of {micros:?}");
        }
        let hundred: Vec<u64> = (1..=100).rev().collect();
        check(&hundred, 50, 50);
        check(&hundred, 90, 90);
        check(&hundred, 99, 99);
        check(&hundred, 100, 100);
        check(&[3, 1, 2], 50, 2);
        check(&[7], 99, 7);
        check(&[], 50, 0);
    }

    #[test]
    fn everybody_leads_in_turn() {
        fn check(round: usize, contenders: usize, expect: &[usize]) {
            assert_eq!(order(round, contenders).collect::<Vec<_>>(), expect, "round {round}");
        }
        check(0, 2, &[0, 1]);
        check(1, 2, &[1, 0]);
        check(2, 2, &[0, 1]);
        check(1, 3, &[1, 2, 0]);
        check(5, 0, &[]);
    }

    #[test]
    fn the_last_row_is_the_baseline() {
        let text = table("start", &[samples("ringer", [1500]), samples("empty", [1000])]);
        assert_eq!(
            text,
            "| start | p50 | p90 | p99 | p50 ratio | p99 ratio |\n\
             |---|---:|---:|---:|---:|---:|\n\
             | ringer | 1.500 ms | 1.500 ms | 1.500 ms | 1.50 × | 1.50 × |\n\
             | empty | 1.000 ms | 1.000 ms | 1.000 ms | 1.00 × | 1.00 × |\n"
        );
    }

    #[test]
    fn warm_ups_do_not_count() {
        let contenders =
            ["a", "b"].map(|name| Contender::new(name, Command::new("true"))).into_iter().collect();
        let found = interleave(contenders, Rounds { warm_ups: 2, measured: 3, pause: Duration::ZERO })
            .expect("true succeeds");
        let counts: Vec<_> =
            found.iter().map(|samples| (samples.name.as_str(), samples.sorted.len())).collect();
        assert_eq!(counts, [("a", 3), ("b", 3)]);
    }

    #[test]
    fn a_program_that_fails_is_not_measured() {
        let contenders = vec![Contender::new("false", Command::new("false"))];
        assert!(interleave(contenders, Rounds { warm_ups: 0, measured: 1, pause: Duration::ZERO }).is_err());
    }
}
