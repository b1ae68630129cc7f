//! The process that leads the session of a terminal: the terminal itself started it, so its environment says which terminal
//! that is.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use ringer_core::message::SurfaceId;

use super::ProcessStat;

/// The process that leads a terminal's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLeader {
    /// Its number.
    pub pid: u32,
    /// The process that started it: mostly the program that draws the terminal.
    pub parent: u32,
}

/// Why the leader of a terminal's session is not known.
#[derive(Debug)]
pub enum SessionLeaderError {
    /// The device is not there.
    NoDevice(io::Error),
    /// The terminal was closed.
    Unused,
    /// The device is that of a terminal that was opened later.
    OtherTerminal,
    /// The system does not tell.
    Unknown,
}

impl SessionLeaderError {
    /// A sentence about the device.
    pub fn words(&self, tty: &str) -> String {
        match self {
            Self::NoDevice(error) => format!("{tty} cannot be used: {error}"),
            Self::Unused => format!("{tty} is no longer used by any process"),
            Self::OtherTerminal => format!("{tty} is now another terminal"),
            Self::Unknown => format!("{tty}: macOS does not tell which terminal that is"),
        }
    }
}

impl SessionLeader {
    /// The leader of the session on a device, if that is still the terminal of the surface.
    pub fn of(surface: &SurfaceId, tty: &str) -> Result<Self, SessionLeaderError> {
        if cfg!(target_os = "macos") {
            return Err(SessionLeaderError::Unknown);
        }
        let device = fs::metadata(tty).map_err(SessionLeaderError::NoDevice)?.rdev();
        let (leader, started) = Self::on(device).ok_or(SessionLeaderError::Unused)?;
        if surface.tty().is_some_and(|plain| plain.leader_started != started) {
            return Err(SessionLeaderError::OtherTerminal);
        }
        Ok(leader)
    }

    /// The leader of the session on a device, and when it was started.
    fn on(device: u64) -> Option<(Self, u64)> {
        let processes = fs::read_dir("/proc").ok()?;
        let mut pids =
            processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.find_map(|pid| {
            let stat =
                ProcessStat::of(pid).filter(|stat| stat.session == pid && u64::from(stat.tty) == device)?;
            Some((Self { pid, parent: stat.parent }, stat.started))
        })
    }

    /// The variables of its environment, as it was started with them.
    pub fn variables(&self) -> io::Result<Vec<(String, String)>> {
        let bytes = fs::read(format!("/proc/{}/environ", self.pid))?;
        let text = String::from_utf8_lossy(&bytes);
        let variables = text.split('\0').filter_map(|entry| entry.split_once('='));
        Ok(variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}
