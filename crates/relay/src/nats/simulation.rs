//! Random runs of a team without a server and without files: streams that lose some or all messages, come back, or are emptied by
//! their operator, a machine that joins later, deliveries lost in transit, duplicate publications. In the end every machine must
//! have every message that the others wrote since it joined. Unless the server lost some, they must be in order.
//!
//! `RINGER_SEEDS` sets the number of runs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem::{replace, swap, take};
use std::ops::Range;

use test_support::Random;

use crate::position::Position;
use crate::wire_message::WireMessage;

use super::payload::TeamPayload;
use super::publishing::Publishing;
use super::reading::Reading;
use super::receiving::{BatchSorter, DeliveredMessage, ResendRequest, advance_position, is_personal_mark};
use super::state::{LastPublished, TeamState};
use super::subject::{Audience, TeamSubject};

const NAMES: [&str; 3] = ["laptop", "box", "vm"];
/// The most messages that a server loses when it loses its last moments.
const MAX_LOST: usize = 6;
/// The most messages that a machine reads by number when it connects.
const MAX_READ: usize = 8;
/// The first of the events in which a server loses messages; all later ones also do.
const FIRST_LOSS: u64 = 38;

/// Returns the publications of a message: ids, and the recipient machine if it is one of many marks.
fn parts_of(machine: &str, seq: i64) -> Vec<(String, Option<&'static str>)> {
    let others = NAMES.into_iter().filter(|other| *other != machine);
    match seq {
        seq if seq % 7 == 0 => Vec::new(),
        seq if seq % 5 == 0 => others
            .flat_map(|other| (0..3).map(move |part| (format!("id-{seq}-{other}-{part}"), Some(other))))
            .collect(),
        seq => vec![(format!("id-{seq}"), None)],
    }
}

/// A machine. Everything that is not durable is lost with its connection.
struct Machine {
    name: &'static str,
    /// The length of its journal: numbers begin at 1.
    written: i64,
    published: i64,
    state: Option<TeamState>,
    stored: BTreeMap<String, BTreeSet<String>>,
    /// The numbers of the stored messages, in order of arrival.
    came: BTreeMap<String, Vec<i64>>,
    places: BTreeMap<String, Position>,
    reading: Reading,
    runs: usize,
    connection: Option<Connection>,
    /// The journal length of each machine when this one joined.
    written_before: [i64; NAMES.len()],
}

struct Connection {
    run: usize,
    publishing: Publishing,
    /// Messages that were read but not published: whole ones, and the remaining parts of the previous one.
    unsent: VecDeque<(u64, i64)>,
    parts: VecDeque<(u64, i64, String, Option<&'static str>)>,
    acks: VecDeque<(u64, LastPublished)>,
}

impl Machine {
    fn position(seq: i64) -> Position {
        Position { generation: "g".to_owned(), seq, id: Some(format!("id-{seq}")) }
    }

    fn connect(&mut self, server: &mut Server) {
        let created = server.created.to_string();
        let made_ms = i64::try_from(server.created).unwrap();
        let (was_there, next) = (self.state.is_some(), server.next_number());
        let is_same = self.state.as_ref().is_some_and(|state| state.stream == created);
        let last = self.state.as_ref().and_then(|state| state.last.clone());
        let has_end =
            !is_same || [self.reading.furthest(), last].iter().flatten().all(|last| server.has(last));
        if !was_there {
            self.reading = Reading::after(next - 1, server.stream.last().map(|(.., id)| id.as_str()));
        } else if !is_same {
            self.reading = Reading::default().restarted();
        } else if !has_end {
            self.reading = take(&mut self.reading).restarted();
        }
        self.reading.connected(server.first_number(), next - 1);
        let after = index_after(self.reading.whole_to());
        let consumer = server.consumers.entry(self.name).or_default();
        if consumer.next > server.stream.len() || consumer.next > after + MAX_READ {
            *consumer = Consumer { next: after, open: BTreeSet::new() };
        }
        let delivered_to = consumer.next;
        let mut state =
            self.state.clone().unwrap_or_else(|| TeamState::joined(&created, next, self.published, 0));
        state.connected(next);
        let mut must_request = self.reading.must_request(server.first_number());
        if state.stream != created {
            state.switch_stream(&created, made_ms, next, self.published);
            must_request = true;
        } else if state.last.as_ref().is_some_and(|last| !server.has(last)) {
            state.stream_lost_end((self.published - i64::try_from(MAX_LOST).unwrap()).max(0), 0);
            must_request = true;
        }
        state.set_stream_created(made_ms);
        let publishing = Publishing::after(state.begin(self.published));
        self.state = Some(state);
        self.runs += 1;
        self.connection = Some(Connection {
            run: self.runs,
            publishing,
            unsent: VecDeque::new(),
            parts: VecDeque::new(),
            acks: VecDeque::new(),
        });
        if must_request {
            self.ask(server);
        }
        self.read_before(server, delivered_to);
    }

