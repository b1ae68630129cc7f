//! What a program is told that asks its terminal something.

use alacritty_terminal::vte::ansi::Rgb;
use ringer_term::{EmulatedTerminal, ProgramStatus, Query, Terminator, query99_reply};

/// The answer to a question that the emulator does not know. The one for open notifications is the pane's.
pub(super) fn answer(query: &Query) -> Option<String> {
    let text = match query {
        Query::Osc99 { id } => query99_reply(id.as_ref()?, true, Terminator::St),
        Query::Osc7501 => ProgramStatus::query(Terminator::St),
        _ => return None,
    };
    Some(text)
}

/// The answer to the question what the terminal is: what the environment of the program says, too.
pub(super) fn version() -> String {
    EmulatedTerminal::default().version_reply()
}

/// What a program is told of a colour that only the outer terminal knows: light text on black, or one of the 256.
pub(super) fn usual_colour(index: usize) -> Rgb {
    let basic = [0x00_0000, 0xcd_0000, 0x00_cd00, 0xcd_cd00, 0x00_00ee, 0xcd_00cd, 0x00_cdcd, 0xe5_e5e5];
    let number: u32 = match index {
        0..8 => basic[index],
        256 | 258 => 0xe5_e5e5,
        257 => 0,
        _ => 0x80_8080,
    };
    let [_, r, g, b] = number.to_be_bytes();
    Rgb { r, g, b }
}
