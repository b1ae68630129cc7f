//! The terminal that a process is in.

use ringer_core::message::TtySurface;

use crate::ProcessStat;

/// How far up is looked. An agent, its shell and a few wrappers lie between a hook and the terminal.
const MAX_ANCESTORS: usize = 32;

/// A terminal, and when the leader of its session was started: devices are used again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllingTerminal {
    /// Its device.
    pub tty: String,
    /// When the leader of its session was started, in the kernel's unit.
    pub leader_started: u64,
    /// The process that started the leader.
    pub leader_parent: u32,
}

impl ControllingTerminal {
    /// That of a process, by its number or as `self`; else that of its nearest ancestor that has one.
    pub fn of(pid: impl std::fmt::Display) -> Option<Self> {
        let mut stat = ProcessStat::of(pid)?;
        for _ in 0..MAX_ANCESTORS {
            if let Some(tty) = device_path(stat.tty) {
                let leader = ProcessStat::of(stat.session)?;
                return Some(Self { tty, leader_started: leader.started, leader_parent: leader.parent });
            }
            if stat.parent <= 1 {
                return None;
            }
            stat = ProcessStat::of(stat.parent)?;
        }
        None
    }

    /// The id of its surface.
    pub fn surface(&self) -> String {
        TtySurface { tty: &self.tty, leader_started: self.leader_started }.id().to_string()
    }
}

/// The path of a terminal by the kernel's number for it: pseudo-terminals and consoles.
#[cfg(not(target_os = "macos"))]
fn device_path(number: u32) -> Option<String> {
    let (major, minor) = ((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xf_ff00));
    match major {
        4 => Some(format!("/dev/tty{minor}")),
        136..=143 => Some(format!("/dev/pts/{}", (major - 136) * 256 + minor)),
        _ => None,
    }
}

/// The path of a terminal by the kernel's number for it: pseudo-terminals, which have no other name on macOS.
#[cfg(target_os = "macos")]
fn device_path(number: u32) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let path = format!("/dev/ttys{:03}", number & 0xff_ffff);
    std::fs::metadata(&path).ok().filter(|device| device.rdev() == u64::from(number)).map(|_| path)
}

#[cfg(all(test, not(target_os = "macos")))]
mod tests {
    use super::*;

    #[test]
    fn devices_by_their_numbers() {
        assert_eq!(device_path(34_816 + 7).as_deref(), Some("/dev/pts/7"));
        assert_eq!(device_path(35_072).as_deref(), Some("/dev/pts/256"));
        assert_eq!(device_path(0x0401).as_deref(), Some("/dev/tty1"));
        assert_eq!(device_path(0), None);
    }
}
