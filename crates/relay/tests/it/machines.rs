//! Machines with their own homes, and the connection between two of them.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use ringer_core::{Draft, Kind, MessageId, Scope, Sender};
use ringer_journal::{Home, IdSource, Journal};
use ringer_relay::{
    ConfiguredName, ConnectionEnd, Error, Exchange, ExchangeSetup, MachineId, MachineName, Pipes, Progress,
    RepositoryNames,
};
use tempfile::TempDir;

/// A machine: a home with a journal.
pub(crate) struct Machine {
    directory: TempDir,
    name: &'static str,
}

impl Machine {
    pub(crate) fn new(name: &'static str) -> Self {
        // In memory where the system has a place for that: these tests write a great deal.
        let memory = std::path::Path::new("/dev/shm");
        let directory = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        Self { directory: directory.expect("a temporary directory"), name }
    }

    pub(crate) fn home(&self) -> Home {
        Home::new(self.directory.path().join("home"))
    }

    pub(crate) fn journal(&self) -> Journal {
        Journal::open(&self.home()).expect("a journal")
    }

    /// Writes messages. Returns their ids.
    pub(crate) fn write(&self, texts: impl IntoIterator<Item = String>) -> Vec<MessageId> {
        let mut journal = self.journal();
        let write = |text: String| {
            let draft = Draft::new(Scope::global(), Sender::system(), Kind::Status, &text).expect("a draft");
            journal.append(&draft, &IdSource::now()).expect("it is stored")
        };
        texts.into_iter().map(write).collect()
    }

    /// The texts of another machine, in order of arrival.
    pub(crate) fn texts_of(&self, machine: &str) -> Vec<String> {
        let messages = self.journal().messages_after(0, usize::MAX).expect("messages");
        let of_it = messages.into_iter().filter(|message| message.machine.as_deref() == Some(machine));
        of_it.map(|message| message.draft.body).collect()
    }

    /// Returns the setup of an ssh link to the machine with that name.
    pub(crate) fn setup(&self, other: &str) -> ExchangeSetup {
        let command = ["ssh", other].map(str::to_owned);
        let name = MachineName::parse(other).expect("a name");
        ExchangeSetup {
            home: self.home(),
            program: "1.0".to_owned(),
            is_far_end: false,
            name: Some(ConfiguredName::for_link(name, &command, Vec::new())),
            give_answer: None,
            may_answer: false,
            may_reach_lead: false,
            repository_names: RepositoryNames::default(),
        }
    }

    /// Returns true if the other machine is known here and all its messages are stored.
    fn has_all(&self, other: &Self) -> Option<bool> {
        let id = MachineId::of(&other.home()).ok()?;
        let (mut own, mut its) = (self.journal(), other.journal());
        own.export_lag(id.as_str()).ok()??;
        let Some(last) = its.own_after(0, usize::MAX).ok()?.messages.pop() else { return Some(true) };
        let stored = own.import_position(id.as_str()).ok()??;
        let is_same = stored.generation.as_deref() == Some(its.generation().ok()?.as_str());
        Some(is_same && stored.id.as_deref() == Some(last.id.as_str()))
    }

    /// Copies the files of the journal.
    pub(crate) fn copy(&self) -> Vec<(std::path::PathBuf, Vec<u8>)> {
        drop(self.journal().checkpoint());
        let files = ["ringer.db", "ringer.db-wal"].map(|name| self.home().path().join(name));
        files.into_iter().filter_map(|path| Some((path.clone(), std::fs::read(path).ok()?))).collect()
    }

    /// Restores the files.
    pub(crate) fn restore(&self, files: &[(std::path::PathBuf, Vec<u8>)]) {
        for name in ["ringer.db", "ringer.db-wal", "ringer.db-shm"] {
            let _ = std::fs::remove_file(self.home().path().join(name));
        }
        for (path, bytes) in files {
            std::fs::write(path, bytes).expect("a file");
        }
    }
}

/// Time limit for a connection to store everything, with the longest backlog.
const CONNECTION_TIMEOUT: std::time::Duration = std::time::Duration::from_mins(10);

/// The results of a connection at both ends.
pub(crate) struct Outcome {
    pub(crate) ends: [Result<ConnectionEnd, Error>; 2],
    pub(crate) frames: usize,
    pub(crate) progress: [Vec<Progress>; 2],
}

/// Connects two machines until everything is stored, or until `cut_after` frames were transferred.
pub(crate) fn connect(machines: [&Machine; 2], cut_after: usize) -> Outcome {
    let frames = Arc::new(AtomicUsize::new(0));
    let (one, wire_one) = UnixStream::pair().expect("a socket");
    let (two, wire_two) = UnixStream::pair().expect("a socket");
    let stop = UnixStream::pair().expect("a socket");
    let threads: Vec<_> = [(&wire_one, &wire_two), (&wire_two, &wire_one)]
        .map(|(from, to)| {
            let (from, to) = (from.try_clone().expect("a socket"), to.try_clone().expect("a socket"));
            let frames = Arc::clone(&frames);
            thread::spawn(move || forward(&from, &to, &frames, cut_after))
        })
        .into_iter()
        .collect();
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let setups = [machines[0].setup(machines[1].name), machines[1].setup(machines[0].name)];
    let run = |setup: &ExchangeSetup, stream: &UnixStream, progress: &mut Vec<Progress>| {
        let pipes =
            Pipes { input: stream.as_fd(), output: stream.as_fd(), stop: Some(stop.0.as_fd()), errors: None };
        Exchange::begin(setup, pipes, &mut |made| progress.push(made))?.run()
    };
    let is_done = || [0, 1].iter().all(|at| machines[*at].has_all(machines[1 - *at]) == Some(true));
    let ends = thread::scope(|scope| {
        let ends = [
            scope.spawn(|| run(&setups[0], &one, &mut first)),
            scope.spawn(|| run(&setups[1], &two, &mut second)),
        ];
        let over = || ends.iter().any(thread::ScopedJoinHandle::is_finished);
        test_support::until_within(CONNECTION_TIMEOUT, "everything is stored, or the wire is cut", || {
            over() || is_done()
        });
        let _ = (&stop.1).write(&[0]);
        for stream in [&wire_one, &wire_two] {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
        ends.map(|end| end.join().expect("no panic"))
    });
    for thread in threads {
        thread.join().expect("no panic");
    }
    Outcome { ends, frames: frames.load(Ordering::SeqCst), progress: [first, second] }
}

/// Forwards frames until `cut_after` were transferred in both directions.
fn forward(from: &UnixStream, mut to: &UnixStream, frames: &AtomicUsize, cut_after: usize) {
    let mut lines = BufReader::new(from);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        if frames.fetch_add(1, Ordering::SeqCst) >= cut_after {
            break;
        }
        if to.write_all(&line).is_err() {
            break;
        }
        line.clear();
    }
    for stream in [from, to] {
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}
