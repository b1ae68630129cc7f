//! The rules of a link, without I/O: what is sent next, and what follows from an answer or the end of a connection.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::dialing::Dialing;
use super::reports::{HostReport, KeptReport, Reports};

/// How long a connected hub may take to answer, before a report is saved for the next process of the host.
pub(super) const ANSWERS_SOON: Duration = Duration::from_millis(20);
/// The most surfaces in one request.
const MAX_SURFACES: usize = 500;
/// The most requests without an answer. The hub remembers more ids of reports than that.
pub(super) const MAX_UNANSWERED: usize = 256;
/// The most moments that wait until the hub reads.
const MAX_MOMENTS: usize = 64;
/// Pause after the hub refused a request because there were too many.
const RATE_PAUSE: Duration = Duration::from_secs(1);

/// The state that a host reports.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostFacts {
    /// The parameters of `surface.opened` by the id of the surface.
    pub surfaces: BTreeMap<String, Value>,
    /// The parameters of `surface.views`. `None` if the host does not know what the person looks at.
    pub views: Option<Value>,
}

/// A request to the hub.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) params: Value,
}

/// The next thing to do.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Connect. `may_start` allows starting a hub.
    Connect { may_start: bool },
    /// Send a request on the current connection.
    Send(Request),
    /// Close the connection.
    Disconnect,
    /// Begin to watch the hub's socket.
    Watch,
    /// Wait until something changes, or until a time.
    Wait(Option<Instant>),
    /// The link was closed, and there is nothing left to do.
    End,
}

/// A request without an answer. Facts that the hub refuses are sent again.
#[derive(Debug)]
enum Awaited {
    Surfaces(Vec<String>),
    Views,
    Report(u64),
    Moment,
}

/// A connection to a hub.
#[derive(Debug)]
struct Connection {
    number: u64,
    since: Instant,
    /// The facts that were sent. With a description of null, the hub may have an older one.
    sent: HostFacts,
    /// All facts were sent.
    is_up_to_date: bool,
    awaited: VecDeque<Awaited>,
    /// The hub cannot write, so it is sent no reports.
    is_unwritable: bool,
    silent_until: Option<Instant>,
}

/// Requests for the current hub, or for the one that the link is connecting to.
#[derive(Debug, Default)]
struct Moments {
    is_present: bool,
    requests: VecDeque<Request>,
}

/// The state of a link.
#[derive(Debug)]
pub(super) struct LinkState {
    facts: HostFacts,
    reports: Reports,
    moments: Moments,
    connection: Option<Connection>,
    last_number: u64,
    dialing: Dialing,
    restarts_hub: bool,
    is_detached_when_empty: bool,
    has_begun: bool,
    closing: Option<Closing>,
}

/// How far the end of the link has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    Begun,
    /// A last attempt to connect was made.
    Dialed,
    Ended,
}

impl LinkState {
    pub(super) fn new(restarts_hub: bool, is_detached_when_empty: bool) -> Self {
        Self {
            facts: HostFacts::default(),
            reports: Reports::default(),
            moments: Moments::default(),
            connection: None,
            last_number: 0,
            dialing: Dialing::default(),
            restarts_hub,
            is_detached_when_empty,
            has_begun: false,
            closing: None,
        }
    }

    pub(super) fn begin(&mut self) {
        self.has_begun = true;
    }

