//! Events for subscribers: numbered, and kept for a while. The hub never waits for a subscriber.

use std::collections::VecDeque;
use std::sync::Arc;

use ringer_ipc::json_line;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;

/// The most events that are kept for replay. Beyond that the oldest is dropped, and a subscriber that asks for it is told of the
/// gap.
const MAX_KEPT: usize = 4096;
/// The most events that wait for one subscriber. One that does not keep up is disconnected.
pub(crate) const MAX_WAITING: usize = 1024;
/// The most subscribers: as many as connections.
pub(crate) const MAX_SUBSCRIBERS: usize = 256;

/// The JSON line of an event.
#[derive(Debug, Serialize)]
struct EventLine<'a> {
    /// The sequence number, increasing by one.
    seq: u64,
    /// The name: `notification.created`, `badge`, …
    event: &'static str,
    /// Milliseconds since 1970.
    unix_ms: i64,
    data: &'a Value,
}

/// An event kept for replay.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HubEvent {
    seq: u64,
    event: &'static str,
    /// The surface of the event, if it has one.
    surface: Option<Box<str>>,
    /// The line to send. A JSON value would take five times its memory.
    line: Box<[u8]>,
}

impl HubEvent {
    /// Returns the line to send, with its newline.
    pub(crate) fn line(&self) -> &[u8] {
        &self.line
    }
}

/// Selects the events of a subscriber.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct EventFilter {
    /// Replay events after this number.
    pub(crate) after_seq: Option<u64>,
    /// Only events whose names start with one of these prefixes; empty for all.
    pub(crate) names: Vec<String>,
    /// Only events about this surface.
    pub(crate) surface_id: Option<String>,
}

impl EventFilter {
    fn takes(&self, event: &HubEvent) -> bool {
        let is_named = |name: &String| event.event.starts_with(name.as_str());
        let is_there = |wanted: &String| event.surface.as_deref() == Some(wanted.as_str());
        (self.names.is_empty() || self.names.iter().any(is_named))
            && self.surface_id.as_ref().is_none_or(is_there)
    }
}

/// The start of a subscription.
#[derive(Debug)]
pub(crate) struct Subscription {
    /// The missed events, in order.
    pub(crate) replay: Vec<Arc<HubEvent>>,
    /// True if events are missing: the subscriber asked for events that are no longer kept, or used the numbers of another hub.
    pub(crate) gap: bool,
    /// The number of the last event so far.
    pub(crate) last_seq: u64,
    /// New events. Closed when the subscriber is disconnected.
    pub(crate) receiver: mpsc::Receiver<Arc<HubEvent>>,
}

/// The events of one hub.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    kept: VecDeque<Arc<HubEvent>>,
    last_seq: u64,
    subscribers: Vec<(EventFilter, mpsc::Sender<Arc<HubEvent>>)>,
}

impl EventLog {
    /// Adds an event. Never waits: a subscriber that does not keep up is disconnected.
    pub(crate) fn add(&mut self, unix_ms: i64, event: &'static str, data: &Value) {
        self.last_seq += 1;
        let line = json_line(&EventLine { seq: self.last_seq, event, unix_ms, data });
        let surface = data["surface"].as_str().or_else(|| data["place"]["surface"].as_str()).map(Into::into);
        let event = Arc::new(HubEvent { seq: self.last_seq, event, surface, line: line.into() });
        self.subscribers.retain(|(filter, sender)| {
            !filter.takes(&event) && !sender.is_closed() || sender.try_send(Arc::clone(&event)).is_ok()
        });
        if self.kept.len() == MAX_KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(event);
    }

    /// Adds a subscriber. Returns `None` if there are too many.
    pub(crate) fn subscribe(&mut self, filter: EventFilter) -> Option<Subscription> {
        self.subscribers.retain(|(_, sender)| !sender.is_closed());
        if self.subscribers.len() >= MAX_SUBSCRIBERS {
            return None;
        }
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let after = filter.after_seq.unwrap_or(self.last_seq);
        let first = self.kept.front().map_or(self.last_seq + 1, |event| event.seq);
        let gap = after > self.last_seq || after + 1 < first;
        let replay = self.kept.iter().filter(|event| event.seq > after || after > self.last_seq);
        let replay = replay.filter(|event| filter.takes(event)).cloned().collect();
        self.subscribers.push((filter, sender));
        Some(Subscription { replay, gap, last_seq: self.last_seq, receiver })
    }

    /// Returns the number of subscribers.
    pub(crate) fn followers(&mut self) -> usize {
        self.subscribers.retain(|(_, sender)| !sender.is_closed());
        self.subscribers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(events: u64) -> EventLog {
        let mut log = EventLog::default();
        for number in 0..events {
            log.add(0, if number % 2 == 0 { "badge" } else { "ring" }, &Value::from(number));
        }
        log
    }

    fn replayed(log: &mut EventLog, after: Option<u64>, names: &[&str]) -> (Vec<u64>, bool) {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let subscription = log.subscribe(EventFilter { after_seq: after, names, surface_id: None }).unwrap();
        (subscription.replay.iter().map(|event| event.seq).collect(), subscription.gap)
    }

    #[test]
    fn what_was_missed_is_replayed_and_a_gap_is_told() {
        let mut log = log(5);
        assert_eq!(replayed(&mut log, None, &[]), (vec![], false), "from now on");
        assert_eq!(replayed(&mut log, Some(0), &[]), (vec![1, 2, 3, 4, 5], false));
        assert_eq!(replayed(&mut log, Some(3), &["ring"]), (vec![4], false));
        assert_eq!(replayed(&mut log, Some(900), &[]), (vec![1, 2, 3, 4, 5], true), "another hub's numbers");
        let mut many = self::log(5000);
        assert!(replayed(&mut many, Some(1), &[]).1, "the oldest are gone");
    }

    #[test]
    fn a_surface_is_followed_whatever_happens_there() {
        let mut log = EventLog::default();
        log.add(0, "agent", &serde_json::json!({ "surface": "a" }));
        log.add(0, "ring", &serde_json::json!({ "place": { "workspace": "w", "surface": "a" } }));
        log.add(0, "ring", &serde_json::json!({ "place": { "workspace": "w", "surface": "b" } }));
        log.add(0, "toast", &serde_json::json!({ "text": "a" }));
        let seen = |log: &mut EventLog, names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            let filter = EventFilter { after_seq: Some(0), names, surface_id: Some("a".to_owned()) };
            let replay = log.subscribe(filter).unwrap().replay;
            replay.iter().map(|event| event.seq).collect::<Vec<_>>()
        };
        assert_eq!(seen(&mut log, &[]), [1, 2]);
        assert_eq!(seen(&mut log, &["ring"]), [2]);
    }

    #[test]
    fn who_does_not_keep_up_is_cut_off() {
        let mut log = EventLog::default();
        let mut slow = log.subscribe(EventFilter::default()).unwrap();
        for _ in 0..=MAX_WAITING {
            log.add(0, "badge", &Value::Null);
        }
        assert_eq!(log.followers(), 0);
        let mut got = 0;
        while slow.receiver.try_recv().is_ok() {
            got += 1;
        }
        assert_eq!(got, MAX_WAITING);
    }

    #[test]
    fn there_is_a_limit_to_followers_and_the_gone_do_not_count() {
        let mut log = EventLog::default();
        let held: Vec<Subscription> =
            (0..MAX_SUBSCRIBERS).map(|_| log.subscribe(EventFilter::default()).unwrap()).collect();
        assert!(log.subscribe(EventFilter::default()).is_none());
        drop(held);
        assert!(log.subscribe(EventFilter::default()).is_some());
    }
}
