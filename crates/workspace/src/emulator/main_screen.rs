//! The main screen of a program that shows its other one.

use alacritty_terminal::vte::ansi::{Handler, KeyboardModes, KeyboardModesApplyBehavior};

use super::Emulator;

impl Emulator {
    /// Gives the main screen to what reads it, whichever one is shown.
    pub(crate) fn with_main_screen<R>(&mut self, read: impl FnOnce(&Self) -> R) -> R {
        if !self.is_alternate() {
            return read(self);
        }
        // The emulator shows either, and empties the other screen whenever it changes to it.
        let (other, selection) = (self.term.grid().clone(), self.term.selection.take());
        let keyboard = KeyboardModes::from_bits_truncate(self.input_modes().kitty_flags);
        self.term.swap_alt();
        let result = read(self);
        self.term.swap_alt();
        *self.term.grid_mut() = other;
        self.term.selection = selection;
        Handler::set_keyboard_mode(&mut self.term, keyboard, KeyboardModesApplyBehavior::Replace);
        result
    }
}
