//! Which reports of hosts were heard: a host that was killed may say them again when it comes back.

use std::collections::{HashSet, VecDeque};

/// As many are remembered. A host keeps fewer that it may say again.
const MAX_REPORTS: usize = 4096;
/// A longer id is none.
const MAX_ID: usize = 64;

/// The ids of the reports that were heard last.
#[derive(Debug, Default)]
pub(super) struct HeardReports {
    known: HashSet<String>,
    /// The oldest first.
    order: VecDeque<String>,
}

impl HeardReports {
    /// Whether this is heard for the first time. It is known from then on.
    pub(super) fn is_new(&mut self, report: &str) -> bool {
        if report.is_empty() || report.len() > MAX_ID {
            return true;
        }
        if !self.known.insert(report.to_owned()) {
            return false;
        }
        self.order.push_back(report.to_owned());
        if self.order.len() > MAX_REPORTS
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
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
        assert_eq!((heard.known.len(), heard.order.len()), (MAX_REPORTS, MAX_REPORTS));
        let long = "x".repeat(MAX_ID + 1);
        assert!(heard.is_new(&long) && heard.is_new(&long) && heard.is_new("") && heard.is_new(""));
    }
}
