//! What the guard finds.

use std::fmt;

use ringer_core::message::Agent;

/// Who acts with a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The person, at a terminal that Ringer can follow to its end.
    Proven(Evidence),
    /// Probably the person: the end of the terminal cannot be seen, or it may have been opened for this. Passes, and is announced.
    Known(Evidence),
    /// There is no evidence of a person.
    Refused(Refusal),
    /// An agent: the process runs below it.
    Agent(Agent),
}

/// Why a process counts as the person's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The programs that hold terminals, from the process outwards: `tmux`, `sshd`.
    pub programs: Vec<String>,
    /// What keeps it from being proven.
    pub doubt: Option<&'static str>,
}

impl Evidence {
    pub(crate) fn of(program: &str) -> Self {
        Self { programs: vec![program.to_owned()], doubt: None }
    }

    pub(crate) fn doubted(self, doubt: &'static str) -> Self {
        Self { doubt: self.doubt.or(Some(doubt)), ..self }
    }

    pub(crate) fn inside(mut self, program: &str) -> Self {
        self.programs.insert(0, program.to_owned());
        self
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.programs.split_last() {
            Some((last, [])) => write!(formatter, "the terminal of {last}")?,
            Some((last, inner)) => write!(formatter, "{} in the terminal of {last}", inner.join(" in "))?,
            None => formatter.write_str("no terminal")?,
        }
        match self.doubt {
            Some(doubt) => write!(formatter, ", {doubt}"),
            None => Ok(()),
        }
    }
}

/// Why a process does not count as the person's.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// It has no controlling terminal.
    NoTerminal,
    /// The shell of its terminal did not start it.
    Adopted,
    /// No process that can be seen holds the other end of its terminal.
    NoHolder,
    /// The program that holds the terminal is none that a person sits at.
    HeldBy(String),
    /// The program that holds the terminal is a file that others can write, or its own file is not what its name says.
    Doubtful(String),
    /// A terminal emulator without a display.
    NoDisplay(String),
    /// No terminal of a person is attached to the multiplexer.
    NotAttached(String),
    /// Its processes cannot be read.
    Unreadable,
    /// More processes are above it than are followed.
    TooDeep,
    /// It is in another namespace than the hub or than its parents.
    Elsewhere,
}

impl Refusal {
    /// Returns true if `[answers] scripts = true` allows it: the process is surely not below an agent that is still running.
    pub fn may_be_script(&self) -> bool {
        !matches!(self, Self::Unreadable | Self::TooDeep | Self::Elsewhere)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTerminal => formatter.write_str("it has no terminal"),
            Self::Adopted => formatter.write_str("the shell of its terminal did not start it"),
            Self::NoHolder => formatter.write_str("the program behind its terminal cannot be seen"),
            Self::HeldBy(program) => write!(formatter, "its terminal is held by {program}"),
            Self::Doubtful(program) => {
                write!(formatter, "its terminal is held by {program}, which others can write")
            }
            Self::NoDisplay(program) => {
                write!(formatter, "its terminal is held by {program}, which has no display")
            }
            Self::NotAttached(program) => {
                write!(formatter, "no terminal of yours shows its pane of {program}")
            }
            Self::Unreadable => formatter.write_str("the processes above it cannot be read"),
            Self::TooDeep => formatter.write_str("too many processes are above it"),
            Self::Elsewhere => formatter.write_str("it is in another namespace"),
        }
    }
}
