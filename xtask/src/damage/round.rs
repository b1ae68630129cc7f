use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::mutation::mutate;
use super::template::{Answer, COMMAND_TIMEOUT, Hub, Template};
use crate::background::until;
use crate::environment::failed;
use crate::failure::Failure;
use crate::hubs;
use crate::random::Random;

/// The most important files; two rounds in three damage one of them.
const DATABASES: [&str; 4] = ["ringer.db", "ringer.db-wal", "hub.db", "hub.db-wal"];

/// The number of commands in a round that may start a hub.
const MAX_HUBS: usize = 6;
/// The timeout for a process to disappear.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Commands, one of which runs first after the damage.
const FIRST: [&[&str]; 8] = [
    &["notify", "--from", "tester", "first"],
    &["hook", "codex", "notify", "{\"type\":\"agent-turn-complete\",\"thread-id\":\"x\"}"],
    &["listen", "--timeout", "0"],
    &["status", "--json"],
    &["list", "--json"],
    &["log", "--json"],
    &["doctor", "--json"],
    &["read", "--all"],
];

/// The result of one round.
pub(super) struct Outcome {
    /// The damaged file, and the damage.
    pub(super) what: String,
    pub(super) with_hub: bool,
    pub(super) was_told: bool,
    pub(super) has_lost_messages: bool,
    /// The problem, if there was one.
    pub(super) complaint: Option<String>,
}

pub(super) fn run(template: &Template, seed: u64, number: u64) -> Result<Outcome, Failure> {
    let mut random = Random::new(seed, number);
    template.restore()?;
    let with_hub = random.one_in(2);
    if with_hub {
        template.ask(Hub::MayStart, &["notify", "--from", "tester", "before"])?;
        if !template.wait_until_idle() {
            return Err(Failure::complaints("the hub did not come to rest before any damage".into()));
        }
    }
    let victim = choose_file(template, with_hub, &mut random);
    let what = damage(&victim, &mut random)?;
    let mut round = Round { template, told: HashSet::new(), has_lost_messages: false };
    let first = random.pick(&FIRST).unwrap_or(FIRST[0]);
    let complaint = round.run_after_damage(&victim, first)?;
    template.end_hubs();
    let complaint = match complaint {
        Some(complaint) => {
            let place = template.keep(number)?;
            // Printed, because sometimes only the output of a run is kept.
            let log = fs::read_to_string(place.join("hub.log")).unwrap_or_default();
            Some(format!("{complaint}\n  its home: {}\n  its hub.log:\n{log}", place.display()))
        }
        None => None,
    };
    let under = if with_hub { "under a hub" } else { "without a hub" };
    Ok(Outcome {
        what: format!("{}, {under}: {what}; first {}", name(&victim), first[0]),
        with_hub,
        was_told: !round.told.is_empty(),
        has_lost_messages: round.has_lost_messages,
        complaint,
    })
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Chooses the file to damage.
fn choose_file(template: &Template, with_hub: bool, random: &mut Random) -> PathBuf {
    if !random.one_in(3) {
        let database = random.pick(&DATABASES).unwrap_or(DATABASES[0]);
        return template.home().join(database);
    }
    let mut files = Vec::new();
    files_below(&template.home(), &mut files);
    files_below(&template.run(), &mut files);
    // The WAL index is shared memory of the processes that have the database open, not durable data.
    files.retain(|path| !(with_hub && name(path).ends_with("-shm")));
    files.sort();
    let place = usize::try_from(random.below(files.len() as u64)).unwrap_or(0);
    files.swap_remove(place)
}

fn files_below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files_below(&entry.path(), files),
            Ok(kind) if kind.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
}

/// Damages a file in place, where a hub may have it open, or replaces it with a damaged copy. Returns a description.
fn damage(path: &Path, random: &mut Random) -> Result<String, Failure> {
    let mut bytes = fs::read(path).unwrap_or_default();
    let done = mutate(&mut bytes, random);
    // A lock belongs to the open file, and a WAL to its index: processes cannot detect that one of these was replaced.
    let may_be_replaced = ![".lock", "-wal"].iter().any(|ending| name(path).ends_with(ending));
    let is_replaced = random.one_in(4) && may_be_replaced;
    let write = || -> std::io::Result<()> {
        if is_replaced {
            let aside = path.with_extension("other");
            File::create(&aside)?.write_all(&bytes)?;
            return fs::rename(&aside, path);
        }
        let file = File::options().write(true).create(true).truncate(false).open(path)?;
        file.write_all_at(&bytes, 0)?;
        file.set_len(bytes.len() as u64)
    };
    write().map_err(|error| failed(path, &error))?;
    Ok(if is_replaced { format!("{done}, as another file") } else { done })
}

struct Round<'a> {
    template: &'a Template,
    /// Ringer's notifications about itself.
    told: HashSet<String>,
    has_lost_messages: bool,
}

/// A problem that the round found. Errors are only for rounds that could not run.
type Complaint = Option<String>;

