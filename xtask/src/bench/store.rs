use std::env::consts::EXE_SUFFIX;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Options;
use crate::binary;
use crate::failure::Failure;
use crate::parts::{Part, ensure_these};
use crate::step::Step;
use crate::step_times::StepTimes;

/// The numbers of notifications in the store.
const STORED: [u64; 4] = [10, 1_000, 100_000, 1_000_000];

/// The operations and their counts. Operations that change the store run less often, so that its size stays about the same.
const OPERATIONS: [(&str, u64); 4] = [("add", 1_000), ("read", 10_000), ("clear", 1_000), ("query", 10_000)];

/// The most that an operation in the largest store may cost, relative to the smallest.
const BAR: f64 = 1.2;

const VALGRIND: Part = Part::new("valgrind", "valgrind", "so the instructions of the store are counted");

/// The cost of an operation on the store in instructions, which is the same on every machine: a run with the operations
/// minus a run without them. Never fails; rows above the bar are marked.
pub(crate) fn run(options: &Options, times: &mut StepTimes) -> Result<(), Failure> {
    ensure_these(&[VALGRIND], options.missing, times)?;
    let program = build(times)?;
    times.time("store", || {
        let mut costs = Vec::new();
        for stored in STORED {
            let filled = instructions(&program, stored, "query", 0)?;
            let cost = |(operation, count): (&str, u64)| {
                Ok(per_operation(filled, instructions(&program, stored, operation, count)?, count))
            };
            costs.push(OPERATIONS.into_iter().map(cost).collect::<Result<Vec<u64>, Failure>>()?);
        }
        println!("{}", table(&costs));
        Ok(())
    })
}

fn build(times: &mut StepTimes) -> Result<PathBuf, Failure> {
    Step::cargo("build", &["build", "--release", "-p", "ringer-core", "--example", "store_cost"])
        .run(times)?;
    Ok(binary::artifacts()?.join("release").join("examples").join(format!("store_cost{EXE_SUFFIX}")))
}

/// Counts instructions with cachegrind without cache simulation: as exact as callgrind, in half the time.
fn instructions(program: &Path, stored: u64, operation: &str, count: u64) -> Result<u64, Failure> {
    let output = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(program)
        .args([&stored.to_string(), operation, &count.to_string()])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Failure::io("valgrind", &error))?;
    let report = String::from_utf8_lossy(&output.stderr);
    counted(&report).filter(|_| output.status.success()).ok_or_else(|| {
        Failure::complaints(format!("valgrind counted nothing for {operation} at {stored}: {report}"))
    })
}

/// Parses the number in `==1== I   refs:      912,146,686`.
fn counted(report: &str) -> Option<u64> {
    let line = report.lines().find(|line| line.contains("I ") && line.contains("refs:"))?;
    line.rsplit(' ').next()?.replace(',', "").parse().ok()
}

fn per_operation(filled: u64, with: u64, count: u64) -> u64 {
    with.saturating_sub(filled) / count.max(1)
}

/// Returns a Markdown table with one row per operation: a column for each size, and the ratio of the largest to the
/// smallest store.
fn table(costs: &[Vec<u64>]) -> String {
    let mut text = "| instructions, with so many stored |".to_owned();
    for stored in STORED {
        // Writing into a String cannot fail.
        let _ = write!(text, " {stored} |");
    }
    text += " 1,000,000 / 10 |\n|---|---:|---:|---:|---:|---:|\n";
    for (row, (operation, _)) in OPERATIONS.iter().enumerate() {
        let name = if *operation == "clear" { "add and clear" } else { operation };
        let _ = write!(text, "| {name} |");
        let row: Vec<u64> = costs.iter().filter_map(|of_size| of_size.get(row).copied()).collect();
        for cost in &row {
            let _ = write!(text, " {cost} |");
        }
        let ratio = ratio(&row);
        let verdict = if ratio > BAR { format!(", above the bar of {BAR}") } else { String::new() };
        let _ = writeln!(text, " {ratio:.2} ×{verdict} |");
    }
    text
}

/// Returns the cost in the largest store relative to the smallest.
#[expect(clippy::cast_precision_loss, reason = "two digits of a ratio are shown")]
fn ratio(costs: &[u64]) -> f64 {
    match (costs.first(), costs.last()) {
        (Some(smallest), Some(largest)) => *largest as f64 / (*smallest).max(1) as f64,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::{counted, per_operation, table};

    #[test]
    fn the_count_is_read_off_the_report() {
        fn check(report: &str, expect: Option<u64>) {
            assert_eq!(counted(report), expect, "{report}");
        }
        check("==1== Cachegrind\n==1== I   refs:      912,146,686\n", Some(912_146_686));
        check("==1== I refs:        7\n", Some(7));
        check("==1== valgrind: not found\n", None);
        check("", None);
    }

    #[test]
    fn only_the_operations_remain() {
        assert_eq!(per_operation(1_000, 51_000, 100), 500);
        assert_eq!(per_operation(1_000, 900, 100), 0);
        assert_eq!(per_operation(0, 5, 0), 5);
    }

    #[test]
    fn what_is_above_the_bar_says_so() {
        let text = table(&[vec![100, 100, 100, 100], vec![0; 4], vec![0; 4], vec![120, 121, 90, 100]]);
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(rows[0], "| add | 100 | 0 | 0 | 120 | 1.20 × |");
        assert_eq!(rows[1], "| read | 100 | 0 | 0 | 121 | 1.21 ×, above the bar of 1.2 |");
        assert_eq!(rows[2], "| add and clear | 100 | 0 | 0 | 90 | 0.90 × |");
    }
}
