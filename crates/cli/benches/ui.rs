//! The inbox in a real terminal: how long until it is there, how long a key and an event take to the screen, what it costs
//! while nothing happens and while much does, and what it holds in memory.
//!
//! Run with `cargo xtask bench ui`, which names the program to try in `RINGER`. The home is in memory where the system has a
//! place for that. `RINGER_BENCH_MESSAGES` and `RINGER_BENCH_IDLE` choose another number of messages and of idle seconds.

#![expect(clippy::expect_used, reason = "a measurement that cannot go on has failed")]

use std::cell::RefCell;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use ringer_core::{Draft, Kind, Scope, Sender};
use ringer_ipc::HubClient;
use ringer_journal::{Home, IdSource, Journal};
use serde_json::{Value, json};

const STARTS: usize = 100;
const KEYS: usize = 500;
const EVENTS: usize = 200;
const LOAD: Duration = Duration::from_secs(5);
const LOAD_PER_SECOND: u32 = 1000;
const PATIENCE: Duration = Duration::from_mins(2);
/// What begins and ends a frame: a terminal shows everything between them at once.
const FRAME: (&[u8], &[u8]) = (b"\x1b[?2026h", b"\x1b[?2026l");
/// A frame with less than this only places the cursor.
const EMPTY_FRAME: usize = 24;

fn main() {
    let Some(ringer) = std::env::var_os("RINGER").map(PathBuf::from) else {
        // As when all targets are tried.
        eprintln!("RINGER names no program; cargo xtask bench ui does");
        return;
    };
    let chosen = |name: &str, default| {
        std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(default)
    };
    let messages = chosen("RINGER_BENCH_MESSAGES", 100_000);
    let idle = Duration::from_secs(chosen("RINGER_BENCH_IDLE", 60));
    let hub = Hub::start(&ringer);
    let mut journal = Journal::open(&hub.home).expect("a journal");
    for number in 0..100 {
        append(&mut journal, Kind::Status, &format!("message {number}"));
    }
    hub.wait_until_read();

    starts(&hub);
    let screen = hub.open();
    screen.until("RECENT");
    keys(&screen);
    events(&hub, &screen, &mut journal);
    at_rest(&hub, &screen, idle);
    under_load(&hub, &screen, &mut journal);
    drop(screen);
    memory(&hub, &mut journal, messages);
}

/// From before the process is started to the first frame with the data, against the same table in a pipe.
fn starts(hub: &Hub) {
    let (mut frames, mut tables) = (Vec::new(), Vec::new());
    let mut first_frames = Vec::new();
    for _ in 0..STARTS {
        let begun = Instant::now();
        let screen = hub.open();
        screen.frame_with(|_| true);
        first_frames.push(begun.elapsed());
        screen.frame_with(|frame| contains(frame, b"RECENT"));
        frames.push(begun.elapsed());
        drop(screen);
        let begun = Instant::now();
        let status = hub.ringer(&[]).stdout(Stdio::null()).status().expect("a table");
        assert!(status.success(), "a table");
        tables.push(begun.elapsed());
    }
    table(
        &format!("start to the screen ({STARTS} runs each, in turn)"),
        &mut [
            ("`ringer` in a terminal: first frame", first_frames),
            ("`ringer` in a terminal: with all data", frames),
            ("`ringer` in a pipe: the whole table", tables),
        ],
    );
}

/// From a key to the frame that shows it, against the terminal's own echo.
fn keys(screen: &Screen) {
    let echo = Screen::of(CommandBuilder::new("cat"));
    let (mut frames, mut echoes) = (Vec::new(), Vec::new());
    for number in 0..KEYS {
        let key = if number / 8 % 2 == 0 { b"j" } else { b"k" };
        frames.push(screen.press(key));
        let begun = Instant::now();
        echo.write(b"x");
        echo.bytes();
        echoes.push(begun.elapsed());
    }
    table(
        &format!("a key to the screen ({KEYS} each, in turn)"),
        &mut [("the inbox", frames), ("`cat`: the terminal's echo", echoes)],
    );
}

