//! Reports a command's error: what went wrong, why, and a command to type next.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};

use ringer_core::message::InvalidName;
use ringer_journal::{Error as JournalError, SenderError};
use ringer_term::sanitise_line;

/// The hint for a caller who was refused without evidence that it is the person.
pub(crate) const PERSON_HINT: &str =
    "run it in a terminal of your own, or allow your scripts: [answers] scripts = true in config.toml";

/// An error that ends a command.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// The error, as a lowercase fragment.
    what: String,
    /// The cause, if a lower layer reported one.
    source: Option<Box<dyn Error + Send + Sync>>,
    /// A command to type, or a sentence with one.
    hint: Option<String>,
    /// Replaces the hint in a command that sends a message.
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

    /// The command has already printed everything.
    pub(crate) fn reported(exit: Exit) -> Self {
        Self::new(exit, "")
    }

    /// Returns true if there is something to print.
    pub(crate) fn has_message(&self) -> bool {
        !self.what.is_empty()
    }

    pub(crate) fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// For commands that send a message: the hint then says whether the message was stored.
    pub(crate) fn while_sending(mut self) -> Self {
        self.hint = self.hint_if_sending.take().or(self.hint);
        self
    }

    fn hint_if_sending(mut self, hint: impl Into<String>) -> Self {
        self.hint_if_sending = Some(hint.into());
        self
    }

    /// Returns the error for a place with only one line.
    pub(crate) fn first_line(&self) -> String {
        let text = self.to_string();
        let first = text.lines().next().unwrap_or_default();
        first.strip_prefix("error: ").unwrap_or(first).to_owned()
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
            InvalidName::TooLong { what: "message", .. } => {
                "write it to a file and send the path: ringer notify \"see FILE\""
            }
            InvalidName::Unknown { what: "agent", .. } => "ringer setup claude",
            InvalidName::Character { what: "message", .. } => "tr -d '\\000' < FILE | ringer notify -",
            _ => "ringer notify --from worker-1 --to lead --title Build \"the build is green\"",
        };
        Self::new(exit, error.to_string()).hint(hint)
    }
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        let what = match &error {
            JournalError::Sender(SenderError::Invalid(name)) => return name.clone().into(),
            // Somebody else chose this name.
            JournalError::Sender(refused) => sanitise_line(&refused.to_string()),
            error => error.to_string(),
        };
        let failure = |exit| Self::new(exit, what.clone());
        match error {
            JournalError::NotWritable { path, source } => {
                let path = path.display();
                let disk = match source.kind() {
                    ErrorKind::ReadOnlyFilesystem => {
                        "\n  if the system made the disk read-only after an error, dmesg shows it; repair the disk, \
                         then mount it again with -o remount,rw"
                    }
                    _ => "",
                };
                failure(Exit::NoPermission).hint(format!(
                    "in an agent's sandbox, allow it to write {path}/drop and to read {path}/outbox, and nothing else there:\n    \
                     Claude Code   \"sandbox\": {{\"filesystem\": {{\"allowWrite\": [\"{path}/drop\"]}}}} in settings.json\n    \
                     Codex         [sandbox_workspace_write] writable_roots = [\"{path}/drop\"] in config.toml\n    \
                     Gemini CLI    SANDBOX_MOUNTS={path}/drop:{path}/drop:rw,{path}/outbox:{path}/outbox:ro\n  \
                     the hub makes both directories: ringer hub start, outside the sandbox\n  \
                     or use another directory: RINGER_HOME=/some/directory ringer …{disk}"
                ))
            }
            JournalError::UnsafeHome { .. } => failure(Exit::NoPermission).hint(
                "only you may own and write the state directory and the directories above it:\n  \
                 run it as the owner, take the permission from others (chmod go-w DIRECTORY),\n  \
                 or use another directory: RINGER_HOME=/some/directory ringer …",
            ),
            JournalError::NoHome { .. } => {
                failure(Exit::CannotCreate).hint("RINGER_HOME=/some/directory ringer …")
            }
            JournalError::Full { path } => failure(Exit::CannotCreate)
                .hint(format!("df -h {}   # free some space, then run it again", path.display()))
                .hint_if_sending(format!(
                    "df -h {}   # free some space, then send it again: it was not stored",
                    path.display()
                )),
            JournalError::Failing { .. } => {
                failure(Exit::InputOutput).hint("dmesg   # shows disk errors").hint_if_sending(
                    "dmesg   # shows disk errors; ringer log shows whether the message was stored",
                )
            }
            JournalError::OtherVersion { path, .. } => failure(Exit::Unavailable).hint(format!(
                "use the version of ringer that wrote it, or start over: ringer hub stop; mv {0} {0}.old",
                path.display()
            )),
            JournalError::Busy { .. } => failure(Exit::TryAgain)
                .hint("run it again")
                .hint_if_sending("send it again: it was not stored"),
            JournalError::Sender(_) => failure(Exit::NoPermission).hint(
                "leave --from out, then the sender is who runs the command; or name a worker: \
                 ringer notify --from worker-1 \"the build is green\"",
            ),
            JournalError::Corrupt { .. } => failure(Exit::TryAgain)
                .hint("ringer doctor --repair   # the hub does it when it starts")
                .hint_if_sending("ringer doctor --repair   # then send it again: it was not stored"),
            JournalError::NoQuestion(_) => failure(Exit::Data).hint("ringer list --open --all"),
            JournalError::Answered { .. } => failure(Exit::Data).hint("ringer list --open"),
            _ => failure(Exit::InputOutput),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "error: {}", self.what)?;
        if let Some(source) = &self.source {
            write!(formatter, ": {source}")?;
        }
        if let Some(hint) = &self.hint {
            write!(formatter, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

/// Exit codes for commands that fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// A check failed.
    Broken = 1,
    /// The command line is wrong.
    Usage = 64,
    /// The input is unusable: too long, not text, an unknown id.
    Data = 65,
    /// An input file is missing or cannot be read.
    NoInput = 66,
    /// A resource is missing: a terminal, a service.
    Unavailable = 69,
    /// An error in Ringer itself.
    Software = 70,
    /// Something cannot be created: no space, no directory.
    CannotCreate = 73,
    /// Reading or writing failed midway.
    InputOutput = 74,
    /// It may work later.
    TryAgain = 75,
    NoPermission = 77,
    /// The settings are invalid.
    Config = 78,
    /// The command to run cannot be executed.
    NotExecutable = 126,
    /// The command to run does not exist.
    NoCommand = 127,
}
