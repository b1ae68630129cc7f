//! The rules in random runs, against a hub that refuses, forgets and dies.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::json;

use super::reports::{HostReport, ReportMethod};
use super::state::HostFacts;
use super::state::{LinkState, MAX_UNANSWERED, Request, Step};

const SURFACES: [&str; 3] = ["a", "b", "c"];

/// A hub, and a host's connection to it.
struct Simulation {
    link: LinkState,
    now: Instant,
    facts: HostFacts,
    connection: Option<u64>,
    /// Requests that the hub has not read.
    line: VecDeque<Request>,
    /// The surfaces that were described on this connection.
    described: BTreeSet<String>,
    /// What the hub has read on this connection.
    hub: HostFacts,
    is_full: bool,
    /// It has refused a report since it could write last.
    has_refused: bool,
    /// It has refused facts on this connection. The link does not know which ones it has after that.
    is_behind: bool,
    reported: u64,
    /// The reports in the journal.
    journal: Vec<String>,
    /// The reports that it accepted on this connection.
    accepted: BTreeSet<String>,
}

#[derive(Debug, Clone)]
enum Event {
    Facts {
        surfaces: Vec<(usize, u8)>,
        view: Option<usize>,
    },
    Report(usize),
    Present,
    Moment,
    /// The hub reads requests.
    Read(usize),
    /// It refuses what has come because there are too many.
    Refuse,
    Full(bool),
    /// It dies, after it has read some requests whose answers are lost.
    Die(usize),
    Wait(u64),
    ConnectFails,
}

fn event() -> impl Strategy<Value = Event> {
    let surfaces = prop::collection::vec((0..SURFACES.len(), 0..2_u8), 0..4);
    prop_oneof![
        3 => (surfaces, prop::option::of(0..SURFACES.len()))
            .prop_map(|(surfaces, view)| Event::Facts { surfaces, view }),
        3 => (0..SURFACES.len()).prop_map(Event::Report),
        1 => Just(Event::Present),
        1 => Just(Event::Moment),
        6 => (0..6_usize).prop_map(Event::Read),
        1 => Just(Event::Refuse),
        1 => any::<bool>().prop_map(Event::Full),
        1 => (0..3_usize).prop_map(Event::Die),
        2 => (0..3000_u64).prop_map(Event::Wait),
        1 => Just(Event::ConnectFails),
    ]
}

impl Simulation {
    fn new(restarts_hub: bool, is_detached_when_empty: bool) -> Self {
        let mut link = LinkState::new(restarts_hub, is_detached_when_empty);
        link.begin();
        Self {
            link,
            now: Instant::now(),
            facts: HostFacts::default(),
            connection: None,
            line: VecDeque::new(),
            described: BTreeSet::new(),
            hub: HostFacts::default(),
            is_full: false,
            has_refused: false,
            is_behind: false,
            reported: 0,
            journal: Vec::new(),
            accepted: BTreeSet::new(),
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Facts { surfaces, view } => {
                let describe = |(surface, title): (usize, u8)| {
                    let surface = SURFACES[surface];
                    (surface.to_owned(), json!({ "surface_id": surface, "title": title }))
                };
                let views = view.map(|own| json!({ "views": [SURFACES[own]] }));
                self.facts = HostFacts { surfaces: surfaces.into_iter().map(describe).collect(), views };
                self.link.set_facts(self.facts.clone());
            }
            Event::Report(surface) => {
                self.reported += 1;
                let params = json!({ "surface_id": SURFACES[surface], "report": self.reported.to_string() });
                self.link.report(HostReport::new(ReportMethod::Terminal, params, self.now));
            }
            Event::Present => self.link.present(),
            Event::Moment => self.link.moment(Request { method: "surface.focused", params: json!({}) }),
            Event::Read(requests) => (0..requests).for_each(|_| self.read(None)),
            Event::Refuse => (0..self.line.len()).for_each(|_| self.read(Some("rate_limited"))),
            Event::Full(is_full) => {
                self.is_full = is_full;
                if !is_full && std::mem::take(&mut self.has_refused) {
                    self.link.writable();
                }
            }
            Event::Die(read) => {
                for _ in 0..read {
                    self.take_request(None);
                }
                if let Some(connection) = self.connection.take() {
                    assert!(self.link.lost(Some(connection), self.now));
                }
            }
            Event::Wait(ms) => self.now += Duration::from_millis(ms),
            Event::ConnectFails if self.connection.is_none() => {
                if let Step::Connect { .. } = self.link.next_step(self.now) {
                    self.link.connect_failed(self.now);
                }
            }
            Event::ConnectFails => {}
        }
    }

    /// The hub reads a request and answers it.
    fn read(&mut self, refusal: Option<&'static str>) {
        if let Some(answer) = self.take_request(refusal) {
            self.link.answered(answer.err(), self.now);
        }
    }

