//! A team through one NATS server on loopback, against the same client without Ringer. Homes are in memory.
//!
//! `RINGER_BENCH_MACHINES` simulated machines (1,000) run in this process, each with its own journal, thread and connection, as
//! in a hub.

#![expect(clippy::expect_used, reason = "a benchmark that cannot go on ends")]

mod raw;

use std::path::Path;
use std::time::{Duration, Instant};

use ringer_config::{RelayLink, TeamLink};
use ringer_core::{Draft, Kind, Scope, Sender};
use ringer_journal::{Home, IdSource, Journal};
use ringer_relay::{LinkState, MachineAgents, RelaySetup, RelayStatus, Relays};
use tempfile::TempDir;
use test_support::{NatsServer, until_within};

const ROUNDS: usize = 500;
const BURST: usize = 20_000;
/// The number of messages missed in a day, and of machines that miss them.
const MISSED: usize = 2_000;
const AWAY: usize = 100;
const LONG: Duration = Duration::from_mins(15);

/// A simulated machine.
struct Machine {
    directory: TempDir,
    name: String,
    url: String,
    relays: Option<Relays>,
}

impl Machine {
    fn new(server: &NatsServer, name: &str) -> Self {
        let memory = Path::new("/dev/shm");
        let directory = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let directory = directory.expect("a directory");
        let machine = Self { directory, name: name.to_owned(), url: server.url(), relays: None };
        drop(machine.journal());
        machine
    }

    fn home(&self) -> Home {
        Home::new(self.directory.path())
    }

    fn journal(&self) -> Journal {
        Journal::open(&self.home()).expect("a journal")
    }

    fn start(&mut self) {
        let team = TeamLink {
            urls: vec![self.url.clone()],
            domain: None,
            machine: Some(self.name.clone()),
            credentials: None,
            ca: None,
            share_marks: false,
        };
        let link = RelayLink {
            name: "bench".to_owned(),
            command: Vec::new(),
            ssh: None,
            may_answer: false,
            may_reach_lead: false,
            team: Some(team),
        };
        let setup = RelaySetup {
            home: self.home(),
            program: "bench".to_owned(),
            give_answer: None,
            log: Box::new(|_| {}),
        };
        let mut relays = Relays::start(setup);
        relays.set_links(vec![link]);
        self.relays = Some(relays);
    }

    fn stop(&mut self) {
        self.relays = None;
    }

    fn is_connected(&self) -> bool {
        let status = RelayStatus::read_last(&self.home());
        status
            .is_some_and(|status| status.link("bench").is_some_and(|link| link.state == LinkState::Connected))
    }

    /// Returns the number of machines whose lists arrived.
    fn knows(&self) -> usize {
        MachineAgents::all(&self.home()).iter().filter(|machine| machine.is_connected).count()
    }

    fn write(&self, count: usize) {
        let mut journal = self.journal();
        for number in 0..count {
            let text = format!("message {number}");
            let draft = Draft::new(Scope::global(), Sender::system(), Kind::Status, &text).expect("a draft");
            journal.append(&draft, &IdSource::now()).expect("it is stored");
        }
    }

    /// Returns the number of messages in its journal.
    fn count(&self) -> i64 {
        self.journal().highest().expect("a journal")
    }
}

fn wait(what: &str, is_so: impl FnMut() -> bool) {
    until_within(LONG, what, is_so);
}

/// Returns the private memory of a process, in MiB.
fn memory(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or_default() / 1024.0
}

