//! The line settings of a terminal as a client found them, so that the server can put them back if the client is killed.

use std::os::fd::AsFd;

use rustix::termios::{
    ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios, tcgetattr,
    tcsetattr,
};
use serde::{Deserialize, Serialize};

/// As wide as the flags of the system.
#[cfg(target_os = "linux")]
type Flags = u32;
#[cfg(not(target_os = "linux"))]
type Flags = u64;

/// What makes a terminal raw, or not.
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

    /// Puts them back in a terminal that is still raw. In another one a shell has set what it wants already.
    pub(crate) fn put_back(self, terminal: impl AsFd) {
        // A terminal that is gone needs nothing.
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
