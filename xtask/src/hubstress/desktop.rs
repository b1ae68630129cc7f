//! A private session bus with a notification server that records its calls.

use std::collections::HashSet;
use std::env::consts::EXE_SUFFIX;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::background::{BackgroundProcess, START_TIMEOUT};
use crate::binary;
use crate::bus::Bus;
use crate::environment::failed;
use crate::failure::Failure;
use crate::step::{self, Step};
use crate::step_times::StepTimes;

/// Something that happened to a popup.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Event {
    /// The time since the server started.
    pub(super) at: Duration,
    /// The caller's bus name. It differs for each hub.
    pub(super) by: String,
    /// The server's id of the popup.
    pub(super) number: u32,
    pub(super) change: PopupChange,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum PopupChange {
    /// It shows a text. It replaces another popup, or its own earlier text, if that is not `None`.
    Shown {
        instead: Option<u32>,
        body: String,
    },
    Closed,
}

impl Event {
    /// Parses a line of the server's output.
    fn of(line: &str) -> Option<Self> {
        let mut fields = line.split('\t');
        let mut next = || fields.next();
        let what = next()?;
        let (at, by) = (Duration::from_micros(next()?.parse().ok()?), next()?.to_owned());
        let number = next()?.parse().ok()?;
        let change = match what {
            "shown" => {
                let instead = Some(next()?.parse().ok()?).filter(|number| *number > 0);
                let _tag = next()?;
                PopupChange::Shown { instead, body: next()?.to_owned() }
            }
            "closed" => PopupChange::Closed,
            _ => return None,
        };
        Some(Self { at, by, number, change })
    }
}

/// The events that the server has recorded.
#[derive(Default)]
struct Record {
    events: Vec<Event>,
    bodies: HashSet<String>,
}

/// The desktop. The server ends before the bus.
pub(super) struct Desktop {
    record: Arc<Mutex<Record>>,
    _server: BackgroundProcess,
    bus: Bus,
}

impl Desktop {
    /// Starts the desktop in its own folder. With `by_tag`, the server also replaces popups by tag.
    pub(super) fn start(folder: &Path, server: &Path, by_tag: bool) -> Result<Self, Failure> {
        fs::create_dir(folder).map_err(|error| failed(folder, &error))?;
        let bus = Bus::start(folder, &folder.join("log"))?;
        let mut command = Command::new(server);
        command.arg(bus.address()).args(by_tag.then_some("--tags"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = BackgroundProcess::spawn(&mut command)?;
        let record = Arc::new(Mutex::new(Record::default()));
        let (ready, is_ready) = mpsc::channel();
        if let Some(stdout) = server.child().stdout.take() {
            let record = Arc::clone(&record);
            thread::spawn(move || read(BufReader::new(stdout), &record, &ready));
        }
        let started = is_ready.recv_timeout(START_TIMEOUT);
        started.map_err(|_| Failure::unavailable("the notification server did not come up".into()))?;
        Ok(Self { record, _server: server, bus })
    }

    pub(super) fn address(&self) -> &str {
        self.bus.address()
    }

    /// Returns true if this text was ever shown.
    pub(super) fn has_shown(&self, body: &str) -> bool {
        lock(&self.record).bodies.contains(body)
    }

    /// Returns all events so far.
    pub(super) fn events(&self) -> Vec<Event> {
        lock(&self.record).events.clone()
    }
}

/// Builds the server and returns its path. It is an example of this crate, so that building xtask does not need its
/// dependencies; the tests have already built it.
pub(super) fn server(times: &mut StepTimes) -> Result<PathBuf, Failure> {
    Step::cargo("recorder", &["build", "--workspace", "--example", "recorder"])
        .args(step::FEATURES)
        .run(times)?;
    Ok(binary::artifacts()?.join("debug/examples").join(format!("recorder{EXE_SUFFIX}")))
}

/// Records events until the server exits.
fn read(lines: impl BufRead, record: &Mutex<Record>, ready: &Sender<()>) {
    for line in lines.lines().map_while(Result::ok) {
        if let Some(event) = Event::of(&line) {
            let mut record = lock(record);
            if let PopupChange::Shown { body, .. } = &event.change {
                record.bodies.insert(body.clone());
            }
            record.events.push(event);
        } else {
            // The first line is `ready`. The receiver may have given up.
            let _ = ready.send(());
        }
    }
}

/// Ignores poisoning: a thread that panicked under the lock leaves only complete entries.
fn lock(record: &Mutex<Record>) -> MutexGuard<'_, Record> {
    record.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{Event, PopupChange};
    use std::time::Duration;

    #[test]
    fn lines_are_read_whole_or_not_at_all() {
        let event = |number, change| {
            Some(Event { at: Duration::from_micros(7), by: ":1.2".to_owned(), number, change })
        };
        let shown = |instead| PopupChange::Shown { instead, body: "a b".to_owned() };
        assert_eq!(Event::of("shown\t7\t:1.2\t3\t0\ttag\ta b"), event(3, shown(None)));
        assert_eq!(Event::of("shown\t7\t:1.2\t3\t2\t\ta b"), event(3, shown(Some(2))));
        assert_eq!(Event::of("closed\t7\t:1.2\t3"), event(3, PopupChange::Closed));
        for line in ["ready", "", "shown\t7\t:1.2\t3", "closed\t7\t:1.2\tx", "moved\t7\t:1.2\t3"] {
            assert_eq!(Event::of(line), None, "{line}");
        }
    }
}
