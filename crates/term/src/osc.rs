//! The frame of an outgoing OSC sequence.

use crate::multiplexer::Multiplexer;

/// What ends an OSC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminator {
    /// `ESC \`, the standard.
    St,
    /// BEL, for GNU screen: an ST inside its wrapper has to be split over two pieces.
    Bel,
}

impl Terminator {
    /// The terminator to use inside these multiplexers.
    pub fn inside(layers: &[Multiplexer]) -> Self {
        if layers.contains(&Multiplexer::Screen) { Self::Bel } else { Self::St }
    }
}

/// Frames a payload that is already safe.
pub(crate) fn osc(payload: &str, terminator: Terminator) -> String {
    let end = match terminator {
        Terminator::St => "\x1b\\",
        Terminator::Bel => "\x07",
    };
    format!("\x1b]{payload}{end}")
}
