//! Requests to the hub, and the ones that it has not answered.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use ringer_journal::IdSource;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most one-time reports that are queued for the hub: a new server reads at once what all programs have written meanwhile.
/// Beyond that, the oldest are dropped, because the newest one determines the ring.
pub(super) const MAX_WAITING: usize = 8192;
/// The methods of one-time reports. All other requests describe lasting state, which the loop sends again to a new hub.
const SAID_ONCE: [&str; 2] = ["surface.heard", "surface.unread"];
/// The parameter with the id of a report.
const REPORT: &str = "report";
/// How long a connected hub may take to answer, before a report is saved for the next server.
const ANSWERS_SOON: Duration = Duration::from_millis(20);
/// The most bytes of reports that are saved.
const MAX_KEPT: usize = 256 * 1024;

/// A request to the hub. It is dropped once the hub has answered it.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) method: &'static str,
    pub(super) params: Value,
    at: Instant,
    /// The size of a one-time report in bytes.
    size: usize,
}

impl Said {
    pub(super) fn new(method: &'static str, params: Value, now: Instant) -> Self {
        let mut said = Self { method, params, at: now, size: 0 };
        if let Some(params) = said.params.as_object_mut().filter(|_| method == "surface.heard") {
            // With the id, the hub recognizes a report that the next server sends again.
            params.entry(REPORT).or_insert_with(|| IdSource::now().message_id().as_str().into());
        }
        if said.is_said_once() {
            said.size = said.params.to_string().len();
        }
        said
    }

    pub(super) fn is_said_once(&self) -> bool {
        SAID_ONCE.contains(&self.method)
    }
}

/// When a report must be saved for the next server.
pub(super) fn kept_from(has_hub: bool, said: Instant) -> Instant {
    if has_hub { said + ANSWERS_SOON } else { said }
}

/// Keeps a one-time report. Lasting state is sent again by the loop.
pub(super) fn keep(said: Arc<Said>, unsaid: &mut VecDeque<Arc<Said>>) {
    if said.is_said_once() {
        unsaid.push_back(said);
        drop_oldest(unsaid);
    }
}

/// Drops the oldest reports beyond [`MAX_WAITING`].
pub(super) fn drop_oldest(unsaid: &mut VecDeque<Arc<Said>>) {
    let more = unsaid.len().saturating_sub(MAX_WAITING);
    unsaid.drain(..more);
}

/// A one-time report that is saved for the next server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptReport {
    method: String,
    params: Value,
}

impl KeptReport {
    /// The method and the parameters, or `None` if it is not a one-time report.
    pub(crate) fn request(&self) -> Option<(&'static str, Value)> {
        let method = SAID_ONCE.into_iter().find(|method| *method == self.method)?;
        Some((method, self.params.clone()))
    }

    /// Returns true if it has this method and these parameters, apart from the id.
    pub(crate) fn is(&self, method: &str, params: &Value) -> bool {
        let mut own = self.params.clone();
        if let Some(own) = own.as_object_mut() {
            own.remove(REPORT);
        }
        self.method == method && own == *params
    }
}

/// The one-time reports that may be unanswered. A report is freed when it is answered, or when its queue overflows.
#[derive(Debug, Default)]
pub(super) struct Unanswered {
    said: VecDeque<Weak<Said>>,
}

impl Unanswered {
    pub(super) fn add(&mut self, said: &Arc<Said>) {
        let is_answered = |said: &Weak<Said>| said.strong_count() == 0;
        while self.said.front().is_some_and(is_answered) {
            self.said.pop_front();
        }
        // The first report may still be queued while later ones were dropped.
        if self.said.len() >= 4 * MAX_WAITING {
            self.said.retain(|said| !is_answered(said));
        }
        self.said.push_back(Arc::downgrade(said));
    }

    /// The reports to save for the next server, oldest first: the ones that a connected hub has not answered in time, or all
    /// without a hub.
    pub(super) fn kept(&self, has_hub: bool, now: Instant) -> Vec<KeptReport> {
        let is_late = |said: &Arc<Said>| kept_from(has_hub, said.at) <= now;
        let mut room = MAX_KEPT;
        let mut fits = |said: &Arc<Said>| {
            let left = room.checked_sub(said.size);
            room = left.unwrap_or(0);
            left.is_some()
        };
        let waiting = self.said.iter().filter_map(Weak::upgrade);
        waiting
            .filter(is_late)
            .take_while(&mut fits)
            .map(|said| KeptReport { method: said.method.to_owned(), params: said.params.clone() })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_answered_is_kept_in_its_order_as_far_as_there_is_room() {
        let (mut unanswered, now) = (Unanswered::default(), Instant::now());
        let say = |unanswered: &mut Unanswered, body: String| {
            let said = Arc::new(Said::new("surface.heard", json!({ "body": body }), now));
            unanswered.add(&said);
            said
        };
        let bodies = |unanswered: &Unanswered, has_hub: bool, at: Instant| -> Vec<String> {
            let kept = unanswered.kept(has_hub, at);
            kept.iter().map(|kept| kept.params["body"].as_str().unwrap().chars().take(3).collect()).collect()
        };
        let first = say(&mut unanswered, "one".to_owned());
        let second = say(&mut unanswered, "two".to_owned());
        assert!(bodies(&unanswered, true, now).is_empty(), "a hub may take a moment");
        assert_eq!(bodies(&unanswered, true, now + ANSWERS_SOON), ["one", "two"]);
        assert_eq!(bodies(&unanswered, false, now), ["one", "two"]);
        drop(first);
        assert_eq!(bodies(&unanswered, false, now), ["two"]);
        let _long = say(&mut unanswered, "x".repeat(MAX_KEPT));
        assert_eq!(bodies(&unanswered, false, now), ["two"]);
        let kept = &unanswered.kept(false, now)[0];
        assert!(kept.is("surface.heard", &json!({ "body": "two" })) && !kept.is("surface.heard", &json!({})));
        let (method, params) = kept.request().unwrap();
        let again = Said::new(method, params, now);
        assert!(again.params[REPORT].is_string());
        assert_eq!(again.params, second.params, "it keeps its id");
        let other = KeptReport { method: "hub.stop".to_owned(), params: Value::Null };
        assert_eq!(other.request(), None);
    }

    #[test]
    fn what_found_no_room_takes_none() {
        let (mut unanswered, now) = (Unanswered::default(), Instant::now());
        let said = || Arc::new(Said::new("surface.heard", json!({ "bell": true }), now));
        let first = said();
        unanswered.add(&first);
        for _ in 0..10 * MAX_WAITING {
            unanswered.add(&said());
        }
        assert!(unanswered.said.len() <= 4 * MAX_WAITING);
        assert_eq!(unanswered.kept(false, now).len(), 1);
    }
}
