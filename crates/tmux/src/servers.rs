//! All servers: one thread for each that Ringer is set up in.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use ringer_core::attention::OnePane;
use ringer_core::message::{SurfaceId, TmuxSurface};
use ringer_ipc::HubClient;
use ringer_ipc::host::Extension;
use ringer_journal::Home;
use serde_json::json;

use crate::host::{self, Ended};
use crate::scan::Scanning;
use crate::server::TmuxServer;
use crate::setup::is_installed;

/// How long a hub may take until it can be connected to, and how often that is tried.
const HUB_STARTS: (u32, Duration) = (100, Duration::from_millis(50));
/// How long after a connection that was cut off the next one is tried.
const ATTACH_AGAIN: Duration = Duration::from_secs(1);
/// Notifications that are looked through for servers when a hub begins.
const MAX_LISTED: usize = 1000;
/// Servers that are heard of; a person has one or two.
const MAX_HEARD: usize = 256;
/// Takes what goes wrong.
type LogLine = Arc<dyn Fn(String) + Send + Sync>;

/// The servers of which a hub has heard, for the threads that are their hosts.
#[derive(Debug)]
pub struct Servers {
    found: Sender<TmuxServer>,
    /// Those that were heard of by what is sent from them, with the numbers of their processes. Each is asked once.
    heard: BTreeSet<(String, String)>,
    one_pane: Arc<Mutex<OnePane>>,
}

impl Servers {
    /// Serves the servers with a socket in one of these directories, and those that the hub hears of. `log` gets what goes
    /// wrong.
    pub fn start(
        home: Home,
        directories: Vec<PathBuf>,
        scanning: Scanning,
        log: impl Fn(String) + Send + Sync + 'static,
    ) -> Self {
        let (found, finds) = channel();
        let one_pane: Arc<Mutex<OnePane>> = Arc::default();
        let threads = Threads {
            home,
            served: Arc::default(),
            one_pane: one_pane.clone(),
            scanning: Arc::new(scanning),
            log: Arc::new(log),
        };
        thread::spawn(move || threads.run(&directories, &finds));
        Self { found, heard: BTreeSet::new(), one_pane }
    }
}

impl Extension for Servers {
    fn heard_from(&mut self, surface: &SurfaceId) {
        if let Some(TmuxSurface { socket, server, .. }) = surface.tmux()
            && self.heard.len() < MAX_HEARD
            && self.heard.insert((socket.to_owned(), server.to_owned()))
        {
            self.tmux_found(socket);
        }
    }

    fn tmux_found(&mut self, socket: &str) {
        // Without its thread there is no host.
        let _ = self.found.send(TmuxServer::at(socket));
    }

    fn set_one_pane(&mut self, one_pane: OnePane) {
        *self.one_pane.lock().unwrap_or_else(PoisonError::into_inner) = one_pane;
    }
}

#[derive(Clone)]
struct Threads {
    home: Home,
    served: Arc<Mutex<BTreeSet<TmuxServer>>>,
    one_pane: Arc<Mutex<OnePane>>,
    scanning: Arc<Scanning>,
    log: LogLine,
}

impl Threads {
    fn run(&self, directories: &[PathBuf], finds: &Receiver<TmuxServer>) {
        for server in directories.iter().flat_map(|directory| TmuxServer::in_directory(directory)) {
            self.serve(server);
        }
        // The socket of a server may be elsewhere.
        for socket in self.listed_sockets() {
            self.serve(TmuxServer::at(socket));
        }
        while let Ok(server) = finds.recv() {
            self.serve(server);
        }
    }

    /// Waits until the hub takes connections: its threads are there before its socket is.
    fn connect(&self) -> Option<HubClient> {
        let (tries, pause) = HUB_STARTS;
        (0..tries).find_map(|_| {
            let client = HubClient::connect(&self.home).ok();
            if client.is_none() {
                thread::sleep(pause);
            }
            client
        })
    }

    /// The servers from which the newest notifications came.
    fn listed_sockets(&self) -> BTreeSet<String> {
        let list =
            self.connect().map(|mut hub| hub.call("notification.list", &json!({ "limit": MAX_LISTED })));
        let rows = list.and_then(Result::ok).and_then(|list| list.as_array().cloned()).unwrap_or_default();
        let surfaces = rows.iter().filter_map(|row| row["surface"].as_str().map(SurfaceId::new));
        surfaces.filter_map(|surface| Some(surface.tmux()?.socket.to_owned())).collect()
    }

    fn serve(&self, server: TmuxServer) {
        if !is_installed(&server, &self.home) || !self.begin(&server) {
            return;
        }
        let own = self.clone();
        thread::spawn(move || {
            while own.connect().is_some() {
                match host::run(&own.home, &server, &own.one_pane, &own.scanning) {
                    Ok(Ended::Server) => {
                        own.end(&server);
                        // Another server may have the socket already, and was not begun because this one was not ended.
                        if !is_installed(&server, &own.home) || !own.begin(&server) {
                            return;
                        }
                    }
                    Ok(Ended::Hub) => {}
                    Err(error) => (own.log)(format!("tmux at {}: {error}", server.socket().display())),
                }
                thread::sleep(ATTACH_AGAIN);
            }
            own.end(&server);
        });
    }

    /// Gives whether it was not served yet.
    fn begin(&self, server: &TmuxServer) -> bool {
        self.served.lock().unwrap_or_else(PoisonError::into_inner).insert(server.clone())
    }

    fn end(&self, server: &TmuxServer) {
        self.served.lock().unwrap_or_else(PoisonError::into_inner).remove(server);
    }
}
