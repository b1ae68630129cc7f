//! A session bus of the test's own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A private bus, ended with the test. It starts no services: an installed notification server must not join in.
pub(crate) struct Bus {
    home: TempDir,
    daemon: Child,
}

impl Bus {
    pub(crate) fn start() -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let daemon = daemon(&home);
        Self { home, daemon }
    }

    pub(crate) fn address(&self) -> String {
        format!("unix:path={}", self.home.path().join("bus").display())
    }

    /// The bus goes away, with everybody's connection.
    pub(crate) fn stop(&mut self) {
        self.daemon.kill().expect("ours to kill");
        self.daemon.wait().expect("its end");
        fs::remove_file(self.home.path().join("bus")).expect("its socket");
    }

    /// And comes back at the same place.
    pub(crate) fn restart(&mut self) {
        self.daemon = daemon(&self.home);
    }

    /// A file beside it.
    pub(crate) fn file(&self, name: &str, content: &str) -> std::path::PathBuf {
        let path = self.home.path().join(name);
        fs::write(&path, content).expect("a file");
        path
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        // It may have been stopped already.
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

fn daemon(home: &TempDir) -> Child {
    let config = home.path().join("bus.conf");
    let socket = home.path().join("bus");
    fs::write(
        &config,
        format!(
            "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\" \
             \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\
             <busconfig><type>session</type><listen>unix:path={}</listen><policy context=\"default\">\
             <allow send_destination=\"*\"/><allow receive_sender=\"*\"/><allow own=\"*\"/>\
             </policy></busconfig>",
            socket.display()
        ),
    )
    .expect("a file");
    let daemon = Command::new("dbus-daemon")
        .arg(format!("--config-file={}", config.display()))
        .args(["--print-address=1", "--nofork"])
        .stdout(Stdio::piped())
        // It complains about limits that nobody here needs.
        .stderr(Stdio::null())
        .spawn();
    let mut daemon = test_support::started("dbus-daemon", daemon);
    // It prints its address when it listens.
    first_line(&mut daemon, "dbus-daemon");
    daemon
}

/// The first line that a process prints, which is how these processes say that they are ready.
pub(crate) fn first_line(child: &mut Child, name: &str) -> String {
    let stdout = child.stdout.as_mut().expect("its output");
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    assert!(!line.is_empty(), "{name} ended at once");
    line.trim().to_owned()
}
