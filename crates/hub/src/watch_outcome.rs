//! What a watch tells the loop.

use std::path::{Path, PathBuf};

use ringer_term::sanitise_line;

/// What came of a watch.
#[derive(Debug)]
pub(crate) struct WatchOutcome {
    /// Which file changed.
    pub(crate) path: PathBuf,
    /// The command, as the person wrote it.
    pub(crate) command: String,
    /// The agent that is to be told.
    pub(crate) agent: Option<String>,
    /// What it printed, or why it failed.
    pub(crate) result: Result<String, String>,
}

impl WatchOutcome {
    /// What the footer says of it.
    pub(crate) fn words(&self) -> String {
        let name = self.path.file_name().unwrap_or_else(|| Path::new("?").as_os_str()).to_string_lossy();
        let what = match &self.result {
            Ok(output) if output.is_empty() => format!("{} ran", self.command),
            Ok(output) => format!("{}: {}", self.command, output.lines().next().unwrap_or_default()),
            Err(why) => format!("{} failed: {why}", self.command),
        };
        sanitise_line(&format!("{name} changed; {what}"))
    }
}
