//! All servers: one thread for each that Ringer is set up in.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use ringer_core::attention::OnePane;
use ringer_core::message::{SurfaceId, TmuxSurface};
use ringer_ipc::host::Extension;
use ringer_ipc::{connect_to_starting, listed_surfaces};
use ringer_journal::Home;

use crate::host::{self, Ended};
use crate::scan::Scanning;
use crate::server::TmuxServer;
use crate::setup::is_installed;

/// How long after a connection that was cut off the next one is tried.
const ATTACH_AGAIN: Duration = Duration::from_secs(1);
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
        let surfaces = listed_surfaces(&self.home);
        let sockets: BTreeSet<&str> =
            surfaces.iter().filter_map(|surface| Some(surface.tmux()?.socket)).collect();
        for socket in sockets {
            self.serve(TmuxServer::at(socket));
        }
        while let Ok(server) = finds.recv() {
            self.serve(server);
        }
    }

    fn serve(&self, server: TmuxServer) {
        if !is_installed(&server, &self.home) || !self.begin(&server) {
            return;
        }
        let own = self.clone();
        thread::spawn(move || {
            while connect_to_starting(&own.home).is_some() {
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
