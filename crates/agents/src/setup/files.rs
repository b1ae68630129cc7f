//! Reads the settings files of clients.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::error::SetupError;

/// The largest file that is read as a settings file; a larger one is refused.
pub const MAX_FILE: u64 = 4 * 1024 * 1024;

/// What was at a path before the setup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Before {
    /// We do not know.
    #[default]
    Unknown,
    /// No file.
    Absent,
    /// These bytes.
    Bytes(Vec<u8>),
}

/// A whole file, or `None` if there is none. A FIFO in a project is refused, not waited for.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, SetupError> {
    let mut bytes = Vec::new();
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty()).map(File::from).map_err(io::Error::from);
    let count = match opened {
        Ok(file) if !file.metadata().is_ok_and(|metadata| metadata.is_file()) => {
            return Err(SetupError::io("opening", path)(io::Error::other("it is not a file")));
        }
        Ok(file) => {
            file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(SetupError::io("reading", path))?
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(SetupError::io("opening", path)(error)),
    };
    if count as u64 > MAX_FILE {
        return Err(SetupError::TooLarge { path: path.to_path_buf(), limit: MAX_FILE });
    }
    Ok(Some(bytes))
}