    fn ask(&mut self, server: &mut Server) {
        let Some(state) = &mut self.state else { return };
        let removed_before = self.reading.removed_before();
        let want = TeamPayload::Want { stored: self.places.clone(), joined_ms: 0, removed_before };
        let subject = TeamSubject { machine: self.name, scope: "link", audience: Audience::Want };
        let message_id = format!("want {} {}", self.name, server.next_number());
        let sequence = server.take(subject.text(TEAM), want.encode(), &message_id);
        state.acknowledged(LastPublished { sequence, message_id });
        self.reading.asked(sequence);
    }

    /// Publishes a few messages. The server stores them, and its acknowledgements are in flight.
    fn publish(&mut self, server: &mut Server, most: usize) {
        let (Some(connected), Some(state)) = (&mut self.connection, &self.state) else { return };
        connected.publishing.changed();
        let mut published = 0;
        while published < most {
            if let Some((ticket, seq, id, to)) = connected.parts.pop_front() {
                let tag = if to.is_some() { "mark-read" } else { "status" }.to_owned();
                let message_id = format!("{} {} {id}", self.name, connected.run);
                let message = Box::new(WireMessage { seq, id, tag, ..WireMessage::default() });
                let (generation, again) = ("g".to_owned(), seq <= self.published);
                let (covered_from, covered_at) = (state.covers(), state.covered_at());
                let payload =
                    TeamPayload::Message { generation, sent_ms: 0, covered_from, covered_at, again, message };
                let audience = to.map_or(Audience::All("all"), Audience::Machine);
                let subject = TeamSubject { machine: self.name, scope: "s", audience };
                let sequence = server.take(subject.text(TEAM), payload.encode(), &message_id);
                connected.acks.push_back((ticket, LastPublished { sequence, message_id }));
                published += 1;
            } else if let Some((ticket, seq)) = connected.unsent.pop_front() {
                let parts = parts_of(self.name, seq);
                connected.publishing.set_publications(ticket, parts.len());
                connected.parts.extend(parts.into_iter().map(|(id, to)| (ticket, seq, id, to)));
            } else {
                let Some((after, room)) = connected.publishing.wanted() else { break };
                let end = (after + i64::try_from(room.min(most)).unwrap()).min(self.written);
                connected.publishing.read_up_to(end, end < self.written);
                for seq in after + 1..=end {
                    connected.unsent.push_back((connected.publishing.read(Self::position(seq)), seq));
                }
            }
        }
        self.note();
    }

    /// Some acknowledgements arrive.
    fn handle_acks(&mut self, count: usize) {
        let (Some(connected), Some(state)) = (&mut self.connection, &mut self.state) else { return };
        for _ in 0..count {
            let Some((ticket, last)) = connected.acks.pop_front() else { break };
            connected.publishing.confirmed(ticket);
            state.acknowledged(last);
        }
        self.note();
    }

    fn note(&mut self) {
        let (Some(connected), Some(state)) = (&mut self.connection, &mut self.state) else { return };
        if let Some(end) = connected.publishing.arrived() {
            self.published = self.published.max(end.seq);
            if end.seq >= self.published {
                state.republished(1);
            }
        } else if state.again_from.is_some() && connected.publishing.is_done() {
            state.republished(1);
        }
    }

    /// The server delivers a batch, which may be lost in transit. Lost messages are redelivered once there is nothing else.
    fn receive(&mut self, server: &mut Server, most: usize, is_lost: bool) {
        let Some(consumer) = server.consumers.get_mut(self.name).filter(|_| self.connection.is_some()) else {
            return;
        };
        let new = consumer.next..(consumer.next + most).min(server.stream.len());
        consumer.next = new.end;
        consumer.open.extend(new.clone());
        let places = if new.is_empty() { consumer.open.clone() } else { new.collect() };
        if is_lost {
            return;
        }
        consumer.open.retain(|place| !places.contains(place));
        for place in places {
            self.read_before(server, place);
            self.store(server, place..place + 1);
        }
    }

    /// Reads and stores messages of the stream before a place that are not stored.
    fn read_before(&mut self, server: &mut Server, place: usize) {
        if place > index_after(self.reading.whole_to()) {
            self.reading.check_removed(server.first_number());
            self.store(server, index_after(self.reading.whole_to())..place);
            self.reading.skip_to(number_of(place));
        }
    }

