//! `ringer run` in a terminal.

use crate::pty::Pane;

pub(super) const RINGER: &str = env!("CARGO_BIN_EXE_ringer");

/// Without a hub, and with no terminal that could report focus.
const ALONE: [(&str, &str); 2] = [("RINGER_HUB", "off"), ("HOME", "/nowhere")];

/// `ringer run` of a shell script.
pub(super) fn run_script(script: &str) -> Pane {
    Pane::start(&[RINGER, "run", "--", "sh", "-c", script], &ALONE, None)
}

/// What a program writes to a terminal of its own.
pub(super) fn output_of(argv: &[&str]) -> Vec<u8> {
    Pane::start(argv, &ALONE, None).end().0
}
