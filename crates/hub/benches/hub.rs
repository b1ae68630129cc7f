//! A whole hub under load: how many messages it takes and tells of, how long one is on its way, what it holds in memory
//! afterwards, and how often it is woken when nothing happens.
//!
//! Run with `cargo xtask bench hub`, which names the program to try in `RINGER`. The home is in memory where the system
//! has a place for that: the disk is not what is measured. `RINGER_BENCH_MESSAGES` chooses another number of messages.

#![expect(clippy::expect_used, reason = "a measurement that cannot go on has failed")]

use std::cell::Cell;
use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use ringer_core::message::MessageOrigin;
use ringer_core::{Draft, Kind, MessageId, Scope, Sender};
use ringer_ipc::HubClient;
use ringer_journal::{Home, IdSource, Journal};
use serde_json::{Value, json};

const MESSAGES: usize = 100_000;
/// Messages that are sent one at a time, each when the one before it has arrived.
const PACED: usize = 2_000;
/// The same, through a program that is started for each.
const COMMANDS: usize = 300;
const IDLE: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_mins(5);

/// Ids of notifications, with the moment of hearing of each.
type Told = Receiver<(String, Instant)>;

fn main() {
    let Some(ringer) = std::env::var_os("RINGER").map(PathBuf::from) else {
        // As when all targets are tried.
        eprintln!("RINGER names no program; cargo xtask bench hub does");
        return;
    };
    let chosen = std::env::var("RINGER_BENCH_MESSAGES").ok().and_then(|number| number.parse().ok());
    let messages = chosen.unwrap_or(MESSAGES);
    let hub = Hub::start(&ringer);
    let mut journal = Journal::open(&hub.home).expect("a journal");

    println!("| what | figure |\n|---|---:|");
    println!("| memory at the beginning | {} |", megabytes(hub.memory()));
    let told = hub.follow();
    let begun = Instant::now();
    let mut sent = HashMap::with_capacity(messages);
    for number in 0..messages {
        let id = append(&mut journal, &format!("message {number}"));
        sent.insert(id, Instant::now());
    }
    let appended = begun.elapsed();
    let late = arrivals(&told, &mut sent);
    let delivered = begun.elapsed();
    println!("| {messages} messages appended | {} |", rate(messages, appended));
    println!("| taken, decided, written down and told of | {} |", rate(messages, delivered));
    row("append → told, under that load", late);
    println!("| memory with all of them unread | {} |", megabytes(hub.memory()));
    hub.longest_turns();

    let mut late = Vec::with_capacity(PACED);
    for number in 0..PACED {
        let id = append(&mut journal, &format!("paced {number}"));
        late.extend(arrivals(&told, &mut HashMap::from([(id, Instant::now())])));
    }
    row("append → told, one at a time", late);
    row("the same, from a repository with settings", hub.paced_in_a_repository(&mut journal, &told));
    row("append → the person's command runs", hub.through_a_command(&mut journal));

    hub.mark_all("notification.clear", "clearing all of them");
    println!("| memory when all are cleared | {} |", megabytes(hub.memory()));
    for number in 0..messages {
        append(&mut journal, &format!("message {number}"));
    }
    hub.wait_until_unread(messages);
    hub.longest_turn("taking them in again");
    println!("| memory with as many unread again | {} |", megabytes(hub.memory()));
    hub.mark_all("notification.mark_read", "reading all of them");
    println!("| memory when all are read | {} |", megabytes(hub.memory()));
    drop(told);
    // What was cleared is withdrawn one by one.
    while hub.switches() != {
        thread::sleep(Duration::from_millis(500));
        hub.switches()
    } {}
    let before = hub.switches();
    // The time that passes is what is measured.
    thread::sleep(IDLE);
    println!(
        "| voluntary context switches in {} idle seconds | {} |",
        IDLE.as_secs(),
        hub.switches() - before
    );
}

fn append(journal: &mut Journal, body: &str) -> MessageId {
    journal.append(&draft(body), &IdSource::now()).expect("it is appended")
}

fn draft(body: &str) -> Draft {
    Draft::new(Scope::global(), Sender::system(), Kind::Status, body).expect("a message")
}

/// Waits until all of them were told of. Gives how late each was.
fn arrivals(told: &Told, sent: &mut HashMap<MessageId, Instant>) -> Vec<Duration> {
    let mut late = Vec::with_capacity(sent.len());
    while !sent.is_empty() {
        let (id, at) = told.recv_timeout(PATIENCE).expect("all of them are told of");
        if let Some(begun) = MessageId::parse(&id).ok().and_then(|id| sent.remove(&id)) {
            late.push(at.saturating_duration_since(begun));
        }
    }
    late
}

