//! What the server is given by the program that runs it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use ringer_ui::Backend;

use crate::actions::PaneKeys;
use crate::address::Places;
use crate::hub_host::Connect;

/// How a server is run.
pub struct ServerOptions {
    /// The sockets and files.
    pub places: Places,
    /// Reads what keys do.
    pub load_keys: Box<dyn Fn() -> PaneKeys>,
    /// Reads the agents' states, and asks the person what programs ask.
    pub backend: Arc<dyn Backend>,
    /// Reaches the hub.
    pub connect: Connect,
    /// Starts a keeper that outlives the server, and returns when it takes connections.
    pub start_keeper: Box<dyn Fn() -> io::Result<()>>,
    /// The socket of the hub, for the environment of programs.
    pub hub_socket: Option<PathBuf>,
    /// Called when clients can connect.
    pub tell_ready: Box<dyn Fn()>,
    /// Says why a process may not type into panes, if it may not.
    pub may_type: MayType,
}

/// Says why a process may not type into panes, if it may not.
pub type MayType = Box<dyn Fn(&Typist<'_>) -> Result<(), String>>;

/// A process that wants to type into panes.
#[derive(Debug)]
pub struct Typist<'a> {
    /// The process.
    pub pid: u32,
    /// The processes whose windows show panes.
    pub windows: Vec<u32>,
    /// What it wants to do.
    pub what: &'a str,
}