fn percentiles(mut taken: Vec<Duration>) -> String {
    taken.sort_unstable();
    let at = |share: usize| taken[(taken.len() - 1) * share / 100];
    format!("p50 {:.2?}, p99 {:.2?}", at(50), at(99))
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn rate(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

fn latency(server: &NatsServer) {
    let mut pair = [Machine::new(server, "one"), Machine::new(server, "two")];
    for machine in &mut pair {
        machine.start();
        wait("it is connected", || machine.is_connected());
    }
    let mut own = pair[0].journal();
    let mut other = pair[1].journal();
    let mut wire = raw::Wire::new(&server.url());
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let draft = Draft::new(Scope::global(), Sender::system(), Kind::Status, "hello").expect("a draft");
        let before = other.highest().expect("a journal");
        let begun = Instant::now();
        own.append(&draft, &IdSource::now()).expect("it is stored");
        while other.highest().expect("a journal") == before {
            std::thread::yield_now();
        }
        let took = begun.elapsed();
        let raw = wire.round();
        if round >= 20 {
            with.push(took);
            without.push(raw);
        }
    }
    println!("append here -> stored there: {}", percentiles(with));
    println!("publish -> received, the same client alone: {}", percentiles(without));
}

fn throughput(server: &NatsServer) {
    let mut pair = [Machine::new(server, "three"), Machine::new(server, "four")];
    for machine in &mut pair {
        machine.start();
        wait("it is connected", || machine.is_connected());
    }
    pair[0].stop();
    pair[0].write(BURST);
    let begun = Instant::now();
    pair[0].start();
    let all = i64::try_from(BURST).expect("a number");
    wait("all are stored", || pair[1].count() >= all);
    let with = begun.elapsed();
    let without = raw::Wire::new(&server.url()).burst(BURST);
    println!(
        "{BURST} messages from one journal to another: {:.0}/s; the same client alone: {:.0}/s",
        rate(BURST, with),
        rate(BURST, without)
    );
}

fn many(server: &NatsServer) {
    let count = std::env::var("RINGER_BENCH_MACHINES").ok().and_then(|count| count.parse().ok());
    let count: usize = count.unwrap_or(1_000);
    let own = std::process::id();
    let before = (memory(own), memory(server.pid()));
    let mut machines: Vec<Machine> =
        (0..count).map(|number| Machine::new(server, &format!("m{number}"))).collect();
    let begun = Instant::now();
    for chunk in machines.chunks_mut(50) {
        for machine in chunk.iter_mut() {
            machine.start();
        }
        wait("they are connected", || chunk.iter().all(Machine::is_connected));
    }
    println!("{count} machines connected in {:.1?}", begun.elapsed());
    for machine in &machines {
        wait("it knows of all others", || machine.knows() == count - 1);
    }
    println!("each knows the agents of all others after {:.1?}", begun.elapsed());
    println!(
        "memory: this process {:.0} MiB ({:.2} MiB for each machine), the server {:.0} MiB (before: {:.0} MiB)",
        memory(own),
        (memory(own) - before.0) / f64::from(u32::try_from(count).expect("a number")),
        memory(server.pid()),
        before.1,
    );
    let begun = Instant::now();
    machines[0].write(1);
    wait("all have it", || machines.iter().all(|machine| machine.count() >= 1));
    println!("one message to all of them: {:.2?}", begun.elapsed());
    let away = count.min(AWAY + 1);
    for machine in &mut machines[1..away] {
        machine.stop();
    }
    // The others have ended, so that only catching up is measured.
    machines.truncate(away);
    machines[0].write(MISSED);
    wait("the server has all", || {
        machines[0].journal().export_lag("nats:bench").expect("a journal") == Some(0)
    });
    let begun = Instant::now();
    for machine in &mut machines[1..] {
        machine.start();
    }
    let all = i64::try_from(MISSED + 1).expect("a number");
    wait("all have caught up", || machines.iter().all(|machine| machine.count() >= all));
    let took = begun.elapsed();
    println!(
        "{} machines catch up {MISSED} messages each: {:.1?} ({:.0} messages a second); the server has {:.0} MiB",
        away - 1,
        took,
        rate((away - 1) * MISSED, took),
        memory(server.pid()),
    );
}

fn main() {
    let server = NatsServer::start();
    latency(&server);
    throughput(&server);
    drop(server);
    many(&NatsServer::start());
}
