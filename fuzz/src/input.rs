//! What several targets do with their input.

use std::env;
use std::path::Path;

use tempfile::TempDir;

/// The pieces of a stream. Its first byte chooses how long they are.
pub(crate) fn split(data: &[u8]) -> Option<(&[u8], impl Iterator<Item = &[u8]>)> {
    let (length, stream) = data.split_first()?;
    Some((stream, stream.chunks(usize::from(*length).max(1))))
}

/// Asserts that a line is text that may be printed, with one end.
pub(crate) fn assert_printable(line: &str) {
    let line = line.strip_suffix('\n').unwrap_or(line);
    let hidden = line
        .chars()
        .find(|character| character.is_control() || "\u{2028}\u{2029}\u{202e}\u{200b}".contains(*character));
    assert_eq!(hidden, None, "{line:?}");
}

/// A directory for a home, in memory where the system has a place for that.
pub(crate) fn home() -> TempDir {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { env::temp_dir() };
    tempfile::tempdir_in(parent).expect("a directory for temporary files")
}