    pub(super) fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    pub(super) fn is_connection(&self, number: u64) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.number == number)
    }

    /// Replaces the facts. Returns true if they have changed.
    pub(super) fn set_facts(&mut self, facts: HostFacts) -> bool {
        if facts == self.facts {
            return false;
        }
        self.connection.iter_mut().for_each(|connection| connection.is_up_to_date = false);
        self.facts = facts;
        true
    }

    pub(super) fn report(&mut self, report: HostReport) {
        self.reports.add(report);
        self.dialing.report();
    }

    /// Returns when a report must be saved if it is not answered.
    pub(super) fn keep_from(&self, reported: Instant) -> Instant {
        if self.is_connected() { reported + ANSWERS_SOON } else { reported }
    }

    pub(super) fn kept_reports(&self, now: Instant) -> Vec<KeptReport> {
        self.reports.kept(|report| self.keep_from(report.reported) <= now)
    }

    pub(super) fn present(&mut self) {
        if self.is_near_hub() {
            self.moments.is_present = true;
            self.connection.iter_mut().for_each(|connection| connection.is_up_to_date = false);
        }
    }

    pub(super) fn moment(&mut self, request: Request) {
        if self.is_near_hub() {
            let requests = &mut self.moments.requests;
            if requests.len() >= MAX_MOMENTS {
                requests.pop_front();
            }
            requests.push_back(request);
        }
    }

    /// Returns true if a hub is connected, or the first attempt to connect is under way.
    fn is_near_hub(&self) -> bool {
        self.is_connected() || !(self.dialing.has_failed() || self.is_detached())
    }

    /// Returns true if the link is not to be connected.
    fn is_detached(&self) -> bool {
        let is_empty = self.facts.surfaces.is_empty() && self.reports.is_empty();
        !self.has_begun || (self.is_detached_when_empty && is_empty)
    }

    /// Begins the end: what is queued is sent, and then the link ends.
    pub(super) fn close(&mut self) {
        self.closing.get_or_insert(Closing::Begun);
    }

    pub(super) fn end(&mut self) {
        (self.closing, self.connection) = (Some(Closing::Ended), None);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.closing == Some(Closing::Ended)
    }

    /// Returns the number of the new connection.
    pub(super) fn connected(&mut self, now: Instant) -> u64 {
        self.last_number += 1;
        self.connection = Some(Connection {
            number: self.last_number,
            since: now,
            sent: HostFacts::default(),
            is_up_to_date: false,
            awaited: VecDeque::new(),
            is_unwritable: false,
            silent_until: None,
        });
        self.last_number
    }

    pub(super) fn connect_failed(&mut self, now: Instant) {
        self.moments = Moments::default();
        self.dialing.failed(now);
    }

    /// Records the end of the connection with this number, or of the current one. Returns false if it had ended before.
    pub(super) fn lost(&mut self, number: Option<u64>, now: Instant) -> bool {
        let is_it = |own: &mut Connection| number.is_none_or(|number| own.number == number);
        let Some(connection) = self.connection.take_if(is_it) else { return false };
        self.reports.resend_all();
        self.moments = Moments::default();
        self.dialing.lost(connection.since, now);
        true
    }

    /// Records that the watch has found a hub.
    pub(super) fn hub_seen(&mut self) {
        self.dialing.see_hub();
    }

    /// Records whether the hub's socket can be watched.
    pub(super) fn watch(&mut self, is_watched: bool) {
        self.dialing.watch(is_watched);
    }

    /// Records that the hub can write again.
    pub(super) fn writable(&mut self) {
        if let Some(connection) = &mut self.connection {
            connection.is_unwritable = false;
        }
    }

    /// Handles the answer to the oldest request, with the code of an error. Returns true if a report is done.
    pub(super) fn answered(&mut self, error: Option<&str>, now: Instant) -> bool {
        let Some(connection) = &mut self.connection else { return false };
        let (is_late, is_busy) = (error == Some("rate_limited"), error == Some("busy"));
        if is_late {
            connection.silent_until = Some(now + RATE_PAUSE);
        }
        let awaited = connection.awaited.pop_front();
        match awaited {
            Some(Awaited::Report(number)) if is_late || is_busy => {
                connection.is_unwritable |= is_busy;
                self.reports.resend(number);
            }
            Some(Awaited::Report(number)) => return self.reports.remove(number),
            Some(Awaited::Surfaces(surfaces)) if is_late => {
                let unknown = surfaces.into_iter().map(|surface| (surface, Value::Null));
                connection.sent.surfaces.extend(unknown);
                connection.is_up_to_date = false;
            }
            Some(Awaited::Views) if is_late => {
                (connection.sent.views, connection.is_up_to_date) = (None, false);
            }
            _ => {}
        }
        false
    }

    /// Returns what to do now.
    pub(super) fn next_step(&mut self, now: Instant) -> Step {
        let is_detached = self.is_detached();
        let Some(connection) = &mut self.connection else { return self.dial(now, is_detached) };
        if let Some(until) = connection.silent_until.filter(|until| *until > now) {
            return Step::Wait(Some(until));
        }
        let unanswered = connection.awaited.len();
        if unanswered < MAX_UNANSWERED
            && let Some((request, awaited)) =
                connection.next_request(&self.facts, &mut self.reports, &mut self.moments)
        {
            connection.awaited.push_back(awaited);
            return Step::Send(request);
        }
        // The hub may not handle requests after the connection has ended, so the answers come first.
        if unanswered > 0 || !(is_detached || self.closing.is_some()) {
            return Step::Wait(None);
        }
        if self.closing.is_some() {
            return Step::End;
        }
        self.connection = None;
        self.dialing.reset();
        Step::Disconnect
    }

    fn dial(&mut self, now: Instant, is_detached: bool) -> Step {
        let has_report = !self.reports.is_empty();
        if self.closing.is_some() {
            if !has_report || self.closing != Some(Closing::Begun) {
                return Step::End;
            }
            self.closing = Some(Closing::Dialed);
        } else if is_detached {
            return Step::Wait(None);
        } else {
            let due = self.dialing.due(now);
            if due > now {
                return if self.dialing.needs_watch() { Step::Watch } else { Step::Wait(Some(due)) };
            }
        }
        Step::Connect { may_start: self.dialing.begin(now, has_report, self.restarts_hub) }
    }
}

