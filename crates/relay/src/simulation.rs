//! Random runs of a link between two machines: cuts at every frame, sides that are killed before or after they stored something,
//! journals that are replaced by an older copy. A failing seed can be replayed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use test_support::Random;

use crate::frame::{Frame, Hello, PROTOCOL, Purpose};
use crate::link::{Input, Link, Output, PING_AFTER, ReadMessages, WINDOW};
use crate::machine::MachineId;
use crate::position::Position;
use crate::wire_message::WireMessage;

/// The number of runs; `RINGER_RELAY_SEEDS=1000000` overrides it.
const SEEDS: u64 = 1_000;
const STEPS: usize = 400;
/// Messages that each machine wrote before they were linked.
const OLD: i64 = 2;
/// Messages in one frame.
const BATCH: usize = 3;

/// A row of a journal: its id, and whether it was written there.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    id: String,
    is_own: bool,
}

/// The durable state of a machine.
#[derive(Debug, Clone, Default)]
struct Disk {
    generation: String,
    rows: BTreeMap<i64, Row>,
    highest: i64,
    /// How far the other machine's messages are stored.
    imported: Option<Position>,
    /// How far the other machine has stored this one's.
    exported: Option<Position>,
    /// Only messages after this number may be sent to the other machine.
    send_after: i64,
}

impl Disk {
    fn append(&mut self, id: &str, is_own: bool) -> bool {
        if self.rows.values().any(|row| row.id == id) {
            return false;
        }
        self.highest += 1;
        self.rows.insert(self.highest, Row { id: id.to_owned(), is_own });
        true
    }

    fn position(&self, seq: i64) -> Position {
        let id = self.rows.get(&seq).map(|row| row.id.clone());
        Position { generation: self.generation.clone(), seq, id }
    }

    /// The other machine connects for the first time: earlier messages are not for it.
    fn greet(&mut self) {
        if self.exported.is_none() {
            self.exported = Some(self.position(self.highest));
            self.send_after = self.highest;
        }
    }

    /// The rule of the journal: a position that does not match starts again.
    fn locate(&mut self, after: Option<Position>) -> Input {
        let Some(after) = after else {
            let at = self.exported.clone().unwrap_or_default();
            return Input::Located { at, repeats_until: 0 };
        };
        let found = self.rows.get(&after.seq).map(|row| &row.id);
        let fits = after.generation == self.generation
            && after.seq <= self.highest
            && found.is_none_or(|id| Some(id) == after.id.as_ref());
        if fits && after.seq >= self.send_after {
            return Input::Located { at: after, repeats_until: 0 };
        }
        Input::Located { at: self.position(self.send_after), repeats_until: self.highest }
    }

    fn read(&self, after: i64) -> ReadMessages {
        let mut read = ReadMessages {
            messages: Vec::new(),
            end: None,
            examined_to: self.highest,
            more: false,
            waiting: 0,
        };
        for (seq, row) in self.rows.range(after + 1..).filter(|(_, row)| row.is_own) {
            if read.messages.len() == BATCH {
                read.examined_to = read.end.as_ref().map_or(after, |end| end.seq);
                read.more = true;
                break;
            }
            read.messages.push(WireMessage { seq: *seq, id: row.id.clone(), ..WireMessage::default() });
            read.end = Some(self.position(*seq));
        }
        read
    }
}

struct Machine {
    disk: Disk,
    copy: Option<Disk>,
    link: Option<Link>,
    /// Frames in flight to this machine.
    inbox: VecDeque<Frame>,
    /// The ids that were ever stored here from the other machine, with their counts.
    stored: BTreeMap<String, usize>,
}

struct World {
    random: Random,
    machines: [Machine; 2],
    written: u64,
    restored: bool,
    seed: u64,
}

fn hello(machine: usize) -> Hello {
    Hello {
        protocol: (PROTOCOL, PROTOCOL),
        machine: MachineId::parse(&machine.to_string().repeat(32)).unwrap(),
        name: String::new(),
        program: String::new(),
        unix_ms: 0,
        purpose: Purpose::Exchange,
        may_answer: false,
    }
}

/// When a side is killed relative to a request that it executes.
#[derive(PartialEq)]
enum Crash {
    None,
    Before,
    After,
}

