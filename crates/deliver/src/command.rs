//! The user's command for every notification.

use std::path::PathBuf;
use std::time::Duration;

use ringer_term::escape_json;
use tokio::sync::OwnedSemaphorePermit;

use crate::error::Error;
use crate::note::Note;
use crate::program::{Output, Program, Variables};

/// The default timeout of the command.
pub const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// A command of the user. It reads the notification from the environment and the standard input, never from its arguments:
/// no text of a message becomes an option or reaches a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonCommand {
    /// The program and its arguments, exactly as they are in the settings.
    pub argv: Vec<String>,
    /// The working directory.
    pub directory: PathBuf,
    /// Usually [`COMMAND_TIMEOUT`].
    pub timeout: Duration,
}

impl PersonCommand {
    /// Runs the command for one notification. A status other than zero is an error.
    pub async fn run(&self, note: &Note) -> Result<(), Error> {
        self.run_with_permit(note, None).await
    }

    /// Like [`run`](Self::run), holding a permit until the command has exited. The permit is released early if a hanging disk
    /// delays the start.
    pub async fn run_with_permit(
        &self,
        note: &Note,
        mut permit: Option<OwnedSemaphorePermit>,
    ) -> Result<(), Error> {
        let failed = |why| Error::Program {
            program: ringer_term::sanitise_line(self.argv.first().map_or("the command", String::as_str)),
            why,
        };
        let input = serde_json::to_string(note).map_err(|error| failed(error.to_string()))?;
        let input = escape_json(&input).into_owned().into_bytes();
        let program = Program {
            argv: self.argv.clone(),
            directory: self.directory.clone(),
            environment: variables(note),
            input,
            output: Output::Ignored,
            timeout: self.timeout,
        };
        program.run_with_permit(&mut permit).await.into_result(self.timeout).map(drop).map_err(failed)
    }
}

fn variables(note: &Note) -> Vec<(String, String)> {
    Variables::default()
        .text("ID", note.id.as_str())
        .text("KIND", note.kind.as_str())
        .text("SENDER", note.sender.as_str())
        .text("TITLE", &note.title)
        .text("SUBTITLE", &note.subtitle)
        .text("BODY", &note.body)
        .text("WORKSPACE_ID", note.workspace.as_str())
        .text("SURFACE_ID", note.surface.as_ref().map_or("", |surface| surface.as_str()))
        .into_pairs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::example;

    #[test]
    fn the_environment_says_what_and_who() {
        let pairs = variables(&example());
        for (name, value) in [("KIND", "question"), ("SENDER", "claude-1a2b"), ("BODY", "May I?")] {
            assert!(pairs.contains(&(format!("RINGER_NOTIFICATION_{name}"), value.to_owned())), "{name}");
        }
    }
}
