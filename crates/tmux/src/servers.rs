//! Runs a host for each tmux server that Ringer is installed in.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use ringer_config::OnePane;
use ringer_core::message::{SurfaceId, TmuxSurface};
use ringer_ipc::part::{Part, PartEvent};
use ringer_ipc::{ApiError, connect_to_starting, listed_surfaces};
use ringer_journal::Home;
use serde_json::{Value, json};

use crate::host;
use crate::scan::Scanning;
use crate::server::TmuxServer;
use crate::setup::is_installed;

/// Pause after a host stopped, before the next one.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The most servers that are remembered; a person has one or two.
const MAX_SEEN: usize = 256;
/// The method by which a tmux server asks for a host: its setup calls it.
const FOUND: &str = "tmux.found";
/// Logs an error.
type LogLine = Arc<dyn Fn(String) + Send + Sync>;

/// Finds tmux servers and passes them to the host threads.
#[derive(Debug)]
pub struct Servers {
    sender: Sender<TmuxServer>,
    /// Socket and pid of servers that surfaces have named. Each is tried once.
    seen: BTreeSet<(String, String)>,
    one_pane: Arc<Mutex<OnePane>>,
}

impl Servers {
    /// Starts hosts for the servers with a socket in one of these directories, and later for those that surfaces name. `log` gets
    /// errors.
    pub fn start(
        home: Home,
        directories: Vec<PathBuf>,
        scanning: Scanning,
        log: impl Fn(String) + Send + Sync + 'static,
    ) -> Self {
        let (sender, servers) = channel();
        let one_pane: Arc<Mutex<OnePane>> = Arc::default();
        let threads = HostThreads {
            home,
            active: Arc::default(),
            one_pane: one_pane.clone(),
            scanning: Arc::new(scanning),
            log: Arc::new(log),
        };
        thread::spawn(move || threads.run(&directories, &servers));
        Self { sender, seen: BTreeSet::new(), one_pane }
    }

    /// Starts a host for the server at a socket, if Ringer is installed there and it has none.
    fn add(&self, socket: &str) {
        // It fails only if the thread has ended.
        let _ = self.sender.send(TmuxServer::at(socket));
    }

    fn surface_active(&mut self, surface: &SurfaceId) {
        if let Some(TmuxSurface { socket, server, .. }) = surface.tmux()
            && self.seen.len() < MAX_SEEN
            && self.seen.insert((socket.to_owned(), server.to_owned()))
        {
            self.add(socket);
        }
    }
}

impl Part for Servers {
    fn on_event(&mut self, event: &PartEvent<'_>) {
        match event {
            PartEvent::SurfaceActive(surface) => self.surface_active(surface),
            PartEvent::Settings(config) => {
                *self.one_pane.lock().unwrap_or_else(PoisonError::into_inner) = config.tmux.one_pane;
            }
            _ => {}
        }
    }

    fn methods(&self) -> &'static [&'static str] {
        &[FOUND]
    }

    fn call(&mut self, _method: &str, params: &Value) -> Result<Value, ApiError> {
        let socket = params["socket"].as_str().ok_or_else(|| ApiError::params("socket is missing"))?;
        self.add(socket);
        Ok(json!({}))
    }
}

#[derive(Clone)]
struct HostThreads {
    home: Home,
    /// The servers that have a host.
    active: Arc<Mutex<BTreeSet<TmuxServer>>>,
    one_pane: Arc<Mutex<OnePane>>,
    scanning: Arc<Scanning>,
    log: LogLine,
}

impl HostThreads {
    fn run(&self, directories: &[PathBuf], servers: &Receiver<TmuxServer>) {
        for server in directories.iter().flat_map(|directory| TmuxServer::in_directory(directory)) {
            self.serve(server);
        }
        // A server may have its socket elsewhere; known surfaces name it.
        let surfaces = listed_surfaces(&self.home);
        let sockets: BTreeSet<&str> =
            surfaces.iter().filter_map(|surface| Some(surface.tmux()?.socket)).collect();
        for socket in sockets {
            self.serve(TmuxServer::at(socket));
        }
        while let Ok(server) = servers.recv() {
            self.serve(server);
        }
    }

    fn serve(&self, server: TmuxServer) {
        if !is_installed(&server, &self.home) || !self.claim(&server) {
            return;
        }
        let own = self.clone();
        thread::spawn(move || {
            while connect_to_starting(&own.home).is_some() {
                match host::run(&own.home, &server, &own.one_pane, &own.scanning) {
                    Ok(()) => {
                        own.release(&server);
                        // A new server may have the same socket already. It could not be claimed before.
                        if !is_installed(&server, &own.home) || !own.claim(&server) {
                            return;
                        }
                    }
                    Err(error) => (own.log)(format!("tmux at {}: {error}", server.socket().display())),
                }
                thread::sleep(RETRY_AFTER);
            }
            own.release(&server);
        });
    }

    /// Returns true if the server had no host yet.
    fn claim(&self, server: &TmuxServer) -> bool {
        self.active.lock().unwrap_or_else(PoisonError::into_inner).insert(server.clone())
    }

    fn release(&self, server: &TmuxServer) {
        self.active.lock().unwrap_or_else(PoisonError::into_inner).remove(server);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_method_is_on_the_protocol_page() {
        let page = include_str!("../../../docs/protocol.md");
        assert!(page.contains(&format!("`{FOUND}`")), "{FOUND} is not described in docs/protocol.md");
    }
}
