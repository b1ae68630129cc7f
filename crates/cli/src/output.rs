//! Standard output and standard error: data for programs and people. A reader that goes away ends the output quietly.
//!
//! Both may be a terminal, so foreign text never leaves unchanged: JSON is escaped and text is sanitised. This also holds for
//! pipes, because a pipe often ends at a terminal.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use ringer_platform::{path_variable, variable};
use ringer_term::{escape_json, sanitise_line, sanitise_text};
use serde::Serialize;

use crate::failure::{Exit, Failure, Outcome};

/// Writes bytes that Ringer made itself, such as an encoded sequence or a script, to standard output and flushes. A reader
/// that has gone (`ringer … | head`) is not a failure.
pub(crate) fn print_bytes(bytes: &[u8]) -> Outcome {
    let mut out = io::stdout().lock();
    check_write(out.write_all(bytes).and_then(|()| out.flush()))
}

/// True while the UI has the terminal: a line there would stay in the middle of its screen.
static SCREEN_IS_OPEN: AtomicBool = AtomicBool::new(false);

/// Sets whether the UI has the terminal. Meanwhile, output to standard error is dropped.
pub(crate) fn set_screen_open(is_open: bool) {
    SCREEN_IS_OPEN.store(is_open, Ordering::Relaxed);
}

/// Prints a line to standard error. An error is ignored: there is nowhere left to report it.
pub(crate) fn eprint_line(line: &str) {
    if SCREEN_IS_OPEN.load(Ordering::Relaxed) {
        return;
    }
    let _ = writeln!(io::stderr(), "{}", sanitise_text(line));
}

pub(crate) fn print_text(text: &str) -> Outcome {
    print_bytes(sanitise_text(text).as_bytes())
}

pub(crate) fn print_line(line: &str) -> Outcome {
    print_text(&format!("{line}\n"))
}

/// Writes a value as one line of JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Outcome {
    print_json_text(&json(value)?)
}

/// Writes a line that is already JSON.
pub(crate) fn print_json_text(line: &str) -> Outcome {
    print_bytes(format!("{}\n", escape_json(line.trim_end())).as_bytes())
}

/// Serialises a value as JSON that is safe to print.
pub(crate) fn json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value)
        .map(|json| escape_json(&json).into_owned())
        .map_err(|error| Failure::new(Exit::InputOutput, "cannot write JSON").because(error))
}

/// Returns true if standard output is closed. A program that is started without one gets `/dev/null`, opened for reading and
/// writing, in its place; a shell's `> /dev/null` opens it for writing only.
pub(crate) fn stdout_is_closed() -> bool {
    let both_ways = rustix::fs::fcntl_getfl(io::stdout())
        .is_ok_and(|flags| flags & rustix::fs::OFlags::RWMODE == rustix::fs::OFlags::RDWR);
    both_ways && is_dev_null()
}

#[cfg(not(target_os = "macos"))]
fn is_dev_null() -> bool {
    std::fs::read_link("/proc/self/fd/1").is_ok_and(|path| path.as_os_str() == "/dev/null")
}

/// macOS has no paths for file descriptors, so the device numbers are compared.
#[cfg(target_os = "macos")]
fn is_dev_null() -> bool {
    let device = rustix::fs::fstat(io::stdout()).map(|stat| stat.st_rdev);
    device.is_ok_and(|device| rustix::fs::stat("/dev/null").is_ok_and(|null| null.st_rdev == device))
}

/// Converts the result of a write to standard output. A reader that has gone is not an error.
pub(crate) fn check_write(written: io::Result<()>) -> Outcome {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(Exit::InputOutput, "cannot write to standard output").because(error))
        }
        _ => Ok(()),
    }
}

/// Formats a count with its noun: `1 message`, `3 messages`.
pub(crate) fn count<N: Copy + Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    if number == N::from(1) { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Formats a path with `~` for the home directory, safe to print.
pub(crate) fn short_path(path: &Path) -> String {
    let home = path_variable("HOME").filter(|home| home.is_absolute());
    let below = home.as_deref().and_then(|home| path.strip_prefix(home).ok());
    sanitise_line(&match below {
        Some(below) => Path::new("~").join(below).display().to_string(),
        None => path.display().to_string(),
    })
}

/// Returns true if this process's locale uses UTF-8. Without a locale it is assumed, because almost every terminal supports it.
pub(crate) fn has_unicode() -> bool {
    let named = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable);
    named.is_none_or(|locale| is_utf8(&locale.to_string_lossy()))
}

fn is_utf8(locale: &str) -> bool {
    let encoding =
        locale.split('@').next().unwrap_or_default().rsplit_once('.').map(|(_, encoding)| encoding);
    encoding.is_some_and(|encoding| encoding.to_ascii_lowercase().replace('-', "") == "utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_of_a_locale() {
        for locale in ["en_GB.UTF-8", "C.utf8", "de_DE.UTF-8@euro"] {
            assert!(is_utf8(locale), "{locale}");
        }
        for locale in ["C", "POSIX", "de_DE.ISO-8859-1", "de_DE@euro"] {
            assert!(!is_utf8(locale), "{locale}");
        }
    }
}
