//! The least that waking another process can cost: a byte through a FIFO. `cargo xtask bench notify` runs it beside
//! `ringer notify` and `ringer listen`.
//!
//! `fifo wait FIFO` prints a line when another process rings; `fifo ring FIFO` rings.

use std::env;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};

fn main() -> io::Result<()> {
    let mut arguments = env::args_os().skip(1);
    let (Some(verb), Some(path)) = (arguments.next(), arguments.next()) else {
        return Err(io::Error::other("fifo wait|ring FIFO"));
    };
    if verb == "wait" {
        // For writing too: without a writer it would be at its end before the first ring.
        let mut fifo = OpenOptions::new().read(true).write(true).open(path)?;
        fifo.read_exact(&mut [0])?;
        io::stdout().write_all(b"rung\n")
    } else {
        OpenOptions::new().write(true).open(path)?.write_all(b"!")
    }
}
