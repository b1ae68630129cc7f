//! A thousand random mutations of the database and its log: never a panic, never a signal, and the next message arrives.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use ringer_core::message::Agent;
use ringer_core::{Draft, Kind, MessageId, Recipient, Scope, Sender};
use ringer_journal::{Consumer, Home, IdSource, Journal};
use test_support::Random;

use crate::home::{TestEnvironment, lines, texts};

const SCOPE: &str = "00c0ffee";

const PAGE: usize = 4096;

/// Damages some bytes. Gives what was done, in words.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) -> String {
    if bytes.is_empty() {
        return "nothing to damage".to_owned();
    }
    match random.place(6) {
        0 => {
            let length = random.place(bytes.len());
            bytes.truncate(length);
            format!("cut at {length}")
        }
        1 => {
            let page = random.place(bytes.len() / PAGE + 1) * PAGE;
            let end = (page + PAGE).min(bytes.len());
            bytes[page..end].fill(0);
            format!("zeroed {page}..{end}")
        }
        2 => {
            let start = random.place(bytes.len());
            let end = (start + 1 + random.place(600)).min(bytes.len());
            bytes[start..end].fill_with(|| random.byte());
            format!("noise in {start}..{end}")
        }
        _ => {
            let mut done = "flipped".to_owned();
            for _ in 0..=random.place(8) {
                let at = random.place(bytes.len());
                let bit = 1_u8 << random.place(8);
                bytes[at] ^= bit;
                write!(done, " {at}^{bit:#04x}").expect("a String takes everything");
            }
            done
        }
    }
}

/// A journal with something in every table, partly in the database and partly in the log.
struct Template {
    files: Vec<(&'static str, Vec<u8>)>,
}

impl Template {
    fn new(environment: &TestEnvironment) -> Self {
        let scope = Scope::new(SCOPE).expect("a scope");
        let mut journal = Journal::open(&Home::new(environment.home())).expect("a journal");
        let draft = |number: u64| {
            let sender = Sender::new(&format!("agent-{}", number % 3)).expect("a name");
            Draft::new(scope.clone(), sender, Kind::Status, &format!("message number {number}"))
                .expect("a draft")
        };
        // Always the same, so that a round does the same each time; and in 2100, so that nothing is old enough to be
        // pruned.
        let start = 4_102_444_800_000;
        let stamp = |number: u64| {
            let mut random = [7; 16];
            random[..8].copy_from_slice(&number.to_le_bytes());
            random[8..].copy_from_slice(&(number << 16).to_le_bytes());
            IdSource { unix_ms: start + i64::try_from(number).expect("small"), random }
        };
        // Enough that the log was copied into the database, and some more that are in the log alone.
        for number in 0..120 {
            let mut draft = draft(number);
            if number % 5 == 0 {
                draft.recipient = Recipient::Agent(Agent::new("worker").expect("a name"));
            }
            let random = [u8::try_from(number).expect("small"); 10];
            let stamp = stamp(number);
            let id = MessageId::new(stamp.unix_ms.cast_unsigned(), random);
            journal.append_as(&draft, &id, stamp.unix_ms).expect("appended");
        }
        for number in 200..204 {
            journal.ask(&draft(number), "really?", &[], &stamp(number), None).expect("asked");
        }
        let last = journal.messages_after(59, 1).expect("readable").remove(0);
        for consumer in ["lead", "other"] {
            let consumer = Consumer::new(consumer, scope.clone()).expect("a name");
            journal.advance(&consumer, (last.seq, &last.id), start).expect("moved");
        }
        drop(journal);
        let names = ["ringer.db", "ringer.db-wal"];
        let read = |name| (name, fs::read(environment.home().join(name)).expect("a file"));
        Self { files: names.into_iter().map(read).collect() }
    }