/// From before a message is in the journal to the frame that shows it, against a follower of the hub's events.
fn events(hub: &Hub, screen: &Screen, journal: &mut Journal) {
    let told = hub.follow();
    let (mut frames, mut lines) = (Vec::new(), Vec::new());
    for number in 0..EVENTS {
        // So that it is not among what the inbox reads because of the last one.
        thread::sleep(Duration::from_millis(120));
        // The list follows the row that is selected.
        screen.write(b"g");
        screen.skip();
        // No letter is where another one was, so all of it is drawn.
        let letter = char::from(b'A' + u8::try_from(number % 26).expect("a letter"));
        let text = letter.to_string().repeat(12);
        let begun = Instant::now();
        append(journal, Kind::Status, &text);
        lines.push(told.recv_timeout(PATIENCE).expect("it is told of").saturating_duration_since(begun));
        screen.frame_with(|frame| contains(frame, text.as_bytes()));
        frames.push(begun.elapsed());
    }
    table(
        &format!("a message to the screen ({EVENTS})"),
        &mut [("the inbox", frames), ("the hub's event on its socket", lines)],
    );
}

fn at_rest(hub: &Hub, screen: &Screen, idle: Duration) {
    // The ages of what is new change every second.
    thread::sleep(Duration::from_mins(1));
    screen.skip();
    let (before, cpu) = (switches(screen.pid), cpu_time(screen.pid));
    let (hub_before, hub_cpu) = (switches(hub.child.id()), cpu_time(hub.child.id()));
    // The time that passes is what is measured.
    thread::sleep(idle);
    let frames = screen.skip();
    println!("| {} s at rest | woken | CPU | frames |\n|---|---:|---:|---:|", idle.as_secs());
    println!(
        "| the inbox | {} | {} ms | {frames} |",
        switches(screen.pid) - before,
        cpu_time(screen.pid).saturating_sub(cpu).as_millis()
    );
    println!(
        "| the hub | {} | {} ms | |\n",
        switches(hub.child.id()) - hub_before,
        cpu_time(hub.child.id()).saturating_sub(hub_cpu).as_millis()
    );
}

fn under_load(hub: &Hub, screen: &Screen, journal: &mut Journal) {
    screen.skip();
    let (cpu, hub_cpu) = (cpu_time(screen.pid), cpu_time(hub.child.id()));
    let (begun, step) = (Instant::now(), Duration::from_secs(1) / LOAD_PER_SECOND);
    let (mut sent, mut keys, mut next_key) = (0, Vec::new(), Duration::ZERO);
    let mut frames = 0;
    while begun.elapsed() < LOAD {
        append(journal, Kind::Status, &format!("load {sent}"));
        sent += 1;
        if begun.elapsed() > next_key {
            next_key += Duration::from_millis(100);
            frames += screen.skip();
            keys.push(screen.press(b"j"));
        }
        thread::sleep((step * sent).saturating_sub(begun.elapsed()));
    }
    let took = begun.elapsed();
    frames += screen.skip();
    let share = |before: Duration, pid| {
        100.0 * cpu_time(pid).saturating_sub(before).as_secs_f64() / took.as_secs_f64()
    };
    println!(
        "| {sent} messages in {:.1} s | CPU | frames |\n|---|---:|---:|\n| the inbox | {:.0} % | {frames} |\n| the hub | {:.0} % | |\n",
        took.as_secs_f64(),
        share(cpu, screen.pid),
        share(hub_cpu, hub.child.id())
    );
    table("a key to a frame meanwhile", &mut [("the inbox", keys)]);
    hub.wait_until_read();
}

/// What the inbox holds with so many notifications; and if all of them need the person.
fn memory(hub: &Hub, journal: &mut Journal, messages: u64) {
    println!("| memory of the inbox | RSS | first frame with data |\n|---|---:|---:|");
    for (kind, what) in [(Kind::Status, "unread"), (Kind::Error, "that need the person")] {
        hub.call("notification.clear", &json!({ "all": true }));
        for number in 0..messages {
            append(journal, kind, &format!("{what} {number}"));
        }
        hub.wait_until_read();
        let begun = Instant::now();
        let screen = hub.open();
        screen.frame_with(|frame| contains(frame, b"NEEDS YOU") || contains(frame, b"RECENT"));
        let took = begun.elapsed();
        append(journal, kind, "one more");
        screen.frame_with(|_| true);
        println!(
            "| {messages} {what} | {:.1} MB | {:.1} ms |",
            f64::from(u32::try_from(field(screen.pid, "VmRSS:")).unwrap_or(u32::MAX)) / 1024.0,
            took.as_secs_f64() * 1e3
        );
    }
}