    fn store(&mut self, server: &mut Server, places: Range<usize>) {
        let batch: Vec<DeliveredMessage<'_>> = places
            .clone()
            .map(|place| {
                let (subject, payload, _) = &server.stream[place];
                DeliveredMessage { subject, payload, stored_ms: 0, is_repeat: false }
            })
            .collect();
        let received = BatchSorter { team: TEAM, machine: self.name, share_marks: true }.sort(&batch);
        assert_eq!(received.unreadable, 0);
        for run in received.runs {
            let stored = self.stored.entry(run.machine.clone()).or_default();
            let new = run.messages.iter().filter(|message| stored.insert(message.id.clone()));
            self.came.entry(run.machine.clone()).or_default().extend(new.map(|message| message.seq));
            let is_first = self.state.as_ref().is_some_and(TeamState::is_first_stream);
            let before = self.places.get(&run.machine).cloned();
            let place = advance_position(before, &run.places, is_first, self.reading.removed_before());
            place.map(|place| self.places.insert(run.machine, place));
        }
        self.reading.stored(places.map(|place| (number_of(place), Some(server.stream[place].2.as_str()))));
        for want in &received.resend_requests {
            self.serve(server, want);
        }
        let removed =
            received.resend_requests.iter().map(|want| want.removed_before).max().unwrap_or_default();
        let first = if self.reading.request_was_removed(removed) { server.first_number() } else { 0 };
        if self.reading.must_request(first) {
            self.ask(server);
        }
    }

