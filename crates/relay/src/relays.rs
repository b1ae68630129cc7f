//! Runs the configured links for the hub: a thread for each, which reconnects for ever.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ringer_config::RelayLink;
use ringer_ipc::part::{Part, PartEvent};
use ringer_journal::{Home, IdSource};
use ringer_platform::wake_pair;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::error::Error;
use crate::exchange::{ConnectionEnd, Exchange, Pipes, Progress};
use crate::link_process::LinkProcess;
use crate::local_journal::AnswerHandler;
use crate::machine::MachineName;
use crate::peer::{ConfiguredName, ExchangeSetup};
use crate::repositories::RepositoryNames;
use crate::status_file::{LinkState, StatusFile};
use crate::team::run_team;
use crate::team_setup::{TeamProgress, TeamSetup};

/// The range of pauses between attempts. A link that was connected for longer than the longest starts again with the shortest.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// The configuration of the links.
pub struct RelaySetup {
    /// The home of this machine.
    pub home: Home,
    /// The version of this program.
    pub program: String,
    /// Answers what agents ask here for machines of a team, if the person allows that.
    pub give_answer: Option<AnswerHandler>,
    /// The log of the hub.
    pub log: Box<dyn Fn(String) + Send + Sync>,
}

/// The links, for the hub. Dropping this ends all of them.
pub struct Relays {
    changes: Option<Sender<Vec<RelayLink>>>,
    is_needed: Arc<AtomicBool>,
    repository_names: RepositoryNames,
    thread: Option<JoinHandle<()>>,
}

impl Relays {
    /// Starts the thread that starts and ends the link threads.
    pub fn start(setup: RelaySetup) -> Self {
        let (changes, received) = channel();
        let is_needed = Arc::new(AtomicBool::new(false));
        let status = StatusFile::new(setup.home.clone());
        let repository_names = RepositoryNames::default();
        let shared =
            Shared { setup, status, names: Mutex::default(), repository_names: repository_names.clone() };
        let shared = Arc::new(shared);
        let mut manager = Manager { shared, threads: BTreeMap::new() };
        let thread = thread::Builder::new().name("links".to_owned()).spawn(move || manager.run(&received));
        Self { changes: Some(changes), is_needed, repository_names, thread: thread.ok() }
    }

    /// Replaces the links: ends those that are gone or changed, and starts the new ones.
    pub fn set_links(&mut self, links: Vec<RelayLink>) {
        self.is_needed.store(!links.is_empty(), Ordering::Relaxed);
        // Without the thread there are no links.
        let _ = self.changes.as_ref().map(|changes| changes.send(links));
    }
}

impl Part for Relays {
    fn on_event(&mut self, event: &PartEvent<'_>) {
        if let PartEvent::Settings(config) = event {
            self.repository_names.set(config.repositories.clone());
            self.set_links(config.relay_links());
        }
    }

    fn needs_hub(&self) -> bool {
        self.is_needed.load(Ordering::Relaxed)
    }
}

impl Drop for Relays {
    fn drop(&mut self) {
        self.changes = None;
        // The thread waits for the programs to exit.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct Shared {
    setup: RelaySetup,
    status: StatusFile,
    /// The names of all configured links.
    names: Mutex<Vec<String>>,
    repository_names: RepositoryNames,
}

impl Shared {
    fn names(&self) -> MutexGuard<'_, Vec<String>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct LinkThread {
    link: RelayLink,
    /// Closing this ends the thread.
    waker: UnixStream,
    thread: JoinHandle<()>,
}

/// Starts and ends the link threads.
struct Manager {
    shared: Arc<Shared>,
    threads: BTreeMap<String, LinkThread>,
}

impl Manager {
    fn run(&mut self, received: &Receiver<Vec<RelayLink>>) {
        while let Ok(links) = received.recv() {
            // If several settings are queued, only the last one counts.
            let links = received.try_iter().last().unwrap_or(links);
            self.set(&links);
        }
        stop(std::mem::take(&mut self.threads).into_values().collect());
    }

    fn set(&mut self, links: &[RelayLink]) {
        let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
        let unwanted = self.threads.extract_if(.., |_, own| !links.contains(&own.link));
        stop(unwanted.map(|(_, thread)| thread).collect());
        self.shared.status.keep(&names);
        *self.shared.names() = names.into_iter().map(str::to_owned).collect();
        for link in links {
            if !self.threads.contains_key(&link.name) {
                self.begin(link);
            }
        }
    }

