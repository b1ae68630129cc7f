//! Standard output: data for programs and people, ended quietly when the reader goes away.

use std::io::{self, ErrorKind, Write};

use serde::Serialize;

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};

/// Writes to standard output and flushes. A reader that has gone (`ringer … | head`) is no failure.
pub(crate) fn print(bytes: &[u8]) -> Outcome {
    let mut out = io::stdout().lock();
    settle(out.write_all(bytes).and_then(|()| out.flush()))
}

/// Says a line to the person, on standard error. If nobody reads that, there is nobody to tell; a panic would be worse.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Writes a line of text.
pub(crate) fn print_line(line: &str) -> Outcome {
    print(format!("{line}\n").as_bytes())
}

/// Writes a value as one line of JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Outcome {
    print_line(&json(value)?)
}

/// A value as JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value)
        .map_err(|error| Failure::new(Exit::InputOutput, "cannot write JSON").because(error))
}

/// Whether standard output leads to nobody. A program that is started without one gets `/dev/null`, opened for reading
/// and writing, in its place; nobody who wants to read what we print opens it like that.
pub(crate) fn leads_nowhere() -> bool {
    let both_ways = rustix::fs::fcntl_getfl(io::stdout())
        .is_ok_and(|flags| flags & rustix::fs::OFlags::RWMODE == rustix::fs::OFlags::RDWR);
    both_ways && is_dev_null()
}

#[cfg(not(target_os = "macos"))]
fn is_dev_null() -> bool {
    std::fs::read_link("/proc/self/fd/1").is_ok_and(|path| path.as_os_str() == "/dev/null")
}

/// macOS does not tell the path; the device is the same.
#[cfg(target_os = "macos")]
fn is_dev_null() -> bool {
    let device = rustix::fs::fstat(io::stdout()).map(|stat| stat.st_rdev);
    device.is_ok_and(|device| rustix::fs::stat("/dev/null").is_ok_and(|null| null.st_rdev == device))
}

/// What a write to standard output means for the command.
pub(crate) fn settle(written: io::Result<()>) -> Outcome {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(Exit::InputOutput, "cannot write to standard output").because(error))
        }
        _ => Ok(()),
    }
}
