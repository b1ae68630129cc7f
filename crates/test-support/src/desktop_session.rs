//! A desktop session for one test: a D-Bus session bus and a virtual screen.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::started;

/// A private session bus. It does not activate services: an installed notification server must not start.
#[derive(Debug)]
pub struct SessionBus {
    directory: TempDir,
    daemon: Child,
}

impl SessionBus {
    /// Starts the bus.
    ///
    /// # Panics
    ///
    /// If dbus-daemon does not start.
    #[track_caller]
    pub fn start() -> Self {
        let directory = tempfile::tempdir().unwrap_or_else(|error| panic!("no directory: {error}"));
        let daemon = start_daemon(&directory);
        Self { directory, daemon }
    }

    /// Returns the address, as in `DBUS_SESSION_BUS_ADDRESS`.
    pub fn address(&self) -> String {
        format!("unix:path={}", self.directory.path().join("bus").display())
    }

    /// Stops the bus; every connection breaks.
    ///
    /// # Panics
    ///
    /// If its socket does not exist.
    pub fn stop(&mut self) {
        self.kill();
        if let Err(error) = fs::remove_file(self.directory.path().join("bus")) {
            panic!("the bus has no socket: {error}");
        }
    }

    /// Starts the bus again, at the same address.
    ///
    /// # Panics
    ///
    /// If dbus-daemon does not start.
    pub fn restart(&mut self) {
        self.daemon = start_daemon(&self.directory);
    }

    /// Writes a file into the directory of the bus and returns its path.
    ///
    /// # Panics
    ///
    /// If the file cannot be written.
    pub fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        if let Err(error) = fs::write(&path, content) {
            panic!("{}: {error}", path.display());
        }
        path
    }

    fn kill(&mut self) {
        // It may have ended already.
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

impl Drop for SessionBus {
    fn drop(&mut self) {
        self.kill();
    }
}

fn start_daemon(directory: &TempDir) -> Child {
    let (config, socket) = (directory.path().join("bus.conf"), directory.path().join("bus"));
    let text = format!(
        "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\" \
         \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\
         <busconfig><type>session</type><listen>unix:path={}</listen><policy context=\"default\">\
         <allow send_destination=\"*\"/><allow receive_sender=\"*\"/><allow own=\"*\"/>\
         </policy></busconfig>",
        socket.display()
    );
    if let Err(error) = fs::write(&config, text) {
        panic!("{}: {error}", config.display());
    }
    let daemon = Command::new("dbus-daemon")
        .arg(format!("--config-file={}", config.display()))
        .args(["--print-address=1", "--nofork"])
        .stdout(Stdio::piped())
        // dbus-daemon warns about limits that no test reaches.
        .stderr(Stdio::null())
        .spawn();
    let mut daemon = started("dbus-daemon", daemon);
    // dbus-daemon prints its address once it listens.
    first_line(&mut daemon, "dbus-daemon");
    daemon
}

/// Returns the first line of a process that prints one when it is ready.
///
/// # Panics
///
/// If the process ends without a line.
#[track_caller]
pub fn first_line(child: &mut Child, name: &str) -> String {
    let mut line = String::new();
    let read =
        child.stdout.as_mut().is_some_and(|stdout| BufReader::new(stdout).read_line(&mut line).is_ok());
    assert!(read && !line.is_empty(), "{name} ended at once");
    line.trim().to_owned()
}

/// A virtual X11 display.
#[derive(Debug)]
pub struct VirtualScreen {
    server: Child,
    display: String,
}

impl VirtualScreen {
    /// Starts the X server.
    ///
    /// # Panics
    ///
    /// If Xvfb does not start.
    #[track_caller]
    pub fn start() -> Self {
        let server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-nolisten", "tcp", "-screen", "0", "640x480x24"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut server = started("Xvfb", server);
        // Xvfb prints the display number once it listens.
        let display = format!(":{}", first_line(&mut server, "Xvfb"));
        Self { server, display }
    }

    /// Returns the name of the display, as in `DISPLAY`.
    pub fn display(&self) -> &str {
        &self.display
    }

    /// Returns the process id of the X server.
    pub fn pid(&self) -> u32 {
        self.server.id()
    }

    /// Kills the X server; every connection breaks.
    pub fn stop(&mut self) {
        // It may have ended already.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Drop for VirtualScreen {
    fn drop(&mut self) {
        self.stop();
    }
}