fn append(journal: &mut Journal, kind: Kind, body: &str) {
    let draft = Draft::new(Scope::global(), Sender::system(), kind, body).expect("a message");
    journal.append(&draft, &IdSource::now()).expect("it is appended");
}

/// The ratios are to the last one.
fn table(title: &str, rows: &mut [(&str, Vec<Duration>)]) {
    let at = |times: &[Duration], percent: usize| {
        let rank = (times.len() * percent).div_ceil(100).saturating_sub(1);
        times[rank.min(times.len() - 1)].as_secs_f64() * 1e3
    };
    for (_, times) in rows.iter_mut() {
        times.sort_unstable();
    }
    let Some((_, baseline)) = rows.last() else { return };
    println!("| {title} | p50 | p99 | longest | p50 ratio |\n|---|---:|---:|---:|---:|");
    for (name, times) in rows.iter() {
        let [p50, p99, longest] = [50, 99, 100].map(|percent| at(times, percent));
        let ratio = p50 / at(baseline, 50);
        println!("| {name} | {p50:.2} ms | {p99:.2} ms | {longest:.2} ms | {ratio:.2} × |");
    }
    println!();
}

fn contains(frame: &[u8], words: &[u8]) -> bool {
    frame.windows(words.len()).any(|window| window == words)
}

/// A program in a terminal of 100 columns and 30 lines.
struct Screen {
    pid: u32,
    child: Box<dyn portable_pty::Child + Send + Sync>,
    writer: RefCell<Box<dyn Write + Send>>,
    read: Receiver<Vec<u8>>,
    /// What was read and is no whole frame yet.
    rest: RefCell<Vec<u8>>,
    _master: Box<dyn portable_pty::MasterPty + Send>,
}

