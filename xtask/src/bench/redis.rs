//! Another durable queue to compare with: `redis-cli XADD` with a server that syncs to disk before it replies.

use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;

use crate::background::{BackgroundProcess, START_TIMEOUT, until};
use crate::environment::{TestEnvironment, failed};
use crate::failure::Failure;
use crate::parts::{self, Part};

pub(super) const PARTS: [Part; 2] = [
    Part::new("redis-server", "redis-server", "another durable queue, to compare with"),
    Part::new("redis-cli", "redis-tools", "another durable queue, to compare with"),
];

/// Starts the server, and returns it with a command that adds a message.
pub(super) fn start(
    environment: &TestEnvironment,
    text: &str,
) -> Result<(BackgroundProcess, Command), Failure> {
    if let Some(part) = PARTS.iter().find(|part| !parts::is_here(part.program())) {
        return Err(Failure::unavailable(format!("{} is not here", part.program())));
    }
    let folder = environment.path("redis");
    std::fs::create_dir(&folder).map_err(|error| failed(&folder, &error))?;
    let port = free_port()?.to_string();
    let mut server = Command::new("redis-server");
    server.args(["--port", &port, "--bind", "127.0.0.1", "--save", ""]);
    server.args(["--appendonly", "yes", "--appendfsync", "always", "--dir"]).arg(&folder);
    let service = BackgroundProcess::start(&mut server, &environment.path("redis.log"))?;
    if !until(START_TIMEOUT, || parts::succeeds("redis-cli", &["-p", &port, "-e", "ping"])) {
        return Err(Failure::unavailable("redis-server does not answer".into()));
    }
    let mut command = Command::new("redis-cli");
    command
        .args(["-p", &port, "-e", "XADD", "ringer", "*", "from", "worker-1", "type", "status", "msg", text]);
    Ok((service, command))
}

/// Returns a port that was just free: the server cannot choose one itself.
fn free_port() -> Result<u16, Failure> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| Failure::io("a free port", &error))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_port_is_found() {
        assert!(super::free_port().expect("there is one") > 1023);
    }
}