impl Connection {
    /// Returns the next request. Facts come first, because reports refer to surfaces.
    fn next_request(
        &mut self,
        facts: &HostFacts,
        reports: &mut Reports,
        moments: &mut Moments,
    ) -> Option<(Request, Awaited)> {
        if !self.is_up_to_date {
            if let Some(next) = self.next_fact(facts, &mut moments.is_present) {
                return Some(next);
            }
            // A surface is closed after the reports about it.
            let gone = self.sent.surfaces.keys().filter(|surface| !facts.surfaces.contains_key(*surface));
            let mut gone = gone.peekable();
            self.is_up_to_date = gone.peek().is_none();
            let closed = gone.find(|surface| self.is_unwritable || !reports.has_unsent_of(surface)).cloned();
            if let Some(surface) = closed {
                self.sent.surfaces.remove(&surface);
                let params = json!({ "surface_id": surface });
                return Some((
                    Request { method: "surface.closed", params },
                    Awaited::Surfaces(vec![surface]),
                ));
            }
        }
        if let Some(moment) = moments.requests.pop_front() {
            return Some((moment, Awaited::Moment));
        }
        let (number, report) = if self.is_unwritable { None } else { reports.next_unsent() }?;
        let request = Request { method: report.method.name(), params: report.params.clone() };
        Some((request, Awaited::Report(number)))
    }

    /// Returns the next surfaces that were opened or changed, or the views.
    fn next_fact(&mut self, facts: &HostFacts, is_present: &mut bool) -> Option<(Request, Awaited)> {
        let sent = &mut self.sent;
        let changed = facts.surfaces.iter().filter(|(surface, own)| sent.surfaces.get(*surface) != Some(own));
        let changed: Vec<(String, Value)> =
            changed.take(MAX_SURFACES).map(|(surface, own)| (surface.clone(), own.clone())).collect();
        if !changed.is_empty() {
            sent.surfaces.extend(changed.iter().cloned());
            let (surfaces, described): (Vec<String>, Vec<Value>) = changed.into_iter().unzip();
            let params = json!({ "surfaces": described });
            return Some((Request { method: "surface.opened", params }, Awaited::Surfaces(surfaces)));
        }
        let is_present = std::mem::take(is_present);
        let views = facts.views.as_ref().filter(|views| is_present || sent.views.as_ref() != Some(views))?;
        sent.views = Some(views.clone());
        let mut params = views.clone();
        if is_present {
            params["present"] = json!(true);
        }
        Some((Request { method: "surface.views", params }, Awaited::Views))
    }
}
