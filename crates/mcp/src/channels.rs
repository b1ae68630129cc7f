//! MCP servers that push messages into an agent's conversation: a part of the hub with one thread per server.

mod connection;
mod files;
mod gates;
mod intake;
mod permissions;
mod process;
mod protocol;
mod shared;
mod status_file;

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use ringer_config::ChannelEntry;
use ringer_core::message::Agent;
use ringer_ipc::part::{Part, PartEvent};
use ringer_platform::{wake, wake_pair};

use shared::{ChannelSettings, Shared};

pub use files::{AccessError, ChannelState, ChannelStatus, ChannelsStatus, pair, unpair};
#[doc(hidden)]
pub use intake::element;
#[doc(hidden)]
pub use protocol::{PushedMessage, ServerLine, read_lines};
pub use shared::{ChannelsSetup, FindAccount, GiveAnswer};

/// The part of the hub. Dropping it stops all servers.
pub struct Channels {
    changes: Option<Sender<ManagerMessage>>,
    /// True while any server should be running.
    is_needed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A message to the manager thread.
enum ManagerMessage {
    /// New settings.
    Settings(ChannelSettings),
    /// An agent started, ended or changed its state.
    Agents,
    /// The prompts of an agent may have changed.
    Prompts,
}

impl Channels {
    /// Starts the manager thread, which starts and stops the server threads.
    pub fn start(setup: ChannelsSetup) -> Self {
        let (changes, received) = channel();
        let is_needed = Arc::new(AtomicBool::new(false));
        let mut manager = Manager {
            shared: Arc::new(Shared::new(setup)),
            threads: BTreeMap::new(),
            is_needed: Arc::clone(&is_needed),
        };
        let thread = thread::Builder::new().name("channels".to_owned()).spawn(move || manager.run(&received));
        Self { changes: Some(changes), is_needed, thread: thread.ok() }
    }

    fn send(&self, change: ManagerMessage) {
        // Fails only if the manager thread could not be started or panicked.
        let _ = self.changes.as_ref().map(|changes| changes.send(change));
    }
}

impl Part for Channels {
    fn on_event(&mut self, event: &PartEvent<'_>) {
        match event {
            PartEvent::Settings(config) => {
                let (enabled, servers) = (config.channels.enabled, config.channel_servers.clone());
                self.send(ManagerMessage::Settings(ChannelSettings { enabled, servers }));
            }
            PartEvent::AgentsChanged => self.send(ManagerMessage::Agents),
            PartEvent::PromptsChanged if self.needs_hub() => self.send(ManagerMessage::Prompts),
            _ => {}
        }
    }

    fn needs_hub(&self) -> bool {
        self.is_needed.load(Ordering::Relaxed)
    }
}

impl Drop for Channels {
    fn drop(&mut self) {
        self.changes = None;
        // The manager thread stops all servers before it ends.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The thread of a server.
struct ServerThread {
    server: ChannelEntry,
    /// The agent for which the gates were checked.
    target: Agent,
    /// Writing here makes the thread reread the agent's prompts; closing it ends the thread.
    waker: UnixStream,
    thread: JoinHandle<()>,
}

/// Decides which servers run.
struct Manager {
    shared: Arc<Shared>,
    threads: BTreeMap<String, ServerThread>,
    is_needed: Arc<AtomicBool>,
}

impl Manager {
    fn run(&mut self, received: &Receiver<ManagerMessage>) {
        while let Ok(change) = received.recv() {
            // Handle all queued changes in one pass.
            let (mut servers, mut prompts) = (false, false);
            for change in std::iter::once(change).chain(received.try_iter()) {
                match change {
                    ManagerMessage::Settings(settings) => {
                        self.shared.set(settings);
                        servers = true;
                    }
                    ManagerMessage::Agents => (servers, prompts) = (true, true),
                    ManagerMessage::Prompts => prompts = true,
                }
            }
            if servers {
                self.look();
            }
            if prompts {
                let told = self.threads.values().filter(|thread| thread.server.may_answer);
                told.for_each(|thread| wake(&thread.waker));
            }
        }
        let all = std::mem::take(&mut self.threads);
        stop(all.into_values().collect());
    }

    /// Stops servers that may no longer run, and starts those that may.
    fn look(&mut self) {
        let ChannelSettings { servers, .. } = self.shared.settings();
        let (mut wanted, mut refused) = (BTreeMap::new(), Vec::new());
        for server in servers {
            let target = match self.shared.target(&server) {
                Ok(target) => target,
                // The journal is unavailable for a moment: keep a running server.
                Err(error) => {
                    self.shared.log(format!("MCP channel {}: {error}", server.name));
                    if let Some(thread) = self.threads.get(&server.name) {
                        wanted.insert(server.name.clone(), (server, thread.target.clone()));
                    }
                    continue;
                }
            };
            match (self.shared.refusal_for(&server, target.as_ref(), true), target) {
                (None, Some(agent)) => drop(wanted.insert(server.name.clone(), (server, agent.id))),
                (Some(refusal), _) => refused.push((server, refusal)),
                (None, None) => {}
            }
        }
        let is_wanted = |_: &String, own: &mut ServerThread| {
            let wanted = wanted.get(&own.server.name);
            wanted.is_some_and(|(server, target)| *server == own.server && *target == own.target)
        };
        let unwanted = self.threads.extract_if(.., |name, own| !is_wanted(name, own));
        stop(unwanted.map(|(_, thread)| thread).collect());
        for (server, refusal) in refused {
            self.shared.status_file().refused(&server, &refusal);
        }
        for (name, (server, target)) in wanted {
            if !self.threads.contains_key(&name) {
                self.begin(server, target);
            }
        }
        self.is_needed.store(!self.threads.is_empty(), Ordering::Relaxed);
    }

    fn begin(&mut self, server: ChannelEntry, target: Agent) {
        let Ok((woken, waker)) = wake_pair() else { return };
        let (shared, own) = (Arc::clone(&self.shared), server.clone());
        let builder = thread::Builder::new().name(format!("channel {}", server.name));
        match builder.spawn(move || connection::run(&shared, &own, &woken)) {
            Ok(thread) => {
                self.threads.insert(server.name.clone(), ServerThread { server, target, waker, thread });
            }
            Err(error) => self.shared.log(format!("MCP channel {}: no thread: {error}", server.name)),
        }
    }
}

/// Stops threads and their servers, in parallel.
fn stop(threads: Vec<ServerThread>) {
    let waiting: Vec<JoinHandle<()>> = threads
        .into_iter()
        .map(|ServerThread { waker, thread, .. }| {
            drop(waker);
            thread
        })
        .collect();
    for thread in waiting {
        // An error means that the thread panicked, so it has ended, too.
        let _ = thread.join();
    }
}