fn row(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at =
        |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1000.0;
    println!("| {what}: p50, p99, longest | {:.2} ms, {:.2} ms, {:.2} ms |", at(50), at(99), at(100));
}

#[expect(clippy::cast_precision_loss, reason = "messages of one run")]
fn rate(messages: usize, took: Duration) -> String {
    format!("{:.1} s, {:.0}/s", took.as_secs_f64(), messages as f64 / took.as_secs_f64())
}

fn megabytes(kilobytes: u64) -> String {
    format!("{} MB", kilobytes / 1024)
}

/// The program as a hub, with a home of its own; both are gone when this is dropped.
struct Hub {
    directory: tempfile::TempDir,
    home: Home,
    child: Child,
    /// The longest turn, in microseconds, that was seen while waiting.
    longest: Cell<u64>,
}

impl Hub {
    /// How long the loop is busy with one request, with everything unread.
    fn longest_turns(&self) {
        self.longest_turn("taking them in");
        for (method, params) in [
            ("notification.list", json!({ "unread": true })),
            ("notification.list", json!({ "scope": "0a0a0a0a" })),
            ("workspace.list", Value::Null),
            ("agent.list", Value::Null),
            ("surface.focus", json!({ "surface_id": "nowhere" })),
        ] {
            // Also a request that is refused has to be looked up.
            let _ = HubClient::connect(&self.home).and_then(|mut client| client.call(method, &params));
            self.longest_turn(&format!("{method} {params}"));
        }
    }

    /// Marks everything, and waits until that is done.
    fn mark_all(&self, method: &str, what: &str) {
        // So that the command of the last measurement is not run for each of the next ones.
        let settings = "[answers]\nscripts = true\n[notify]\nrate_limit = \"off\"\npopup = \"off\"\n";
        fs::write(self.directory.path().join("config.toml"), settings).expect("a file");
        self.call("hub.reload", &Value::Null);
        self.call("hub.status", &Value::Null);
        let begun = Instant::now();
        self.call(method, &json!({ "all": true }));
        println!("| {what} | {:.1} s |", begun.elapsed().as_secs_f64());
        self.wait_until_unread(0);
        self.longest_turn(what);
    }

