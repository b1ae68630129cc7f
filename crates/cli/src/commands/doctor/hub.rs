//! Checks the hub, the journal, undelivered notifications, and the links to other machines.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ringer_config::RelayEntry;
use ringer_hub::{Clock, HubOptions};
use ringer_ipc::drop_box::DropBox;
use ringer_ipc::{HubClient, HubClientError};
use ringer_journal::{Home, HubLock, HubStore, IdSource, Journal, SpoolStatus};
use ringer_platform::owned;
use ringer_relay::{LinkState, Purpose, RemoteRequest, TeamSetup, join_team, round_trip};
use serde_json::{Value, json};

use super::row::Row;
use crate::commands::relay::{configured_machines, state_text};
use crate::commands::status::{RepairView, repairs};
use crate::output::count;
use crate::{context, hub_client};

/// The most dead letters that are shown; older ones say the same.
const MAX_LETTERS: usize = 5;

/// Checks that the hub runs, answers, and has our version.
pub(super) fn hub(home: &Home) -> Row {
    let part = "hub";
    let mut client = match HubClient::connect(home) {
        Ok(client) => client,
        Err(HubClientError::NoHub) => return no_hub(home),
        Err(_) if DropBox::if_sandboxed(home).is_some() => {
            return Row::ok(part, "cannot be reached from this sandbox");
        }
        Err(error) => return Row::broken(part, error.to_string()).fix("ringer hub status"),
    };
    let status = match client.call("hub.status", &Value::Null) {
        Ok(status) => status,
        Err(error) => {
            // A hub that does not answer does not handle a stop request either.
            let stuck = HubLock::owner(home).filter(|_| matches!(error, HubClientError::Late { .. }));
            let fix =
                stuck.map_or_else(|| "ringer hub stop".to_owned(), |hub| format!("kill -9 {}", hub.pid));
            return Row::broken(part, error.to_string()).fix(fix);
        }
    };
    let (version, own) = (status["version"].as_str().unwrap_or_default(), env!("CARGO_PKG_VERSION"));
    if version != own {
        return Row::warn(part, format!("running, but version {version}; this is {own}"))
            .fix("ringer hub stop   # the next message starts the new one");
    }
    Row::ok(part, format!("running, version {version}"))
}

/// The hub's problems with hooks. The settings and their trust have rows of their own.
pub(super) fn failing_hooks(home: &Home) -> Vec<Row> {
    let problems = hub_client::problems(home).into_iter();
    let failing = problems.filter(|problem| problem.key.starts_with("hook-failed-"));
    failing.map(|problem| Row::warn("hook", problem.text).fix(problem.hint)).collect()
}

fn no_hub(home: &Home) -> Row {
    let part = "hub";
    match HubLock::owner(home) {
        Some(holder) => Row::broken(part, format!("pid {} holds the lock but cannot be reached", holder.pid))
            .fix(format!("kill {}", holder.pid)),
        None if hub_client::may_start() => match hub_client::last_failure(home) {
            Some(failure) => {
                Row::broken(part, format!("not running: {}", hub_client::failure_text(&failure)))
                    .fix("ringer hub start --foreground")
            }
            None => Row::ok(part, "not running; the next message starts it"),
        },
        None => {
            Row::warn(part, "not running, and RINGER_HUB=off prevents starting it").fix("unset RINGER_HUB")
        }
    }
}

/// Checks that the journal can be opened and read, and lists the listeners; then the dead letters.
pub(super) fn journal(home: &Home) -> Vec<Row> {
    let part = "journal";
    let opened = Journal::open_to_read(home).and_then(|journal| {
        let Some(mut journal) = journal else { return Ok(None) };
        let stats = journal.stats(None, IdSource::now().unix_ms)?;
        Ok(Some((journal, stats)))
    });
    let (mut journal, stats) = match opened {
        Ok(Some(found)) => found,
        Ok(None) => return vec![not_yet(home)],
        Err(error) if error.is_corruption() => {
            return vec![Row::broken(part, error.to_string()).fix("ringer doctor --repair")];
        }
        Err(error) => return vec![Row::broken(part, error.to_string()).fix("ringer log")],
    };
    if let Some(drop_box) = DropBox::if_sandboxed(home) {
        return vec![from_sandbox(&drop_box)];
    }
    if let Err(error) = try_writing(home.path()) {
        return vec![cannot_write(home.path(), &error)];
    }
    let row = Row::ok(
        part,
        format!(
            "{}: {}, schema {}; {}",
            home.database().display(),
            count(stats.messages, "message"),
            stats.schema,
            listeners(&stats.listeners.iter().map(|own| own.owner.consumer.as_str()).collect::<Vec<_>>())
        ),
    );
    let mut rows = vec![row];
    rows.extend(repaired(home, &mut journal));
    rows.extend(spool(home, &mut journal));
    rows.extend(dead_letters(home));
    rows.push(drop_box(home));
    rows
}

