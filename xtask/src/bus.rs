use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::background::BackgroundProcess;
use crate::environment::failed;
use crate::failure::Failure;
use crate::parts::BUS;

/// A private session bus. It ends on drop.
pub(crate) struct Bus {
    address: String,
    _daemon: BackgroundProcess,
}

impl Bus {
    /// Starts the bus in an existing folder with its own configuration: the system's would activate the notification server
    /// of the machine.
    pub(crate) fn start(folder: &Path, log: &Path) -> Result<Self, Failure> {
        let address = format!("unix:path={}", folder.join("bus").display());
        let file = folder.join("bus.conf");
        fs::write(&file, settings(&address)).map_err(|error| failed(&file, &error))?;
        let mut daemon = Command::new(BUS.program());
        daemon
            .args(["--nofork", "--nopidfile", "--nosyslog", "--print-address=1", "--config-file"])
            .arg(file);
        let complaints = File::create(log).map_err(|error| failed(log, &error))?;
        daemon.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(complaints);
        let mut daemon = BackgroundProcess::spawn(&mut daemon)?;
        // dbus-daemon prints its address once it listens, and exits without output if it cannot.
        let mut said = String::new();
        if let Some(stdout) = daemon.child().stdout.take() {
            BufReader::new(stdout).read_line(&mut said).map_err(|error| Failure::io("the bus", &error))?;
        }
        if said.is_empty() {
            return Err(Failure::unavailable("the bus did not come up".into()));
        }
        Ok(Self { address, _daemon: daemon })
    }

    /// Returns the value for `DBUS_SESSION_BUS_ADDRESS`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

fn settings(address: &str) -> String {
    format!(
        "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\"\n \
         \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n\
         <busconfig><type>session</type><listen>{address}</listen><policy context=\"default\">\
         <allow send_destination=\"*\"/><allow receive_sender=\"*\"/><allow own=\"*\"/>\
         </policy></busconfig>\n"
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_bus_starts_nobody() {
        let settings = super::settings("unix:path=x/bus");
        assert!(settings.contains("<listen>unix:path=x/bus</listen>"), "{settings}");
        assert!(!settings.contains("servicedir"), "{settings}");
    }
}
