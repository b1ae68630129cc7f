//! The line settings of a terminal before a client made it raw, so that the server can restore them if the client is killed.

use std::os::fd::AsFd;

use rustix::termios::{
    ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios, tcgetattr,
    tcsetattr,
};
use serde::{Deserialize, Serialize};

/// The type of the system's flags.
#[cfg(target_os = "linux")]
type Flags = u32;
#[cfg(not(target_os = "linux"))]
type Flags = u64;

/// The settings that raw mode changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LineSettings {
    input: Flags,
    output: Flags,
    control: Flags,
    local: Flags,
    /// VMIN and VTIME.
    read_minimum: u8,
    read_time: u8,
}

impl LineSettings {
    pub(crate) fn of(settings: &Termios) -> Self {
        Self {
            input: settings.input_modes.bits(),
            output: settings.output_modes.bits(),
            control: settings.control_modes.bits(),
            local: settings.local_modes.bits(),
            read_minimum: settings.special_codes[SpecialCodeIndex::VMIN],
            read_time: settings.special_codes[SpecialCodeIndex::VTIME],
        }
    }

    /// Restores the settings of a terminal that is still raw. If it is not, a shell has already set its own.
    pub(crate) fn put_back(self, terminal: impl AsFd) {
        // This fails if the terminal is gone.
        let Ok(mut settings) = tcgetattr(&terminal) else { return };
        let mut raw = settings.clone();
        raw.make_raw();
        if Self::of(&settings) != Self::of(&raw) {
            return;
        }
        settings.input_modes = InputModes::from_bits_retain(self.input);
        settings.output_modes = OutputModes::from_bits_retain(self.output);
        settings.control_modes = ControlModes::from_bits_retain(self.control);
        settings.local_modes = LocalModes::from_bits_retain(self.local);
        settings.special_codes[SpecialCodeIndex::VMIN] = self.read_minimum;
        settings.special_codes[SpecialCodeIndex::VTIME] = self.read_time;
        let _ = tcsetattr(&terminal, OptionalActions::Now, &settings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_put_back_unless_another_program_has_set_its_own() {
        let (_master, terminal) = pty_process::blocking::open().unwrap();
        let now = || tcgetattr(&terminal).unwrap();
        let before = LineSettings::of(&now());
        let mut raw = now();
        raw.make_raw();
        tcsetattr(&terminal, OptionalActions::Now, &raw).unwrap();
        assert_ne!(LineSettings::of(&now()), before);
        before.put_back(&terminal);
        assert_eq!(LineSettings::of(&now()), before);
        let mut of_shell = now();
        of_shell.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(&terminal, OptionalActions::Now, &of_shell).unwrap();
        before.put_back(&terminal);
        assert_eq!(LineSettings::of(&now()), LineSettings::of(&of_shell));
    }
}
