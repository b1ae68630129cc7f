//! What a command says when it cannot do what it was asked: what went wrong, why, and what to type next.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};

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
}

pub(crate) type Outcome = Result<(), Failure>;

impl Failure {
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, what: what.into(), source: None, hint: None }
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

    /// A file or device could not be opened.
    pub(crate) fn open(name: &str, error: io::Error) -> Self {
        let exit = match error.kind() {
            ErrorKind::PermissionDenied => Exit::NoPermission,
            _ => Exit::NoInput,
        };
        Self::new(exit, format!("cannot open {name}")).because(error)
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
