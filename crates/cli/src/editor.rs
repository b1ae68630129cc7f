//! Opens the person's editor for texts that are longer than a line.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ringer_journal::IdSource;
use ringer_platform::variable;

use crate::context;

/// Returns the command in `$VISUAL`, or in `$EDITOR`.
fn command() -> Option<OsString> {
    let set = ["VISUAL", "EDITOR"].into_iter().filter_map(variable);
    set.into_iter().find(|command| !command.to_string_lossy().trim().is_empty())
}

/// Returns the editor's name, if one is configured.
pub(crate) fn name() -> Option<String> {
    let command = command()?.to_string_lossy().into_owned();
    let program = command.split_whitespace().next()?;
    Path::new(program).file_name().map(|name| name.to_string_lossy().into_owned())
}

/// Opens a text in the editor. Returns the text when the editor has exited.
pub(crate) fn edit(text: &str) -> Result<String, String> {
    let command = command().ok_or("No editor is set: $VISUAL or $EDITOR.")?;
    let file = TextFile::create(text).map_err(|error| format!("No file for the editor: {error}"))?;
    let mut line = OsString::from("exec ");
    line.push(&command);
    // The command is the person's own and may contain options; the file is its last argument.
    line.push(" \"$1\"");
    let ran = Command::new("/bin/sh").arg("-c").arg(line).arg("sh").arg(&file.path).status();
    match ran {
        Ok(status) if status.success() => {
            fs::read_to_string(&file.path).map_err(|error| format!("The text cannot be read: {error}"))
        }
        Ok(status) => Err(format!("{} has failed: {status}", command.to_string_lossy())),
        Err(error) => Err(format!("The editor cannot be started: {error}")),
    }
}

/// A file that only the person can read. Dropping this deletes it.
struct TextFile {
    path: PathBuf,
}

impl TextFile {
    fn create(text: &str) -> io::Result<Self> {
        let home = context::home().map_err(|failure| io::Error::other(failure.to_string()))?;
        let path = home.path().join(format!("answer-{}.txt", IdSource::now().message_id()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let created = Self { path };
        file.write_all(text.as_bytes()).map(|()| created)
    }
}

impl Drop for TextFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
