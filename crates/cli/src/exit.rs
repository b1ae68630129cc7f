//! Exit codes, from sysexits, so that scripts and hooks can tell failures apart.

/// How a command ended, when it did not end well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Something that was looked at does not work.
    Broken = 1,
    /// The command line is wrong.
    Usage = 64,
    /// The input cannot be used: too long, not text, an unknown id.
    Data = 65,
    /// A file that was to be read is not there or cannot be read.
    NoInput = 66,
    /// Something that is needed is not there: a terminal, a service.
    Unavailable = 69,
    /// An error in Ringer itself.
    Software = 70,
    /// Something cannot be made: no space, no directory.
    CannotCreate = 73,
    /// Reading or writing failed half-way.
    InputOutput = 74,
    /// It may work later.
    TryAgain = 75,
    /// Not allowed.
    NoPermission = 77,
    /// The settings are wrong.
    Config = 78,
    /// A command that was to be run cannot be executed.
    NotExecutable = 126,
    /// There is no such command to run.
    NoCommand = 127,
}
