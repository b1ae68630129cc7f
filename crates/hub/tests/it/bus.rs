//! A session bus of the test's own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A private bus, ended with the test. It starts no wakers: an installed notification server must not join in.
pub(crate) struct Bus {
    home: TempDir,
    daemon: Child,
}

impl Bus {
    pub(crate) fn start() -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let config = home.path().join("bus.conf");
        let text = format!(
            "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\" \
             \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\
             <busconfig><type>session</type><listen>unix:path={}</listen><policy context=\"default\">\
             <allow send_destination=\"*\"/><allow receive_sender=\"*\"/><allow own=\"*\"/>\
             </policy></busconfig>",
            home.path().join("bus").display()
        );
        fs::write(&config, text).expect("a file");
        let daemon = Command::new("dbus-daemon")
            .arg(format!("--config-file={}", config.display()))
            .args(["--print-address=1", "--nofork"])
            .stdout(Stdio::piped())
            // It complains about limits that nobody here needs.
            .stderr(Stdio::null())
            .spawn();
        let mut daemon = test_support::started("dbus-daemon", daemon);
        // It prints its address when it listens.
        let mut line = String::new();
        BufReader::new(daemon.stdout.as_mut().expect("its output")).read_line(&mut line).expect("a line");
        assert!(!line.is_empty(), "dbus-daemon ended at once");
        Self { home, daemon }
    }

    pub(crate) fn address(&self) -> String {
        format!("unix:path={}", self.home.path().join("bus").display())
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}