/// Checks what an agent's sandbox needs.
fn drop_box(home: &Home) -> Row {
    let part = "drop box";
    let places = DropBox::of(home);
    let (drop, outbox) = (places.directory(), places.outbox().directory());
    for directory in [drop, outbox] {
        match owned::check_directory(directory) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Row::ok(part, "none yet; the hub makes it when it starts");
            }
            Err(error) => {
                return Row::broken(part, error.to_string())
                    .fix(format!("chmod 700 {}", directory.display()));
            }
        }
    }
    let words = format!("a sandboxed agent has to write {} and to read {}", drop.display(), outbox.display());
    match places.waiting() {
        0 => Row::ok(part, words),
        waiting => Row::warn(part, format!("{} waiting for the hub; {words}", count(waiting, "message")))
            .fix("ringer hub start"),
    }
}

/// Checks the drop box from inside a sandbox, where it is the only directory of Ringer that must be writable.
fn from_sandbox(drop_box: &DropBox) -> Row {
    let part = "drop box";
    let directory = drop_box.directory();
    match try_writing(directory) {
        Ok(()) => Row::ok(
            part,
            "in a sandbox: notify, ask and listen go through it; everything else needs a shell outside",
        ),
        Err(error) => {
            Row::broken(part, format!("in a sandbox that may not write {}: {error}", directory.display()))
                .fix("ringer notify hello   # shows what to allow")
        }
    }
}

/// Reports repaired damage until its damaged copy is deleted, or the repaired rows are pruned.
fn repaired(home: &Home, journal: &mut Journal) -> Vec<Row> {
    // Other rows report a file that cannot be opened.
    let mut hub_store = HubStore::open_to_read(home).ok().flatten();
    let repairs = repairs(Some(journal), hub_store.as_mut(), &Clock::local()).unwrap_or_default();
    let row = |repair: RepairView| {
        let row = Row::warn("damage", repair.words);
        match repair.aside {
            Some(aside) => row.fix(format!("rm {aside}*   # when you no longer need it")),
            None => row,
        }
    };
    repairs.into_iter().map(row).collect()
}

/// Reports hook events that are not in the journal yet.
fn spool(home: &Home, journal: &mut Journal) -> Option<Row> {
    let settled = journal.settle_spool();
    let status = SpoolStatus::of(home, IdSource::now().unix_ms);
    let mut words = context::spool_text(&status, &Clock::local())?;
    if let Err(error) = settled {
        words = format!("{words}: {error}");
    }
    let row = if status.lost.is_some() {
        Row::broken("hook events", words)
    } else {
        Row::warn("hook events", words)
    };
    Some(row.fix("ringer status   # stores the waiting events"))
}

fn listeners(names: &[&str]) -> String {
    if names.is_empty() { "no listeners".to_owned() } else { format!("listeners: {}", names.join(", ")) }
}

/// There is no home yet, which is fine if one can be created.
fn not_yet(home: &Home) -> Row {
    let existing = home.path().ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    match try_writing(existing) {
        Ok(()) => {
            Row::ok("journal", format!("none yet; the first message creates it in {}", home.path().display()))
        }
        Err(error) => {
            Row::broken("journal", format!("none yet, and {} is not writable: {error}", existing.display()))
                .fix("RINGER_HOME=/some/directory ringer …")
        }
    }
}

/// Writes as much as a message takes, and deletes it. Permissions alone do not show that the disk has room, or that a sandbox
/// allows the write.
pub(super) fn try_writing(directory: &Path) -> io::Result<()> {
    // The largest message has 64 KiB; the database writes as much again around it.
    const MESSAGE: usize = 128 * 1024;
    // Two checks may try the same directory at the same time.
    static TRIES: AtomicU32 = AtomicU32::new(0);
    let (process, number) = (std::process::id(), TRIES.fetch_add(1, Ordering::Relaxed));
    let path = directory.join(format!(".ringer-doctor-{process}-{number}"));
    let mut file = File::options().write(true).create_new(true).open(&path)?;
    let written = file.write_all(&vec![0; MESSAGE]).and_then(|()| file.sync_all());
    let removed = fs::remove_file(&path);
    written.and(removed)
}

fn cannot_write(home: &Path, error: &io::Error) -> Row {
    let fix = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            format!("df -h {}   # free some space", home.display())
        }
        _ => "ringer notify hello   # shows what to allow".to_owned(),
    };
    Row::broken(
        "journal",
        format!("{} cannot be written, so no message can be stored: {error}", home.display()),
    )
    .fix(fix)
}

fn dead_letters(home: &Home) -> Vec<Row> {
    let part = "dead letter";
    let hub_store = HubStore::open_to_read(home);
    let letters = match hub_store
        .and_then(|hub_store| hub_store.map_or(Ok(Vec::new()), |mut hub_store| hub_store.dead_letters()))
    {
        Ok(letters) if letters.is_empty() => return vec![Row::ok("dead letters", "none")],
        Ok(letters) => letters,
        Err(error) => {
            let row = Row::broken("hub memory", format!("{error}; the hub cannot start with it"));
            return vec![
                row.fix("upgrade ringer, or move the file away: it holds only the list of notifications"),
            ];
        }
    };
    let clock = Clock::local();
    let row = |letter: &ringer_journal::DeadLetter| {
        let what = format!("{} to {}: {}", clock.short(letter.unix_ms), letter.target, letter.why);
        Row::warn(part, what).fix(format!("ringer why {}", letter.id))
    };
    let mut rows: Vec<Row> = letters.iter().take(MAX_LETTERS).map(row).collect();
    if letters.len() > MAX_LETTERS {
        rows.push(Row::warn(part, format!("and {} older ones", letters.len() - MAX_LETTERS)));
    }
    rows
}