    fn begin(&mut self, link: &RelayLink) {
        let Some(name) = MachineName::parse(&link.name) else { return };
        let Ok((woken, waker)) = wake_pair() else { return };
        let (shared, own) = (Arc::clone(&self.shared), link.clone());
        let builder = thread::Builder::new().name(format!("link {}", link.name));
        match builder.spawn(move || keep_connected(&shared, &own, &name, &woken)) {
            Ok(thread) => {
                self.threads.insert(link.name.clone(), LinkThread { link: link.clone(), waker, thread });
            }
            Err(error) => (self.shared.setup.log)(format!("link {}: no thread: {error}", link.name)),
        }
    }
}

/// Ends threads and their programs, all in parallel.
fn stop(threads: Vec<LinkThread>) {
    let waiting: Vec<JoinHandle<()>> = threads
        .into_iter()
        .map(|LinkThread { waker, thread, .. }| {
            drop(waker);
            thread
        })
        .collect();
    for thread in waiting {
        // A thread that panicked has ended.
        let _ = thread.join();
    }
}

/// Reconnects until `woken` is closed.
fn keep_connected(shared: &Shared, link: &RelayLink, name: &MachineName, woken: &UnixStream) {
    let mut pause = SHORTEST_PAUSE;
    loop {
        let mut connected_at = None;
        let ended = connect(shared, link, name, woken, &mut connected_at);
        let error = match ended {
            Ok(ConnectionEnd::Stopped) => return,
            Ok(ConnectionEnd::Closed) => "the other machine ended the connection".to_owned(),
            Err(error) => error.to_string(),
        };
        if connected_at.is_some_and(|at: Instant| at.elapsed() > LONGEST_PAUSE) {
            pause = SHORTEST_PAUSE;
        }
        let this_pause = jittered(pause);
        (shared.setup.log)(format!("link {name}: {error}; again in {} s", this_pause.as_secs()));
        shared.status.change(link.name.as_str(), |status| {
            let pause_ms = i64::try_from(this_pause.as_millis()).unwrap_or(0);
            status.again_ms = Some(IdSource::now().unix_ms.saturating_add(pause_ms));
            (status.state, status.why) = (LinkState::Failed, Some(error));
        });
        if is_stopped_within(woken, this_pause) {
            return;
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Returns between half of a pause and all of it, so that machines that lost each other at the same time do not reconnect
/// together.
fn jittered(pause: Duration) -> Duration {
    let share = u32::from(RandomState::new().hash_one(pause).to_le_bytes()[0]);
    pause / 2 + pause * share / 512
}

fn is_stopped_within(woken: &UnixStream, pause: Duration) -> bool {
    let until = Instant::now() + pause;
    loop {
        let timeout = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
        match poll(&mut [PollFd::new(woken, PollFlags::IN)], timeout.as_ref()) {
            // Only closing makes it readable.
            Ok(ready) => return ready > 0,
            Err(Errno::INTR) => {}
            // Returns true, because the link must not reconnect without a pause.
            Err(_) => return true,
        }
    }
}

/// Runs one connection, from the start of its program to its end.
fn connect(
    shared: &Shared,
    link: &RelayLink,
    name: &MachineName,
    woken: &UnixStream,
    connected_at: &mut Option<Instant>,
) -> Result<ConnectionEnd, Error> {
    shared.status.change(name.as_str(), |status| {
        (status.state, status.why, status.again_ms) = (LinkState::Connecting, None, None);
    });
    if let Some(team) = TeamSetup::of(&shared.setup.home, link) {
        let team = team
            .with_answers(shared.setup.give_answer)
            .with_repository_names(shared.repository_names.clone());
        return connect_team(shared, &team, name, woken, connected_at);
    }
    let mut process = LinkProcess::start(&link.command).map_err(|error| {
        let program = link.command.first().map(String::as_str).unwrap_or_default();
        Error::Program(format!("{program} cannot be started: {error}"))
    })?;
    let setup = ExchangeSetup {
        home: shared.setup.home.clone(),
        program: shared.setup.program.clone(),
        is_far_end: false,
        name: Some(ConfiguredName::for_link(name.clone(), &link.command, shared.names().clone())),
        give_answer: None,
        may_answer: link.may_answer,
        may_reach_lead: link.may_reach_lead,
        repository_names: shared.repository_names.clone(),
    };
    let mut progress = |progress| match progress {
        Progress::Greeted { machine, program, .. } => {
            *connected_at = Some(Instant::now());
            (shared.setup.log)(format!("link {name} is connected"));
            shared.status.change(name.as_str(), |status| {
                status.state = LinkState::Connected;
                status.machine = Some(machine.as_str().to_owned());
                status.program = Some(program);
                // The first messages report the number again.
                status.waiting_there = 0;
            });
        }
        Progress::Stored { new, refused, waiting } => shared.status.change(name.as_str(), |status| {
            status.messages += new as u64;
            status.waiting_there = u64::from(waiting);
            if let Some((count, why)) = refused {
                status.refused += count as u64;
                status.refused_why = Some(why);
            }
        }),
    };
    let pipes = Pipes {
        input: process.output(),
        output: process.input(),
        stop: Some(woken.as_fd()),
        errors: Some(process.errors()),
    };
    let ended = Exchange::begin(&setup, pipes, &mut progress)?.run();
    match ended {
        Ok(ConnectionEnd::Closed) => Err(Error::Program(process.describe_end())),
        ended => ended,
    }
}

/// Runs one connection to a team's server.
fn connect_team(
    shared: &Shared,
    team: &TeamSetup,
    name: &MachineName,
    woken: &UnixStream,
    connected_at: &mut Option<Instant>,
) -> Result<ConnectionEnd, Error> {
    let mut progress = |progress| match progress {
        TeamProgress::Connected { server, address } => {
            *connected_at = Some(Instant::now());
            (shared.setup.log)(format!("team {name} is connected"));
            shared.status.change(name.as_str(), |status| {
                status.state = LinkState::Connected;
                status.machine = Some(team.export_key());
                (status.program, status.address) = (Some(server), Some(address));
                status.agents_refused = None;
                status.waiting_there = 0;
            });
        }
        TeamProgress::AgentsRefused(why) => {
            (shared.setup.log)(format!("team {name}: agents are not listed: {why}"));
            shared.status.change(name.as_str(), |status| status.agents_refused = Some(why));
        }
        TeamProgress::Removed => (shared.setup.log)(format!(
            "team {name}: messages were removed from the stream before they had come; the other machines are asked for them"
        )),
        TeamProgress::Stored { new, refused, waiting } => shared.status.change(name.as_str(), |status| {
            status.messages += new as u64;
            status.waiting_there = waiting;
            if let Some((count, why)) = refused {
                status.refused += count as u64;
                status.refused_why = Some(why);
            }
        }),
    };
    run_team(team, woken, &mut progress)
}
