//! Reports, which are kept until the hub has answered them.

use std::collections::VecDeque;
use std::time::Instant;

use ringer_journal::IdSource;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most reports that are kept: a new server of panes reads at once what all programs have written meanwhile. Beyond that, the
/// oldest are dropped, because the newest one determines the ring.
pub(super) const MAX_REPORTS: usize = 8192;
/// The most bytes of reports that are saved for the next process of a host.
const MAX_SAVED: usize = 256 * 1024;
/// The parameter with the id of a report.
const REPORT: &str = "report";

/// The methods of reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReportMethod {
    /// A program wrote a notification, or what its agent does, to its terminal.
    #[serde(rename = "surface.heard")]
    Terminal,
    /// Something happened in a surface, or it was unread in an earlier session.
    #[serde(rename = "surface.unread")]
    Unread,
}

impl ReportMethod {
    /// Returns the method of the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Terminal => "surface.heard",
            Self::Unread => "surface.unread",
        }
    }
}

/// A report in a form that can be saved for the next process of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptReport {
    method: ReportMethod,
    params: Value,
}

impl KeptReport {
    /// Returns true if it has this method and these parameters, apart from the id.
    pub fn is(&self, method: ReportMethod, params: &Value) -> bool {
        let mut own = self.params.clone();
        if let Some(own) = own.as_object_mut() {
            own.remove(REPORT);
        }
        self.method == method && own == *params
    }

    pub(super) fn into_report(self, now: Instant) -> HostReport {
        HostReport::new(self.method, self.params, now)
    }
}

/// A report of a host.
#[derive(Debug)]
pub(super) struct HostReport {
    pub(super) method: ReportMethod,
    pub(super) params: Value,
    pub(super) reported: Instant,
    size: usize,
    /// The number in the order of the reports.
    number: u64,
    /// It was sent on this connection and not answered.
    is_sent: bool,
}

impl HostReport {
    /// Gives the report an id if it has none. With it, the hub recognises a report that is sent again.
    pub(super) fn new(method: ReportMethod, mut params: Value, reported: Instant) -> Self {
        if let Some(params) = params.as_object_mut() {
            params.entry(REPORT).or_insert_with(|| IdSource::now().message_id().as_str().into());
        }
        let size = params.to_string().len();
        Self { method, params, reported, size, number: 0, is_sent: false }
    }

    fn names(&self, surface: &str) -> bool {
        self.params["surface_id"] == surface
    }
}

/// The reports that the hub has not answered, oldest first.
#[derive(Debug, Default)]
pub(super) struct Reports {
    reports: VecDeque<HostReport>,
    last_number: u64,
}

impl Reports {
    pub(super) fn is_empty(&self) -> bool {
        self.reports.is_empty()
    }

    /// Adds a report. At the limit, the oldest one is dropped.
    pub(super) fn add(&mut self, report: HostReport) {
        if self.reports.len() >= MAX_REPORTS {
            self.reports.pop_front();
        }
        self.last_number += 1;
        self.reports.push_back(HostReport { number: self.last_number, ..report });
    }

    /// Returns the next report to send, with its number.
    pub(super) fn next_unsent(&mut self) -> Option<(u64, &HostReport)> {
        let report = self.reports.iter_mut().find(|report| !report.is_sent)?;
        report.is_sent = true;
        Some((report.number, report))
    }

    pub(super) fn has_unsent_of(&self, surface: &str) -> bool {
        self.reports.iter().any(|report| !report.is_sent && report.names(surface))
    }

    /// Removes a report that was answered. Returns false if it was dropped before.
    pub(super) fn remove(&mut self, number: u64) -> bool {
        let at = self.position(number);
        at.and_then(|at| self.reports.remove(at)).is_some()
    }

    /// Schedules a report that was refused to be sent again.
    pub(super) fn resend(&mut self, number: u64) {
        if let Some(at) = self.position(number) {
            self.reports[at].is_sent = false;
        }
    }

    /// Schedules all reports to be sent again, because the connection that they were sent on is lost.
    pub(super) fn resend_all(&mut self) {
        self.reports.iter_mut().for_each(|report| report.is_sent = false);
    }

    fn position(&self, number: u64) -> Option<usize> {
        self.reports.binary_search_by_key(&number, |report| report.number).ok()
    }

    /// Returns the oldest reports that `is_wanted` accepts, up to a limit of bytes.
    pub(super) fn kept(&self, is_wanted: impl Fn(&HostReport) -> bool) -> Vec<KeptReport> {
        let mut room = MAX_SAVED;
        let mut fits = |report: &&HostReport| {
            let left = room.checked_sub(report.size);
            room = left.unwrap_or(0);
            left.is_some()
        };
        let wanted = self.reports.iter().filter(|report| is_wanted(report)).take_while(&mut fits);
        wanted.map(|report| KeptReport { method: report.method, params: report.params.clone() }).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(params: Value) -> HostReport {
        HostReport::new(ReportMethod::Terminal, params, Instant::now())
    }

    fn bodies(reports: &Reports) -> Vec<String> {
        let kept = reports.kept(|_| true).into_iter();
        kept.map(|kept| kept.params["body"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_oldest_reports_are_saved_up_to_a_size_and_keep_their_ids() {
        let mut reports = Reports::default();
        reports.add(report(json!({ "body": "one" })));
        reports.add(report(json!({ "body": "two" })));
        reports.add(report(json!({ "body": "x".repeat(MAX_SAVED) })));
        assert_eq!(bodies(&reports), ["one", "two"]);
        let kept = reports.kept(|_| true).remove(1);
        assert!(kept.is(ReportMethod::Terminal, &json!({ "body": "two" })));
        assert!(!kept.is(ReportMethod::Unread, &json!({ "body": "two" })));
        assert!(!kept.is(ReportMethod::Terminal, &json!({})));
        let text = serde_json::to_string(&kept).unwrap();
        assert!(text.starts_with(r#"{"method":"surface.heard","#), "{text}");
        let again: KeptReport = serde_json::from_str(&text).unwrap();
        assert_eq!(again.into_report(Instant::now()).params, kept.params);
        assert!(serde_json::from_str::<KeptReport>(r#"{"method":"hub.stop","params":{}}"#).is_err());
    }

    #[test]
    fn beyond_the_limit_the_oldest_report_is_dropped() {
        let mut reports = Reports::default();
        for number in 0..MAX_REPORTS + 10 {
            reports.add(report(json!({ "body": number.to_string() })));
        }
        assert_eq!(bodies(&reports)[0], "10");
        let (first, _) = reports.next_unsent().unwrap();
        assert!(!reports.remove(first - 1), "it was dropped");
        assert!(reports.remove(first));
        assert_eq!(bodies(&reports)[0], "11");
    }
}
