//! What can go wrong with a link.

use std::io;
use std::path::PathBuf;

/// Why a link does not work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The journal of this machine cannot be used.
    #[error(transparent)]
    Journal(#[from] ringer_journal::Error),
    /// The system refused something.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file with this machine's id holds something else.
    #[error("{} holds no machine id; remove it and a new one is made", .0.display())]
    NoMachineId(PathBuf),
    /// The program of the link cannot be started, or ended.
    #[error("{0}")]
    Program(String),
    /// The other side refused to go on.
    #[error("the other machine refused: {0}")]
    Refused(String),
    /// The other side speaks other versions of the protocol.
    #[error(
        "the other machine has ringer {program}, which speaks link protocol {from} to {to}; this one speaks {own}. \
         Install the same version on both"
    )]
    Version {
        /// The oldest that it speaks.
        from: u32,
        /// The newest that it speaks.
        to: u32,
        /// What this version speaks.
        own: u32,
        /// The version of its program.
        program: String,
    },
    /// The link leads back.
    #[error(
        "the other side has the id of this machine. A copied home has the id of its original: \
         remove the file machine-id in one of them"
    )]
    SameMachine,
    /// There is another link between the two.
    #[error("another link to {0} is connected already")]
    Connected(String),
    /// The other side broke the rules of the protocol.
    #[error("the other side does not speak the link protocol: {0}")]
    Protocol(&'static str),
    /// Nothing was heard for too long.
    #[error("nothing was heard from the other machine for {0} s")]
    Silent(u64),
}
