//! What a command says when it cannot do what it was asked: what went wrong, why, and what to type next.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};

use ringer_core::InvalidName;
use ringer_journal::Error as JournalError;

use crate::exit::Exit;

/// A failure on its way to the person.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) exit: Exit,
    /// What went wrong, as a lowercase fragment.
    what: String,
    /// Why, where something below told.
    source: Option<Box<dyn Error + Send + Sync>>,
    /// A command one can type, or a sentence that leads to one.
    hint: Option<String>,
    /// The hint if what failed was to send something.
    hint_if_sending: Option<String>,
}

pub(crate) type Outcome = Result<(), Failure>;

impl Failure {
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, what: what.into(), source: None, hint: None, hint_if_sending: None }
    }

    /// The command line is wrong.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new(Exit::Usage, what)
    }

    pub(crate) fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What failed was to send something: says that it was not stored, where that is so.
    pub(crate) fn while_sending(mut self) -> Self {
        self.hint = self.hint_if_sending.take().or(self.hint);
        self
    }

    fn hint_if_sending(mut self, hint: impl Into<String>) -> Self {
        self.hint_if_sending = Some(hint.into());
        self
    }

    /// A file or device could not be opened.
    pub(crate) fn open(name: &str, error: io::Error) -> Self {
        let exit = match error.kind() {
            ErrorKind::PermissionDenied => Exit::NoPermission,
            _ => Exit::NoInput,
        };
        Self::new(exit, format!("cannot open {name}")).because(error)
    }
}

impl From<InvalidName> for Failure {
    fn from(error: InvalidName) -> Self {
        let exit = match error {
            InvalidName::Empty { .. } | InvalidName::Unknown { .. } => Exit::Usage,
            _ => Exit::Data,
        };
        let hint = match error {
            InvalidName::Empty { what: "question" } => "ringer ask \"Which branch?\"",
            InvalidName::Empty { what: "message" } => "ringer notify \"the build is green\"",
            InvalidName::TooLong { what: "message", .. } => "put it in a file, and say where the file is",
            InvalidName::Character { what: "message", .. } => "tr -d '\\000' < FILE | ringer notify -",
            _ => "ringer notify --from worker-1 --to lead --title Build \"the build is green\"",
        };
        Self::new(exit, error.to_string()).hint(hint)
    }
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        let what = error.to_string();
        let failure = |exit| Self::new(exit, what.clone());
        match error {
            JournalError::NotWritable { path, .. } => {
                let path = path.display();
                failure(Exit::NoPermission).hint(format!(
                    "if an agent's sandbox forbids it, allow writing to {path}:\n    \
                     Claude Code   \"sandbox\": {{\"filesystem\": {{\"allowWrite\": [\"{path}\"]}}}} in settings.json\n    \
                     Codex         [sandbox_workspace_write] writable_roots = [\"{path}\"] in config.toml\n    \
                     Gemini CLI    SANDBOX_MOUNTS={path}:{path}:rw in the environment\n  \
                     or name a directory that it may write: RINGER_HOME=/some/directory ringer …"
                ))
            }
            JournalError::WrongOwner { .. } => failure(Exit::NoPermission).hint(
                "run it as the owner, or name a directory of your own: RINGER_HOME=/some/directory ringer …",
            ),
            JournalError::NoHome { .. } => {
                failure(Exit::CannotCreate).hint("RINGER_HOME=/some/directory ringer …")
            }
            JournalError::Full { path } => failure(Exit::CannotCreate)
                .hint(format!("make room (df -h {}), then run it again", path.display()))
                .hint_if_sending(format!(
                    "make room (df -h {}), then send it again: it was not stored",
                    path.display()
                )),
            JournalError::Failing { .. } => failure(Exit::InputOutput)
                .hint("look at the disk: dmesg")
                .hint_if_sending("look at the disk (dmesg); ringer log says whether it was stored"),
            JournalError::Newer { .. } => failure(Exit::Unavailable)
                .hint("upgrade ringer to the version that wrote it; the file was not touched"),
            JournalError::Busy { .. } => failure(Exit::TryAgain)
                .hint("run it again")
                .hint_if_sending("send it again: it was not stored"),
            JournalError::NoQuestion(_) => failure(Exit::Data).hint("ringer questions --all"),
            JournalError::Answered { .. } => failure(Exit::Data).hint("ringer questions"),
            _ => failure(Exit::InputOutput),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ringer: {}", self.what)?;
        if let Some(source) = &self.source {
            write!(formatter, ": {source}")?;
        }
        if let Some(hint) = &self.hint {
            write!(formatter, "\n  try: {hint}")?;
        }
        Ok(())
    }
}