impl World {
    fn new(seed: u64) -> Self {
        let machine = |number: u8| Machine {
            disk: Disk { generation: format!("g{number}"), ..Disk::default() },
            copy: None,
            link: None,
            inbox: VecDeque::new(),
            stored: BTreeMap::new(),
        };
        let (random, mut machines) = (Random::new(seed), [machine(0), machine(1)]);
        for number in 0..OLD {
            for machine in &mut machines {
                machine.disk.append(&format!("old-{number}"), true);
            }
        }
        let mut world = Self { random, machines, written: 0, restored: false, seed };
        // Both know each other: every message from here on must arrive.
        world.connect();
        world.drain();
        world
    }

    fn write(&mut self, at: usize) {
        self.written += 1;
        let id = format!("m{at}-{}", self.written);
        self.machines[at].disk.append(&id, true);
        self.give(at, Input::Changed);
    }

    fn connect(&mut self) {
        self.cut();
        for at in [0, 1] {
            let hello = hello(at);
            let (link, outputs) = Link::begin(Duration::ZERO, hello);
            self.machines[at].link = Some(link);
            self.execute(at, outputs);
        }
        // One side may have died at its first frame.
        if self.machines.iter().any(|machine| machine.link.is_none()) {
            self.cut();
        }
    }

    /// Frames in flight are lost.
    fn cut(&mut self) {
        for machine in &mut self.machines {
            machine.link = None;
            machine.inbox.clear();
        }
    }

    fn give(&mut self, at: usize, input: Input) {
        let Some(link) = &mut self.machines[at].link else { return };
        match link.handle(Duration::ZERO, input) {
            Ok(outputs) => self.execute(at, outputs),
            Err(error) => panic!("seed {}: {error}", self.seed),
        }
    }

    fn execute(&mut self, at: usize, outputs: Vec<Output>) {
        for output in outputs {
            let crash = match self.random.below(200) {
                0 => Crash::Before,
                1 => Crash::After,
                _ => Crash::None,
            };
            if crash == Crash::Before && self.may_be_cut() {
                return self.cut();
            }
            let machine = &mut self.machines[at];
            let answer = match output {
                Output::Send(frame) => {
                    let unstored = self.machines[1 - at].inbox.iter();
                    let unstored = unstored.filter(|frame| matches!(frame, Frame::Messages { .. })).count();
                    assert!(unstored <= WINDOW, "seed {}: {unstored} frames on their way", self.seed);
                    self.machines[1 - at].inbox.push_back(frame);
                    None
                }
                Output::Greet(_) => {
                    machine.disk.greet();
                    Some(Input::Greeted { stored: machine.disk.imported.clone() })
                }
                Output::Locate { after } => Some(machine.disk.locate(after)),
                Output::Read { after } => Some(Input::Read(machine.disk.read(after))),
                Output::Store { messages, end, .. } => {
                    for message in messages {
                        if machine.disk.append(&message.id, false) {
                            *machine.stored.entry(message.id).or_default() += 1;
                        } else {
                            assert!(self.restored, "seed {}: {} came twice", self.seed, message.id);
                        }
                    }
                    machine.disk.imported = Some(end.clone());
                    Some(Input::Stored(end))
                }
                Output::Answer { .. } | Output::Agents(_) => None,
                Output::Advance(end) => {
                    machine.disk.exported = Some(end);
                    None
                }
            };
            if crash == Crash::After && self.may_be_cut() {
                return self.cut();
            }
            if let Some(answer) = answer {
                self.give(at, answer);
            }
            if self.machines[at].link.is_none() {
                return;
            }
        }
    }

    /// The first connection is not cut: before it, nothing is known of the other side.
    fn may_be_cut(&self) -> bool {
        self.machines.iter().all(|machine| machine.disk.exported.is_some())
    }

    fn deliver(&mut self, at: usize) {
        if let Some(frame) = self.machines[at].inbox.pop_front() {
            self.give(at, Input::Frame(frame));
        }
    }

