//! The least that durable can cost: append a line to a file and wait until the disk has it. `cargo xtask bench notify` runs
//! it beside `ringer notify`.
//!
//! `append FILE TEXT`

use std::env;
use std::fs::OpenOptions;
use std::io::{self, Write};

fn main() -> io::Result<()> {
    let mut arguments = env::args_os().skip(1);
    let (Some(file), Some(text)) = (arguments.next(), arguments.next()) else {
        return Err(io::Error::other("append FILE TEXT"));
    };
    let mut line = text.into_encoded_bytes();
    line.push(b'\n');
    let mut file = OpenOptions::new().append(true).create(true).open(file)?;
    file.write_all(&line)?;
    file.sync_data()
}