    /// The hub reads a request. Returns its answer, if there was one.
    fn take_request(&mut self, refusal: Option<&'static str>) -> Option<Result<(), &'static str>> {
        let Request { method, params } = self.line.pop_front()?;
        if let Some(refusal) = refusal {
            self.is_behind = true;
            return Some(Err(refusal));
        }
        let surface = params["surface_id"].as_str().unwrap_or_default().to_owned();
        match method {
            "surface.opened" => {
                for own in params["surfaces"].as_array().unwrap() {
                    let surface = own["surface_id"].as_str().unwrap().to_owned();
                    let before = self.hub.surfaces.insert(surface, own.clone());
                    assert!(self.is_behind || before.as_ref() != Some(own), "it was sent twice");
                }
            }
            "surface.views" => {
                let is_news = params["present"] == true || self.hub.views.as_ref() != Some(&params);
                assert!(self.is_behind || is_news, "it was sent twice");
                self.hub.views = Some(json!({ "views": params["views"] }));
            }
            "surface.closed" => _ = self.hub.surfaces.remove(&surface),
            "surface.heard" if self.is_full => {
                self.has_refused = true;
                return Some(Err("busy"));
            }
            "surface.heard" => {
                let report = params["report"].as_str().unwrap().to_owned();
                assert!(self.accepted.insert(report.clone()), "{report} was sent twice on one connection");
                if !self.journal.contains(&report) {
                    self.journal.push(report);
                }
            }
            _ => {}
        }
        Some(Ok(()))
    }

    /// A report follows the description of its surface.
    fn check_described(&mut self, Request { method, params }: &Request) {
        let surfaces = params["surfaces"].as_array().into_iter().flatten().chain([params]);
        let surfaces = surfaces.filter_map(|own| Some(own["surface_id"].as_str()?.to_owned()));
        for surface in surfaces {
            match *method {
                "surface.opened" => _ = self.described.insert(surface),
                "surface.closed" => _ = self.described.remove(&surface),
                "surface.heard" if self.facts.surfaces.contains_key(&surface) => {
                    assert!(self.described.contains(&surface), "{surface} is not known");
                }
                _ => {}
            }
        }
    }

    /// Does what the link wants to do now.
    fn step(&mut self) {
        loop {
            match self.link.next_step(self.now) {
                Step::Connect { .. } => {
                    assert_eq!(self.connection, None);
                    self.connection = Some(self.link.connected(self.now));
                    (self.hub, self.has_refused, self.is_behind) = (HostFacts::default(), false, false);
                    self.line.clear();
                    self.accepted.clear();
                    self.described.clear();
                }
                Step::Send(request) => {
                    assert!(self.connection.is_some());
                    self.check_described(&request);
                    self.line.push_back(request);
                    assert!(self.line.len() <= MAX_UNANSWERED);
                }
                Step::Disconnect => {
                    assert!(self.line.is_empty(), "the hub may not read it any more");
                    self.connection = None;
                    self.hub = HostFacts::default();
                }
                Step::Watch => self.link.watch(self.reported.is_multiple_of(2)),
                Step::Wait(_) | Step::End => return,
            }
        }
    }

    /// The disk has room, and time goes by, until nothing happens any more.
    fn settle(&mut self) {
        self.handle(Event::Full(false));
        for _ in 0..100 {
            self.step();
            while !self.line.is_empty() {
                self.read(None);
                self.step();
            }
            match self.link.next_step(self.now) {
                Step::Wait(Some(until)) => self.now = until,
                _ => return,
            }
        }
        panic!("it does not settle");
    }
}

proptest! {
    #[test]
    fn the_hub_gets_every_report_once_and_has_the_hosts_facts(
        events in prop::collection::vec(event(), 0..80),
        restarts_hub in any::<bool>(),
        is_detached_when_empty in any::<bool>(),
    ) {
        let mut simulation = Simulation::new(restarts_hub, is_detached_when_empty);
        for event in events {
            simulation.handle(event);
            if simulation.reported % 3 != 2 {
                simulation.step();
            }
        }
        simulation.settle();
        let mut journal: Vec<u64> = simulation.journal.iter().map(|id| id.parse().unwrap()).collect();
        journal.sort_unstable();
        prop_assert_eq!(journal, (1..=simulation.reported).collect::<Vec<_>>());
        let is_detached = is_detached_when_empty && simulation.facts.surfaces.is_empty();
        prop_assert_eq!(simulation.connection.is_none(), is_detached);
        if !is_detached {
            prop_assert_eq!(&simulation.hub.surfaces, &simulation.facts.surfaces);
            prop_assert!(simulation.facts.views.is_none() || simulation.hub.views == simulation.facts.views);
        }
    }
}