    fn step(&mut self) {
        let at = self.random.place(2);
        match self.random.below(40) {
            0..=9 => self.write(at),
            10 => self.cut(),
            11..=13 => self.connect(),
            14 => self.machines[at].copy = Some(self.machines[at].disk.clone()),
            15 if self.random.one_in(4) => {
                if let Some(copy) = self.machines[at].copy.clone() {
                    self.machines[at].disk = copy;
                    self.restored = true;
                    // The process of a link notices that the file was replaced, and reconnects.
                    self.cut();
                }
            }
            _ => self.deliver(at),
        }
    }

    /// Lets everything arrive.
    fn drain(&mut self) {
        for _ in 0..100_000 {
            let Some(at) = (0..2).find(|at| !self.machines[*at].inbox.is_empty()) else { break };
            self.deliver(at);
        }
        let idle = |machine: &Machine| machine.link.as_ref().is_none_or(Link::is_idle);
        assert!(self.machines.iter().all(idle), "seed {}: a link waits for ever", self.seed);
    }

    fn finish(&mut self) {
        for _ in 0..50 {
            self.connect();
            self.drain();
            if self.machines.iter().all(|machine| machine.link.is_some()) {
                break;
            }
        }
        for at in [0, 1] {
            let (own, other) = (&self.machines[at], &self.machines[1 - at]);
            let sent: Vec<&String> = own
                .disk
                .rows
                .range(OLD + 1..)
                .filter(|(_, row)| row.is_own)
                .map(|(_, row)| &row.id)
                .collect();
            assert!(!other.stored.keys().any(|id| id.starts_with("old")), "seed {}: too old", self.seed);
            for id in &sent {
                assert!(other.stored.contains_key(*id), "seed {}: {id} is lost", self.seed);
            }
            let rows = || other.disk.rows.values().filter(|row| !row.is_own).map(|row| &row.id);
            assert_eq!(rows().count(), rows().collect::<BTreeSet<_>>().len(), "seed {}", self.seed);
            if !self.restored {
                assert_eq!(rows().collect::<Vec<_>>(), sent, "seed {}: in order", self.seed);
                assert!(other.stored.values().all(|count| *count == 1), "seed {}: stored twice", self.seed);
            }
        }
    }
}

#[test]
fn cuts_and_kills_lose_and_duplicate_nothing() {
    let seeds =
        std::env::var("RINGER_RELAY_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS);
    let mut restored = 0;
    for seed in 0..seeds {
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step();
        }
        world.finish();
        restored += u64::from(world.restored);
    }
    assert!(restored > seeds / 10, "only {restored} runs had an older copy");
}

#[test]
fn a_repeated_or_early_frame_ends_the_connection() {
    let mut world = World::new(0);
    world.cut();
    world.machines.iter_mut().for_each(|machine| machine.inbox.clear());
    world.connect();
    for _ in 0..8 {
        world.deliver(0);
        world.deliver(1);
    }
    world.write(0);
    let frame = world.machines[1].inbox.front().cloned().unwrap();
    assert!(matches!(frame, Frame::Messages { .. }), "{frame:?}");
    world.deliver(1);
    let again = world.machines[1].link.as_mut().unwrap().handle(Duration::ZERO, Input::Frame(frame));
    assert_eq!(
        again.unwrap_err().to_string(),
        "the other side does not speak the link protocol: its messages are not in order"
    );
}

#[test]
fn two_idle_sides_wake_up_together() {
    let mut links = [0, 1].map(|at| Link::begin(Duration::ZERO, hello(at)).0);
    for (at, link) in links.iter_mut().enumerate() {
        link.handle(Duration::ZERO, Input::Frame(Frame::Hello(hello(1 - at)))).unwrap();
    }
    let [first, second] = &mut links;
    let ping = || Input::Frame(Frame::Ping);
    let is_ping = |outputs: Vec<Output>| outputs == [Output::Send(Frame::Ping)];
    assert!(is_ping(first.handle(PING_AFTER, Input::Tick).unwrap()));
    assert!(is_ping(second.handle(PING_AFTER, ping()).unwrap()), "it answers instead of waking up again");
    assert_eq!(first.handle(PING_AFTER, ping()).unwrap(), [], "that ends it");
    assert_eq!([first.next_tick(), second.next_tick()], [PING_AFTER * 2; 2]);
}
