//! Which reports of hosts were heard: a host that was killed may say them again when it comes back.

use std::collections::VecDeque;

/// As many are remembered. A host keeps fewer that it may say again.
const MAX_REPORTS: usize = 4096;
/// A longer id is none.
const MAX_ID: usize = 64;

/// The ids of the reports that were heard last, the oldest first.
#[derive(Debug, Default)]
pub(super) struct HeardReports(VecDeque<String>);

impl HeardReports {
    /// Whether this is heard for the first time. It is known from then on.
    pub(super) fn is_new(&mut self, report: &str) -> bool {
        if report.is_empty() || report.len() > MAX_ID {
            return true;
        }
        // What is said again was said a moment ago.
        if self.0.iter().rev().any(|heard| heard == report) {
            return false;
        }
        if self.0.len() == MAX_REPORTS {
            self.0.pop_front();
        }
        self.0.push_back(report.to_owned());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_remembered_and_no_more() {
        let mut heard = HeardReports::default();
        assert!(heard.is_new("a") && !heard.is_new("a") && heard.is_new("b"));
        for number in 0..MAX_REPORTS {
            assert!(heard.is_new(&number.to_string()));
        }
        assert!(heard.is_new("a"), "it is too long ago");
        assert_eq!(heard.0.len(), MAX_REPORTS);
        let long = "x".repeat(MAX_ID + 1);
        assert!(heard.is_new(&long) && heard.is_new(&long) && heard.is_new("") && heard.is_new(""));
    }
}