    fn serve(&mut self, server: &Server, want: &ResendRequest) {
        let (Some(connected), Some(state)) = (&mut self.connection, &mut self.state) else { return };
        let is_changed =
            want.removed_before > state.covered_at() && server.first_number() > state.covered_at();
        if is_changed {
            let own = server.first_of(self.name);
            let at = own.map_or(server.next_number(), |(_, number)| number);
            let until = own.map_or(connected.publishing.published_up_to(), |(whole_after, _)| whole_after);
            let from = (1..=until).rev().find(|seq| seq % 7 != 0).unwrap_or_default();
            state.removed(Some(from), at);
        }
        let is_wanted = state.wanted(want.after.as_ref().map_or(0, |after| after.seq));
        if is_wanted || (is_changed && state.again_from.is_some()) {
            connected.acks.clear();
            connected.unsent.clear();
            connected.parts.clear();
            self.runs += 1;
            connected.run = self.runs;
            connected.publishing = Publishing::after(state.begin(self.published));
        }
    }
}

fn play(seed: u64) {
    let mut random = Random::new(seed);
    let mut server = Server { created: 1, ..Server::default() };
    let mut machines = NAMES.map(|name| Machine {
        name,
        written: 0,
        published: 0,
        state: None,
        stored: BTreeMap::new(),
        came: BTreeMap::new(),
        places: BTreeMap::new(),
        reading: Reading::default(),
        runs: 0,
        connection: None,
        written_before: [0; NAMES.len()],
    });
    // The streams that may come back.
    let mut earlier: Vec<Server> = Vec::new();
    for at in 0..2 {
        connect(&mut machines, at, &mut server);
    }
    // In a quarter of the runs the server loses nothing.
    let events = if seed.is_multiple_of(4) { FIRST_LOSS } else { 42 };
    for _ in 0..300 {
        let at = usize::try_from(random.below(3)).unwrap();
        let few = usize::try_from(random.below(6)).unwrap();
        let machine = &mut machines[at];
        match random.below(events) {
            0..=9 => machine.written += i64::try_from(few).unwrap(),
            10..=16 => machine.publish(&mut server, few),
            17..=23 => machine.handle_acks(few),
            24..=30 => machine.receive(&mut server, few, false),
            31..=32 => machine.receive(&mut server, few, true),
            33..=34 => machine.connection = None,
            35..=37 if machine.connection.is_none() => connect(&mut machines, at, &mut server),
            FIRST_LOSS => {
                let newest = earlier.iter().map(|earlier| earlier.created).fold(server.created, u64::max);
                let recreated = Server { created: newest + 1, ..Server::default() };
                earlier.push(replace(&mut server, recreated));
                disconnect(&mut machines);
            }
            39 => lose_end(&mut server, &mut machines, few),
            40 => server.purge(few),
            41 if !earlier.is_empty() => {
                let back = random.place(earlier.len());
                swap(&mut server, &mut earlier[back]);
                disconnect(&mut machines);
            }
            _ => {}
        }
    }
    // At the end all machines are connected, and nothing more is lost.
    for round in 0..60 {
        for at in 0..machines.len() {
            if round == 0 || machines[at].connection.is_none() {
                connect(&mut machines, at, &mut server);
            }
            let machine = &mut machines[at];
            machine.publish(&mut server, 100);
            machine.handle_acks(1_000);
            machine.receive(&mut server, 1_000, false);
        }
    }
    for machine in &machines {
        let others = machines.iter().zip(machine.written_before);
        for (other, before) in others.filter(|(other, _)| other.name != machine.name) {
            let has = machine.stored.get(other.name).cloned().unwrap_or_default();
            let lacks: Vec<String> = (before + 1..=other.written)
                .flat_map(|seq| parts_of(other.name, seq))
                .filter(|(id, to)| to.is_none_or(|to| to == machine.name) && !has.contains(id))
                .map(|(id, _)| id)
                .collect();
            assert!(lacks.is_empty(), "seed {seed}: {} lacks {lacks:?} of {}", machine.name, other.name);
            // Messages from before it joined may arrive when their machine republishes them.
            let came = machine.came.get(other.name).into_iter().flatten().filter(|seq| **seq > before);
            let in_order = came.is_sorted();
            assert!(
                in_order || events > FIRST_LOSS,
                "seed {seed}: {} has {} in another order",
                machine.name,
                other.name
            );
        }
    }
}

/// Returns the place after the message with a number.
fn index_after(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

/// A machine connects. On its first connection it joins the team.
fn connect(machines: &mut [Machine; NAMES.len()], at: usize, server: &mut Server) {
    if machines[at].state.is_none() {
        machines[at].written_before = machines.each_ref().map(|machine| machine.written);
    }
    machines[at].connect(server);
}

fn disconnect(machines: &mut [Machine]) {
    for machine in machines {
        machine.connection = None;
    }
}

/// The server loses its last messages, as if it had not synced them. Machines keep those that they have read.
fn lose_end(server: &mut Server, machines: &mut [Machine], count: usize) {
    server.synced = server.synced.max(server.stream.len().saturating_sub(MAX_LOST - 1));
    let end = server.stream.len().saturating_sub(count).max(server.synced);
    server.stream.truncate(end);
    server.first = server.first.min(end);
    for consumer in server.consumers.values_mut() {
        if consumer.next > end {
            // As if the machine recreated its consumer.
            *consumer = Consumer { next: server.first, open: BTreeSet::new() };
        }
    }
    disconnect(machines);
}

#[test]
fn every_machine_gets_every_message_whatever_the_server_loses() {
    let seeds = std::env::var("RINGER_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(300);
    for seed in 0..seeds {
        play(seed);
    }
}

pub(crate) const TEAM: &str = "t";

/// The server: all of it may be lost.
#[derive(Default)]
struct Server {
    created: u64,
    /// Subject, payload and the message's id in the stream.
    stream: Vec<(String, Vec<u8>, String)>,
    /// Messages before this place were removed. Their ids are still known.
    first: usize,
    consumers: BTreeMap<&'static str, Consumer>,
    /// Messages before this place are never lost with the end.
    synced: usize,
}

/// A machine's consumer: its position, and the deliveries that were not acknowledged.
#[derive(Default, Clone)]
struct Consumer {
    next: usize,
    open: BTreeSet<usize>,
}

impl Server {
    /// Stores a message, unless it has that id already. Returns its number.
    fn take(&mut self, subject: String, payload: Vec<u8>, id: &str) -> u64 {
        let known = self.stream.iter().position(|(.., known)| known == id);
        let number = known.unwrap_or_else(|| {
            self.stream.push((subject, payload, id.to_owned()));
            self.stream.len() - 1
        });
        number_of(number)
    }

    /// Returns the first message of a machine: the journal number after which all of its messages are complete here, and its
    /// number here.
    fn first_of(&self, machine: &str) -> Option<(i64, u64)> {
        self.stream.iter().enumerate().skip(self.first).find_map(|(place, (subject, payload, _))| {
            let subject = TeamSubject::parse(subject, TEAM)?;
            match TeamPayload::read(payload)? {
                TeamPayload::Message { message, .. } if subject.machine == machine => {
                    Some((message.seq - i64::from(!is_personal_mark(&message)), number_of(place)))
                }
                _ => None,
            }
        })
    }

    /// The operator removes all but the last few messages.
    fn purge(&mut self, kept: usize) {
        self.first = self.first.max(self.stream.len().saturating_sub(kept));
        for consumer in self.consumers.values_mut() {
            consumer.next = consumer.next.max(self.first);
            consumer.open.retain(|place| *place >= self.first);
        }
    }

    fn first_number(&self) -> u64 {
        number_of(self.first)
    }

    fn next_number(&self) -> u64 {
        number_of(self.stream.len())
    }

    /// Returns true if it has a message that it acknowledged, as far as can be determined.
    fn has(&self, last: &LastPublished) -> bool {
        let found = self.stream.get(usize::try_from(last.sequence).unwrap() - 1);
        last.sequence < self.first_number() || found.is_some_and(|(.., id)| *id == last.message_id)
    }
}

/// Returns the number of the message at a place of the stream. Numbers begin at 1.
fn number_of(place: usize) -> u64 {
    u64::try_from(place).unwrap() + 1
}