/// The hub's answer about its environment.
pub(super) struct HubView {
    pub(super) bus: Option<String>,
    /// The program that shows its popups, or why there is none.
    pub(super) server: Result<String, String>,
    search_path: Option<String>,
}

impl HubView {
    /// Asks the hub. `None` if none runs, or it is too old to be asked: the next one has what this process has. It is
    /// offered the session bus of this process, which it uses if its own does not work.
    pub(super) fn ask() -> Result<Option<Self>, HubClientError> {
        let Ok(home) = context::home() else { return Ok(None) };
        let asked = HubClient::connect(&home)
            .and_then(|mut hub| hub.call("hub.environment", &json!({ "bus": own_bus() })));
        let answer = match asked {
            Ok(answer) => answer,
            Err(HubClientError::NoHub | HubClientError::Refused(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let desktop = &answer["desktop"];
        let unknown = || text(&desktop["error"]).unwrap_or_else(|| "it does not say why".to_owned());
        Ok(Some(Self {
            bus: text(&desktop["bus"]),
            server: text(&desktop["server"]).ok_or_else(unknown),
            search_path: text(&answer["search_path"]),
        }))
    }
}

/// The session bus of this process.
pub(super) fn own_bus() -> Option<String> {
    // The home plays no part in it.
    HubOptions::of_process(Home::new("/"), false).bus
}

/// Where the hub looks for programs, or the next one will.
pub(super) fn search_path() -> OsString {
    let hub = HubView::ask().ok().flatten().and_then(|view| view.search_path).map(OsString::from);
    hub.or_else(|| std::env::var_os("PATH")).unwrap_or_default()
}

/// Time limit for the other machine's answer: a slow SSH connection.
const ANSWERS_WITHIN: Duration = Duration::from_secs(12);

/// The state of a link. With `send`, doctor also connects to the machine itself, and sends a message through the link.
pub(super) fn machine_rows(home: &Home, relay: &RelayEntry, send: bool) -> Vec<Row> {
    let kind = if relay.nats.is_some() { "team" } else { "machine" };
    let part = format!("{kind} {}", relay.machine());
    let found = configured_machines(home, std::slice::from_ref(relay))
        .ok()
        .and_then(|(mut machines, _)| machines.pop());
    let state = found.as_ref().map(|machine| state_text(machine, &Clock::local())).unwrap_or_default();
    if let Some(team) = TeamSetup::of(home, &relay.link()).filter(|_| send) {
        let begun = Instant::now();
        return vec![match join_team(&team) {
            Ok(server) => {
                let millis = begun.elapsed().as_millis();
                Row::ok(part, format!("{state}; nats-server {server} answers within {millis} ms"))
            }
            Err(error) => Row::broken(part, error.to_string()).fix(fix(relay)),
        }];
    }
    let status = found.and_then(|machine| machine.status);
    if send && let Err(why) = connect(home, relay) {
        return vec![Row::broken(part, why).fix(fix(relay))];
    }
    vec![match status.map(|status| status.state) {
        Some(LinkState::Failed) => Row::broken(part, state).fix(fix(relay)),
        Some(LinkState::Connected) if send => match round_trip(home, relay.machine(), ANSWERS_WITHIN) {
            Ok(took) => {
                let millis = took.as_millis();
                Row::ok(part, format!("{state}; a message was stored there and confirmed within {millis} ms"))
            }
            Err(error) => Row::broken(part, format!("{state}; {error}")).fix("ringer relay status"),
        },
        Some(LinkState::Connected | LinkState::Connecting) => Row::ok(part, state),
        None => Row::warn(part, state).fix("ringer hub start"),
    }]
}

/// Connects to the machine without using the link.
fn connect(home: &Home, relay: &RelayEntry) -> Result<(), String> {
    let mut journal = Journal::open(home).map_err(|error| error.to_string())?;
    let program = env!("CARGO_PKG_VERSION");
    let question = RemoteRequest::begin(home, &relay.argv(), program, Purpose::Answer, ANSWERS_WITHIN);
    let question = question.and_then(|question| question.is_from(&mut journal, relay.machine()));
    question.map(drop).map_err(|error| error.to_string())
}

fn fix(relay: &RelayEntry) -> String {
    match &relay.ssh {
        Some(host) => format!("ssh {host} true   # has to work without a question"),
        None => "ringer relay status".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where there is no runtime directory, the sockets of panes are in the home.
    #[test]
    fn several_parts_may_try_one_directory_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let tries = || (0..5).try_for_each(|_| try_writing(directory.path()));
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(tries)).collect();
            for thread in threads {
                thread.join().unwrap().unwrap();
            }
        });
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
