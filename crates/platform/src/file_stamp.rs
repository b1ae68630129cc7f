//! Whether a file changed, without reading it.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// When a file was changed and how long it is: enough to see that it is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    modified: SystemTime,
    length: u64,
}

/// The stamp of a file. `None` if there is none.
pub fn file_stamp(path: &Path) -> Option<FileStamp> {
    let metadata = fs::metadata(path).ok()?;
    Some(FileStamp { modified: metadata.modified().ok()?, length: metadata.len() })
}