impl Screen {
    fn of(command: CommandBuilder) -> Self {
        let size = PtySize { rows: 30, cols: 100, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a terminal");
        let child = pair.slave.spawn_command(command).expect("a program");
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let writer = RefCell::new(pair.master.take_writer().expect("a writer"));
        let (send, read) = channel();
        thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if send.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let pid = child.process_id().expect("a process");
        Self { pid, child, writer, read, rest: RefCell::default(), _master: pair.master }
    }

    fn write(&self, bytes: &[u8]) {
        let mut writer = self.writer.borrow_mut();
        writer.write_all(bytes).and_then(|()| writer.flush()).expect("a key is typed");
    }

    fn bytes(&self) -> Vec<u8> {
        self.read.recv_timeout(PATIENCE).expect("something is drawn")
    }

    /// Takes the first whole frame out of what was read.
    fn take_frame(&self) -> Option<Vec<u8>> {
        let mut rest = self.rest.borrow_mut();
        let end = rest.windows(FRAME.1.len()).position(|window| window == FRAME.1)?;
        let frame: Vec<u8> = rest.drain(..end + FRAME.1.len()).collect();
        let start = frame.windows(FRAME.0.len()).position(|window| window == FRAME.0);
        Some(frame[start.map_or(0, |start| start + FRAME.0.len())..end].to_vec())
    }

    /// Waits for a frame that changes something.
    fn frame_with(&self, is_it: impl Fn(&[u8]) -> bool) {
        loop {
            while let Some(frame) = self.take_frame() {
                if frame.len() > EMPTY_FRAME && is_it(&frame) {
                    return;
                }
            }
            let bytes = self.bytes();
            self.rest.borrow_mut().extend(bytes);
        }
    }

    fn until(&self, words: &str) {
        self.frame_with(|frame| contains(frame, words.as_bytes()));
    }

    /// Drops what was drawn. Gives how many frames changed something.
    fn skip(&self) -> usize {
        while let Ok(bytes) = self.read.recv_timeout(Duration::from_millis(1)) {
            self.rest.borrow_mut().extend(bytes);
        }
        let mut frames = 0;
        while let Some(frame) = self.take_frame() {
            frames += usize::from(frame.len() > EMPTY_FRAME);
        }
        frames
    }

    /// How long a key takes to the next frame that changes something.
    fn press(&self, key: &[u8]) -> Duration {
        self.skip();
        let begun = Instant::now();
        self.write(key);
        self.frame_with(|_| true);
        begun.elapsed()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program as a hub, with a home of its own; both are gone when this is dropped.
struct Hub {
    ringer: PathBuf,
    directory: tempfile::TempDir,
    home: Home,
    child: Child,
}

impl Hub {
    fn start(ringer: &Path) -> Self {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let directory = tempfile::tempdir_in(parent).expect("a directory");
        let home = Home::new(directory.path().join("home"));
        let settings = "[answers]\nscripts = true\n[notify]\nrate_limit = \"off\"\npopup = \"off\"\n";
        fs::write(directory.path().join("config.toml"), settings).expect("a file");
        let mut command = command(ringer, directory.path(), &["hub", "start", "--foreground"]);
        let child = command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().expect("a hub");
        let hub = Self { ringer: ringer.to_owned(), directory, home, child };
        let over = Instant::now() + PATIENCE;
        while HubClient::connect(&hub.home).is_err() {
            assert!(Instant::now() < over, "the hub does not answer");
            thread::yield_now();
        }
        hub
    }

    fn ringer(&self, arguments: &[&str]) -> Command {
        command(&self.ringer, self.directory.path(), arguments)
    }

    /// The inbox in a terminal.
    fn open(&self) -> Screen {
        let mut builder = CommandBuilder::new(&self.ringer);
        for (name, value) in self.ringer(&[]).get_envs() {
            match value {
                Some(value) => builder.env(name, value),
                None => builder.env_remove(name),
            }
        }
        builder.env("TERM", "xterm-256color");
        builder.env_remove("TMUX");
        builder.cwd(self.directory.path());
        Screen::of(builder)
    }

    fn call(&self, method: &str, params: &Value) -> Value {
        HubClient::connect(&self.home).expect("a connection").call(method, params).expect("an answer")
    }

    /// Waits until the hub has read the journal.
    fn wait_until_read(&self) {
        let over = Instant::now() + PATIENCE;
        while self.call("hub.status", &Value::Null)["behind"] != 0 {
            assert!(Instant::now() < over, "the hub does not come to an end");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The moments in which the hub told of new notifications.
    fn follow(&self) -> Receiver<Instant> {
        let (tell, told) = channel();
        let mut client = HubClient::connect(&self.home).expect("a connection");
        let params = json!({ "names": ["notification.created"] });
        client.call("events.subscribe", &params).expect("it follows");
        client.wait_for_ever().expect("it waits");
        thread::spawn(move || {
            while let Ok(Some(_)) = client.next_line() {
                if tell.send(Instant::now()).is_err() {
                    return;
                }
            }
        });
        told
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(ringer: &Path, directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(ringer);
    command
        .args(arguments)
        .env("RINGER_HOME", directory.join("home"))
        .env("RINGER_CONFIG", directory.join("config.toml"))
        .env("XDG_RUNTIME_DIR", directory)
        .env("LC_ALL", "C.UTF-8")
        .env_remove("DBUS_SESSION_BUS_ADDRESS")
        .current_dir(directory)
        .stdin(Stdio::null());
    command
}

/// How often the threads of a process went to sleep, so also how often they were woken.
fn switches(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("its threads").flatten();
    let statuses = threads.map(|thread| thread.path().join("status"));
    statuses.map(|path| field_of(&path, "voluntary_ctxt_switches:")).sum()
}

fn field(pid: u32, name: &str) -> u64 {
    field_of(Path::new(&format!("/proc/{pid}/status")), name)
}

fn field_of(path: &Path, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value.and_then(|value| value.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// In user and system mode, by clock ticks of 10 ms.
fn cpu_time(pid: u32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}