    /// A home with the same files, one of them damaged.
    fn damaged(&self, home: &Path, random: &mut Random) -> String {
        let _ = fs::remove_dir_all(home);
        for folder in ["bells", "locks"] {
            fs::create_dir_all(home.join(folder)).expect("a folder");
        }
        let victim = random.place(self.files.len());
        let mut done = String::new();
        for (number, (name, bytes)) in self.files.iter().enumerate() {
            let mut bytes = bytes.clone();
            if number == victim {
                done = format!("{name}: {}", mutate(&mut bytes, random));
            }
            fs::write(home.join(name), bytes).expect("written");
        }
        done
    }
}

/// One command, with the repair that it asks for. Gives its output; complains about anything but a decent end.
fn run(
    environment: &TestEnvironment,
    arguments: &[&str],
    told: &mut String,
) -> Result<(i32, String), String> {
    // What a command meets is repaired at once, so the second one meets what the first did not reach.
    for _ in 0..3 {
        let (exit, printed) = run_once(environment, arguments, told)?;
        if exit != 75 {
            return Ok((exit, printed));
        }
        let (exit, said) = run_once(environment, &["doctor", "--repair"], told)?;
        if exit != 0 || !said.contains("was damaged") {
            return Err(format!("{arguments:?} met damage, and doctor --repair ended with {exit}: {said}"));
        }
        told.push_str(&said);
    }
    Err(format!("{arguments:?} met damage again and again: {told}"))
}

fn run_once(
    environment: &TestEnvironment,
    arguments: &[&str],
    told: &mut String,
) -> Result<(i32, String), String> {
    // Without `setsid` before it: three thousand times one program less.
    let mut command = environment.program(env!("CARGO_BIN_EXE_ringer"));
    let output = command.args(arguments).stdin(Stdio::null()).output().expect("it runs");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    told.push_str(&err);
    match output.status.code() {
        None => Err(format!("{arguments:?} was killed by signal {:?}", output.status.signal())),
        Some(0) => Ok((0, String::from_utf8_lossy(&output.stdout).into_owned())),
        Some(code @ 64..=78) if !err.is_empty() => Ok((code, String::new())),
        Some(code) => Err(format!("{arguments:?} ended with {code}: {err}")),
    }
}

/// What was set aside.
fn asides(home: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(home).expect("a home").flatten().map(|entry| entry.path());
    let is_aside = |path: &PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        name.starts_with("ringer.db.damaged-") && !name.ends_with("-wal") && !name.ends_with("-shm")
    };
    entries.filter(is_aside).collect()
}

/// What a damaged journal has to do.
fn survive(environment: &TestEnvironment, round: u64) -> Result<(), String> {
    let mut told = String::new();
    let firsts: [&[&str]; 5] = [
        &["notify", "first"],
        &["listen", "--timeout", "0"],
        &["listen", "--timeout", "0", "--max", "1"],
        &["status", "--json"],
        &["log", "--json"],
    ];
    let first = firsts[usize::try_from(round).expect("small") % firsts.len()];
    run(environment, first, &mut told)?;
    let (exit, _) = run(environment, &["notify", "the one"], &mut told)?;
    if exit != 0 {
        return Err(format!("notify ended with {exit}: {told}"));
    }
    let mut delivered = false;
    for _ in 0..5 {
        let (exit, printed) = run(environment, &["listen", "--timeout", "0"], &mut told)?;
        if exit != 0 {
            return Err(format!("listen ended with {exit}: {told}"));
        }
        delivered |= texts(&lines(&printed)).contains(&"the one".to_owned());
        if delivered {
            break;
        }
    }
    if !delivered {
        return Err(format!("acknowledged and not delivered: {told}"));
    }
    for aside in asides(&environment.home()) {
        if !told.contains(&aside.display().to_string()) {
            return Err(format!("no command named {} after {first:?}: {told}", aside.display()));
        }
    }
    Ok(())
}

fn check(rounds: std::ops::Range<u64>) {
    let environment = TestEnvironment::in_memory();
    let folder = environment.repository().join(".git/ringer");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join("id"), format!("{SCOPE}\n")).expect("an id");
    let template = Template::new(&environment);
    let mut complaints = Vec::new();
    for round in rounds.clone() {
        let done = template.damaged(&environment.home(), &mut Random::new(round));
        if let Err(complaint) = survive(&environment, round) {
            complaints.push(format!("round {round} ({done}): {complaint}"));
        }
    }
    let count = complaints.len();
    complaints.truncate(10);
    assert!(count == 0, "{count} of {rounds:?} failed:\n{}", complaints.join("\n"));
}

#[test]
fn rounds_0_to_249() {
    check(0..250);
}

#[test]
fn rounds_250_to_499() {
    check(250..500);
}

#[test]
fn rounds_500_to_749() {
    check(500..750);
}

#[test]
fn rounds_750_to_999() {
    check(750..1000);
}