    /// One more may be unread: that the journal is full and its oldest messages were removed.
    fn wait_until_unread(&self, unread: usize) {
        let over = Instant::now() + PATIENCE;
        let mut longest = 0;
        loop {
            let status = self.call("hub.status", &Value::Null);
            longest = longest.max(status["longest_turn_us"].as_u64().unwrap_or(0));
            let found = status["unread"].as_u64().and_then(|found| usize::try_from(found).ok());
            let is_there = found.is_some_and(|found| found == unread || found == unread + 1);
            if is_there && status["behind"] == 0 {
                self.longest.set(longest);
                return;
            }
            assert!(Instant::now() < over, "the hub does not come to an end: {status}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn longest_turn(&self, of: &str) {
        // Asking begins a new measurement.
        let last = self.call("hub.status", &Value::Null)["longest_turn_us"].as_u64().unwrap_or(0);
        let micros = last.max(self.longest.take());
        println!("| the loop's longest turn: {of} | {}.{:02} ms |", micros / 1000, micros / 10 % 100);
    }

    fn start(ringer: &Path) -> Self {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let directory = tempfile::tempdir_in(parent).expect("a directory");
        let home = Home::new(directory.path().join("home"));
        let config = directory.path().join("config.toml");
        fs::write(&config, "[answers]\nscripts = true\n[notify]\nrate_limit = \"off\"\npopup = \"off\"\n")
            .expect("a file");
        let child = Command::new(ringer)
            .args(["hub", "start", "--foreground"])
            .env("RINGER_HOME", home.path())
            .env("RINGER_CONFIG", config)
            .env("XDG_RUNTIME_DIR", directory.path())
            .env_remove("DBUS_SESSION_BUS_ADDRESS")
            .env("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere/bus")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a hub");
        let hub = Self { directory, home, child, longest: Cell::new(0) };
        let over = Instant::now() + PATIENCE;
        while HubClient::connect(&hub.home).is_err() {
            assert!(Instant::now() < over, "the hub does not answer");
            thread::yield_now();
        }
        hub
    }

    fn call(&self, method: &str, params: &Value) -> Value {
        HubClient::connect(&self.home).expect("a connection").call(method, params).expect("an answer")
    }

    /// The ids of new notifications, with the moment of hearing of each.
    fn follow(&self) -> Told {
        let (tell, told) = channel();
        let home = self.home.clone();
        thread::spawn(move || {
            let mut after = Some(0);
            while let Some(last) = after {
                after = listen(&home, last, |id| tell.send((id, Instant::now())).is_ok());
            }
        });
        told
    }

    /// Messages that are sent one at a time from a directory, whose repository is looked at for each of them.
    fn paced_in_a_repository(&self, journal: &mut Journal, told: &Told) -> Vec<Duration> {
        let root = self.directory.path().join("repository");
        fs::create_dir_all(root.join(".git/objects")).expect("a directory");
        fs::create_dir_all(root.join(".git/refs")).expect("a directory");
        fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").expect("a file");
        fs::write(root.join(".ringer.toml"), "[notify]\nmute = [{ agent = \"nobody\" }]\n").expect("a file");
        let scope = Scope::new("0a0a0a0a").expect("a scope");
        let origin = MessageOrigin { cwd: root.to_str().map(str::to_owned), ..MessageOrigin::default() };
        let mut late = Vec::with_capacity(PACED);
        for number in 0..PACED {
            let from =
                Draft { scope: scope.clone(), origin: origin.clone(), ..draft(&format!("repo {number}")) };
            let id = journal.append(&from, &IdSource::now()).expect("it is appended");
            late.extend(arrivals(told, &mut HashMap::from([(id, Instant::now())])));
        }
        late
    }

    /// Runs a program for each of some messages that says so through a FIFO.
    fn through_a_command(&self, journal: &mut Journal) -> Vec<Duration> {
        let fifo = self.directory.path().join("fifo");
        let made = Command::new("mkfifo").arg(&fifo).status().expect("mkfifo");
        assert!(made.success(), "a FIFO");
        let command = json!(["sh", "-c", "echo \"$RINGER_NOTIFICATION_ID\" > \"$0\"", fifo]);
        let settings = format!(
            "[answers]\nscripts = true\n[notify]\nrate_limit = \"off\"\npopup = \"off\"\ncommand = {command}\n"
        );
        fs::write(self.directory.path().join("config.toml"), settings).expect("a file");
        self.call("hub.reload", &Value::Null);
        // Open for both, so that it never reads as ended between two writers.
        let open = fs::File::options().read(true).write(true).open(&fifo).expect("a FIFO");
        let mut lines = BufReader::new(open).lines();
        let mut late = Vec::with_capacity(COMMANDS);
        for number in 0..COMMANDS {
            let id = append(journal, &format!("command {number}"));
            let begun = Instant::now();
            let line = lines.next().expect("a line").expect("a line");
            late.push(begun.elapsed());
            assert_eq!(line, id.as_str());
        }
        late
    }

    /// What it holds in memory, in kilobytes.
    fn memory(&self) -> u64 {
        field(&format!("/proc/{}/status", self.child.id()), "VmRSS:")
    }

    /// How often its threads went to sleep, so also how often they were woken.
    fn switches(&self) -> u64 {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("its threads").flatten();
        let statuses = threads.map(|thread| thread.path().join("status"));
        statuses.map(|path| field(&path.to_string_lossy(), "voluntary_ctxt_switches:")).sum()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Follows until the hub ends it. Gives the number of the last event, or `None` when `tell` wants no more of them.
fn listen(home: &Home, after: u64, mut tell: impl FnMut(String) -> bool) -> Option<u64> {
    let mut client = HubClient::connect(home).ok()?;
    let params = json!({ "after_seq": after, "names": ["notification.created"] });
    let begun = client.call("events.subscribe", &params).ok()?;
    // Cut off because it did not keep up, and some of what it missed is not kept any more: nothing is left to measure.
    assert_ne!(begun["gap"], true, "the follower did not keep up; try again with less beside it");
    client.wait_for_ever().ok()?;
    let mut last = after;
    while let Ok(Some(line)) = client.next_line() {
        let event: Value = serde_json::from_str(&line).ok()?;
        last = event["seq"].as_u64().unwrap_or(last);
        if let Some(id) = event["data"]["id"].as_str()
            && !tell(id.to_owned())
        {
            return None;
        }
    }
    Some(last)
}

fn field(path: &str, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value.and_then(|value| value.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