impl Round<'_> {
    fn run_after_damage(&mut self, victim: &Path, first: &[&str]) -> Result<Complaint, Failure> {
        let answer = self.template.ask(Hub::MayStart, first)?;
        if let Some(complaint) = check_answer(first, &answer) {
            return Ok(Some(complaint));
        }
        for text in ["the one", "another one"] {
            if let Some(complaint) = self.message(text)? {
                return Ok(Some(complaint));
            }
            if let Some(complaint) = self.stop()? {
                return Ok(Some(complaint));
            }
        }
        self.kept(victim)
    }

    /// Checks that a message is acknowledged, delivered to the lead and listed for the person.
    fn message(&mut self, text: &str) -> Result<Complaint, Failure> {
        let sent = self.template.ask(Hub::MayStart, &["notify", "--from", "tester", text])?;
        if !sent.ending.is_success() {
            return Ok(Some(format!("notify: {}: {}", sent.ending.status(), sent.words)));
        }
        let mut is_heard = false;
        for _ in 0..5 {
            let heard = self.template.ask(Hub::MayStart, &["listen", "--timeout", "0"])?;
            if let Some(complaint) = check_answer(&["listen"], &heard) {
                return Ok(Some(complaint));
            }
            is_heard |= heard.lines().iter().any(|line| line["msg"] == *text);
            if is_heard {
                break;
            }
        }
        if !is_heard {
            return Ok(Some(format!("{text}: acknowledged and not heard")));
        }
        if !self.template.wait_until_idle() {
            let status = self.template.ask(Hub::Stays, &["hub", "status"])?;
            let said = String::from_utf8_lossy(&status.ending.output).into_owned();
            return Ok(Some(format!("the hub does not come to rest: {said} {}", status.words)));
        }
        let mut last = String::new();
        let is_listed = until(COMMAND_TIMEOUT, || match self.list() {
            Ok(rows) => {
                last = format!("{} rows", rows.len());
                rows.iter().any(|row| row["body"] == *text)
            }
            Err(words) => {
                last = words;
                false
            }
        });
        if !is_listed {
            return Ok(Some(format!("{text}: acknowledged and not listed: {last}")));
        }
        Ok(self.told_once())
    }

    fn list(&self) -> Result<Vec<Value>, String> {
        let words = ["list", "--json", "--limit", "1000"];
        let answer = self.template.ask(Hub::MayStart, &words).map_err(|failure| failure.to_string())?;
        match answer.json() {
            Some(Value::Array(rows)) => Ok(rows),
            _ => Err(answer.words),
        }
    }

    fn told_once(&mut self) -> Complaint {
        let rows = match self.list() {
            Ok(rows) => rows,
            Err(words) => return Some(format!("list: {words}")),
        };
        let mut here = HashSet::new();
        for row in &rows {
            let (title, body) = (row["title"].as_str().unwrap_or(""), row["body"].as_str().unwrap_or(""));
            if title.starts_with("Ringer: ") && !here.insert(format!("{title}: {body}")) {
                return Some(format!("told twice: {title}: {body}"));
            }
        }
        self.told.extend(here);
        None
    }

    fn stop(&self) -> Result<Complaint, Failure> {
        // Other hubs may wait to take over: each command that found no hub may have started one.
        for _ in 0..MAX_HUBS {
            let stopped = self.template.ask(Hub::Stays, &["hub", "stop"])?;
            if !stopped.ending.is_success() {
                return Ok(Some(format!("hub stop: {}: {}", stopped.ending.status(), stopped.words)));
            }
            if until(EXIT_TIMEOUT, || hubs::of(&self.template.home()).is_empty()) {
                return Ok(None);
            }
        }
        Ok(Some("a hub runs after hub stop".to_owned()))
    }

    /// Checks that undamaged data is still there.
    fn kept(&mut self, victim: &Path) -> Result<Complaint, Failure> {
        let log = self.template.ask(Hub::MayStart, &["log", "--everywhere", "--json"])?;
        if !log.ending.is_success() {
            return Ok(Some(format!("log: {}: {}", log.ending.status(), log.words)));
        }
        let lines = log.lines();
        let messages: HashSet<&str> = lines.iter().filter_map(|line| line["msg"].as_str()).collect();
        let missing = |all: Vec<String>, found: &HashSet<&str>| {
            all.into_iter().filter(|text| !found.contains(text.as_str())).count()
        };
        let lost = missing(Template::bodies(), &messages);
        let name = name(victim);
        if name.starts_with("ringer.db") {
            self.has_lost_messages = lost > 0;
            // `log` may have been the first to hit the damage.
            if lost > 0
                && self.told.is_empty()
                && let Some(complaint) = self.told_once()
            {
                return Ok(Some(complaint));
            }
            // Damage in the bits of a text, which SQLite does not detect, keeps the message, with a different text.
            if lost > 0 && self.told.is_empty() && messages.len() < Template::bodies().len() {
                return Ok(Some(format!("{lost} messages are missing in the journal, and nobody was told")));
            }
        } else if lost > 0 {
            return Ok(Some(format!("{lost} messages are missing in the journal")));
        }
        if !name.starts_with("hub.db") {
            let rows = match self.list() {
                Ok(rows) => rows,
                Err(words) => return Ok(Some(format!("list: {words}"))),
            };
            let bodies = rows.iter().filter_map(|row| row["body"].as_str()).collect();
            let lost = missing(Template::listed(), &bodies);
            if lost > 0 {
                return Ok(Some(format!("{lost} notifications are missing in the list")));
            }
        }
        Ok(None)
    }
}

/// Checks that a command exited on its own and in time, and that a failed one printed the reason.
fn check_answer(arguments: &[&str], Answer { ending, words }: &Answer) -> Complaint {
    let name = arguments[0];
    if ending.overran {
        return Some(format!("{name} hangs"));
    }
    match ending.status().code() {
        None => Some(format!("{name}: {}", ending.status())),
        Some(0) => None,
        // `doctor` exits with 1 if it finds a problem.
        Some(1) if name == "doctor" => None,
        Some(64..=78) if !words.is_empty() => None,
        Some(code) => Some(format!("{name} ended with {code}: {words}")),
    }
}
