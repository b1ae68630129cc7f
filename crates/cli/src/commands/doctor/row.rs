//! One line of the doctor's report, and the thread that produces it.

use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use ringer_term::sanitise_line;
use serde::Serialize;

use crate::failure::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// It works, or is not wanted.
    Ok,
    /// It works in part, or something else takes its place.
    Warn,
    /// It was wanted and does not work.
    Broken,
}

impl Verdict {
    fn sign(self, unicode: bool) -> char {
        match self {
            Self::Ok if unicode => '✓',
            Self::Ok => '+',
            Self::Warn => '!',
            Self::Broken if unicode => '✗',
            Self::Broken => 'x',
        }
    }
}

/// Width of the part names; the longest that a new setup shows is `dead letters`.
const PART_WIDTH: usize = 12;

/// The result for one part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Row {
    part: String,
    pub(super) verdict: Verdict,
    what: String,
    /// A command to type, or a sentence that leads to one.
    fix: Option<String>,
    /// Not wanted; all such parts share one line.
    #[serde(skip)]
    pub(super) is_unused: bool,
}

impl Row {
    pub(crate) fn ok(part: impl Into<String>, what: impl Into<String>) -> Self {
        Self { part: part.into(), verdict: Verdict::Ok, what: what.into(), fix: None, is_unused: false }
    }

    /// A part that the person does not use. All such parts share one line.
    pub(crate) fn unused(part: impl Into<String>, what: impl Into<String>) -> Self {
        Self { is_unused: true, ..Self::ok(part, what) }
    }

    pub(super) fn part(&self) -> &str {
        &self.part
    }

    pub(crate) fn warn(part: impl Into<String>, what: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warn, ..Self::ok(part, what) }
    }

    pub(crate) fn broken(part: impl Into<String>, what: impl Into<String>) -> Self {
        Self { verdict: Verdict::Broken, ..Self::ok(part, what) }
    }

    pub(crate) fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }

    /// Formats one safe line, and a second one with the fix: the texts may come from files, programs and servers.
    pub(super) fn lines(&self, unicode: bool) -> String {
        let sign = self.verdict.sign(unicode);
        let line = sanitise_line(&format!("{sign} {:<PART_WIDTH$}  {}", self.part, self.what));
        let fix = self.fix.as_ref().map(|fix| sanitise_line(&format!("{:PART_WIDTH$}    fix: {fix}", "")));
        [line].into_iter().chain(fix).map(|line| format!("  {line}\n")).collect()
    }
}

/// A check that runs on its own thread, so that a hang does not block the other checks.
pub(super) struct Check {
    part: String,
    rows: Receiver<Vec<Row>>,
    until: Instant,
    patience: Duration,
}

impl Check {
    pub(super) fn begin(
        part: impl Into<String>,
        patience: Duration,
        look: impl FnOnce() -> Vec<Row> + Send + 'static,
    ) -> Self {
        let (sender, rows) = mpsc::sync_channel(1);
        // A thread that exceeds its timeout ends with the process. One that cannot start drops its sender.
        let _ = thread::Builder::new().spawn(move || {
            let _ = sender.send(look());
        });
        Self { part: part.into(), rows, until: Instant::now() + patience, patience }
    }

    /// Waits for the rows. Returns a row that says so if the check took too long.
    pub(super) fn rows(self) -> Vec<Row> {
        let left = self.until.saturating_duration_since(Instant::now());
        match self.rows.recv_timeout(left) {
            Ok(rows) => rows,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                vec![Row::broken(self.part, format!("no answer within {:?}", self.patience))]
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                vec![Row::broken(self.part, "the check crashed")]
            }
        }
    }
}

/// Returns the first line of a failure, without `error:`.
pub(crate) fn reason(failure: &Failure) -> String {
    let words = failure.to_string();
    let first = words.lines().next().unwrap_or_default();
    first.strip_prefix("error: ").unwrap_or(first).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_one_safe_line_and_one_for_its_fix() {
        let row = Row::warn("hook x", "says \u{1b}[2K\nhello").fix("ringer \ntrust");
        let text = row.lines(true);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("  ! hook x        says ") && lines[0].ends_with("hello"), "{text:?}");
        assert_eq!(lines[1..], ["                  fix: ringer  trust"]);
        assert!(!text.contains('\u{1b}'), "{text:?}");
        let signs = |unicode| [Row::ok("a", "b"), Row::broken("a", "b")].map(|row| row.lines(unicode));
        assert_eq!(signs(true), ["  ✓ a             b\n", "  ✗ a             b\n"]);
        assert_eq!(signs(false), ["  + a             b\n", "  x a             b\n"]);
    }

    #[test]
    fn a_check_that_hangs_or_crashes_is_reported() {
        let (never, held) = mpsc::channel::<()>();
        let hangs = Check::begin("desktop", Duration::from_millis(20), move || {
            let _ = held.recv();
            Vec::new()
        });
        assert_eq!(hangs.rows(), [Row::broken("desktop", "no answer within 20ms")]);
        drop(never);
        let works = Check::begin("hub", Duration::from_mins(1), || vec![Row::ok("hub", "runs")]);
        assert_eq!(works.rows(), [Row::ok("hub", "runs")]);
    }
}
